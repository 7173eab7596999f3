//! How many columns a text takes, and cutting it to fit.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Code points that one cluster may have; what is chained together beyond that is cut here. The
/// longest emoji in use has ten.
const CLUSTER: usize = 32;

/// What stands where something was cut out.
pub(crate) const ELLIPSIS: &str = "…";

/// The clusters of a text: what a reader takes for one character, in pieces of bounded length.
pub fn clusters(text: &str) -> impl Iterator<Item = &str> {
    Clusters { text, cluster: 0 }
}

struct Clusters<'a> {
    text: &'a str,
    /// Bytes that are left of a cluster which is too long for one piece.
    cluster: usize,
}

impl<'a> Iterator for Clusters<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let end = match self.text.as_bytes() {
            [] => return None,
            // A letter before another is one: nearly everything that is ever shown.
            [one, next, ..] if self.cluster == 0 && is_plain(*one) && is_plain(*next) => 1,
            _ => self.piece(),
        };
        let (piece, rest) = self.text.split_at(end);
        self.cluster = self.cluster.saturating_sub(end);
        self.text = rest;
        Some(piece)
    }
}

impl Clusters<'_> {
    /// Where the first piece of the next cluster ends.
    fn piece(&mut self) -> usize {
        if self.cluster == 0 {
            let first = self.text.graphemes(true).next();
            self.cluster = first.map_or(self.text.len(), str::len);
        }
        // No more bytes than code points allowed means no more code points either.
        if self.cluster <= CLUSTER {
            return self.cluster;
        }
        let bound = self.text.char_indices().nth(CLUSTER);
        bound.map_or(self.cluster, |(at, _)| at.min(self.cluster))
    }
}

fn is_plain(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte)
}

/// The columns of a text without tabs and newlines.
pub fn width(text: &str) -> usize {
    if is_simple(text) {
        return text.len();
    }
    clusters(text).map(cluster_width).sum()
}

/// The columns of one cluster.
pub fn cluster_width(cluster: &str) -> usize {
    if is_simple(cluster) {
        return cluster.len();
    }
    cluster.width()
}

/// One column a byte.
fn is_simple(text: &str) -> bool {
    text.bytes().all(is_plain)
}

/// Whether terminals differ on the width of a cluster, so that whoever writes it must say where
/// the next one stands.
pub fn is_disputed(cluster: &str) -> bool {
    let mut chars = cluster.chars();
    let (Some(first), None) = (chars.next(), chars.next()) else {
        return true;
    };
    matches!(first,
        // Indic and its neighbours, conjoining Hangul, lone halves of flags, private use.
        '\u{0900}'..='\u{0dff}'
        | '\u{0e31}' | '\u{0e34}'..='\u{0e3a}' | '\u{0e47}'..='\u{0e4e}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1100}'..='\u{11ff}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{1f1e6}'..='\u{1f1ff}')
        || cluster_width(cluster) == 0
}

/// The longest beginning of a text that takes so many columns, and how many it takes.
pub(crate) fn fitting(text: &str, columns: usize) -> (&str, usize) {
    let (mut end, mut taken) = (0, 0);
    for cluster in clusters(text) {
        let wide = cluster_width(cluster);
        if taken + wide > columns {
            break;
        }
        end += cluster.len();
        taken += wide;
    }
    (&text[..end], taken)
}

/// A text in so many columns; `…` ends one that was longer.
pub fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if fits(text, columns) {
        return Cow::Borrowed(text);
    }
    match columns {
        0 => Cow::Borrowed(""),
        1.. => Cow::Owned(format!("{}{ELLIPSIS}", fitting(text, columns - 1).0)),
    }
}

/// A text in so many columns; of one that was longer both ends stay, with `…` between them.
pub fn cut_middle(text: &str, columns: usize) -> Cow<'_, str> {
    if fits(text, columns) {
        return Cow::Borrowed(text);
    }
    if columns < 3 {
        return cut(text, columns);
    }
    let (head, taken) = fitting(text, (columns - 1).div_ceil(2));
    let mut room = columns - 1 - taken;
    let mut start = text.len();
    let rest = &text[head.len()..];
    // Clusters from the end; what is put together wrongly there was disputed anyway.
    for cluster in rest.graphemes(true).rev() {
        let wide = cluster_width(cluster);
        if wide > room {
            break;
        }
        room -= wide;
        start -= cluster.len();
    }
    Cow::Owned(format!("{head}{ELLIPSIS}{}", &text[start..]))
}

fn fits(text: &str, columns: usize) -> bool {
    fitting(text, columns).0.len() == text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("abc", 3)]
    #[case("", 0)]
    #[case("日本", 4)]
    #[case("e\u{301}", 1)]
    #[case("👍🏽", 2)]
    #[case("👩‍👩‍👧", 2)]
    #[case("❤️", 2)]
    #[case("🇩🇪", 2)]
    fn columns_are_counted_by_clusters(#[case] text: &str, #[case] columns: usize) {
        assert_eq!(width(text), columns);
    }

    #[rstest]
    #[case("a", false)]
    #[case("ü", false)]
    #[case("日", false)]
    #[case("👍", false)]
    #[case("❤️", true)]
    #[case("👩‍👩‍👧", true)]
    #[case("🇩🇪", true)]
    #[case("क", true)]
    #[case("e\u{301}", true)]
    #[case("1️⃣", true)]
    fn disputes_are_known(#[case] cluster: &str, #[case] disputed: bool) {
        assert_eq!(is_disputed(cluster), disputed);
    }

    #[rstest]
    #[case("abcdef", 6, "abcdef")]
    #[case("abcdef", 5, "abcd…")]
    #[case("abcdef", 1, "…")]
    #[case("abcdef", 0, "")]
    #[case("日本語", 5, "日本…")]
    #[case("日本語", 4, "日…")]
    fn what_is_too_long_is_cut(#[case] text: &str, #[case] columns: usize, #[case] cut_to: &str) {
        assert_eq!(cut(text, columns), cut_to);
    }

    #[rstest]
    #[case("abcdef", 5, "ab…ef")]
    #[case("abcdef", 4, "ab…f")]
    #[case("abcdef", 2, "a…")]
    #[case("src/a/b/c/d.rs", 9, "src/…d.rs")]
    fn both_ends_stay(#[case] text: &str, #[case] columns: usize, #[case] cut_to: &str) {
        assert_eq!(cut_middle(text, columns), cut_to);
    }

    proptest! {
        #[test]
        fn a_cut_text_fits(text in "\\PC{0,40}", columns in 0_usize..50) {
            prop_assert!(width(&cut(&text, columns)) <= columns);
            prop_assert!(width(&cut_middle(&text, columns)) <= columns + 1);
        }
    }

    #[test]
    fn no_cluster_is_endless() {
        let chained = "\u{1100}".repeat(10_000);
        assert!(clusters(&chained).all(|piece| piece.chars().count() <= CLUSTER));
        assert_eq!(
            clusters(&chained).map(str::len).sum::<usize>(),
            chained.len()
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// The short way for letters finds what the long one does.
        #[test]
        fn clusters_are_those_of_the_whole_text(text in "[a-z e\u{301}\u{1f1e6}-\u{1f1ff}\u{200d}👨👩क्षि漢\r\n]{0,30}") {
            let whole: Vec<&str> = text.graphemes(true).collect();
            prop_assert_eq!(clusters(&text).collect::<Vec<_>>(), whole);
        }
    }
}
