//! Every deciding event against every way a handler can behave, as a program and as a URL.

use caliban_agent::{
    Advice, Adviser, Observer, PromptStage, PromptVerdict, SessionSource, StopStage, StopVerdict,
};
use caliban_hooks::Firing;
use caliban_model::Message;
use rstest::rstest;
use serde_json::{Value, json};

use crate::server::{Response, Server};
use crate::support::{Session, bash, script, with};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Command,
    Http,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    /// Nothing is said.
    Quiet,
    Allow,
    Ask,
    Deny,
    Block,
    Garbage,
    UnknownWord,
    Hang,
    Missing,
    Killed,
}

const ALL: [Behaviour; 10] = [
    Behaviour::Quiet,
    Behaviour::Allow,
    Behaviour::Ask,
    Behaviour::Deny,
    Behaviour::Block,
    Behaviour::Garbage,
    Behaviour::UnknownWord,
    Behaviour::Hang,
    Behaviour::Missing,
    Behaviour::Killed,
];

impl Behaviour {
    fn answer(self) -> Option<String> {
        let permission = |word: &str| json!({"hookSpecificOutput": {"permissionDecision": word, "permissionDecisionReason": "because"}});
        Some(match self {
            Self::Quiet => String::new(),
            Self::Allow => permission("allow").to_string(),
            Self::Ask => permission("ask").to_string(),
            Self::Deny => permission("deny").to_string(),
            Self::Block => json!({"decision": "block", "reason": "because"}).to_string(),
            Self::Garbage => "{\"hookSpecificOutput\": ".to_owned(),
            Self::UnknownWord => permission("sure").to_string(),
            Self::Hang | Self::Missing | Self::Killed => return None,
        })
    }

    fn command(self) -> Value {
        match self.answer() {
            Some(answer) => script(&format!("cat >/dev/null; printf %s '{answer}'")),
            None if self == Self::Hang => script("sleep 100"),
            None if self == Self::Killed => script("kill -9 $$"),
            None => json!({"type": "command", "command": "/nonexistent/guard"}),
        }
    }

    fn server(self) -> Server {
        Server::start(move |_| match self.answer() {
            Some(answer) => Response::Status(200, answer),
            None if self == Self::Hang => Response::Silence,
            None => Response::Closed,
        })
    }

    /// Whether the handler fails to decide.
    fn fails(self) -> bool {
        match self {
            Self::Quiet | Self::Allow | Self::Ask | Self::Deny | Self::Block => false,
            Self::Garbage | Self::UnknownWord | Self::Hang | Self::Missing | Self::Killed => true,
        }
    }
}

/// A session whose event has one handler that behaves so. The server must live as long.
fn session(
    event: &str,
    kind: Kind,
    behaviour: Behaviour,
    on_error: Option<&str>,
) -> (Session, Server) {
    let server = behaviour.server();
    let handler = match (kind, behaviour) {
        (Kind::Command, _) => behaviour.command(),
        // A port that nothing listens on any more.
        (Kind::Http, Behaviour::Missing) => json!({"type": "http", "url": "http://127.0.0.1:1/"}),
        (Kind::Http, _) => json!({"type": "http", "url": server.url("/hook")}),
    };
    // What hangs is given up soon; everything else has time on a busy machine.
    let timeout = if behaviour == Behaviour::Hang {
        "200ms"
    } else {
        "60s"
    };
    let mut handler = with(handler, "timeout", json!(timeout));
    if let Some(on_error) = on_error {
        handler["on_error"] = json!(on_error);
    }
    (Session::new(json!({event: [handler]})), server)
}

fn told(session: &Session) -> (&'static str, bool) {
    let Firing {
        decision, warning, ..
    } = session.firing();
    (decision.as_str(), warning.is_some())
}

