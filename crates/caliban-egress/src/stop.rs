//! Why a connection does not get through: what was refused, and what could not be done.

use std::net::IpAddr;

use crate::entry::Entry;
use crate::hello::HelloFault;
use crate::host::Target;

/// What was not let through, by whose decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is no request that can be read in one way only.
    Malformed(String),
    /// An entry of the list of denied domains names it.
    Denied { entry: String },
    /// No entry names it, and nobody is there to ask.
    Unlisted,
    /// The user said no.
    Declined,
    /// The user was asked and has not answered in time.
    Unanswered,
    /// One command asked for too many hosts that are not listed.
    TooManyQuestions,
    /// It lies outside the public internet, and no entry names it as it is.
    Private { address: IpAddr, kind: &'static str },
    /// What was said in the tunnel is not what the tunnel was opened for.
    Hello(HelloFault),
    /// The request in the tunnel names another host.
    OtherHost,
}

/// What was let through and still did not get there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The client left, or said nothing in time, before it was known what it wants.
    NothingAsked,
    /// The client opened a tunnel and said nothing in time.
    Silent,
    Unresolved(String),
    Unreachable(String),
    TimedOut,
    /// The operator's proxy answered with this status.
    Upstream(u16),
    /// The operator's proxy cannot be understood or reached.
    UpstreamBroken(String),
    /// The command ended first.
    Cut,
}

/// Why a connection ends before anything was passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    Refused(Refusal),
    Failed(Failure),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Refusal {
    /// One line for whoever has to do something about it.
    pub(crate) fn text(&self, target: Option<&Target>) -> String {
        let Some(target) = target else {
            return match self {
                Self::Malformed(reason) => format!("the request was refused: {reason}"),
                Self::Denied { .. }
                | Self::Unlisted
                | Self::Declined
                | Self::Unanswered
                | Self::TooManyQuestions
                | Self::Private { .. }
                | Self::Hello(_)
                | Self::OtherHost => "the request was refused".to_owned(),
            };
        };
        let entry = Entry::covering(target);
        match self {
            Self::Malformed(reason) => format!("`{target}` was refused: {reason}"),
            Self::Denied { entry } => {
                format!("`{target}` is denied by the entry `{entry}` of the denied domains")
            }
            Self::Unlisted => format!(
                "`{target}` is not in `sandbox.network.allowed_domains`; add \"{entry}\" there to allow it"
            ),
            Self::Declined => {
                format!("the user refused `{target}`; it stays closed to this command")
            }
            Self::Unanswered => format!(
                "the user was asked about `{target}` and has not answered yet; try again, or add \
                 \"{entry}\" to `sandbox.network.allowed_domains`"
            ),
            Self::TooManyQuestions => format!(
                "`{target}` is not in `sandbox.network.allowed_domains`, and this command has asked for \
                 too many hosts already; add \"{entry}\" there to allow it"
            ),
            Self::Private { address, kind } => format!(
                "`{target}` has the address {address}, which is {kind} and not on the public internet; \
                 only an entry that is that address opens it, such as \"{}\" in \
                 `sandbox.network.allowed_domains`",
                Target {
                    host: (*address).into(),
                    port: target.port
                }
            ),
            Self::Hello(fault) => format!("the tunnel to `{target}` was closed: {fault}"),
            Self::OtherHost => {
                format!("the tunnel to `{target}` was closed: the request in it names another host")
            }
        }
    }

    /// For the status line, which is all that many clients show.
    fn phrase(&self, target: Option<&Target>) -> String {
        let place = target.map_or_else(|| "the request".to_owned(), ToString::to_string);
        match self {
            Self::Malformed(_) => "Refused by the sandbox".to_owned(),
            Self::Denied { .. } => format!("{place} is denied by the sandbox"),
            Self::Unlisted | Self::TooManyQuestions => {
                format!("{place} is not in sandbox.network.allowed_domains")
            }
            Self::Declined => format!("{place} was refused by the user"),
            Self::Unanswered => format!("the user was asked about {place}; try again"),
            Self::Private { .. } => format!("{place} is not on the public internet"),
            Self::Hello(_) | Self::OtherHost => {
                format!("the tunnel to {place} was used for another host")
            }
        }
    }

    fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::Denied { .. }
            | Self::Unlisted
            | Self::Declined
            | Self::Unanswered
            | Self::TooManyQuestions
            | Self::Private { .. }
            | Self::Hello(_)
            | Self::OtherHost => 403,
        }
    }
}

