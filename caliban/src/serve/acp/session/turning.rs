//! The dials of a session are turned: by the client, by a command, by the model itself.

use caliban_protocol::acp::v1::{
    ConfigOptionUpdate, CurrentModeUpdate, Error, RequestId, SessionUpdate,
    SetSessionConfigOptionResponse, SetSessionModeResponse,
};
use caliban_session::Command;

use crate::serve::acp::dials::Dial;

use super::Live;

/// A dial that the client turns.
#[derive(Debug)]
pub(super) struct Turned {
    pub(super) dial: Dial,
    pub(super) request: RequestId,
    pub(super) by: TurnedBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnedBy {
    Mode,
    Option,
}

impl Live {
    pub(super) async fn turn(
        &mut self,
        request: RequestId,
        by: TurnedBy,
        turn: Result<(Dial, Command), Error>,
    ) {
        match turn {
            Ok((dial, command)) => {
                self.turned.push_back(Turned { dial, request, by });
                self.send(command).await;
            }
            Err(error) => self.refuse(&request, error),
        }
    }

    pub(super) fn turned(&mut self, dial: Dial) -> Option<Turned> {
        let place = self.turned.iter().position(|it| it.dial == dial)?;
        self.turned.remove(place)
    }

    pub(super) fn has_not_turned(&mut self, dial: Dial, error: Error) {
        if let Some(turned) = self.turned(dial) {
            self.refuse(&turned.request, error);
        }
    }

    /// A dial was turned, by the client or by something else.
    pub(super) fn has_turned(&mut self, dial: Dial) {
        if dial == Dial::Mode {
            self.dials.regime = self.mode.regime();
        }
        match self.turned(dial) {
            Some(Turned {
                request,
                by: TurnedBy::Mode,
                ..
            }) => {
                self.answer(&request, Ok(SetSessionModeResponse::new()));
                self.tell_options();
            }
            Some(Turned {
                request,
                by: TurnedBy::Option,
                ..
            }) => {
                let options = self.dials.options();
                self.answer(&request, Ok(SetSessionConfigOptionResponse::new(options)));
                if dial == Dial::Mode {
                    self.tell_mode();
                }
            }
            None => {
                if dial == Dial::Mode {
                    self.tell_mode();
                }
                self.tell_options();
            }
        }
    }

    /// Tells of dials that turned without an event: the model ends plan mode by a call of its own.
    pub(super) fn follow(&mut self) {
        if self.turned.is_empty() && self.mode.regime() != self.dials.regime {
            self.dials.regime = self.mode.regime();
            self.tell_mode();
            self.tell_options();
        }
        if self.turned.is_empty() && self.desk.reasoning() != self.dials.reasoning {
            self.dials.reasoning = self.desk.reasoning();
            self.tell_options();
        }
    }

    pub(super) fn tell_mode(&self) {
        let update = CurrentModeUpdate::new(self.dials.regime.as_str());
        self.tell(SessionUpdate::CurrentModeUpdate(update));
    }

    pub(super) fn tell_options(&self) {
        let update = ConfigOptionUpdate::new(self.dials.options());
        self.tell(SessionUpdate::ConfigOptionUpdate(update));
    }
}
