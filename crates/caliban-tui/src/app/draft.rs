//! The draft: sent, queued, completed, kept.

use std::sync::Arc;
use std::time::{Duration, Instant};

use caliban_compose::{Atom, Piece, flatten};
use caliban_model::{Block, Image, ImageMime, ImageSource, Message};
use caliban_session::{Attach, Command, Delivery, Prompt};

use crate::app::effect::{Effect, PanelEffect};
use crate::app::state::{App, Link, Reader, Waiting};
use crate::completion::Menu;

/// How long a list of files is good for.
const STALE: Duration = Duration::from_secs(10);
/// How long a draft may be unsaved.
const UNSAVED: Duration = Duration::from_millis(800);

impl App {
    /// Sends a command as if it had been written.
    pub(crate) fn send_line(&mut self, line: &str) {
        self.counter += 1;
        self.send(Waiting {
            id: format!("typed-{}", self.counter).into(),
            pieces: vec![Piece::Text(line.to_owned())],
            text: line.to_owned(),
            steers: false,
            overlay: None,
        });
    }

    /// Sends what is written.
    pub(crate) fn submit(&mut self, delivery: Delivery) {
        if self.editor.text().trim().is_empty() {
            return;
        }
        let pieces = self.editor.take();
        let text = flatten(&pieces);
        self.menu = None;
        // What was typed is sent: none of it is meant for a question that comes now.
        self.last_typed = None;
        self.draft_changed = true;
        self.history.leave();
        self.scroll.go_to_end();
        if let Some(line) = text.strip_prefix('!') {
            return self.shell(line.trim(), pieces);
        }
        if let Err(error) = self.history.add_pieces(&pieces) {
            self.say(format!("The prompt is not remembered: {error}"));
        }
        match &self.desk {
            Some(desk) if Self::is_own(&text) && desk.has_prompt_hooks() => {
                let desk = Arc::clone(desk);
                return self.errand(PanelEffect::Vet(desk, text));
            }
            Some(_) | None => {}
        }
        if self.obey(&text) {
            return;
        }
        // A command is not said to the model in passing.
        let steers = delivery == Delivery::Steer && !text.starts_with('/') && self.run.is_some();
        self.counter += 1;
        let waiting = Waiting {
            id: format!("typed-{}", self.counter).into(),
            pieces,
            overlay: overlay(&text).map(|title| Reader {
                title,
                asked: self.last_typed,
            }),
            text,
            steers,
        };
        self.send(waiting);
    }

    /// Sends a prompt, or keeps it until the session is there.
    pub(crate) fn send(&mut self, waiting: Waiting) {
        match &self.link {
            Link::Open(_) => {
                let delivery = if waiting.steers {
                    Delivery::Steer
                } else {
                    Delivery::Queue
                };
                let prompt = Prompt {
                    id: waiting.id.clone(),
                    message: message(&waiting.pieces),
                    attach: Attach::Named,
                };
                self.effect(Effect::Send(Command::Prompt { prompt, delivery }));
                self.queue.push(waiting);
            }
            Link::Looking | Link::Opening => self.unsent.push(waiting),
            Link::Failed | Link::Over => {
                self.editor.set_pieces(waiting.pieces);
                self.say("There is no session; /resume opens one, Ctrl+C leaves");
            }
        }
    }

    fn shell(&mut self, line: &str, pieces: Vec<Piece>) {
        if line.is_empty() {
            return;
        }
        match &self.link {
            Link::Open(_) => {
                self.counter += 1;
                let id = format!("typed-{}", self.counter).into();
                let line = line.to_owned();
                self.effect(Effect::Send(Command::Shell { id, line }));
            }
            Link::Looking | Link::Opening | Link::Failed | Link::Over => {
                self.editor.set_pieces(pieces);
                self.say("The session is not there yet");
            }
        }
    }

    /// Puts the draft aside, or takes back what was put aside.
    pub(crate) fn stash(&mut self) {
        match (self.stash.take(), self.editor.is_empty()) {
            (Some(pieces), true) => self.editor.set_pieces(pieces),
            (stashed, false) => {
                let draft = self.editor.take();
                match stashed {
                    Some(pieces) => {
                        self.editor.set_pieces(pieces);
                        self.say("Draft and what was put aside changed places");
                    }
                    None => self.say("Put aside; Ctrl+S brings it back"),
                }
                self.stash = Some(draft);
            }
            (None, true) => self.say("Nothing is put aside"),
        }
        self.draft_changed = true;
    }

    /// The text changed: what is offered changes with it.
    pub(crate) fn draft_edited(&mut self) {
        self.draft_changed = true;
        self.draft_saved.get_or_insert(self.now);
        self.history.leave();
        let facts = self.status.facts.clone();
        let menu = Menu::of(
            &self.editor,
            facts.as_deref(),
            &self.files,
            self.menu.take(),
        );
        let is_stale = self
            .files_listed
            .is_none_or(|listed| self.now.saturating_duration_since(listed) >= STALE);
        if menu.as_ref().is_some_and(Menu::wants_files) && is_stale {
            self.files_listed = Some(self.now);
            self.effect(Effect::ListFiles);
        }
        self.menu = menu;
    }

    pub(crate) fn draft_deadline(&self) -> Option<Instant> {
        let since = self.draft_saved?;
        self.draft_changed.then_some(since + UNSAVED)
    }

    /// What is written and not sent, or was not heard.
    pub(crate) fn unsent_text(&self) -> Option<String> {
        let draft = flatten(&self.editor.pieces());
        let texts = self.unsent.iter().map(|waiting| waiting.text.as_str());
        let texts: Vec<&str> = texts
            .chain([draft.as_str()])
            .filter(|text| !text.trim().is_empty())
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    pub(crate) fn save_draft(&mut self) {
        if self.draft_deadline().is_some_and(|due| due <= self.now) {
            let text = self.unsent_text();
            self.effect(Effect::SaveDraft(text));
            self.draft_changed = false;
            self.draft_saved = None;
        }
    }
}

/// Commands whose answer is something to read, and what it is called.
fn overlay(text: &str) -> Option<&'static str> {
    let mut words = text.strip_prefix('/')?.split_whitespace();
    Some(match words.next()? {
        "memory" if words.next() == Some("show") => "Memory",
        "context" => "Context",
        "doctor" => "Doctor",
        "plugins" => "Plugins",
        "diff" => "Changes",
        "sandbox" => "Sandbox",
        _ => return None,
    })
}

/// The message that a draft is sent as.
fn message(pieces: &[Piece]) -> Message {
    let mut message = Message::user(flatten(pieces));
    for piece in pieces {
        if let Piece::Atom {
            atom: Atom::Image(image),
            ..
        } = piece
            && let Ok(mime) = image.media_type.parse::<ImageMime>()
            && let Ok(data) = std::str::from_utf8(&image.data)
        {
            message.content.push(Block::Image(Image {
                mime,
                source: ImageSource::Base64 { data: data.into() },
                dims: None,
            }));
        }
    }
    message
}
