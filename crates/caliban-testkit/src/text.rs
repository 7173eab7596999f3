//! Cutting text and JSON into the pieces a stream delivers.

/// Characters per streamed piece; small enough that ordinary sentences come in several.
const PIECE: usize = 12;

/// Fragments a tool call's argument JSON is streamed in.
const FRAGMENTS: usize = 3;

pub(crate) fn pieces(text: &str) -> Vec<String> {
    cut(text, PIECE)
}

pub(crate) fn fragments(json: &str) -> Vec<String> {
    cut(json, json.chars().count().div_ceil(FRAGMENTS).max(1))
}

fn cut(text: &str, size: usize) -> Vec<String> {
    let mut rest = text;
    let mut out = Vec::with_capacity(text.len() / size + 1);
    while !rest.is_empty() {
        let end = rest
            .char_indices()
            .nth(size)
            .map_or(rest.len(), |(at, _)| at);
        let (head, tail) = rest.split_at(end);
        out.push(head.to_owned());
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_rejoin_and_respect_characters() {
        for text in [
            "",
            "short",
            "a sentence that is longer than one piece",
            "žluťoučký kůň 🐎🐎🐎🐎🐎🐎",
        ] {
            let cut = pieces(text);
            assert_eq!(cut.concat(), text);
            assert!(
                cut.iter()
                    .all(|piece| piece.chars().count() <= PIECE && !piece.is_empty())
            );
        }
    }

    #[test]
    fn arguments_come_in_up_to_three_fragments() {
        assert_eq!(fragments("{}").len(), 2);
        let cut = fragments(r#"{"command":"ls -la"}"#);
        assert_eq!(
            (cut.len(), cut.concat().as_str()),
            (3, r#"{"command":"ls -la"}"#)
        );
    }
}
