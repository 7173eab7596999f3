//! How alike two short texts are, for suggesting what may have been meant.

/// Characters compared at most; more would cost time and change nothing.
const MAX_CHARS: usize = 200;

/// The adjacent pairs of characters of a text, prepared for comparing with many others.
#[derive(Debug)]
pub(super) struct Pairs(Vec<(char, char)>);

impl Pairs {
    /// Case does not count.
    pub(super) fn of(text: &str) -> Self {
        let chars = || text.chars().take(MAX_CHARS).flat_map(char::to_lowercase);
        // The padding gives texts of one character a pair, and first characters some weight.
        let mut pairs: Vec<_> = std::iter::once(' ').chain(chars()).zip(chars()).collect();
        pairs.sort_unstable();
        Self(pairs)
    }

    /// How many pairs of a hundred both have in common.
    pub(super) fn likeness(&self, other: &Self) -> usize {
        let total = self.0.len() + other.0.len();
        if total == 0 {
            return 0;
        }
        let (mut left, mut right, mut common) = (0, 0, 0);
        while let (Some(a), Some(b)) = (self.0.get(left), other.0.get(right)) {
            match a.cmp(b) {
                std::cmp::Ordering::Less => left += 1,
                std::cmp::Ordering::Greater => right += 1,
                std::cmp::Ordering::Equal => {
                    common += 1;
                    left += 1;
                    right += 1;
                }
            }
        }
        200 * common / total
    }
}

/// The best of the candidates that are at least `threshold` percent alike, best first.
pub(super) fn most_alike<T>(
    wanted: &str,
    candidates: impl Iterator<Item = T>,
    text: impl Fn(&T) -> &str,
    threshold: usize,
    limit: usize,
) -> Vec<T> {
    let wanted = Pairs::of(wanted);
    let mut scored: Vec<(usize, T)> = candidates
        .map(|candidate| (wanted.likeness(&Pairs::of(text(&candidate))), candidate))
        .filter(|(score, _)| *score >= threshold)
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.truncate(limit);
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_is_symmetric_and_bounded() {
        let likeness = |a, b| Pairs::of(a).likeness(&Pairs::of(b));
        assert_eq!(likeness("Main.RS", "main.rs"), 100);
        assert_eq!(likeness("abc", "xyz"), 0);
        assert_eq!(likeness("", ""), 0);
        assert_eq!(
            likeness("mian.rs", "main.rs"),
            likeness("main.rs", "mian.rs")
        );
        assert!(likeness("mian.rs", "main.rs") >= 50);
    }

    #[test]
    fn the_best_come_first() {
        let names = ["readme.md", "main.rs", "mainly.rs", "Main.rs2"];
        assert_eq!(
            most_alike("Main.rs", names.into_iter(), |name| name, 50, 2),
            ["main.rs", "Main.rs2"]
        );
    }
}
