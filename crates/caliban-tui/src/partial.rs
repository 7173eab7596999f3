//! A change of a file in parts that can be permitted by themselves.

use caliban_agent::{Details, Inquiry};
use caliban_text::{DiffView, LineEnd, LineKind, Palette, Row, diff_rows};
use serde_json::Value;

use crate::asking;

/// Unchanged lines around a part that is shown.
const CONTEXT: usize = 3;
/// More parts than these are nobody's to choose from.
const MOST: usize = 200;

/// Whether a part is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Yes,
    No,
}

/// What a call would change, part by part. There are two at least.
#[derive(Debug)]
pub(crate) struct Partial {
    input: Value,
    path: String,
    parts: Parts,
}

#[derive(Debug)]
enum Parts {
    /// Replacements that are listed in the input.
    Edits(Vec<(String, String)>),
    /// Places where a text, which is a field of the input, becomes another.
    Places {
        field: &'static str,
        old: String,
        view: DiffView,
    },
}

impl Partial {
    /// The parts of what a question is about; nothing where it has no two.
    pub(crate) fn of(inquiry: &Inquiry) -> Option<Self> {
        let Some(Details::Edited { path, texts }) = &inquiry.preview else {
            return None;
        };
        let input = asking::input(inquiry);
        let text = |value: &Value, key: &str| Some(value.get(key)?.as_str()?.to_owned());
        let pair = |edit: &Value| Some((text(edit, "old_string")?, text(edit, "new_string")?));
        let parts = if let Some(edits) = input.get("edits").and_then(Value::as_array) {
            Parts::Edits(edits.iter().map(pair).collect::<Option<_>>()?)
        } else if let Some((old, new)) = pair(input) {
            Parts::between("new_string", old, &new, path)
        } else {
            let new = text(input, "content")?;
            let (old, _) = texts.as_ref()?;
            Parts::between("content", old.clone(), &new, path)
        };
        let partial = Self {
            input: input.clone(),
            path: path.clone(),
            parts,
        };
        (2..=MOST).contains(&partial.count()).then_some(partial)
    }

    pub(crate) fn count(&self) -> usize {
        match &self.parts {
            Parts::Edits(edits) => edits.len(),
            Parts::Places { view, .. } => view.hunks.len(),
        }
    }

    /// A part in a few words.
    pub(crate) fn label(&self, place: usize) -> String {
        let (added, removed) = match &self.parts {
            Parts::Edits(edits) => edits
                .get(place)
                .map(|(old, new)| caliban_text::diff_counts(old, new))
                .unwrap_or_default(),
            Parts::Places { view, .. } => {
                let lines = view
                    .hunks
                    .get(place)
                    .map_or(&[][..], |hunk| hunk.lines.as_slice());
                let count = |kind| lines.iter().filter(|line| line.kind == kind).count();
                (count(LineKind::Added), count(LineKind::Removed))
            }
        };
        format!("change {}  +{added} -{removed}", place + 1)
    }

    /// A part as it is read.
    pub(crate) fn rows(&self, place: usize, width: u16, palette: &Palette) -> Vec<Row> {
        match &self.parts {
            Parts::Edits(edits) => edits.get(place).map_or_else(Vec::new, |(old, new)| {
                diff_rows(old, new, &self.path, width, palette, CONTEXT)
            }),
            Parts::Places { old, .. } => {
                let wanted: Vec<Wanted> = (0..self.count())
                    .map(|other| {
                        if other == place {
                            Wanted::Yes
                        } else {
                            Wanted::No
                        }
                    })
                    .collect();
                let new = self.text(&wanted).unwrap_or_default();
                diff_rows(old, &new, &self.path, width, palette, CONTEXT)
            }
        }
    }

