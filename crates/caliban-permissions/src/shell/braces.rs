//! Brace expansion: `{a,b}` and `{1..5}`, of anything that is made of symbols.

/// How many words one word may become.
const MAX_RESULTS: usize = 64;
/// How deep braces may nest; each open brace without its end is looked at again.
const MAX_BRACES: usize = 64;

/// A piece of a word: an unquoted character or something that braces do not look into.
pub(super) trait Symbol: Clone {
    fn symbol(&self) -> Option<char>;
    fn plain(c: char) -> Self;
}

/// The words a word becomes, in the shell's order; none where that is not known or too much.
pub(super) fn expand<S: Symbol>(word: &[S]) -> Option<Vec<Vec<S>>> {
    let braces = word.iter().filter(|s| s.symbol() == Some('{')).count();
    if braces > MAX_BRACES {
        return None;
    }
    let words = expand_from(word)?;
    // The shell drops words that become empty, which would move the others.
    (!words.iter().any(Vec::is_empty)).then_some(words)
}

fn expand_from<S: Symbol>(word: &[S]) -> Option<Vec<Vec<S>>> {
    let Some(open) = word.iter().position(|s| s.symbol() == Some('{')) else {
        return Some(vec![word.to_vec()]);
    };
    let (before, rest) = (&word[..open], &word[open + 1..]);
    let (choices, after) = match choices(rest)? {
        Some((choices, after)) => (choices, expand_from(after)?),
        // Not an expansion: the brace stands for itself.
        None => (vec![vec![S::plain('{')]], expand_from(rest)?),
    };
    if choices.len() * after.len() > MAX_RESULTS {
        return None;
    }
    let mut words = Vec::with_capacity(choices.len() * after.len());
    for choice in &choices {
        for after in &after {
            words.push([before, choice, after].concat());
        }
    }
    Some(words)
}

type Choices<'a, S> = Option<(Vec<Vec<S>>, &'a [S])>;

/// What stands for an open brace, and what follows its end; inside, none if it is no expansion.
fn choices<S: Symbol>(rest: &[S]) -> Option<Choices<'_, S>> {
    let mut depth = 0_usize;
    let mut commas = Vec::new();
    let mut end = None;
    for (index, piece) in rest.iter().enumerate() {
        match piece.symbol() {
            Some('{') => depth += 1,
            Some('}') if depth == 0 => {
                end = Some(index);
                break;
            }
            Some('}') => depth -= 1,
            Some(',') if depth == 0 => commas.push(index),
            _ => {}
        }
    }
    let Some(end) = end else {
        return Some(None);
    };
    let after = &rest[end + 1..];
    if commas.is_empty() {
        let inside: Option<String> = rest[..end].iter().map(Symbol::symbol).collect();
        let has_dots = rest[..end]
            .windows(2)
            .any(|pair| pair.iter().all(|s| s.symbol() == Some('.')));
        return match inside {
            _ if !has_dots => Some(None),
            Some(inside) => sequence(&inside).map(|words| Some((words, after))),
            None => None,
        };
    }
    let mut words = Vec::new();
    let mut start = 0;
    for comma in commas.into_iter().chain([end]) {
        words.extend(expand_from(&rest[start..comma])?);
        start = comma + 1;
        if words.len() > MAX_RESULTS {
            return None;
        }
    }
    Some(Some((words, after)))
}

/// `first..last` or `first..last..step` of numbers or letters; none where it is anything less
/// plain, such as padded numbers.
fn sequence<S: Symbol>(text: &str) -> Option<Vec<Vec<S>>> {
    let parts: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match parts.as_slice() {
        [first, last] => (*first, *last, 1),
        [first, last, step] => (*first, *last, step.parse::<i64>().ok()?),
        _ => return None,
    };
    let (from, to, letters) = match (letter(first), letter(last)) {
        (Some(from), Some(to)) if from.is_ascii_lowercase() == to.is_ascii_lowercase() => {
            (i64::from(from), i64::from(to), true)
        }
        _ => (number(first)?, number(last)?, false),
    };
    let step = i64::try_from(step.unsigned_abs().max(1)).ok()?;
    let count = usize::try_from(from.abs_diff(to) / step.unsigned_abs()).ok()? + 1;
    if count > MAX_RESULTS {
        return None;
    }
    let step = if from <= to { step } else { -step };
    let mut words = Vec::with_capacity(count);
    let mut value = from;
    for _ in 0..count {
        words.push(if letters {
            vec![S::plain(char::from(u8::try_from(value).ok()?))]
        } else {
            value.to_string().chars().map(S::plain).collect()
        });
        value += step;
    }
    Some(words)
}

fn letter(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(*letter),
        _ => None,
    }
}

/// A number of at most six digits that is spelled as it is printed.
fn number(text: &str) -> Option<i64> {
    let value: i64 = text.parse().ok()?;
    (value.to_string() == text && value.abs() < 1_000_000).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::{Symbol, expand};
    use rstest::rstest;

    impl Symbol for char {
        fn symbol(&self) -> Option<char> {
            Some(*self)
        }

        fn plain(c: char) -> Self {
            c
        }
    }

    fn expanded(word: &str) -> Option<String> {
        let symbols: Vec<char> = word.chars().collect();
        let words = expand(&symbols)?;
        let words: Vec<String> = words.iter().map(|word| word.iter().collect()).collect();
        Some(words.join(" "))
    }

    // The right sides are what bash prints.
    #[rstest]
    #[case("a{b,c}d", "abd acd")]
    #[case("{a,b}{1,2}", "a1 a2 b1 b2")]
    #[case("{a,{b,c}}", "a b c")]
    #[case("{a{b,c}d}", "{abd} {acd}")]
    #[case("{a,{b,c}", "{a,b {a,c")]
    #[case("{}", "{}")]
    #[case("{abc}", "{abc}")]
    #[case("{abc}{d,e}", "{abc}d {abc}e")]
    #[case("x{,y}", "x xy")]
    #[case("{1..3}", "1 2 3")]
    #[case("{3..1}", "3 2 1")]
    #[case("{1..7..3}", "1 4 7")]
    #[case("{a..c}", "a b c")]
    #[case("{-1..1}", "-1 0 1")]
    fn braces_expand_as_in_the_shell(#[case] word: &str, #[case] expected: &str) {
        assert_eq!(expanded(word).as_deref(), Some(expected));
    }

    #[rstest]
    #[case("{,}")]
    #[case("{01..10}")]
    #[case("{1..x}")]
    #[case("{A..z}")]
    #[case("{1..1000}")]
    #[case("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}")]
    fn what_is_not_plain_or_too_much_is_not_expanded(#[case] word: &str) {
        assert_eq!(expanded(word), None);
    }
}
