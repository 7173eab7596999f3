//! Which key does what. Actions have names, so that they can be bound and looked up.

use std::collections::HashMap;

use caliban_terminal::Key;

/// Something a key does outside of the text that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Stop the work, clear the draft or leave, whichever comes first.
    Stop,
    /// Leave, where nothing is written.
    Leave,
    Redraw,
    Viewer,
    SearchHistory,
    EditOutside,
    Jobs,
    Todos,
    CycleMode,
    DropLatch,
    PageUp,
    PageDown,
    LineUp,
    LineDown,
    Top,
    End,
    PreviousPrompt,
    NextPrompt,
    Unfold,
    UnfoldLast,
    TurnDiffs,
    Suspend,
    PasteImage,
    Stash,
    Keys,
    ToggleMouse,
    ExpandChip,
    EditQueued,
    Queue,
    Find,
}

/// An action, what it is called, its usual keys, and what it does.
pub(crate) struct Known {
    pub(crate) action: Action,
    pub(crate) name: &'static str,
    pub(crate) usual: &'static [&'static str],
    pub(crate) about: &'static str,
}

const fn known(
    action: Action,
    name: &'static str,
    usual: &'static [&'static str],
    about: &'static str,
) -> Known {
    Known {
        action,
        name,
        usual,
        about,
    }
}

#[rustfmt::skip]
pub(crate) const ACTIONS: &[Known] = &[
    known(Action::Stop, "stop", &["ctrl+c"], "Stop the work; else clear the draft; else leave"),
    known(Action::Leave, "leave", &["ctrl+d"], "Leave, where nothing is written"),
    known(Action::CycleMode, "cycle_mode", &["backtab"], "Change how calls are permitted"),
    known(Action::DropLatch, "drop_bypass", &["ctrl+shift+b"], "Leave bypass, for the rest of the session"),
    known(Action::Viewer, "viewer", &["ctrl+o"], "Everything as the model sees it"),
    known(Action::SearchHistory, "search_history", &["ctrl+r"], "Search earlier prompts; Ctrl+S widens"),
    known(Action::EditOutside, "editor", &["ctrl+g", "ctrl+x ctrl+e"], "Write the prompt in $VISUAL or $EDITOR"),
    known(Action::Jobs, "jobs", &["ctrl+b"], "Move a running command or sub-agent to the background; else show what is there"),
    known(Action::Todos, "todos", &["ctrl+t"], "Show or hide the list of tasks"),
    known(Action::Unfold, "unfold", &["alt+o"], "Open or close results and thoughts"),
    known(Action::UnfoldLast, "unfold_last", &["alt+l"], "Open or close the last result on the screen"),
    known(Action::TurnDiffs, "turn_diffs", &["f4"], "Both sides of changes beside or below each other"),
    known(Action::PageUp, "page_up", &["pageup"], "A page back"),
    known(Action::PageDown, "page_down", &["pagedown"], "A page on"),
    known(Action::LineUp, "line_up", &["ctrl+up"], "A row back"),
    known(Action::LineDown, "line_down", &["ctrl+down"], "A row on"),
    known(Action::Top, "top", &["ctrl+home"], "To the beginning"),
    known(Action::End, "end", &["ctrl+end"], "To the end, and follow it"),
    known(Action::PreviousPrompt, "previous_prompt", &["alt+up"], "To the prompt before"),
    known(Action::NextPrompt, "next_prompt", &["alt+down"], "To the next prompt"),
    known(Action::PasteImage, "paste_image", &["ctrl+v", "alt+v"], "Paste an image from the clipboard"),
    known(Action::ExpandChip, "expand", &["alt+e"], "Write out the pasted text at the cursor"),
    known(Action::EditQueued, "edit_queued", &["alt+q"], "Take the last waiting prompt back to edit it"),
    known(Action::Queue, "queue", &["ctrl+q"], "Prompts that wait: change, drop, reorder them"),
    known(Action::Find, "find", &["ctrl+f", "f3"], "Look for words in the conversation"),
    known(Action::Stash, "stash", &["ctrl+s"], "Put the draft aside, or take it back"),
    known(Action::Suspend, "suspend", &["ctrl+z"], "To the shell; `fg` comes back"),
    known(Action::Redraw, "redraw", &["ctrl+l"], "Draw everything anew"),
    known(Action::ToggleMouse, "mouse", &["alt+m"], "Take the mouse or release it"),
    known(Action::Keys, "keys", &["f1"], "These keys"),
];

/// What was pressed so far means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Does(Action),
    /// The first key of two.
    Begins,
    Nothing,
}

