//! Gemini answers, streamed and whole.

use serde_json::{Value, json};

use super::needs_signatures;
use crate::frame::Event;
use crate::quirk::Quirk;
use crate::script::{Stop, Usage};
use crate::text;
use crate::turn::{Part, Turn};

pub(crate) fn events(turn: &Turn) -> Vec<Event> {
    let mut out: Vec<_> = parts(turn, Cut::Pieces)
        .into_iter()
        .map(|part| Event::unnamed(&response(turn, &json!([part]), Progress::Running)))
        .collect();
    let mut last = json!({"text": ""});
    if closes_signed(turn) {
        last["thoughtSignature"] = turn.signature.as_str().into();
    }
    out.push(Event::unnamed(&response(
        turn,
        &json!([last]),
        Progress::Finished,
    )));
    out
}

pub(crate) fn document(turn: &Turn) -> Value {
    let mut parts = parts(turn, Cut::Whole);
    if let Some(last) = parts.last_mut().filter(|_| closes_signed(turn)) {
        last["thoughtSignature"] = turn.signature.as_str().into();
    }
    response(turn, &parts.into(), Progress::Finished)
}

/// A turn that thought but called nothing carries its signature on the last part.
fn closes_signed(turn: &Turn) -> bool {
    turn.has_thinking() && !turn.has_calls() && needs_signatures(&turn.model)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Pieces,
    Whole,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Running,
    Finished,
}

fn parts(turn: &Turn, cut: Cut) -> Vec<Value> {
    let mut out = Vec::new();
    let mut signed = false;
    for part in &turn.parts {
        match (part, cut) {
            (Part::Text { pieces }, Cut::Pieces) => {
                out.extend(pieces.iter().map(|piece| json!({"text": piece})));
            }
            (Part::Text { pieces }, Cut::Whole) => out.push(json!({"text": pieces.concat()})),
            (Part::Thinking { text, .. }, Cut::Pieces) => {
                out.extend(
                    text::pieces(text)
                        .into_iter()
                        .map(|piece| json!({"text": piece, "thought": true})),
                );
            }
            (Part::Thinking { text, .. }, Cut::Whole) => {
                out.push(json!({"text": text, "thought": true}));
            }
            (Part::Redacted { .. }, _) => {}
            (Part::Call { id, name, input }, _) => {
                let mut call = json!({"name": name, "args": input});
                if !turn.quirks.has(Quirk::NoIds) {
                    call["id"] = id.as_str().into();
                }
                let mut part = json!({"functionCall": call});
                if !signed {
                    part["thoughtSignature"] = turn.signature.as_str().into();
                    signed = true;
                }
                out.push(part);
            }
        }
    }
    out
}

fn response(turn: &Turn, parts: &Value, progress: Progress) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if progress == Progress::Finished && !turn.quirks.has(Quirk::NoFinishReason) {
        candidate["finishReason"] = finish_reason(turn).into();
    }
    let mut response = json!({
        "candidates": [candidate],
        "modelVersion": turn.model,
        "responseId": format!("resp-{:04}", turn.serial),
    });
    if !turn.quirks.has(Quirk::NoUsage) {
        response["usageMetadata"] = usage(&turn.usage, progress);
    }
    response
}

fn finish_reason(turn: &Turn) -> &str {
    match &turn.stop {
        Stop::EndTurn | Stop::ToolUse | Stop::StopSequence(_) | Stop::Pause => "STOP",
        Stop::MaxTokens | Stop::ContextExceeded => "MAX_TOKENS",
        Stop::Refusal | Stop::ContentFilter => "SAFETY",
        Stop::Raw(raw) => raw,
    }
}

/// The prompt includes cached tokens; candidates exclude thoughts.
fn usage(usage: &Usage, progress: Progress) -> Value {
    let prompt = usage.prompt();
    let mut counts = json!({"promptTokenCount": prompt});
    if usage.cache_read > 0 {
        counts["cachedContentTokenCount"] = usage.cache_read.into();
    }
    if usage.reasoning > 0 {
        counts["thoughtsTokenCount"] = usage.reasoning.into();
    }
    match progress {
        Progress::Running => counts["totalTokenCount"] = (prompt + usage.reasoning).into(),
        Progress::Finished => {
            counts["candidatesTokenCount"] = usage.output.saturating_sub(usage.reasoning).into();
            counts["totalTokenCount"] = (prompt + usage.output).into();
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{Ask, Mode};
    use crate::script::Reply;
    use crate::turn::Ids;

    fn turn(reply: &Reply) -> Turn {
        let body =
            json!({"generationConfig": {"thinkingConfig": {"includeThoughts": true}}}).to_string();
        let ask = Ask::from_path("gemini-3.8-flash", Mode::Stream, body.as_bytes()).unwrap();
        Turn::resolve(reply, &ask, &Ids::default())
    }

    fn data(turn: &Turn) -> Vec<Value> {
        events(turn)
            .iter()
            .map(|event| serde_json::from_str(&event.data).unwrap())
            .collect()
    }

    #[test]
    fn only_the_first_call_is_signed() {
        let reply = Reply::tools([("Bash", json!({"a": 1})), ("Read", json!({}))]).thinking("Plan");
        let all = data(&turn(&reply));
        let part = |index: usize| &all[index]["candidates"][0]["content"]["parts"][0];
        assert_eq!(part(0)["thought"], true);
        assert!(
            part(1)["thoughtSignature"].is_string() && part(1)["functionCall"]["id"].is_string()
        );
        assert!(part(2).get("thoughtSignature").is_none());
        assert_eq!(all[3]["candidates"][0]["finishReason"], "STOP");
        assert!(
            all[..3]
                .iter()
                .all(|chunk| chunk["candidates"][0].get("finishReason").is_none())
        );
        let bare = data(&turn(&reply.quirk(Quirk::NoIds)));
        assert!(
            bare[1]["candidates"][0]["content"]["parts"][0]["functionCall"]
                .get("id")
                .is_none()
        );
    }

    #[test]
    fn a_final_answer_may_end_signed() {
        let whole = document(&turn(&Reply::text("Done.").thinking("Plan")));
        assert!(whole["candidates"][0]["content"]["parts"][1]["thoughtSignature"].is_string());
        let plain = document(&turn(&Reply::text("Done.")));
        assert!(
            plain["candidates"][0]["content"]["parts"][0]
                .get("thoughtSignature")
                .is_none()
        );
    }

    #[test]
    fn thoughts_are_not_counted_as_candidates() {
        let usage = Usage {
            input: 1,
            cache_read: 2,
            output: 9,
            reasoning: 5,
            ..Usage::default()
        };
        let counts = &document(&turn(&Reply::text("x").usage(usage)))["usageMetadata"];
        assert_eq!(
            counts,
            &json!({"promptTokenCount": 3, "cachedContentTokenCount": 2, "thoughtsTokenCount": 5,
                    "candidatesTokenCount": 4, "totalTokenCount": 12})
        );
    }
}