impl Failure {
    pub(crate) fn text(&self, target: Option<&Target>) -> String {
        let place = target.map_or_else(|| "the request".to_owned(), |target| format!("`{target}`"));
        match self {
            Self::NothingAsked => "no request came in time".to_owned(),
            Self::Silent => format!("nothing was said in the tunnel to {place} in time"),
            Self::Unresolved(reason) => format!("{place} cannot be resolved: {reason}"),
            Self::Unreachable(reason) => format!("{place} cannot be reached: {reason}"),
            Self::TimedOut => format!("{place} did not answer in time"),
            Self::Upstream(status) => format!(
                "the proxy of `sandbox.network.http_proxy_port` answered {status} for {place}"
            ),
            Self::UpstreamBroken(reason) => {
                format!("the proxy of `sandbox.network.http_proxy_port` cannot be used: {reason}")
            }
            Self::Cut => format!("the connection to {place} ended with the command"),
        }
    }

    fn status(&self) -> (u16, &'static str) {
        match self {
            Self::NothingAsked | Self::Silent => (408, "Request Timeout"),
            Self::Unresolved(_)
            | Self::Unreachable(_)
            | Self::Upstream(_)
            | Self::UpstreamBroken(_)
            | Self::Cut => (502, "Bad Gateway"),
            Self::TimedOut => (504, "Gateway Timeout"),
        }
    }
}

impl Stop {
    fn text(&self, target: Option<&Target>) -> String {
        match self {
            Self::Refused(refusal) => refusal.text(target),
            Self::Failed(failure) => failure.text(target),
        }
    }

    /// The answer to an HTTP client.
    pub(crate) fn http(&self, target: Option<&Target>) -> Vec<u8> {
        let (status, phrase) = match self {
            Self::Refused(refusal) => (refusal.status(), refusal.phrase(target)),
            Self::Failed(failure) => {
                let (status, phrase) = failure.status();
                (status, phrase.to_owned())
            }
        };
        let body = format!("caliban: {}\n", self.text(target));
        format!(
            "HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    /// The code for a SOCKS client.
    pub(crate) fn socks(&self) -> u8 {
        match self {
            Self::Refused(_) => 2,
            Self::Failed(failure) => match failure {
                Failure::Unresolved(_) => 4,
                Failure::Unreachable(_) => 5,
                Failure::TimedOut => 6,
                Failure::NothingAsked
                | Failure::Silent
                | Failure::Upstream(_)
                | Failure::UpstreamBroken(_)
                | Failure::Cut => 1,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_add() {
        let told = |text: &str| {
            let target = Target::parse(text.as_bytes()).unwrap();
            String::from_utf8(Stop::from(Refusal::Unlisted).http(Some(&target))).unwrap()
        };
        assert_eq!(
            told("evil.org:443"),
            "HTTP/1.1 403 evil.org:443 is not in sandbox.network.allowed_domains\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Length: 102\r\nConnection: close\r\n\r\n\
             caliban: `evil.org:443` is not in `sandbox.network.allowed_domains`; add \"evil.org\" there to allow it\n"
        );
        assert!(told("evil.org:8443").contains("add \"evil.org:8443\" there"));
        assert!(told("[2606::1]:22").contains("add \"[2606::1]:22\" there"));
    }
}
