//! Motions by words, as emacs and shells have them.

use crate::text::{Class, clusters, clusters_back};

/// What counts as a word: letters and digits, or everything between blanks. A chip is a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    Letters,
    Unbroken,
}

impl Words {
    fn holds(self, class: Class) -> Held {
        match (self, class) {
            (_, Class::Word) | (Self::Unbroken, Class::Sign) => Held::Inside,
            (_, Class::Chip) => Held::Alone,
            (_, Class::Newline | Class::Blank) | (Self::Letters, Class::Sign) => Held::Outside,
        }
    }
}

enum Held {
    Inside,
    Alone,
    Outside,
}

/// The end of the word here, or of the next.
pub(crate) fn word_end(text: &str, from: usize, words: Words) -> usize {
    let mut end = None;
    for (at, cluster) in clusters(text, from) {
        match (words.holds(Class::of(cluster)), end) {
            (Held::Inside, _) => end = Some(at + cluster.len()),
            (Held::Alone, None) => return at + cluster.len(),
            (Held::Alone | Held::Outside, Some(end)) => return end,
            (Held::Outside, None) => {}
        }
    }
    text.len()
}

/// The start of the word here, or of the one before.
pub(crate) fn word_start(text: &str, from: usize, words: Words) -> usize {
    let mut start = None;
    for (at, cluster) in clusters_back(text, from) {
        match (words.holds(Class::of(cluster)), start) {
            (Held::Inside, _) => start = Some(at),
            (Held::Alone, None) => return at,
            (Held::Alone | Held::Outside, Some(start)) => return start,
            (Held::Outside, None) => {}
        }
    }
    0
}
