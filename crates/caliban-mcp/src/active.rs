//! The tools that were searched for or used and are offered since; the longest unused make room
//! for new ones.

use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Active {
    /// The latest used last.
    names: VecDeque<String>,
    most: usize,
}

/// What an activation did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Activation {
    pub(crate) is_new: bool,
    pub(crate) evicted: Option<String>,
}

impl Active {
    /// At most so many, but at least one.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            names: VecDeque::new(),
            most: most.max(1),
        }
    }

    pub(crate) fn activate(&mut self, name: String) -> Activation {
        let known = self.names.iter().position(|known| *known == name);
        if let Some(index) = known {
            self.names.remove(index);
        }
        self.names.push_back(name);
        let evicted = if self.names.len() > self.most {
            self.names.pop_front()
        } else {
            None
        };
        Activation {
            is_new: known.is_none(),
            evicted,
        }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_makes_room() {
        let mut active = Active::new(2);
        for name in ["a", "b", "a"] {
            assert_eq!(active.activate(name.to_owned()).evicted, None);
        }
        let third = active.activate("c".to_owned());
        assert_eq!(third.evicted.as_deref(), Some("b"));
        assert!(third.is_new);
        assert!(!active.activate("a".to_owned()).is_new);
        assert_eq!(active.names().collect::<Vec<_>>(), ["c", "a"]);
    }
}