#[rstest]
#[tokio::test]
async fn before_a_tool(
    #[values(Kind::Command, Kind::Http)] kind: Kind,
    #[values(None, Some("ask"), Some("deny"), Some("allow"))] on_error: Option<&str>,
) {
    for behaviour in ALL {
        let (session, _server) = session("PreToolUse", kind, behaviour, on_error);
        let verdict = session.hooks.advise(&bash("ls")).await;
        let because = |text: &str| text == "because";
        let fits = match (behaviour, on_error) {
            (Behaviour::Quiet, _) => verdict == Advice::Allow,
            (Behaviour::Allow, _) => {
                verdict
                    == Advice::Approve {
                        reason: Some("because".to_owned()),
                        input: None,
                    }
            }
            (Behaviour::Ask, _) => {
                matches!(&verdict, Advice::Ask { reason, .. } if because(reason))
            }
            (Behaviour::Deny | Behaviour::Block, _) => {
                matches!(&verdict, Advice::Deny(denial) if because(&denial.reason))
            }
            (_, Some("ask")) => {
                matches!(&verdict, Advice::Ask { reason, .. } if reason.contains("could not decide"))
            }
            (_, _) => matches!(&verdict, Advice::Deny(denial)
                if denial.reason.contains("could not decide") && denial.remedy.is_some()),
        };
        assert!(fits, "{kind:?} {behaviour:?} {on_error:?}: {verdict:?}");
        let decision = match verdict {
            Advice::Allow | Advice::AllowWith(_) | Advice::Approve { .. } => "allow",
            Advice::Ask { .. } => "ask",
            Advice::Deny(_) => "deny",
        };
        assert_eq!(
            told(&session),
            (decision, behaviour.fails()),
            "{behaviour:?}"
        );
    }
}

#[rstest]
#[tokio::test]
async fn before_a_prompt(#[values(Kind::Command, Kind::Http)] kind: Kind) {
    for behaviour in ALL {
        let (session, _server) = session("UserPromptSubmit", kind, behaviour, None);
        let verdict = session.hooks.before_prompt(&Message::user("hi")).await;
        let fits = match behaviour {
            Behaviour::Quiet | Behaviour::Allow => verdict == PromptVerdict::Accept,
            Behaviour::Ask | Behaviour::Deny | Behaviour::Block => {
                verdict
                    == PromptVerdict::Deny {
                        reason: "because".to_owned(),
                    }
            }
            _ => matches!(&verdict, PromptVerdict::Deny { reason }
                if reason.contains("could not decide")),
        };
        assert!(fits, "{kind:?} {behaviour:?}: {verdict:?}");
        assert_eq!(told(&session).1, behaviour.fails(), "{behaviour:?}");
    }
}

#[rstest]
#[tokio::test]
async fn before_a_stop(#[values(Kind::Command, Kind::Http)] kind: Kind) {
    for behaviour in ALL {
        let (session, _server) = session("Stop", kind, behaviour, None);
        let verdict = session.hooks.before_stop("done").await;
        let expected = match behaviour {
            Behaviour::Deny | Behaviour::Block => StopVerdict::Continue {
                message: "because".to_owned(),
            },
            _ => StopVerdict::Stop,
        };
        assert_eq!(verdict, expected, "{kind:?} {behaviour:?}");
        assert_eq!(told(&session).1, behaviour.fails(), "{behaviour:?}");
    }
}

#[rstest]
#[tokio::test]
async fn at_the_start(#[values(Kind::Command, Kind::Http)] kind: Kind) {
    for behaviour in ALL {
        let (session, _server) = session("SessionStart", kind, behaviour, None);
        let added = session.hooks.welcome(SessionSource::Startup).await;
        assert_eq!(added, None, "{kind:?} {behaviour:?}");
        let refuses = matches!(
            behaviour,
            Behaviour::Ask | Behaviour::Deny | Behaviour::Block
        );
        let expected = ("none", behaviour.fails() || refuses);
        assert_eq!(told(&session), expected, "{behaviour:?}");
    }
}

#[rstest]
#[tokio::test]
async fn a_mere_observer(#[values(Kind::Command, Kind::Http)] kind: Kind) {
    for behaviour in ALL {
        let (session, _server) = session("Notification", kind, behaviour, None);
        let event = caliban_agent::HookEvent::Notification {
            kind: caliban_agent::NotificationKind::Question,
            message: "m".to_owned(),
        };
        session.hooks.notify(&event).await;
        assert_eq!(told(&session), ("none", behaviour.fails()), "{behaviour:?}");
    }
}
