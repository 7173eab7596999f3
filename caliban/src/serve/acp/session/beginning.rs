//! A session begins: who asked for it is answered, and told what there is to know.

use std::collections::VecDeque;
use std::path::PathBuf;

use caliban_harness::Launched;
use caliban_permissions::Latch;
use caliban_protocol::acp::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, LoadSessionResponse,
    NewSessionResponse, NoticeSeverity, RequestId, ResumeSessionResponse, SessionId, SessionUpdate,
    UnstructuredCommandInput,
};
use caliban_protocol::acp::{Projection, Taken, replay};
use caliban_session::Facts;
use uuid::Uuid;

use crate::console::note;
use crate::serve::acp::dials::Dials;
use crate::serve::acp::opening::Begin;
use crate::serve::acp::questions::Questions;

use super::{Line, Live, Titled};

impl Live {
    /// Begins a session that was launched, and answers the request that asked for it.
    pub(in crate::serve::acp) async fn begin(
        launched: Launched,
        begin: Begin,
        request: &RequestId,
        latch: Latch,
        line: Line,
    ) -> Self {
        let facts = launched.facts.clone();
        let (desk, mode) = (launched.desk(), launched.mode());
        let (handle, mut events) = launched.begin();
        events.attend();
        let cwd = PathBuf::from(&facts.cwd);
        let wishes = line.client.wishes;
        let mut projection = Projection::new(cwd, wishes, Uuid::new_v4(), desk.earlier.cost);
        projection.set_window(facts.context_window);
        let dials = Dials {
            provider: facts.provider.clone(),
            regime: mode.regime(),
            model: facts.model.as_str().into(),
            reasoning: desk.reasoning(),
            latch,
        };
        let mut session = Self {
            id: SessionId::new(facts.session_id.as_str()),
            line,
            handle,
            events: Some(events),
            projection,
            dials,
            mode,
            desk,
            prompts: Vec::new(),
            turned: VecDeque::new(),
            questions: Questions::default(),
            declined: None,
            closing: Vec::new(),
            foreword: None,
            titled: Titled::Yes,
            due: None,
            told_last: None,
        };
        session.introduce(begin, request, &facts).await;
        session
    }

    /// Answers the request for the session, and tells what the client should know of it.
    async fn introduce(&mut self, begin: Begin, request: &RequestId, facts: &Facts) {
        let (modes, options) = (self.dials.modes(), self.dials.options());
        match begin {
            Begin::New(_) => {
                self.titled = Titled::NotYet;
                let response = NewSessionResponse::new(self.id.clone());
                self.answer(request, Ok(response.modes(modes).config_options(options)));
            }
            Begin::Load(_) => {
                let past = std::mem::take(&mut self.desk.past);
                for update in replay(&past, &mut self.projection) {
                    self.line.outbox.room().await;
                    self.tell(update);
                }
                let response = LoadSessionResponse::new();
                self.answer(request, Ok(response.modes(modes).config_options(options)));
            }
            Begin::Resume(_) => {
                let response = ResumeSessionResponse::new();
                self.answer(request, Ok(response.modes(modes).config_options(options)));
            }
        }
        let commands = facts.commands.iter().map(|(name, about)| {
            let command = AvailableCommand::new(name.clone(), about.clone());
            match facts.hints.get(name) {
                Some(hint) => {
                    let hint = UnstructuredCommandInput::new(hint.clone());
                    command.input(AvailableCommandInput::Unstructured(hint))
                }
                None => command,
            }
        });
        let commands = AvailableCommandsUpdate::new(commands.collect());
        self.tell(SessionUpdate::AvailableCommandsUpdate(commands));
        let used = self.projection.goes_on(self.desk.earlier.used);
        self.tell_all(used);
        self.warn(facts);
    }

    /// What whoever began the session should know. What the workspace brings and does not count is
    /// said in so many words, because nobody reads the log of an editor.
    fn warn(&mut self, facts: &Facts) {
        let is_about_trust = |warning: &&String| warning.contains("trusted");
        let left: Vec<&str> = facts
            .warnings
            .iter()
            .filter(|warning| !facts.trusted && is_about_trust(warning))
            .map(String::as_str)
            .collect();
        if !left.is_empty() && self.line.client.wishes.notices == Taken::No {
            self.foreword = Some(left.join("\n"));
        }
        for warning in &facts.warnings {
            note(&format!("warning: {warning}"));
            let notice = self.projection.notice(NoticeSeverity::Warning, warning);
            self.tell_all(notice);
        }
    }
}
