//! Replacing exact text. Line breaks match whether they are LF or CRLF, and what is written has
//! the line breaks of the file; nothing else is tolerated.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use super::hints;
use super::snippet::Outline;

/// Line numbers listed for a text that was found several times.
const LISTED_LINES: usize = 10;
/// Places counted of a text that must be found once; finding more takes time and helps nobody.
const COUNTED_PLACES: usize = 1000;

// One replacement, as the model asks for it. Its fields mean what they mean in Edit, where they
// are described; doc comments here would be sent a second time with every request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    pub(super) old_string: String,
    pub(super) new_string: String,
    #[serde(default)]
    pub(super) replace_all: Option<bool>,
}

/// A text under change, and where it differs from the original.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Revision {
    pub(super) text: String,
    /// Byte ranges of `text`, in no order, possibly empty or overlapping.
    pub(super) changed: Vec<Range<usize>>,
}

/// Why a change cannot be applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ChangeError {
    #[error("old_string and new_string are the same; there is nothing to change.")]
    Same,
    #[error(
        "old_string is empty, which is only for creating a file or filling an empty one. Give \
         the text to replace."
    )]
    EmptyOld,
    /// With what comes closest.
    #[error("old_string was not found. {0}")]
    NotFound(String),
    #[error(
        "old_string was found {count} times{} ({lines}). Give more of the surrounding text to make \
         it unique, or set replace_all.",
        if *count == COUNTED_PLACES { " or more" } else { "" }
    )]
    Several { count: usize, lines: String },
}

impl Revision {
    pub(super) fn new(text: String) -> Self {
        Self {
            text,
            changed: Vec::new(),
        }
    }

    /// Makes the change and says how often; on an error the text is as before.
    pub(super) fn apply(&mut self, change: &Change) -> Result<usize, ChangeError> {
        let old = Unified::of(&change.old_string).text;
        let new = Unified::of(&change.new_string).text;
        if old == new {
            return Err(ChangeError::Same);
        }
        if old.is_empty() {
            return self.fill(&change.new_string);
        }
        let unified = Unified::of(&self.text);
        let found = match change.replace_all {
            Some(true) => unified.text.match_indices(&old).map(|(at, _)| at).collect(),
            Some(false) | None => overlapping(&unified.text, &old),
        };
        match (found.as_slice(), change.replace_all) {
            ([], _) => return Err(ChangeError::NotFound(hints::closest(&unified.text, &old))),
            ([_], _) | (_, Some(true)) => {}
            (several, Some(false) | None) => {
                return Err(ChangeError::Several {
                    count: several.len(),
                    lines: line_list(&unified.text, several),
                });
            }
        }
        let spans: Vec<Range<usize>> = found
            .iter()
            .map(|at| unified.original(*at)..unified.original(at + old.len()))
            .collect();
        let breaks = Breaks::of(&self.text);
        self.splice(&spans, |span| match Breaks::of(span).or(breaks) {
            Breaks::None => change.new_string.clone(),
            Breaks::Lf => new.clone(),
            Breaks::Crlf => new.replace('\n', "\r\n"),
        });
        Ok(found.len())
    }

    fn fill(&mut self, new: &str) -> Result<usize, ChangeError> {
        if !self.text.is_empty() {
            return Err(ChangeError::EmptyOld);
        }
        new.clone_into(&mut self.text);
        self.changed.push(0..self.text.len());
        Ok(1)
    }

    /// Replaces spans that are in order and apart.
    fn splice(&mut self, spans: &[Range<usize>], replacement: impl Fn(&str) -> String) {
        let mut text = String::with_capacity(self.text.len());
        let mut placed: Vec<Range<usize>> = Vec::with_capacity(spans.len());
        let mut copied = 0;
        for span in spans {
            text.push_str(&self.text[copied..span.start]);
            let start = text.len();
            text.push_str(&replacement(&self.text[span.clone()]));
            placed.push(start..text.len());
            copied = span.end;
        }
        text.push_str(&self.text[copied..]);
        for range in &mut self.changed {
            *range = moved(range.start, spans, &placed, Edge::Start)
                ..moved(range.end, spans, &placed, Edge::End);
        }
        self.changed.extend(placed);
        self.text = text;
    }
}

