//! Keeps memory within its caps: notes give way first, then the project's files, then the user's.

use crate::notice::Notice;
use crate::options::MemoryCaps;
use crate::section::{Section, Tag, bytes_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    Global,
    Project,
    Notes,
}

fn tier(section: &Section) -> Option<Tier> {
    match section.tag {
        Tag::GlobalClaudeMd => Some(Tier::Global),
        Tag::ProjectClaudeMd | Tag::ProjectRule => Some(Tier::Project),
        Tag::AutoMemoryIndex => Some(Tier::Notes),
        Tag::OutputStyle => None,
    }
}

/// Cuts sections until every cap holds, and says which were cut.
pub(super) fn enforce(sections: &mut [Section], caps: &MemoryCaps) -> Vec<Notice> {
    let (notes, instructions) = scaled(caps);
    if let Some(cap) = notes {
        fit(sections, &[Tier::Notes], cap);
    }
    if let Some(cap) = instructions {
        fit(sections, &[Tier::Project, Tier::Global], cap);
    }
    fit(
        sections,
        &[Tier::Notes, Tier::Project, Tier::Global],
        caps.combined,
    );
    sections.iter().filter_map(Section::shortfall).collect()
}

/// The caps of both parts, shrunk in proportion where together they exceed the whole.
fn scaled(caps: &MemoryCaps) -> (Option<u64>, Option<u64>) {
    let (Some(notes), Some(instructions)) = (caps.notes, caps.instructions) else {
        return (caps.notes, caps.instructions);
    };
    let sum = u128::from(notes) + u128::from(instructions);
    let combined = u128::from(caps.combined);
    if sum <= combined {
        return (Some(notes), Some(instructions));
    }
    let scale = |cap: u64| u64::try_from(u128::from(cap) * combined / sum).ok();
    (scale(notes), scale(instructions))
}

/// Cuts tiers in the order given; within a tier the broadest file first, because narrow
/// instructions are about the work at hand.
fn fit(sections: &mut [Section], order: &[Tier], cap: u64) {
    let counts = |section: &Section| tier(section).is_some_and(|tier| order.contains(&tier));
    let total: usize = sections
        .iter()
        .filter(|section| counts(section))
        .map(|section| section.text.len())
        .sum();
    let mut excess = total.saturating_sub(bytes_of(cap));
    for wanted in order {
        for section in sections.iter_mut() {
            if excess > 0 && tier(section) == Some(*wanted) {
                let before = section.text.len();
                section.cut(before.saturating_sub(excess));
                excess = excess.saturating_sub(before - section.text.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Origin;
    use proptest::prelude::*;
    use std::path::Path;

    fn sections(sizes: [usize; 4]) -> Vec<Section> {
        let tags = [
            Tag::GlobalClaudeMd,
            Tag::ProjectClaudeMd,
            Tag::ProjectClaudeMd,
            Tag::AutoMemoryIndex,
        ];
        tags.iter()
            .zip(sizes)
            .map(|(tag, size)| Section::new(Origin::User, *tag, Path::new("/f"), &"x".repeat(size)))
            .collect()
    }

    fn left(sizes: [usize; 4], caps: MemoryCaps) -> Vec<usize> {
        let mut sections = sections(sizes);
        enforce(&mut sections, &caps);
        sections.iter().map(|section| section.text.len()).collect()
    }

    fn caps(notes: Option<u64>, instructions: Option<u64>, combined: u64) -> MemoryCaps {
        MemoryCaps {
            notes,
            instructions,
            combined,
        }
    }

    #[test]
    fn tiers_give_way_in_order() {
        let sizes = [40, 40, 40, 40];
        assert_eq!(left(sizes, caps(None, None, 40)), [40, 40, 40, 40]);
        assert_eq!(left(sizes, caps(None, None, 35)), [40, 40, 40, 20]);
        assert_eq!(left(sizes, caps(None, None, 25)), [40, 20, 40, 0]);
        assert_eq!(left(sizes, caps(None, None, 5)), [20, 0, 0, 0]);
        assert_eq!(left(sizes, caps(Some(5), None, 1000)), [40, 40, 40, 20]);
        assert_eq!(left(sizes, caps(None, Some(15), 1000)), [40, 0, 20, 40]);
        assert_eq!(left(sizes, caps(None, Some(5), 1000)), [20, 0, 0, 40]);
    }

    #[test]
    fn caps_that_exceed_the_whole_shrink_in_proportion() {
        assert_eq!(scaled(&caps(Some(30), Some(10), 20)), (Some(15), Some(5)));
        assert_eq!(scaled(&caps(Some(15), Some(5), 20)), (Some(15), Some(5)));
        assert_eq!(scaled(&caps(Some(30), None, 20)), (Some(30), None));
        assert_eq!(
            scaled(&caps(Some(u64::MAX), Some(u64::MAX), 10)),
            (Some(5), Some(5))
        );
    }

    proptest! {
        #[test]
        fn every_cap_holds(
            sizes in prop::array::uniform4(0usize..500),
            notes in prop::option::of(0u64..100),
            instructions in prop::option::of(0u64..100),
            combined in 0u64..200,
        ) {
            let left = left(sizes, caps(notes, instructions, combined));
            let within = |bytes: usize, cap: Option<u64>| cap.is_none_or(|cap| bytes <= bytes_of(cap));
            prop_assert!(within(left.iter().sum(), Some(combined)));
            prop_assert!(within(left[3], notes));
            prop_assert!(within(left[..3].iter().sum(), instructions));
        }
    }
}
