//! Short numbered excerpts of a text around what changed in it.

use std::fmt::Write as _;
use std::ops::Range;

/// Lines shown before and after a change.
const CONTEXT: usize = 3;
/// Lines shown in total.
const MAX_LINES: usize = 40;
/// Characters shown of a line.
const MAX_CHARS: usize = 300;

/// The lines of a text, found once.
#[derive(Debug)]
pub(super) struct Outline<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Outline<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        // What follows the last line break is a line only if it is not empty.
        let starts = std::iter::once(0)
            .chain(after.filter(|start| *start < text.len()))
            .collect();
        Self { text, starts }
    }

    /// The number of the line that holds a position, from one.
    pub(super) fn line(&self, position: usize) -> usize {
        self.starts.partition_point(|start| *start <= position)
    }

    /// A line by its number, without its break.
    fn content(&self, number: usize) -> &'a str {
        let start = self.starts[number - 1];
        let end = self.starts.get(number).copied().unwrap_or(self.text.len());
        self.text[start..end].trim_end_matches(['\r', '\n'])
    }

    /// The line numbers a byte range covers, last included.
    fn lines(&self, range: &Range<usize>) -> (usize, usize) {
        let last = range.end.saturating_sub(1).max(range.start);
        (self.line(range.start), self.line(last))
    }

    /// These lines, numbered, with a line that stands for what lies between them.
    pub(super) fn show(&self, groups: &[(usize, usize)]) -> String {
        let mut text = String::new();
        let mut room = MAX_LINES;
        for (index, (first, last)) in groups.iter().enumerate() {
            if index > 0 {
                text.push_str("     …\n");
            }
            for number in (*first..=*last).take(room) {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{number:>6}\t{}", cut(self.content(number)));
            }
            match room.checked_sub(last - first + 1) {
                Some(left) if left > 0 || index + 1 == groups.len() => room = left,
                Some(_) | None => {
                    text.push_str("     …\n");
                    break;
                }
            }
        }
        text
    }

    /// The lines around changes, as line groups that neither touch nor overlap.
    pub(super) fn around(&self, changes: &[Range<usize>]) -> Vec<(usize, usize)> {
        let mut groups: Vec<(usize, usize)> = changes
            .iter()
            .map(|range| {
                let (first, last) = self.lines(range);
                let last = (last + CONTEXT).min(self.starts.len());
                (first.saturating_sub(CONTEXT).max(1), last)
            })
            .collect();
        merge(&mut groups);
        groups
    }

    /// The changed lines in words: `line 3`, `lines 3-5 and 9`.
    pub(super) fn name(&self, changes: &[Range<usize>]) -> String {
        let mut groups: Vec<_> = changes.iter().map(|range| self.lines(range)).collect();
        merge(&mut groups);
        let span = |(first, last): &(usize, usize)| match (first, last) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        };
        let listed: Vec<_> = groups.iter().take(10).map(span).collect();
        match (groups.as_slice(), groups.len() - listed.len()) {
            ([(first, last)], _) if first == last => format!("line {first}"),
            (_, 0) => format!("lines {}", listed.join(", ")),
            (_, more) => format!("lines {} and {more} more places", listed.join(", ")),
        }
    }
}

fn merge(groups: &mut Vec<(usize, usize)>) {
    groups.sort_unstable();
    groups.dedup_by(|next, previous| {
        let touches = next.0 <= previous.1 + 1;
        if touches {
            previous.1 = previous.1.max(next.1);
        }
        touches
    });
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_context() {
        let lines: Vec<_> = (1..=30).map(|number| format!("l{number}\n")).collect();
        let text = lines.concat();
        let outline = Outline::of(&text);
        let at = |line: &str| {
            let start = text.find(line).unwrap();
            start..start + line.len()
        };
        let changes = [at("l20\nl21"), at("l1\n"), at("l6\n")];
        assert_eq!(outline.name(&changes), "lines 1, 6, 20-21");
        assert_eq!(outline.around(&changes), [(1, 9), (17, 24)]);
        let shown = outline.show(&[(1, 1), (30, 30)]);
        assert_eq!(shown, "     1\tl1\n     …\n    30\tl30\n");
    }

    #[test]
    fn excerpts_are_bounded() {
        let text = "x".repeat(1000) + "\n";
        let text = text.repeat(500);
        let outline = Outline::of(&text);
        let shown = outline.show(&outline.around(&[0..text.len(), 0..1]));
        assert_eq!(shown.lines().count(), MAX_LINES + 1);
        assert!(shown.chars().count() < (MAX_CHARS + 20) * (MAX_LINES + 1));
    }

    #[test]
    fn a_deletion_at_the_end_is_named_by_the_line_it_left() {
        let outline = Outline::of("a\nb\n");
        let end = 4..4;
        assert_eq!(outline.name(std::slice::from_ref(&end)), "line 2");
        assert_eq!(outline.around(&[end]), [(1, 2)]);
        let nothing = Outline::of("");
        assert_eq!(
            nothing.show(&nothing.around(&[Range::default()])),
            "     1\t\n"
        );
    }
}
