//! Chips: what stands in a text as one position and means more than its label.

use std::borrow::Cow;
use std::sync::Arc;

use crate::text::{CHIPS, clean, is_chip};

/// Chips that may be held at once, those in undo and in registers included.
const MOST_ATOMS: usize = 4_096;

/// What they may hold together. A paste has at most 8 MiB, an image less.
const MOST_BYTES: usize = 128 << 20;

/// The characters of a label taken from outside: a path, a description.
const LABEL_CHARS: usize = 80;

/// What a chip stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Atom {
    Paste(Arc<str>),
    Image(ImageAtom),
    /// A file that is meant, by its path.
    File(Arc<str>),
}

/// An image, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageAtom {
    pub media_type: Arc<str>,
    pub data: Arc<[u8]>,
    /// What is said of it beside its number: `1568×900 downscaled`.
    pub label: Arc<str>,
}

/// A part of a draft, for sending, history and the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    Atom { number: u32, atom: Atom },
}

/// A draft as text: pastes in full, files as `@path`, images as their labels.
pub fn flatten(pieces: &[Piece]) -> String {
    let parts = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => Cow::Borrowed(text.as_str()),
        Piece::Atom { number, atom } => atom.meaning(*number),
    });
    parts.collect()
}

impl Atom {
    /// What is shown in its place.
    pub fn label(&self, number: u32) -> String {
        match self {
            Self::Paste(text) => match text.lines().count() {
                0 | 1 => format!("[Pasted #{number}, {} characters]", text.chars().count()),
                lines => format!("[Pasted #{number}, {lines} lines]"),
            },
            Self::Image(image) => match &*on_one_line(&image.label) {
                "" => format!("[Image #{number}]"),
                label => format!("[Image #{number} {label}]"),
            },
            Self::File(path) => format!("@{}", on_one_line(path)),
        }
    }

    /// The text it means, as far as text can.
    pub(crate) fn meaning(&self, number: u32) -> Cow<'_, str> {
        match self {
            Self::Paste(text) => Cow::Borrowed(text),
            Self::Image(_) => Cow::Owned(self.label(number)),
            Self::File(path) => Cow::Owned(format!("@{path}")),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Paste(_) => Kind::Paste,
            Self::Image(_) => Kind::Image,
            Self::File(_) => Kind::File,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Paste(text) | Self::File(text) => text.len(),
            Self::Image(image) => image.data.len(),
        }
    }
}

fn on_one_line(text: &str) -> String {
    let cleaned = clean(text).replace(['\n', '\t'], " ");
    let mut chars = cleaned.chars();
    let mut label: String = chars.by_ref().take(LABEL_CHARS).collect();
    if chars.next().is_some() {
        label.push('…');
    }
    label
}

/// Chips of a kind are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Paste,
    Image,
    File,
}

/// A chip.
#[derive(Debug, Clone)]
pub(crate) struct Chip {
    pub(crate) number: u32,
    pub(crate) atom: Atom,
    pub(crate) label: Arc<str>,
}

/// The chips, each by the character that stands for it. A number is given once, so that no two
/// chips are ever called the same.
#[derive(Debug, Default)]
pub(crate) struct Atoms {
    slots: Vec<Option<Chip>>,
    numbers: [u32; 3],
}

impl Atoms {
    /// Takes a new chip in; `None` where there is no room.
    pub(crate) fn add(&mut self, atom: Atom) -> Option<char> {
        let number = self.numbers[atom.kind() as usize].saturating_add(1);
        self.put(number, atom)
    }

    /// Takes a chip back in, under its number unless another has that by now.
    pub(crate) fn add_numbered(&mut self, number: u32, atom: Atom) -> Option<char> {
        let namesake = self.slots.iter().position(|slot| {
            slot.as_ref()
                .is_some_and(|chip| chip.number == number && chip.atom.kind() == atom.kind())
        });
        match namesake {
            Some(slot)
                if self.slots[slot]
                    .as_ref()
                    .is_some_and(|chip| chip.atom == atom) =>
            {
                character(slot)
            }
            Some(_) => self.add(atom),
            None => self.put(number, atom),
        }
    }

    fn put(&mut self, number: u32, atom: Atom) -> Option<char> {
        let held = self.slots.iter().flatten().map(|chip| chip.atom.bytes());
        if held.sum::<usize>() + atom.bytes() > MOST_BYTES {
            return None;
        }
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.unwrap_or(self.slots.len());
        if slot >= MOST_ATOMS {
            return None;
        }
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        let last = &mut self.numbers[atom.kind() as usize];
        *last = number.max(*last);
        let label = Arc::from(atom.label(number));
        self.slots[slot] = Some(Chip {
            number,
            atom,
            label,
        });
        character(slot)
    }

    pub(crate) fn get(&self, c: char) -> Option<&Chip> {
        if !is_chip(c) {
            return None;
        }
        let slot = u32::from(c) - u32::from(*CHIPS.start());
        self.slots.get(usize::try_from(slot).ok()?)?.as_ref()
    }

