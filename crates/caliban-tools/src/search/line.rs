//! Shortening of long lines around what matters in them.

use std::ops::Range;

/// The most characters of a line that are shown.
pub(super) const MAX_LINE: usize = 500;

/// How much of the window stands before the match, as a divisor: enough to see what leads to it.
const LEAD: usize = 4;

/// The line as text, without its end; where it is longer than `max` characters, a window that
/// starts shortly before the match, with `…` where something was left out.
///
/// Only a window of the bytes is ever decoded: a line can be megabytes long.
pub(super) fn cut(line: &[u8], matched: &Range<usize>, max: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // A character has at most four bytes and an invalid byte becomes one character.
    let reach = max.saturating_mul(4);
    if line.len() <= reach {
        let text = String::from_utf8_lossy(line);
        if text.chars().count() <= max {
            return text.into_owned();
        }
    }
    let start = matched.start.min(line.len());
    let from = boundary(line, start.saturating_sub(reach));
    let lead = String::from_utf8_lossy(&line[from..boundary(line, start)]).into_owned();
    let until = boundary(line, line.len().min(start.saturating_add(reach)));
    let tail = String::from_utf8_lossy(&line[boundary(line, start)..until]);

    let lead_length = lead.chars().count();
    let tail_length = tail.chars().count();
    // What the tail does not need goes to the lead.
    let lead_room = (max / LEAD).max(max.saturating_sub(tail_length));
    let lead_kept = lead_length.min(lead_room);
    let tail_kept = tail_length.min(max - lead_kept);
    let mut text = String::new();
    if from > 0 || lead_kept < lead_length {
        text.push('…');
    }
    text.extend(lead.chars().skip(lead_length - lead_kept));
    text.extend(tail.chars().take(tail_kept));
    if until < line.len() || tail_kept < tail_length {
        text.push('…');
    }
    text
}

/// The nearest position at or before `index` where a character may start.
fn boundary(line: &[u8], index: usize) -> usize {
    let is_continuation = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    (0..4)
        .filter_map(|back| index.checked_sub(back))
        .find(|&candidate| {
            line.get(candidate)
                .is_none_or(|byte| !is_continuation(byte))
        })
        .unwrap_or(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_lines_are_whole() {
        assert_eq!(cut(b"one two\r\n", &(4..7), 10), "one two");
        assert_eq!(cut(b"", &(0..0), 10), "");
        assert_eq!(cut(b"\xff\xfe", &(0..1), 10), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn long_lines_show_the_match() {
        let line = format!("{}needle{}", "a".repeat(1000), "b".repeat(1000));
        let text = cut(line.as_bytes(), &(1000..1006), 20);
        assert_eq!(text, "…aaaaaneedlebbbbbbbbb…");
        let at_end = format!("{}needle", "é".repeat(1000));
        let text = cut(at_end.as_bytes(), &(2000..2006), 20);
        assert_eq!(text, format!("…{}needle", "é".repeat(14)));
        let at_start = format!("needle{}", "ü".repeat(1000));
        let text = cut(at_start.as_bytes(), &(0..6), 20);
        assert_eq!(text, format!("needle{}…", "ü".repeat(14)));
    }

    proptest! {
        #[test]
        fn any_cut_of_any_text_is_short_and_holds_no_broken_character(
            text in "\\PC{0,200}",
            start in 0_usize..900,
            max in 1_usize..60,
        ) {
            let shown = cut(text.as_bytes(), &(start..start + 1), max);
            prop_assert!(shown.chars().count() <= max + 2);
            let replacement = char::REPLACEMENT_CHARACTER;
            prop_assert!(!shown.contains(replacement) || text.contains(replacement));
            let inner = shown.trim_start_matches('…').trim_end_matches('…');
            prop_assert!(text.contains(inner));
        }

        #[test]
        fn any_bytes_are_survived(
            line in proptest::collection::vec(any::<u8>(), 0..400),
            start in 0_usize..500,
            max in 1_usize..60,
        ) {
            prop_assert!(cut(&line, &(start..start), max).chars().count() <= max + 2);
        }
    }
}
