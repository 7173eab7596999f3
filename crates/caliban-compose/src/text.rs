//! Positions in a text. A position is a byte offset on a boundary between clusters: what a reader
//! takes for one character, or a chip. A chip is one character of a private plane, so that it
//! travels through motions, kills, registers and undo like any other.

use std::ops::RangeInclusive;

use unicode_segmentation::UnicodeSegmentation as _;

/// The characters that stand for chips. No text from outside holds one, see [`clean`].
pub(crate) const CHIPS: RangeInclusive<char> = '\u{10_0000}'..='\u{10_fffd}';

pub(crate) fn is_chip(c: char) -> bool {
    CHIPS.contains(&c)
}

/// What a cluster is to motions by words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Newline,
    Blank,
    Word,
    Sign,
    Chip,
}

impl Class {
    pub(crate) fn of(cluster: &str) -> Self {
        match cluster.chars().next() {
            None | Some('\n') => Self::Newline,
            Some(c) if is_chip(c) => Self::Chip,
            Some(c) if c.is_whitespace() => Self::Blank,
            Some(c) if c.is_alphanumeric() || c == '_' => Self::Word,
            Some(_) => Self::Sign,
        }
    }

    pub(crate) fn is_blank(self) -> bool {
        match self {
            Self::Newline | Self::Blank => true,
            Self::Word | Self::Sign | Self::Chip => false,
        }
    }
}

/// The clusters from a position on, with their positions.
pub(crate) fn clusters(text: &str, from: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut graphemes = text[from..].grapheme_indices(true);
    let mut rest: Option<(usize, &str)> = None;
    std::iter::from_fn(move || {
        let (at, cluster) = match rest.take() {
            Some(rest) => rest,
            None => graphemes.next().map(|(at, cluster)| (from + at, cluster))?,
        };
        let first = first_part(cluster);
        if first < cluster.len() {
            rest = Some((at + first, &cluster[first..]));
        }
        Some((at, &cluster[..first]))
    })
}

/// The clusters before a position, the nearest first, with their positions.
pub(crate) fn clusters_back(text: &str, before: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut graphemes = text[..before].grapheme_indices(true);
    let mut rest: Option<(usize, &str)> = None;
    std::iter::from_fn(move || {
        let (at, cluster) = match rest.take() {
            Some(rest) => rest,
            None => graphemes.next_back()?,
        };
        let last = last_part(cluster);
        if last > 0 {
            rest = Some((at, &cluster[..last]));
        }
        Some((at + last, &cluster[last..]))
    })
}

/// Where the first part of a grapheme ends: a chip joins with nothing.
fn first_part(grapheme: &str) -> usize {
    match grapheme.char_indices().find(|&(_, c)| is_chip(c)) {
        None => grapheme.len(),
        Some((0, chip)) => chip.len_utf8(),
        Some((at, _)) => at,
    }
}

/// Where the last part of a grapheme begins.
fn last_part(grapheme: &str) -> usize {
    match grapheme.char_indices().rfind(|&(_, c)| is_chip(c)) {
        None => 0,
        Some((at, chip)) if at + chip.len_utf8() == grapheme.len() => at,
        Some((at, chip)) => at + chip.len_utf8(),
    }
}

/// The cluster at a position; empty at the end.
pub(crate) fn cluster_at(text: &str, at: usize) -> &str {
    clusters(text, at).next().map_or("", |(_, cluster)| cluster)
}

/// The position after the cluster here; the end stays.
pub(crate) fn next(text: &str, at: usize) -> usize {
    at + cluster_at(text, at).len()
}

/// The position of the cluster before; the beginning stays.
pub(crate) fn prev(text: &str, at: usize) -> usize {
    clusters_back(text, at).next().map_or(0, |(at, _)| at)
}

/// The first boundary at an offset or after it.
pub(crate) fn snap(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset += 1;
    }
    let before = prev(text, offset);
    let mut at = before;
    while at < offset {
        at = next(text, at);
    }
    at
}

/// Where the line of a position begins.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Where the line of a position ends: at its newline, or at the end of the text.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |found| at + found)
}

/// The first character of a line that is not blank, or the line's end.
pub(crate) fn first_non_blank(text: &str, at: usize) -> usize {
    let start = line_start(text, at);
    let line = &text[start..line_end(text, at)];
    let indent = line.find(|c: char| !matches!(c, ' ' | '\t'));
    start + indent.unwrap_or(line.len())
}

/// Text from outside as this crate holds it: newlines are `\n`, there is no other control character
/// than the tab, and nothing that would be taken for a chip.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => cleaned.push('\n'),
            '\n' | '\t' => cleaned.push(c),
            c if c.is_control() => {}
            c if is_chip(c) => cleaned.push(char::REPLACEMENT_CHARACTER),
            c => cleaned.push(c),
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const CHIP: char = '\u{10_0000}';

    #[rstest]
    #[case("a\r\nb\rc", "a\nb\nc")]
    #[case("\u{1b}[31mred\u{9b}\u{7f}", "[31mred")]
    #[case("a\tb\u{10_0000}", "a\tb\u{fffd}")]
    fn text_from_outside_is_cleaned(#[case] from: &str, #[case] to: &str) {
        assert_eq!(clean(from), to);
    }

    #[test]
    fn a_chip_joins_with_no_neighbour() {
        // U+0600 joins with what follows, U+0301 with what is before.
        let text = format!("\u{600}{CHIP}\u{301}x");
        let all: Vec<&str> = clusters(&text, 0).map(|(_, cluster)| cluster).collect();
        assert_eq!(all, ["\u{600}", "\u{10_0000}", "\u{301}", "x"]);
    }

    #[test]
    fn a_cluster_is_stepped_over_as_one() {
        let text = "e\u{301}👩‍👩‍👧🇩🇪";
        assert_eq!(next(text, 0), 3);
        assert_eq!(next(text, 3), text.len() - 8);
        assert_eq!(prev(text, text.len()), text.len() - 8);
        assert_eq!(snap(text, 1), 3);
        assert_eq!(snap(text, text.len() + 9), text.len());
    }

    proptest! {
        #[test]
        fn both_directions_find_the_same_clusters(
            text in "[a\u{301}\u{600}\u{200d}\u{1f469}\u{1f1e9}\u{10_0000}\u{10_0001}\n ]{0,40}",
        ) {
            let forth: Vec<_> = clusters(&text, 0).collect();
            let mut back: Vec<_> = clusters_back(&text, text.len()).collect();
            back.reverse();
            prop_assert_eq!(&forth, &back);
            for (at, cluster) in forth {
                prop_assert_eq!(next(&text, at), at + cluster.len());
                prop_assert_eq!(prev(&text, at + cluster.len()), at);
                prop_assert_eq!(snap(&text, at), at);
            }
        }
    }
}
