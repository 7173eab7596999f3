//! Reading without regard to quotes: every place where a command could begin if the quotes mean
//! something else than they seem to.

/// What happens to quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// They are taken out, so that `r"m"` is one word.
    Removed,
    /// They end a command, so that what is inside of them is one.
    Separating,
}

/// Lists of words between whatever could separate commands.
pub(super) fn pieces(text: &str, quotes: Quotes) -> Vec<Vec<String>> {
    let mut pieces = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | ';' | '&' | '|' | '(' | ')' | '{' | '}' | '`' => {
                end_piece(&mut pieces, &mut words, &mut word);
            }
            '\'' | '"' if quotes == Quotes::Separating => {
                end_piece(&mut pieces, &mut words, &mut word);
            }
            '\'' | '"' => {}
            '\\' => {
                // A line break after it continues the line.
                if chars.peek() == Some(&'\n') {
                    chars.next();
                }
            }
            '$' if matches!(chars.peek(), Some('(' | '{' | '\'' | '"')) => {}
            ' ' | '\t' | '<' | '>' => end_word(&mut words, &mut word),
            // Someone may take these for line breaks or blanks.
            _ if c.is_control() => end_piece(&mut pieces, &mut words, &mut word),
            _ if c.is_whitespace() => end_word(&mut words, &mut word),
            _ => word.push(c),
        }
        if word.ends_with("$IFS") {
            word.truncate(word.len() - "$IFS".len());
            end_word(&mut words, &mut word);
        }
    }
    end_piece(&mut pieces, &mut words, &mut word);
    pieces
}

fn end_word(words: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

fn end_piece(pieces: &mut Vec<Vec<String>>, words: &mut Vec<String>, word: &mut String) {
    end_word(words, word);
    if !words.is_empty() {
        pieces.push(std::mem::take(words));
    }
}
