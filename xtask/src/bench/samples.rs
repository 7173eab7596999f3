//! Repeated measurements of one thing, and what is told of them.

use serde::Serialize;

/// Which of two values is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    Less,
    More,
}

/// What many runs came to: the one in the middle, and the one that others on the machine
/// disturbed least.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Summary {
    pub(super) median: f64,
    pub(super) best: f64,
}

impl Summary {
    /// Nothing where there are no values.
    pub(super) fn of(values: impl IntoIterator<Item = f64>, better: Better) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let median = *values.get(values.len() / 2)?;
        let best = match better {
            Better::Less => *values.first()?,
            Better::More => *values.last()?,
        };
        Some(Self { median, best })
    }

    /// A value that every run would give.
    pub(super) fn exact(value: f64) -> Self {
        Self {
            median: value,
            best: value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_better_end_are_told() {
        let values = [3.0, 1.0, 2.0, 9.0, 4.0];
        let less = Summary::of(values, Better::Less).unwrap();
        assert_eq!((less.median, less.best), (3.0, 1.0));
        let more = Summary::of(values, Better::More).unwrap();
        assert_eq!((more.median, more.best), (3.0, 9.0));
        assert_eq!(Summary::of([], Better::Less), None);
    }
}
