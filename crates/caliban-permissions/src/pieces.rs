//! A line that cannot be read as a whole, in pieces: what each would be by itself, and which of
//! them cannot be read. It is for the eyes of whoever is asked about the line, and decides nothing.

use caliban_model::{Argument, BuiltInTool};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::evaluation::{Decision, Judge};
use crate::shell::{self, Refusal};
use crate::tools;

/// How many pieces are told apart; a line of more is one.
const MAX_PIECES: usize = 32;

/// A command of a line, or several that stay together.
#[derive(Debug, Clone)]
pub struct Piece {
    pub text: String,
    /// The verdict on it alone, or why it cannot be read.
    pub verdict: Result<Decision, String>,
}

impl Judge {
    /// The pieces of a command that cannot be read as a whole; none where it can be, and where it
    /// is but one piece.
    pub fn pieces(&self, tool: &str, input: &Value, now: Timestamp) -> Vec<Piece> {
        let tool = BuiltInTool::canonical(tool);
        let command = input.get("command").and_then(Value::as_str);
        let (Argument::Command, Some(line)) = (tools::argument(tool), command) else {
            return Vec::new();
        };
        if shell::strict(line).is_ok() {
            return Vec::new();
        }
        let texts = split(line);
        if texts.len() < 2 || texts.len() > MAX_PIECES {
            return Vec::new();
        }
        let mut pieces = Vec::new();
        for text in texts {
            let verdict = match shell::strict(text) {
                Ok(_) => {
                    let mut input = input.clone();
                    input["command"] = json!(text);
                    Ok(self.command(tool, &input, now))
                }
                // It was no place to cut at.
                Err(Refusal::Syntax { .. }) => return Vec::new(),
                Err(refusal) => Err(refusal.to_string()),
            };
            let text = text.to_owned();
            pieces.push(Piece { text, verdict });
        }
        pieces
    }
}

/// A line at its separators, those inside of quotes and parentheses left out.
fn split(line: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut begin, mut depth) = (0, 0_usize);
    let mut quote = None;
    let mut is_escaped = false;
    for (at, char) in line.char_indices() {
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match (char, quote) {
            ('\\', None | Some('"' | '`')) => is_escaped = true,
            (char, Some(open)) if char == open => quote = None,
            ('\'' | '"' | '`', None) => quote = Some(char),
            ('(' | '{', None) => depth += 1,
            (')' | '}', None) => depth = depth.saturating_sub(1),
            (';' | '&' | '|' | '\n', None) if depth == 0 => {
                let is_redirection = matches!(char, '&' | '|')
                    && (line[..at].ends_with(['>', '<']) || line[at..].starts_with("&>"));
                if !is_redirection {
                    pieces.push(&line[begin..at]);
                    begin = at + 1;
                }
            }
            _ => {}
        }
    }
    pieces.push(&line[begin..]);
    let pieces = pieces.into_iter().map(str::trim);
    pieces.filter(|piece| !piece.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_line_is_cut_at_its_separators_only() {
        let cut = split("git status && a 'x;y' | sh 2>&1 ; $(b; c) &\nd \\; e");
        let pieces = ["git status", "a 'x;y'", "sh 2>&1", "$(b; c)", "d \\; e"];
        assert_eq!(cut, pieces);
        assert_eq!(split("a 'b; c"), ["a 'b; c"]);
    }
}
