//! Finds `@path` directives: alone on their line and not in code.

use std::collections::HashMap;
use std::ops::Range;

/// What a line asks for, if it is a directive.
pub(super) fn target(line: &str) -> Option<&str> {
    let target = line.trim().strip_prefix('@')?;
    (!target.is_empty() && !target.contains(char::is_whitespace)).then_some(target)
}

/// For every line of [`str::lines`], whether it begins in code: fenced, indented, or a span that
/// goes over line ends.
pub(super) fn lines_in_code(text: &str) -> Vec<bool> {
    let mut flags = Vec::new();
    let mut fence: Option<Fence<'_>> = None;
    let mut paragraph: Range<usize> = 0..0;
    let mut offset = 0;
    let mut starts = Vec::new();
    let mut spans = Vec::new();
    for line in text.split_inclusive('\n') {
        starts.push(offset);
        let end = offset + line.len();
        let opened = Fence::open(line);
        let is_text = fence.is_none() && opened.is_none() && !line.trim().is_empty();
        flags.push(!is_text || is_indented(line));
        if is_text {
            if paragraph.is_empty() {
                paragraph.start = offset;
            }
            paragraph.end = end;
        } else {
            spans.extend(code_spans(text, paragraph.clone()));
            paragraph = end..end;
        }
        fence = match fence {
            Some(open) if open.is_closed_by(line) => None,
            Some(open) => Some(open),
            None => opened,
        };
        offset = end;
    }
    spans.extend(code_spans(text, paragraph));
    let mut spans = spans.into_iter().peekable();
    for (flag, start) in flags.iter_mut().zip(starts) {
        while spans.next_if(|span| span.end <= start).is_some() {}
        *flag |= spans.peek().is_some_and(|span| span.start < start);
    }
    flags
}

fn is_indented(line: &str) -> bool {
    line.starts_with("    ") || line.trim_start_matches(' ').starts_with('\t')
}

#[derive(Clone, Copy)]
struct Fence<'a> {
    marks: &'a str,
}

impl<'a> Fence<'a> {
    fn open(line: &'a str) -> Option<Self> {
        if is_indented(line) {
            return None;
        }
        let line = line.trim();
        let mark = line
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let length = line.len() - line.trim_start_matches(mark).len();
        let (marks, info) = line.split_at(length);
        (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Self { marks })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let line_marks = line.trim();
        !is_indented(line)
            && line_marks.len() >= self.marks.len()
            && line_marks.starts_with(self.marks)
            && line_marks.chars().all(|mark| self.marks.starts_with(mark))
    }
}

/// The code spans of a paragraph: from a run of backticks to the next run of the same length.
fn code_spans(text: &str, paragraph: Range<usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, byte) in text.as_bytes()[paragraph.clone()].iter().enumerate() {
        let position = paragraph.start + index;
        if *byte == b'`' {
            match runs.last_mut() {
                Some(run) if run.end == position => run.end += 1,
                Some(_) | None => runs.push(position..position + 1),
            }
        }
    }
    // Looking only for what is there keeps this linear.
    let last: HashMap<usize, usize> = runs.iter().map(|run| (run.len(), run.start)).collect();
    let mut spans = Vec::new();
    let mut rest = runs.iter();
    while let Some(open) = rest.next() {
        if last.get(&open.len()).is_some_and(|last| *last > open.start)
            && let Some(close) = rest.find(|run| run.len() == open.len())
        {
            spans.push(open.start..close.end);
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("@./a.md", Some("./a.md"))]
    #[case("  @~/n/x.md  ", Some("~/n/x.md"))]
    #[case("@/abs.md", Some("/abs.md"))]
    #[case("@", None)]
    #[case("@a b", None)]
    #[case("see @a.md", None)]
    #[case("`@a.md`", None)]
    fn directives_stand_alone(#[case] line: &str, #[case] expected: Option<&str>) {
        assert_eq!(target(line), expected);
    }

    /// The lines beginning with `@` that are not in code.
    fn live(text: &str) -> Vec<&str> {
        text.lines()
            .zip(lines_in_code(text))
            .filter(|(_, in_code)| !in_code)
            .filter_map(|(line, _)| target(line))
            .collect()
    }

    #[test]
    fn code_is_left_alone() {
        let text =
            "@a\n```\n@b\n~~~\n@c\n```\n@d\n~~~~ sh\n@e\n~~~\n@f\n~~~~~\n@g\n    @h\n\t@i\n   @j\n";
        assert_eq!(live(text), ["a", "d", "g", "j"]);
        assert_eq!(live("x `code\n@a\ncode` y\n@b\n"), ["b"]);
        assert_eq!(live("x `open\n@a\n\nno ` span\n@b\n"), ["a", "b"]);
        assert_eq!(live("``x\n@a\n`y\n@b\n``\n@c"), ["c"]);
        assert_eq!(live("```a`b\n@a\n"), ["a"], "not a fence");
        assert_eq!(live("```\n@a"), [""; 0], "a fence without an end");
    }

    proptest! {
        #[test]
        fn every_line_has_a_flag(text in "(`|``|```|~~~|\n|@a|    |x|é){0,30}") {
            prop_assert_eq!(lines_in_code(&text).len(), text.lines().count());
        }
    }
}