    /// The input that makes these changes alone; nothing where none is wanted.
    pub(crate) fn input(&self, wanted: &[Wanted]) -> Option<Value> {
        if !wanted.contains(&Wanted::Yes) {
            return None;
        }
        let mut input = self.input.clone();
        match &self.parts {
            Parts::Edits(_) => {
                let edits = input.get_mut("edits")?.as_array_mut()?;
                let mut wanted = wanted.iter();
                edits.retain(|_| wanted.next() == Some(&Wanted::Yes));
            }
            Parts::Places { field, .. } => {
                *input.get_mut(*field)? = Value::String(self.text(wanted)?);
            }
        }
        Some(input)
    }

    /// The text with these changes alone.
    fn text(&self, wanted: &[Wanted]) -> Option<String> {
        let Parts::Places { old, view, .. } = &self.parts else {
            return None;
        };
        let mut kept = old.split_inclusive('\n');
        let mut text = String::new();
        for (hunk, wanted) in view.hunks.iter().zip(wanted) {
            text.extend(kept.by_ref().take(hunk.skipped));
            for line in &hunk.lines {
                let is_told = match (line.kind, wanted) {
                    (LineKind::Context, _) => true,
                    (LineKind::Added, wanted) => *wanted == Wanted::Yes,
                    (LineKind::Removed, wanted) => *wanted == Wanted::No,
                };
                if line.kind != LineKind::Added {
                    kept.next();
                }
                if is_told {
                    // What had no newline was the last of its text, and may not be any more.
                    if !text.is_empty() && !text.ends_with('\n') {
                        text.push('\n');
                    }
                    text.push_str(&line.text());
                    if line.end == LineEnd::Newline {
                        text.push('\n');
                    }
                }
            }
        }
        text.extend(kept);
        Some(text)
    }
}

impl Parts {
    fn between(field: &'static str, old: String, new: &str, path: &str) -> Self {
        let view = DiffView::between(&old, new, path, 0);
        Self::Places { field, old, view }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn places(old: &str, new: &str) -> Partial {
        Partial {
            input: json!({"path": "a", "content": new}),
            path: "a".to_owned(),
            parts: Parts::between("content", old.to_owned(), new, "a"),
        }
    }

    fn all(partial: &Partial, wanted: Wanted) -> Vec<Wanted> {
        vec![wanted; partial.count()]
    }

    #[test]
    fn one_place_of_two_is_changed() {
        let partial = places("one\ntwo\nthree\nfour\n", "ONE\ntwo\nthree\nFOUR\nfive\n");
        assert_eq!(partial.count(), 2);
        assert_eq!(partial.label(1), "change 2  +2 -1");
        let input = |wanted: [Wanted; 2]| partial.input(&wanted);
        let first = input([Wanted::Yes, Wanted::No]).unwrap();
        assert_eq!(first["content"], "ONE\ntwo\nthree\nfour\n");
        let second = input([Wanted::No, Wanted::Yes]).unwrap();
        assert_eq!(second["content"], "one\ntwo\nthree\nFOUR\nfive\n");
        assert_eq!(second["path"], "a");
        assert_eq!(input([Wanted::No, Wanted::No]), None);
    }

    #[test]
    fn edits_are_taken_out_of_their_list() {
        let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
        let partial = Partial {
            input: json!({"path": "a", "edits": [edit("a", "b"), edit("c", "d"), edit("e", "f")]}),
            path: "a".to_owned(),
            parts: Parts::Edits(vec![(String::new(), String::new()); 3]),
        };
        let input = partial
            .input(&[Wanted::Yes, Wanted::No, Wanted::Yes])
            .unwrap();
        assert_eq!(input["edits"], json!([edit("a", "b"), edit("e", "f")]));
    }

    proptest! {
        #[test]
        fn all_parts_are_the_change_and_none_is_no_change(
            old in "([ab]{0,2}\n){0,8}",
            new in "([ab]{0,2}\n){0,8}",
        ) {
            let partial = places(&old, &new);
            let whole = partial.text(&all(&partial, Wanted::Yes));
            prop_assert_eq!(whole, Some(new));
            let nothing = partial.text(&all(&partial, Wanted::No));
            prop_assert_eq!(nothing, Some(old));
        }
    }
}
