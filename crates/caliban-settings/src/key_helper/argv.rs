//! A command line as words, quoted as in a shell and meaning nothing else: no expansion, no
//! operators.

/// A quote is opened and never closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the quote {0} is not closed")]
pub struct UnclosedQuote(pub char);

/// Splits at blanks outside quotes. `'…'` keeps everything; in `"…"` a backslash protects `"` and
/// `\`; elsewhere it protects the next character.
pub(crate) fn split(line: &str) -> Result<Vec<String>, UnclosedQuote> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next().ok_or(UnclosedQuote('\''))? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next().ok_or(UnclosedQuote('"'))? {
                        '"' => break,
                        '\\' => match rest.next().ok_or(UnclosedQuote('"'))? {
                            plain @ ('"' | '\\') => word.push(plain),
                            other => word.extend(['\\', other]),
                        },
                        other => word.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(rest.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", &[])]
    #[case("  a\tb\n", &["a", "b"])]
    #[case("a 'b c' \"d e\"", &["a", "b c", "d e"])]
    #[case("a''b \"\" ''", &["ab", "", ""])]
    #[case(r#"a\ b "c\"d\\e\f" '\'"#, &["a b", r#"c"d\e\f"#, r"\"])]
    #[case("get; rm -rf $HOME && `id` | x > y *", &["get;", "rm", "-rf", "$HOME", "&&", "`id`", "|", "x", ">", "y", "*"])]
    fn words_are_split_and_nothing_is_expanded(#[case] line: &str, #[case] words: &[&str]) {
        assert_eq!(split(line).unwrap(), words);
    }

    #[rstest]
    #[case("'a", '\'')]
    #[case("\"a\\\"", '"')]
    fn an_open_quote_is_an_error(#[case] line: &str, #[case] quote: char) {
        assert_eq!(split(line), Err(UnclosedQuote(quote)));
    }

    proptest! {
        #[test]
        fn any_word_survives_single_quotes(words in prop::collection::vec("[^']{0,12}", 0..6)) {
            let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            prop_assert_eq!(split(&line.join(" ")).unwrap(), words);
        }
    }
}