    /// Forgets the chips that no text mentions any more.
    pub(crate) fn keep_only<'a>(&mut self, texts: impl Iterator<Item = &'a str>) {
        let mut mentioned = vec![false; self.slots.len()];
        for c in texts.flat_map(str::chars).filter(|&c| is_chip(c)) {
            let slot = (u32::from(c) - u32::from(*CHIPS.start())) as usize;
            if let Some(mentioned) = mentioned.get_mut(slot) {
                *mentioned = true;
            }
        }
        for (slot, mentioned) in self.slots.iter_mut().zip(mentioned) {
            if !mentioned {
                *slot = None;
            }
        }
    }

    /// What is shown for a character that stands for a chip.
    pub(crate) fn label(&self, c: char) -> &str {
        self.get(c).map_or("", |chip| &chip.label)
    }

    /// A text with its chips as labels.
    pub(crate) fn shown(&self, text: &str) -> String {
        self.write(text, |chip| Cow::Borrowed(&chip.label))
    }

    /// A text with its chips as what they mean.
    pub(crate) fn meant(&self, text: &str) -> String {
        self.write(text, |chip| chip.atom.meaning(chip.number))
    }

    fn write<'a>(&'a self, text: &str, as_text: impl Fn(&'a Chip) -> Cow<'a, str>) -> String {
        let mut written = String::with_capacity(text.len());
        for c in text.chars() {
            match self.get(c) {
                Some(chip) => written.push_str(&as_text(chip)),
                None if is_chip(c) => {}
                None => written.push(c),
            }
        }
        written
    }

    fn shown_len(&self, c: char) -> usize {
        if is_chip(c) {
            self.label(c).len()
        } else {
            c.len_utf8()
        }
    }

    /// Where in the shown text an offset of the held text is.
    pub(crate) fn shown_offset(&self, text: &str, offset: usize) -> usize {
        text[..offset].chars().map(|c| self.shown_len(c)).sum()
    }

    /// Where in the held text an offset of the shown text is; within a label, where its chip is.
    pub(crate) fn held_offset(&self, text: &str, shown: usize) -> usize {
        let mut seen = 0;
        for (at, c) in text.char_indices() {
            seen += self.shown_len(c);
            if seen > shown {
                return at;
            }
        }
        text.len()
    }

    /// The text as pieces.
    pub(crate) fn pieces(&self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        for c in text.chars() {
            match self.get(c) {
                Some(chip) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    let (number, atom) = (chip.number, chip.atom.clone());
                    pieces.push(Piece::Atom { number, atom });
                }
                None if is_chip(c) => {}
                None => plain.push(c),
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        pieces
    }

    /// Pieces as a text; a chip for which there is no room is left as its meaning.
    pub(crate) fn held(&mut self, pieces: Vec<Piece>) -> String {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(plain) => text.push_str(&clean(&plain)),
                Piece::Atom { number, atom } => match self.add_numbered(number, atom.clone()) {
                    Some(chip) => text.push(chip),
                    None => text.push_str(&clean(&atom.meaning(number))),
                },
            }
        }
        text
    }
}

/// The character of a slot. There are more of them than slots.
fn character(slot: usize) -> Option<char> {
    let offset = u32::try_from(slot).ok()?;
    char::from_u32(u32::from(*CHIPS.start()).checked_add(offset)?).filter(|&c| is_chip(c))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn image(label: &str) -> Atom {
        Atom::Image(ImageAtom {
            media_type: "image/png".into(),
            data: Arc::from([1_u8, 2]),
            label: label.into(),
        })
    }

    #[rstest]
    #[case(Atom::Paste("a\nb\nc".into()), "[Pasted #7, 3 lines]")]
    #[case(Atom::Paste("ä".repeat(1_200).into()), "[Pasted #7, 1200 characters]")]
    #[case(image("1568×900 downscaled"), "[Image #7 1568×900 downscaled]")]
    #[case(image(""), "[Image #7]")]
    #[case(Atom::File("src/a\n\u{1b}b.rs".into()), "@src/a b.rs")]
    fn a_chip_has_a_label(#[case] atom: Atom, #[case] label: &str) {
        assert_eq!(atom.label(7), label);
    }

    #[test]
    fn chips_of_a_kind_are_counted_and_a_number_is_given_once() {
        let mut atoms = Atoms::default();
        let paste = atoms.add(Atom::Paste("a\nb".into())).unwrap();
        let picture = atoms.add(image("")).unwrap();
        assert_eq!(atoms.label(paste), "[Pasted #1, 2 lines]");
        assert_eq!(atoms.label(picture), "[Image #1]");
        atoms.keep_only(std::iter::once(""));
        assert!(atoms.get(paste).is_none());
        let other = atoms.add(Atom::Paste("c\nd".into())).unwrap();
        assert_eq!(atoms.label(other), "[Pasted #2, 2 lines]");
    }

    #[test]
    fn a_chip_that_returns_keeps_its_number_unless_it_is_taken() {
        let mut atoms = Atoms::default();
        let first = atoms.add(Atom::Paste("a\nb".into())).unwrap();
        assert_eq!(
            atoms.add_numbered(1, Atom::Paste("a\nb".into())),
            Some(first)
        );
        let other = atoms.add_numbered(1, Atom::Paste("other".into())).unwrap();
        assert_eq!(atoms.get(other).unwrap().number, 2);
        let ninth = atoms.add_numbered(9, Atom::Paste("ninth".into())).unwrap();
        assert_eq!(atoms.get(ninth).unwrap().number, 9);
        let next = atoms.add(Atom::Paste("next".into())).unwrap();
        assert_eq!(atoms.get(next).unwrap().number, 10);
    }

    #[test]
    fn there_is_an_end_to_the_room() {
        let mut atoms = Atoms::default();
        for _ in 0..MOST_ATOMS {
            assert!(atoms.add(Atom::File("f".into())).is_some());
        }
        assert!(atoms.add(Atom::File("f".into())).is_none());
        let large: Arc<str> = "x".repeat(MOST_BYTES / 2 + 1).into();
        let mut atoms = Atoms::default();
        assert!(atoms.add(Atom::Paste(Arc::clone(&large))).is_some());
        assert!(atoms.add(Atom::Paste(large)).is_none());
    }
}
