//! The frames of an agent as a person reads them.

use serde_json::Value;

/// Characters of a call or a result that are shown.
const SHOWN: usize = 200;

/// Makes text of frames, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    within: Within,
}

/// What was written last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Lines,
    /// An answer that is still coming.
    Answer,
}

impl Reader {
    /// What is to be written for a frame; nothing for one that says nothing to a person.
    pub(crate) fn read(&mut self, frame: &Value) -> String {
        let text = |name: &str| frame[name].as_str().unwrap_or_default();
        match text("type") {
            "text" => {
                self.within = Within::Answer;
                text("delta").to_owned()
            }
            "user" => self.line(&format!("> {}", words(&frame["content"]))),
            "message" => {
                let said = words(&frame["content"]);
                if said.trim().is_empty() {
                    return String::new();
                }
                self.line(&said)
            }
            "tool_use" => {
                let input = short(&frame["input"].to_string());
                self.line(&format!("* {} {input}", text("name")))
            }
            "tool_result" if frame["is_error"] == true => {
                self.line(&format!("  error: {}", short(&words(&frame["content"]))))
            }
            "question" => {
                let question = text("question");
                let what = match text("kind") {
                    "permission" => {
                        format!("{} {}", text("tool"), short(&frame["input"].to_string()))
                    }
                    _ => format!("{}: {}", text("server"), text("message")),
                };
                self.line(&format!(
                    "? {what}\n  /allow, /allow-session or /deny answers {}",
                    question.get(..8).unwrap_or(question)
                ))
            }
            "answered" => self.line(&format!("  answered: {}", text("how"))),
            "result" => {
                let cost = &frame["total_cost_usd"];
                self.line(&format!("-- {} (${cost})", text("subtype")))
            }
            "ended" => {
                let reason = frame["reason"].as_str();
                let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                self.line(&format!("-- the agent is {}{reason}", text("state")))
            }
            "queued" => self.line("  queued"),
            "refused" => self.line(&format!("  refused: {}", text("reason"))),
            "error" => self.line(&format!("  error: {}", text("message"))),
            "warning" => self.line(&format!("  warning: {}", text("message"))),
            "snapshot" => {
                let messages = frame["messages"].as_array().into_iter().flatten();
                let mut all = String::new();
                for message in messages {
                    let said = words(&message["content"]);
                    let said = said.trim();
                    match message["role"].as_str() {
                        _ if said.is_empty() => {}
                        Some("user") => all.push_str(&self.line(&format!("> {said}"))),
                        Some("assistant") => all.push_str(&self.line(said)),
                        _ => {}
                    }
                }
                all
            }
            // Told to programs.
            _ => String::new(),
        }
    }

    /// Whole lines, after the end of an answer that is still coming.
    fn line(&mut self, text: &str) -> String {
        let before = match std::mem::take(&mut self.within) {
            Within::Answer => "\n",
            Within::Lines => "",
        };
        format!("{before}{text}\n")
    }
}

/// The text of a content: a text, or blocks of it.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn short(text: &str) -> String {
    let line = text.replace('\n', " ");
    let mut shown: String = line.chars().take(SHOWN).collect();
    if line.chars().count() > SHOWN {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_in_pieces_and_calls_become_lines() {
        let mut reader = Reader::default();
        let frames = [
            json!({"type": "user", "content": [{"type": "text", "text": "hi"}]}),
            json!({"type": "text", "delta": "He"}),
            json!({"type": "text", "delta": "llo"}),
            json!({"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}),
            json!({"type": "state", "state": "idle"}),
            json!({"type": "result", "subtype": "success", "total_cost_usd": 0.5}),
        ];
        let text: String = frames.iter().map(|frame| reader.read(frame)).collect();
        assert_eq!(
            text,
            "> hi\nHello\n* Bash {\"command\":\"ls\"}\n-- success ($0.5)\n"
        );
    }
}
