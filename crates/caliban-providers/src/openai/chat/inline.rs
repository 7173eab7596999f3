//! Reasoning that a server leaves in the content, as `<think>…</think>` at its start.

use super::Server;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// White space before the tag that is waited for.
const MAX_LEAD: usize = 64;

/// A piece of content, told apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Thinking(String),
    Text(String),
}

/// Tells thinking from text. Holds back at most what may still become a tag.
#[derive(Debug)]
pub(super) struct Inline {
    state: State,
    held: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but white space yet.
    Start,
    Thinking,
    /// Behind the tag; the white space there belongs to it.
    Closed,
    Text,
}

impl Inline {
    pub(super) fn new(server: Server) -> Self {
        let state = match server {
            // Its models keep reasoning apart: a tag there is something they talk about.
            Server::OpenAi => State::Text,
            Server::Compatible | Server::Mistral => State::Start,
        };
        Self {
            state,
            held: String::new(),
        }
    }

    pub(super) fn push(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.held.push_str(text);
        loop {
            match self.state {
                State::Start => {
                    let lead = self.held.trim_start();
                    if let Some(rest) = lead.strip_prefix(OPEN) {
                        self.held = rest.to_owned();
                        self.state = State::Thinking;
                    } else if OPEN.starts_with(lead) && self.held.len() <= MAX_LEAD {
                        return pieces;
                    } else {
                        self.state = State::Text;
                    }
                }
                State::Thinking => {
                    let Some(end) = self.held.find(CLOSE) else {
                        let safe = self.held.len() - partial_close(&self.held);
                        let rest = self.held.split_off(safe);
                        let said = std::mem::replace(&mut self.held, rest);
                        add(&mut pieces, said, Piece::Thinking);
                        return pieces;
                    };
                    let rest = self.held.split_off(end + CLOSE.len());
                    self.held.truncate(end);
                    let said = std::mem::replace(&mut self.held, rest);
                    add(&mut pieces, said, Piece::Thinking);
                    self.state = State::Closed;
                }
                State::Closed => {
                    self.held = self.held.trim_start().to_owned();
                    if self.held.is_empty() {
                        return pieces;
                    }
                    self.state = State::Text;
                }
                State::Text => {
                    add(&mut pieces, std::mem::take(&mut self.held), Piece::Text);
                    return pieces;
                }
            }
        }
    }

    /// The content is complete: what was held back is no tag.
    pub(super) fn finish(&mut self) -> Option<Piece> {
        let held = std::mem::take(&mut self.held);
        match self.state {
            _ if held.is_empty() => None,
            State::Thinking => Some(Piece::Thinking(held)),
            State::Start | State::Closed | State::Text => Some(Piece::Text(held)),
        }
    }
}

fn add(pieces: &mut Vec<Piece>, text: String, piece: fn(String) -> Piece) {
    if !text.is_empty() {
        pieces.push(piece(text));
    }
}

/// How many bytes at the end may be the beginning of the closing tag.
fn partial_close(text: &str) -> usize {
    (1..CLOSE.len())
        .rev()
        .find(|length| text.ends_with(&CLOSE[..*length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn split(server: Server, chunks: &[&str]) -> (String, String) {
        let mut inline = Inline::new(server);
        let mut pieces: Vec<Piece> = chunks.iter().flat_map(|chunk| inline.push(chunk)).collect();
        pieces.extend(inline.finish());
        let mut said = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Thinking(text) => said.0.push_str(&text),
                Piece::Text(text) => said.1.push_str(&text),
            }
        }
        said
    }

    #[rstest]
    #[case("<think>hm</think>\n\nhi", "hm", "hi")]
    #[case("\n <think>\nhm</thin</think>hi <think>", "\nhm</thin", "hi <think>")]
    #[case("hi <think>no</think>", "", "hi <think>no</think>")]
    #[case("<think>cut", "cut", "")]
    #[case("<think>cut</thi", "cut</thi", "")]
    #[case("<thinner", "", "<thinner")]
    #[case("<thi", "", "<thi")]
    #[case(" \n", "", " \n")]
    #[case("<think></think>é", "", "é")]
    fn a_leading_tag_is_told_from_text_wherever_it_is_split(
        #[case] content: &str,
        #[case] thinking: &str,
        #[case] text: &str,
    ) {
        let expected = (thinking.to_owned(), text.to_owned());
        for at in (0..=content.len()).filter(|at| content.is_char_boundary(*at)) {
            let (left, right) = content.split_at(at);
            assert_eq!(split(Server::Compatible, &[left, right]), expected, "{at}");
        }
    }

    #[test]
    fn openai_models_may_talk_about_the_tag() {
        let said = split(Server::OpenAi, &["<think>", "x</think>"]);
        assert_eq!(said, (String::new(), "<think>x</think>".to_owned()));
    }

    proptest! {
        #[test]
        fn little_is_held_back(chunks: Vec<String>) {
            let mut inline = Inline::new(Server::Compatible);
            for chunk in chunks {
                inline.push(&chunk);
                prop_assert!(inline.held.len() <= MAX_LEAD);
            }
        }
    }
}