/// Which end of a range a position is.
#[derive(Clone, Copy)]
enum Edge {
    Start,
    End,
}

/// Where a position is after `spans` became `placed`. One inside a span goes to its edge.
fn moved(position: usize, spans: &[Range<usize>], placed: &[Range<usize>], edge: Edge) -> usize {
    let before = spans.partition_point(|span| span.end <= position);
    match spans.get(before) {
        Some(span) if span.start < position => match edge {
            Edge::Start => placed[before].start,
            Edge::End => placed[before].end,
        },
        Some(_) | None => match before.checked_sub(1) {
            Some(last) => placed[last].end + (position - spans[last].end),
            None => position,
        },
    }
}

/// A text with all line breaks as LF, and the way back.
struct Unified {
    text: String,
    /// Where in `text` the line breaks are that were CRLF.
    crlf: Vec<usize>,
}

impl Unified {
    fn of(original: &str) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut crlf = Vec::new();
        for (index, piece) in original.split("\r\n").enumerate() {
            if index > 0 {
                crlf.push(text.len());
                text.push('\n');
            }
            text.push_str(piece);
        }
        Self { text, crlf }
    }

    /// The position in the original.
    fn original(&self, position: usize) -> usize {
        position + self.crlf.partition_point(|at| *at < position)
    }
}

/// The line breaks of a text, by majority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breaks {
    None,
    Lf,
    Crlf,
}

impl Breaks {
    fn of(text: &str) -> Self {
        let crlf = text.matches("\r\n").count();
        match text.matches('\n').count() {
            0 => Self::None,
            all if crlf * 2 > all => Self::Crlf,
            _ => Self::Lf,
        }
    }

    fn or(self, other: Self) -> Self {
        match self {
            Self::None => other,
            Self::Lf | Self::Crlf => self,
        }
    }
}

/// The places of a text, those that overlap an earlier one included: each is a candidate.
fn overlapping(text: &str, wanted: &str) -> Vec<usize> {
    let step = wanted.chars().next().map_or(1, char::len_utf8);
    let mut found = Vec::new();
    let mut from = 0;
    while found.len() < COUNTED_PLACES
        && let Some(at) = text[from..].find(wanted)
    {
        found.push(from + at);
        from += at + step;
    }
    found
}

