//! Things that there are, in groups: looked up, read, and acted on.

use caliban_terminal::{Key, KeyCode};
use caliban_text::{Strength, sanitise, wrap};
use ratatui_core::layout::Rect;
use ratatui_core::text::Span;

use crate::canvas::Canvas;
use crate::layers::list::{Heard, Line, List, closes, panel, tell_keys};
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Thing {
    pub(crate) group: String,
    pub(crate) label: String,
    pub(crate) about: String,
    /// What acting on it is about.
    pub(crate) value: String,
}

/// What the keys of a catalogue do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acts {
    pub(crate) keys: &'static str,
    pub(crate) act: fn(KeyCode, &Thing) -> Option<Reaction>,
}

/// The overlay.
#[derive(Debug)]
pub(crate) struct Catalogue {
    title: String,
    things: Vec<Thing>,
    acts: Acts,
    list: List,
    said: String,
    /// What is said where there are none.
    none: &'static str,
}

impl Catalogue {
    pub(crate) fn new(title: impl Into<String>, things: Vec<Thing>, acts: Acts) -> Self {
        Self {
            title: title.into(),
            things,
            acts,
            list: List::default(),
            said: String::new(),
            none: "nothing",
        }
    }

    /// The same with what is said where there are none.
    pub(crate) fn or(self, none: &'static str) -> Self {
        Self { none, ..self }
    }

    /// Says something where it is looked at.
    pub(crate) fn tell(&mut self, text: String) {
        self.said = text;
    }

    /// Things are others now.
    pub(crate) fn replace(&mut self, things: Vec<Thing>) {
        self.things = things;
    }

    pub(crate) fn is_titled(&self, title: &str) -> bool {
        self.title == title
    }

    fn shown(&self) -> Vec<&Thing> {
        let texts: Vec<String> = self
            .things
            .iter()
            .map(|thing| format!("{} {} {}", thing.group, thing.label, thing.about))
            .collect();
        let places = self.list.shown(texts.iter().map(String::as_str));
        places
            .iter()
            .filter_map(|place| self.things.get(*place))
            .collect()
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.list.paste(text);
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        let length = self.shown().len();
        if self.list.press(key, length) == Heard::Taken {
            return Reaction::Stay;
        }
        let chosen = self.shown().get(self.list.chosen()).copied().cloned();
        let reaction = chosen.and_then(|chosen| (self.acts.act)(key.code, &chosen));
        match reaction {
            Some(reaction) => reaction,
            None if closes(key) => Reaction::Close,
            None => Reaction::Stay,
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let hint = self.list.hint(self.acts.keys);
        let Some(places) = panel(canvas, area, &self.title, &hint, theme) else {
            return;
        };
        let palette = &theme.palette;
        let shown = self.shown();
        let width = usize::from(places.body.width) / 2;
        let mut group = "";
        let mut lines = Vec::new();
        for thing in &shown {
            // A group is named where it begins.
            let heading = if thing.group == group {
                ""
            } else {
                thing.group.as_str()
            };
            group = &thing.group;
            let about = match (heading, thing.about.as_str()) {
                ("", about) => about.to_owned(),
                (heading, about) => format!("[{heading}]  {about}"),
            };
            lines.push(Line {
                label: theme.cut(&thing.label, width),
                about,
                style: palette.text,
            });
        }
        if lines.is_empty() {
            let body = places.body;
            let text = if self.things.is_empty() {
                self.none
            } else {
                "nothing fits"
            };
            let words = wrap(vec![Span::styled(text, palette.dim)], body.width, &[]);
            canvas.rows(body, &words);
        }
        self.list.draw(canvas, places.body, theme, &lines);
        let row = places.said;
        let said = sanitise(&self.said, Strength::Name);
        canvas.text(row.x, row.y, row.right(), &said, palette.warning);
        tell_keys(canvas, &places, &hint, theme);
    }
}

/// Commands: one is put into the draft.
pub(crate) const COMMANDS: Acts = Acts {
    keys: "Enter writes it  / search  q closes",
    act: |key, thing| match key {
        KeyCode::Enter if !thing.value.is_empty() => {
            Some(Reaction::CloseAnd(Wish::Draft(thing.value.clone())))
        }
        _ => None,
    },
};

/// Things to read.
pub(crate) const READING: Acts = Acts {
    keys: "Enter reads it  / search  q closes",
    act: |key, thing| match key {
        KeyCode::Enter => {
            let text = format!("{}\n{}\n\n{}", thing.label, thing.about, thing.value);
            Some(Reaction::Do(Wish::Read(thing.label.clone(), text)))
        }
        _ => None,
    },
};

/// Agent profiles, which are files.
pub(crate) const PROFILES: Acts = Acts {
    keys: "Enter reads it  e edits it  / search  q closes",
    act: |key, thing| match key {
        KeyCode::Enter => Some(Reaction::Do(Wish::ReadMemory(thing.value.clone()))),
        KeyCode::Char('e') => Some(Reaction::Do(Wish::EditMemory(thing.value.clone()))),
        _ => None,
    },
};

/// Output styles: one is proposed as a setting.
pub(crate) const STYLES: Acts = Acts {
    keys: "Enter chooses: it counts after /clear or a restart  / search  q closes",
    act: |key, thing| match key {
        KeyCode::Enter => Some(Reaction::CloseAnd(Wish::ProposeSetting {
            key: "output_style",
            value: thing.value.clone(),
        })),
        _ => None,
    },
};

/// Models: one answers from now on; the effort is changed from here, too.
pub(crate) const MODELS: Acts = Acts {
    keys: "Enter chooses  < > effort  / search  q closes",
    act: |key, thing| match key {
        // It cannot be chosen here; what brings it stands beside it.
        KeyCode::Enter if thing.value.is_empty() => Some(Reaction::Stay),
        KeyCode::Enter => Some(Reaction::CloseAnd(Wish::SetModel(thing.value.clone()))),
        KeyCode::Char('<') | KeyCode::Left => Some(Reaction::Do(Wish::ChangeEffort(Step::Less))),
        KeyCode::Char('>') | KeyCode::Right => Some(Reaction::Do(Wish::ChangeEffort(Step::More))),
        _ => None,
    },
};

/// More or less of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Less,
    More,
}

/// The group of notes, which can be deleted.
const NOTES: &str = "notes";

/// Instructions and notes.
pub(crate) const MEMORY: Acts = Acts {
    keys: "Enter reads it  e edits it  d deletes a note  / search  q closes",
    act: |key, thing| match key {
        KeyCode::Enter => Some(Reaction::Do(Wish::ReadMemory(thing.value.clone()))),
        KeyCode::Char('e') => Some(Reaction::Do(Wish::EditMemory(thing.value.clone()))),
        // Files of instructions are nobody's notes.
        KeyCode::Char('d') if thing.group == NOTES => {
            Some(Reaction::Do(Wish::AskToForget(thing.value.clone())))
        }
        KeyCode::Char('d') => Some(Reaction::Do(Wish::ForgetMemory(thing.value.clone()))),
        _ => None,
    },
};
