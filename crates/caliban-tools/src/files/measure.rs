//! Sizes and counts as people read them.

const KB: u64 = 1000;

/// A number of bytes, rounded down to one decimal.
pub(super) fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..KB => return count(bytes, "byte"),
        KB..1_000_000 => (KB, "kB"),
        1_000_000..1_000_000_000 => (1_000_000, "MB"),
        1_000_000_000.. => (1_000_000_000, "GB"),
    };
    format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit)
}

/// A number with its noun, which forms its plural with `s`.
pub(super) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// How many lines a text has; an unfinished last line counts.
pub(super) fn lines(text: &str) -> u64 {
    text.lines().count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_read_naturally() {
        assert_eq!(size(0), "0 bytes");
        assert_eq!(size(1), "1 byte");
        assert_eq!(size(1_999), "1.9 kB");
        assert_eq!(size(5_242_880), "5.2 MB");
        assert_eq!(size(12_000_000_000), "12.0 GB");
        assert_eq!(count(2, "line"), "2 lines");
        assert_eq!(lines("a\nb"), 2);
        assert_eq!(lines("a\nb\n"), 2);
        assert_eq!(lines(""), 0);
    }
}