/// Keys and what they do.
#[derive(Debug, Clone)]
pub(crate) struct KeyTable {
    single: HashMap<Key, Action>,
    double: HashMap<(Key, Key), Action>,
    /// What is written in the settings and cannot be used.
    pub(crate) faults: Vec<String>,
    first: Option<Key>,
}

impl KeyTable {
    /// The usual keys, and those of the operator: `keys = { "ctrl+o" = "viewer" }`. A key bound
    /// to `none` does nothing here any more.
    pub(crate) fn new(bindings: &[(String, String)]) -> Self {
        let mut table = Self {
            single: HashMap::new(),
            double: HashMap::new(),
            faults: Vec::new(),
            first: None,
        };
        for known in ACTIONS {
            for keys in known.usual {
                table.bind(keys, Some(known.action));
            }
        }
        for (keys, name) in bindings {
            let action = ACTIONS.iter().find(|known| known.name == name);
            match action {
                Some(known) => table.bind(keys, Some(known.action)),
                None if name == "none" => table.bind(keys, None),
                None => table.faults.push(format!(
                    "`tui.keys`: there is no action `{name}`; `/keys` lists them"
                )),
            }
        }
        table
    }

    fn bind(&mut self, keys: &str, action: Option<Action>) {
        let parsed: Result<Vec<Key>, String> = keys.split_whitespace().map(Key::parse).collect();
        match parsed.as_deref() {
            Ok([key]) => {
                self.single.remove(key);
                if let Some(action) = action {
                    self.single.insert(*key, action);
                }
            }
            Ok([first, second]) => {
                self.double.remove(&(*first, *second));
                if let Some(action) = action {
                    self.double.insert((*first, *second), action);
                }
            }
            Ok(_) => self
                .faults
                .push(format!("`tui.keys`: `{keys}` is not one key or two")),
            Err(error) => self.faults.push(format!("`tui.keys`: `{keys}`: {error}")),
        }
    }

    pub(crate) fn meaning(&mut self, key: Key) -> Meaning {
        if let Some(first) = self.first.take()
            && let Some(action) = self.double.get(&(first, key))
        {
            return Meaning::Does(*action);
        }
        if let Some(action) = self.single.get(&key) {
            return Meaning::Does(*action);
        }
        if self.double.keys().any(|(first, _)| *first == key) {
            self.first = Some(key);
            return Meaning::Begins;
        }
        Meaning::Nothing
    }

    /// The keys of an action, as they are written.
    pub(crate) fn keys_of(&self, action: Action) -> Vec<String> {
        let single = self.single.iter().filter(|(_, bound)| **bound == action);
        let double = self.double.iter().filter(|(_, bound)| **bound == action);
        let mut keys: Vec<String> = single
            .map(|(key, _)| key.to_string())
            .chain(double.map(|((first, second), _)| format!("{first} {second}")))
            .collect();
        keys.sort();
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_name_and_a_key_of_its_own() {
        let mut table = KeyTable::new(&[]);
        assert!(table.faults.is_empty(), "{:?}", table.faults);
        for known in ACTIONS {
            for keys in known.usual {
                let keys: Vec<Key> = keys
                    .split_whitespace()
                    .map(|key| Key::parse(key).unwrap())
                    .collect();
                let meaning = keys.iter().map(|key| table.meaning(*key)).last();
                assert_eq!(meaning, Some(Meaning::Does(known.action)), "{}", known.name);
            }
            let same = ACTIONS.iter().filter(|other| other.name == known.name);
            assert_eq!(same.count(), 1, "{}", known.name);
        }
    }

    #[test]
    fn keys_are_bound_freed_and_faults_are_told() {
        let binding = |keys: &str, action: &str| (keys.to_owned(), action.to_owned());
        let mut table = KeyTable::new(&[
            binding("f5", "viewer"),
            binding("ctrl+o", "none"),
            binding("ctrl+k ctrl+k", "redraw"),
            binding("nonsense+x", "viewer"),
            binding("f6", "dance"),
        ]);
        assert_eq!(table.faults.len(), 2, "{:?}", table.faults);
        let key = |text: &str| Key::parse(text).unwrap();
        assert_eq!(table.meaning(key("f5")), Meaning::Does(Action::Viewer));
        assert_eq!(table.meaning(key("ctrl+o")), Meaning::Nothing);
        assert_eq!(table.meaning(key("ctrl+k")), Meaning::Begins);
        assert_eq!(table.meaning(key("ctrl+k")), Meaning::Does(Action::Redraw));
        assert_eq!(table.keys_of(Action::Viewer), ["f5"]);
    }
}
