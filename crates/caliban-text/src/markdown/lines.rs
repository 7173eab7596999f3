//! What a line of Markdown may begin.

/// What a line looks like by itself; what it is depends on what is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Blank,
    Fence(Fence),
    Heading,
    /// A rule, or the line below a heading where there is text above it.
    Rule,
    Quote,
    Item(Item),
    Text,
}

/// The opening of a code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) mark: u8,
    pub(super) length: usize,
    pub(super) indent: usize,
}

/// The beginning of a list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    /// Items with different marks are of different lists.
    pub(super) mark: u8,
    pub(super) number: Option<u64>,
    pub(super) content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Some,
    None,
}

/// Columns before the first character; a tab counts as four.
pub(super) fn indent(line: &str) -> usize {
    let of = |byte: u8| match byte {
        b' ' => Some(1),
        b'\t' => Some(4),
        _ => None,
    };
    line.bytes().map_while(of).sum()
}

pub(super) fn look(line: &str) -> Look {
    let text = line.trim_matches([' ', '\t', '\n']);
    if text.is_empty() {
        return Look::Blank;
    }
    if indent(line) >= 4 {
        return Look::Text;
    }
    if let Some(fence) = fence(line) {
        return Look::Fence(fence);
    }
    if is_rule(text) {
        return Look::Rule;
    }
    match text.as_bytes() {
        [b'>', ..] => Look::Quote,
        [b'#', ..] if is_heading(text) => Look::Heading,
        _ => item(text).map_or(Look::Text, Look::Item),
    }
}

fn fence(line: &str) -> Option<Fence> {
    let text = line.trim_start_matches(' ').trim_end_matches(['\n', ' ']);
    let mark = *text.as_bytes().first()?;
    let length = text.bytes().take_while(|byte| *byte == mark).count();
    let info = text.get(length..).unwrap_or_default();
    let opens = match mark {
        b'`' => length >= 3 && !info.contains('`'),
        b'~' => length >= 3,
        _ => false,
    };
    opens.then(|| Fence {
        mark,
        length,
        indent: indent(line),
    })
}

/// What is said of the code in a block, on the line that opens it.
pub(super) fn info(line: &str) -> &str {
    line.trim_matches([' ', '\n'])
        .trim_start_matches(['`', '~'])
        .trim()
}

impl Fence {
    /// Whether a line closes what this one opened.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim_matches([' ', '\t', '\n']);
        indent(line) < 4 && text.len() >= self.length && text.bytes().all(|byte| byte == self.mark)
    }
}

fn is_heading(text: &str) -> bool {
    let marks = text.bytes().take_while(|byte| *byte == b'#').count();
    marks <= 6 && matches!(text.as_bytes().get(marks), None | Some(b' ' | b'\t'))
}

fn is_rule(text: &str) -> bool {
    let Some(mark) = text
        .bytes()
        .next()
        .filter(|mark| matches!(mark, b'-' | b'*' | b'_'))
    else {
        return false;
    };
    let marks = text.bytes().filter(|byte| *byte == mark).count();
    marks >= 3
        && text
            .bytes()
            .all(|byte| byte == mark || matches!(byte, b' ' | b'\t'))
}

/// Whether a line makes a heading of the text above it.
pub(super) fn is_underline(line: &str) -> bool {
    let text = line
        .trim_end_matches([' ', '\t', '\n'])
        .trim_start_matches(' ');
    indent(line) < 4
        && !text.is_empty()
        && (text.bytes().all(|byte| byte == b'=') || text.bytes().all(|byte| byte == b'-'))
}

fn item(text: &str) -> Option<Item> {
    let bytes = text.as_bytes();
    let digits = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (mark, number) = match (digits, bytes.get(digits)?) {
        (0, mark @ (b'-' | b'*' | b'+')) => (*mark, None),
        (1..=9, mark @ (b'.' | b')')) => (*mark, Some(text.get(..digits)?.parse().ok()?)),
        _ => return None,
    };
    let content = match bytes.get(digits + 1) {
        None => Content::None,
        Some(b' ' | b'\t') => Content::Some,
        Some(_) => return None,
    };
    Some(Item {
        mark,
        number,
        content,
    })
}

/// Whether it cannot be said yet what an unfinished line will be: it has nothing but marks so far.
pub(super) fn is_undecided(line: &str) -> bool {
    let is_mark = |byte: u8| {
        byte.is_ascii_digit()
            || matches!(
                byte,
                b'-' | b'='
                    | b'*'
                    | b'_'
                    | b'`'
                    | b'~'
                    | b'>'
                    | b'#'
                    | b'+'
                    | b'|'
                    | b':'
                    | b'.'
                    | b')'
                    | b' '
                    | b'\t'
            )
    };
    line.bytes().all(is_mark) || line.trim_start().starts_with('|')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", Look::Blank)]
    #[case("  \t\n", Look::Blank)]
    #[case("# a", Look::Heading)]
    #[case("#", Look::Heading)]
    #[case("#a", Look::Text)]
    #[case("####### a", Look::Text)]
    #[case("---", Look::Rule)]
    #[case("* * *", Look::Rule)]
    #[case("--", Look::Text)]
    #[case("> a", Look::Quote)]
    #[case("    > a", Look::Text)]
    #[case("```rust", Look::Fence(Fence { mark: b'`', length: 3, indent: 0 }))]
    #[case(" ~~~~", Look::Fence(Fence { mark: b'~', length: 4, indent: 1 }))]
    #[case("```a`", Look::Text)]
    #[case("- a", Look::Item(Item { mark: b'-', number: None, content: Content::Some }))]
    #[case("-", Look::Item(Item { mark: b'-', number: None, content: Content::None }))]
    #[case("12) a", Look::Item(Item { mark: b')', number: Some(12), content: Content::Some }))]
    #[case("1.a", Look::Text)]
    #[case("1234567890. a", Look::Text)]
    #[case("a", Look::Text)]
    #[case("é", Look::Text)]
    fn lines_look_like_something(#[case] line: &str, #[case] as_seen: Look) {
        assert_eq!(look(line), as_seen);
    }
}
