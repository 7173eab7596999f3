//! Making terminal output readable for a model: decoded, without escape sequences, and with
//! lines that were redrawn in place reduced to their last state.

/// Whether bytes are something to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Text,
    Binary,
}

/// Bytes that are not UTF-8 make text binary from this share on.
const MAX_INVALID_PERCENT: usize = 30;

pub(super) fn script(bytes: &[u8]) -> Script {
    if bytes.contains(&0) {
        return Script::Binary;
    }
    let bad: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    if bad * 100 > bytes.len() * MAX_INVALID_PERCENT {
        Script::Binary
    } else {
        Script::Text
    }
}

pub(super) fn binary_summary(bytes: u64) -> String {
    format!("(binary output of {bytes} bytes, not shown; redirect it to a file or into `xxd`)")
}

/// How many bytes at the end are the start of a character that is not complete.
pub(super) fn incomplete_end(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last();
    last.map_or(0, |chunk| incomplete_length(chunk.invalid()))
}

/// An invalid sequence is incomplete, rather than wrong, if more bytes could complete it.
fn incomplete_length(invalid: &[u8]) -> usize {
    match std::str::from_utf8(invalid) {
        Err(error) if error.error_len().is_none() => invalid.len(),
        Ok(_) | Err(_) => 0,
    }
}

/// How many bytes at the start are the rest of a character whose start is missing.
pub(super) fn orphaned_start(bytes: &[u8]) -> usize {
    let continues = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    bytes.iter().take(3).take_while(continues).count()
}

/// Decodes, removes escape sequences and keeps of every line what a terminal would show last.
/// Takes one pass, whatever the input.
pub(super) fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::with_capacity(text.len());
    let mut line_start = 0;
    let mut returned = Returned::No;
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            '\u{1b}' => skip_escape(&mut rest),
            '\r' => returned = Returned::Yes,
            '\n' => {
                shown.push('\n');
                line_start = shown.len();
                returned = Returned::No;
            }
            character => {
                if returned == Returned::Yes {
                    shown.truncate(line_start);
                    returned = Returned::No;
                }
                shown.push(character);
            }
        }
    }
    shown
}

/// Whether the cursor went back to the start of the line, so that what follows replaces it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Returned {
    Yes,
    No,
}

/// Skips the rest of an escape sequence. A sequence that is not well-formed ends where it stops
/// being one, and never hides the next line.
fn skip_escape(rest: &mut std::str::Chars<'_>) {
    let mut ahead = rest.clone();
    match ahead.next() {
        Some('[') => {
            *rest = ahead;
            skip_while(rest, |character| matches!(character, ' '..='?'));
            skip_one(rest, |character| matches!(character, '@'..='~'));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            *rest = ahead;
            skip_while(rest, |character| {
                !matches!(character, '\n' | '\u{7}' | '\u{1b}')
            });
            // The escape of a two-character terminator is met next, with its `\`.
            skip_one(rest, |character| character == '\u{7}');
        }
        Some(' '..='/') => {
            *rest = ahead;
            skip_while(rest, |character| matches!(character, ' '..='/'));
            skip_one(rest, |character| matches!(character, '0'..='~'));
        }
        Some('0'..='~') => *rest = ahead,
        Some(_) | None => {}
    }
}

fn skip_while(rest: &mut std::str::Chars<'_>, matching: impl Fn(char) -> bool) {
    *rest = rest.as_str().trim_start_matches(matching).chars();
}

fn skip_one(rest: &mut std::str::Chars<'_>, matching: impl Fn(char) -> bool) {
    let mut ahead = rest.clone();
    if ahead.next().is_some_and(matching) {
        *rest = ahead;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("plain\ntext\n", "plain\ntext\n")]
    #[case("dos\r\nlines\r\n", "dos\nlines\n")]
    #[case("10%\r50%\r100%\ndone", "100%\ndone")]
    #[case("kept\r", "kept")]
    #[case("a\nlong line\rx\n", "a\nx\n")]
    #[case("\r\r\r", "")]
    #[case("\u{1b}[1;31mred\u{1b}[0m", "red")]
    #[case("\u{1b}]0;title\u{7}text", "text")]
    #[case("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link")]
    #[case("\u{1b}]0;unfinished\nnext line", "\nnext line")]
    #[case("\u{1b}[1;\nnext", "\nnext")]
    #[case("\u{1b}(Btext\u{1b}7\u{1b}M", "text")]
    #[case("ends with \u{1b}", "ends with ")]
    #[case("10%\r\u{1b}[K20%", "20%")]
    #[case("tab\tand \u{8} stay", "tab\tand \u{8} stay")]
    fn terminal_output_becomes_text(#[case] bytes: &str, #[case] text: &str) {
        assert_eq!(readable(bytes.as_bytes()), text);
    }

    #[test]
    fn a_flood_of_returns_is_one_line() {
        let flood = "x\r".repeat(2 * 1024 * 1024) + "end";
        assert_eq!(readable(flood.as_bytes()), "end");
        assert_eq!(readable(&vec![b'\r'; 4 * 1024 * 1024]), "");
        let escapes = "\u{1b}".repeat(1024 * 1024) + "\nend";
        assert_eq!(readable(escapes.as_bytes()), "\nend");
        let unfinished = "\u{1b}]".repeat(1024 * 1024) + "\nend";
        assert_eq!(readable(unfinished.as_bytes()), "\nend");
    }

    #[test]
    fn some_bad_bytes_are_replaced_and_many_are_binary() {
        assert_eq!(readable(b"caf\xe9"), "caf\u{fffd}");
        assert_eq!(script(b"caf\xe9"), Script::Text);
        assert_eq!(script(b""), Script::Text);
        assert_eq!(script(b"a\0b"), Script::Binary);
        assert_eq!(script(b"\xff\xfe\xfd\xfcab"), Script::Binary);
    }

    #[test]
    fn torn_characters_are_found() {
        let euro = "€".as_bytes();
        assert_eq!(incomplete_end(b"abc"), 0);
        assert_eq!(incomplete_end(&euro[..1]), 1);
        assert_eq!(incomplete_end(&[b"ab", &euro[..2]].concat()), 2);
        assert_eq!(incomplete_end(b"ab\xff"), 0);
        assert_eq!(incomplete_end(&"😀".as_bytes()[..3]), 3);
        assert_eq!(incomplete_end(euro), 0);
        assert_eq!(orphaned_start(&euro[1..]), 2);
        assert_eq!(orphaned_start(euro), 0);
        assert_eq!(orphaned_start(b""), 0);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_become_text_without_escapes(bytes: Vec<u8>) {
            let text = readable(&bytes);
            proptest::prop_assert!(!text.contains(['\u{1b}', '\r']), "{text:?}");
        }
    }
}
