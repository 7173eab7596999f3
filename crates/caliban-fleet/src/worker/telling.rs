//! Events of a session as the lines that those who are attached read: the native frames, and a few
//! of the fleet's own.

use caliban_agent::{Answer, Event, Reply};
use caliban_protocol::{Encoder, HookEvents, Init, Partial, Replay, line, question, result};
use caliban_session::{Answered, By, What};
use serde_json::{Value, json};

use super::ring::Kind;

/// Answers as they come.
const PIECES: Encoder = Encoder {
    partial: Partial::Included,
    hooks: HookEvents::Included,
    replay: Replay::Prompts,
};
/// Answers when they are whole.
const WHOLE: Encoder = Encoder {
    partial: Partial::Left,
    ..PIECES
};

/// The lines of an event, and what they are.
pub fn lines(what: &What, session_id: &str) -> (Kind, Vec<String>) {
    let one = |frame: Value| (Kind::Other, vec![line(&frame)]);
    let nothing = (Kind::Other, Vec::new());
    match what {
        What::Opened(facts) => one(Init::from(&**facts).frame()),
        What::Run(event) => match event {
            Event::TextDelta { .. } | Event::ThinkingDelta { .. } => {
                (Kind::Piece, PIECES.lines(event))
            }
            Event::TurnEnded { .. } => (Kind::Answer, WHOLE.lines(event)),
            event => (Kind::Other, WHOLE.lines(event)),
        },
        What::Queued { prompt, position } => {
            one(json!({"type": "queued", "request_id": prompt, "position": position}))
        }
        What::Ended {
            outcome, totals, ..
        }
        | What::Repeated {
            outcome, totals, ..
        } => one(result(outcome, totals, session_id)),
        What::Refused(refused) => {
            one(json!({"type": "refused", "what": refused.what, "reason": refused.reason}))
        }
        What::Asked(asked) => one(question(asked)),
        What::Answered(answered) => one(answer(answered)),
        What::ModeChanged { mode } => one(json!({"type": "mode", "mode": mode})),
        What::ModelChanged { model } => one(json!({"type": "model", "model": model})),
        What::Began { .. }
        | What::TakenBack { .. }
        | What::Interrupted { .. }
        | What::ReasoningChanged { .. }
        | What::RuleChanged(_)
        | What::Idle
        | What::Closing
        | What::Closed { .. } => nothing,
    }
}

fn answer(answered: &Answered) -> Value {
    let how = match &answered.by {
        By::Operator(Answer::Allow { .. }) => "allow",
        By::Operator(Answer::Deny { .. }) => "deny",
        By::Operator(Answer::TimedOut) => "timed_out",
        By::Operator(Answer::Nobody) | By::Replied(Reply::Nobody) => "nobody",
        By::Replied(Reply::Accept(_)) => "accept",
        By::Replied(Reply::Decline) => "decline",
        By::Replied(Reply::Cancel) => "cancel",
        By::Withdrawn => "withdrawn",
    };
    json!({"type": "answered", "question": answered.question, "how": how})
}