fn line_list(text: &str, positions: &[usize]) -> String {
    let outline = Outline::of(text);
    let mut numbers: Vec<_> = positions.iter().map(|at| outline.line(*at)).collect();
    numbers.dedup();
    let listed: Vec<_> = numbers
        .iter()
        .take(LISTED_LINES)
        .map(usize::to_string)
        .collect();
    let noun = match numbers.len() {
        1 => "line",
        _ => "lines",
    };
    match numbers.len().saturating_sub(LISTED_LINES) {
        0 => format!("{noun} {}", listed.join(", ")),
        more => format!("{noun} {} and {more} more", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change(old: &str, new: &str) -> Change {
        Change {
            old_string: old.to_owned(),
            new_string: new.to_owned(),
            replace_all: None,
        }
    }

    fn all(old: &str, new: &str) -> Change {
        Change {
            replace_all: Some(true),
            ..change(old, new)
        }
    }

    fn applied(text: &str, change: &Change) -> String {
        let mut revision = Revision::new(text.to_owned());
        revision.apply(change).unwrap();
        revision.text
    }

    #[test]
    fn line_breaks_match_and_are_kept() {
        let one = change("b\nc", "B\nX\nC");
        assert_eq!(applied("a\r\nb\r\nc\r\n", &one), "a\r\nB\r\nX\r\nC\r\n");
        assert_eq!(applied("a\nb\nc\n", &one), "a\nB\nX\nC\n");
        let typed = change("b\r\nc", "B\r\nC");
        assert_eq!(applied("a\nb\nc\n", &typed), "a\nB\nC\n");
        // In a mixed file only the replaced part takes part, with its own breaks.
        assert_eq!(applied("a\r\nb\nc\r\nd\r\n", &one), "a\r\nB\nX\nC\r\nd\r\n");
        let inner = change("x", "1\n2");
        assert_eq!(applied("a\r\nx\r\n", &inner), "a\r\n1\r\n2\r\n");
        assert_eq!(applied("x", &change("x", "1\r\n2")), "1\r\n2");
    }

    #[test]
    fn one_match_is_required_unless_all_are_meant() {
        let mut revision = Revision::new("x\ny\nx\n".to_owned());
        assert_eq!(
            revision.apply(&change("x", "z")),
            Err(ChangeError::Several {
                count: 2,
                lines: "lines 1, 3".to_owned()
            })
        );
        assert_eq!(revision, Revision::new("x\ny\nx\n".to_owned()));
        assert_eq!(revision.apply(&all("x", "zz")), Ok(2));
        assert_eq!(revision.text, "zz\ny\nzz\n");
        assert_eq!(revision.changed, [0..2, 5..7]);
        let mut overlap = Revision::new("aaa".to_owned());
        assert!(matches!(
            overlap.apply(&change("aa", "b")),
            Err(ChangeError::Several { count: 2, .. })
        ));
    }

    #[test]
    fn senseless_changes_are_named() {
        let mut revision = Revision::new("text".to_owned());
        assert_eq!(revision.apply(&change("a", "a")), Err(ChangeError::Same));
        assert_eq!(
            revision.apply(&change("a\r\n", "a\n")),
            Err(ChangeError::Same)
        );
        assert_eq!(revision.apply(&change("", "a")), Err(ChangeError::EmptyOld));
        assert!(matches!(
            revision.apply(&change("absent", "a")),
            Err(ChangeError::NotFound(_))
        ));
        assert_eq!(applied("", &change("", "new\r\n")), "new\r\n");
    }

    #[test]
    fn earlier_changes_move_with_later_ones() {
        let mut revision = Revision::new("one two three".to_owned());
        revision.apply(&change("three", "3")).unwrap();
        revision.apply(&change("one", "first")).unwrap();
        let changed = |revision: &Revision| -> Vec<String> {
            let text = |range: &Range<usize>| revision.text[range.clone()].to_owned();
            revision.changed.iter().map(text).collect()
        };
        assert_eq!(changed(&revision), ["3", "first"]);
        revision.apply(&change("two 3", "2 and 3")).unwrap();
        assert_eq!(changed(&revision), ["2 and 3", "first", "2 and 3"]);
    }

    #[test]
    fn many_lines_are_summed_up() {
        let error = Revision::new("x\n".repeat(25)).apply(&change("x", "y"));
        assert_eq!(
            error.unwrap_err().to_string(),
            "old_string was found 25 times (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 15 \
             more). Give more of the surrounding text to make it unique, or set replace_all."
        );
    }

    #[test]
    fn counting_has_an_end() {
        let mut revision = Revision::new("a".repeat(1 << 20));
        let error = revision.apply(&change(&"a".repeat(1 << 10), "b"));
        let text = error.unwrap_err().to_string();
        assert!(text.contains("found 1000 times or more (line 1)"), "{text}");
    }

    proptest! {
        #[test]
        fn what_is_around_a_change_stays_byte_for_byte(
            before in "[ab\r\n]{0,20}", after in "[ab\r\n]{0,20}", new in "[xy\n]{0,8}"
        ) {
            let text = format!("{before}OLD{after}");
            let result = applied(&text, &change("OLD", &new));
            prop_assert!(result.starts_with(&before));
            prop_assert!(result.ends_with(&after));
            let inserted = &result[before.len()..result.len() - after.len()];
            prop_assert_eq!(inserted.replace("\r\n", "\n"), new);
        }

        #[test]
        fn positions_lead_back_to_the_original(text in "[ab\r\n]{0,30}") {
            let unified = Unified::of(&text);
            prop_assert_eq!(&unified.text, &text.replace("\r\n", "\n"));
            for (at, character) in unified.text.char_indices() {
                let original = &text[unified.original(at)..];
                let matches = original.starts_with(character)
                    || (character == '\n' && original.starts_with("\r\n"));
                prop_assert!(matches);
            }
        }
    }
}
