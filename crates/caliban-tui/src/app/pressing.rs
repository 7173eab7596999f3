//! What the operator does: keys, pastes, the mouse.

use std::time::Duration;

use caliban_compose::{Pressed, ViState, flatten};
use caliban_session::{Command, Delivery};
use caliban_settings::PermissionMode;
use caliban_terminal::{Focus, Input, Key, KeyCode, Modifiers, MouseKind};

use crate::app::effect::Effect;
use crate::app::state::{App, Link};
use crate::farewell::Departure;
use crate::host::BypassLatch;
use crate::keys::{Action, Meaning};
use crate::layers::{HistorySearch, Layer, Pager};
use crate::preferences::{Diffs, Mouse, View};
use crate::questions::Attention;
use crate::transcript::{Cell, CellKind};

/// Two presses of Esc within this are one wish.
const TWICE: Duration = Duration::from_millis(400);
/// Rows that a turn of the wheel moves.
const WHEEL: usize = 3;

impl App {
    pub(crate) fn hear_input(&mut self, input: Input) {
        match input {
            Input::Key(key) => self.press(key),
            Input::Paste(text) => self.paste(&text),
            Input::PasteTooLong { limit } => self.say(format!(
                "What was pasted is longer than {} MiB and was left out",
                limit / (1024 * 1024)
            )),
            Input::Mouse(mouse) => match mouse.kind {
                MouseKind::WheelUp => self.scroll_up(WHEEL),
                MouseKind::WheelDown => self.scroll_down(WHEEL),
                // It never answers anything.
                MouseKind::Down(_) | MouseKind::Up(_) | MouseKind::Drag(_) => {
                    if self.layers.is_empty() {
                        self.hear_mouse(mouse);
                    }
                }
            },
            Input::Focus(focus) => {
                // A terminal tells it at once when it is asked to; nothing was lost by then.
                let was_away = self.focus.replace(focus) == Some(Focus::Lost);
                if focus == Focus::Gained && was_away {
                    self.effect(Effect::Repaint);
                }
            }
            Input::Report(report) => self.hear_report(&report),
        }
    }

    /// Opens or closes a cell.
    pub(crate) fn fold(&mut self, cell: usize) {
        let view = self.view;
        if let Some(cell) = self.feed.cells.get_mut(self.printed + cell) {
            cell.toggle(view);
        }
    }

    fn paste(&mut self, text: &str) {
        if let Some(layer) = self.layers.last_mut() {
            layer.paste(text);
            return;
        }
        if self.finding.is_some() {
            return self.write_in_finding(text);
        }
        // What is pasted never answers a question, nor does what is written behind it.
        self.last_typed = Some(self.now);
        self.questions.release();
        if let Some(path) = crate::paths::pasted_image(text) {
            self.effect(Effect::ReadImage(path));
            return;
        }
        self.editor.paste(text);
        self.draft_edited();
    }

    fn press(&mut self, key: Key) {
        self.selection = None;
        if !self.layers.is_empty() {
            return self.press_in_layer(key);
        }
        match self.questions.attention(self.now) {
            Attention::Listens => return self.press_in_question(key),
            Attention::Deaf => {
                // Stopping the work always works.
                if key == Key::ctrl('c') {
                    self.stop();
                }
                return;
            }
            Attention::Waits if key == Key::plain(KeyCode::Tab) => {
                self.questions.take(self.now);
                return;
            }
            Attention::Waits | Attention::None => {}
        }
        if self.finding.is_some() {
            return self.press_in_finding(key);
        }
        if self.menu.is_some() && self.press_in_menu(key) {
            return;
        }
        // Keys of vi's normal mode are commands of the text before they are the face's.
        let is_vi_command = self
            .editor
            .vi_state()
            .is_some_and(|state| state != ViState::Insert);
        if is_vi_command && key != Key::ctrl('c') {
            match self.editor.press(key) {
                Pressed::Ignored => {}
                pressed => return self.take_pressed(pressed, key),
            }
        }
        match self.keys.meaning(key) {
            // These are keys of the text where there is any.
            Meaning::Does(Action::Leave) if !self.editor.is_empty() => {}
            Meaning::Does(Action::Find) if !self.editor.is_empty() && key == Key::ctrl('f') => {}
            Meaning::Does(Action::ExpandChip) => {
                self.editor.expand_atom_at_caret();
                return self.draft_edited();
            }
            Meaning::Does(action) => return self.act(action),
            Meaning::Begins => return,
            Meaning::Nothing => {}
        }
        self.press_in_draft(key);
    }

    fn press_in_draft(&mut self, key: Key) {
        let is_plain =
            !key.modifiers.contains(Modifiers::CTRL) && !key.modifiers.contains(Modifiers::ALT);
        if key.code == KeyCode::Char('?') && is_plain && self.editor.is_empty() {
            return self.act(Action::Keys);
        }
        if let KeyCode::Char(_) | KeyCode::Backspace | KeyCode::Enter = key.code {
            self.last_typed = Some(self.now);
        }
        let pressed = self.editor.press(key);
        self.take_pressed(pressed, key);
    }

    fn take_pressed(&mut self, pressed: Pressed, key: Key) {
        match pressed {
            Pressed::Changed => self.draft_edited(),
            Pressed::Moved => self.menu = None,
            Pressed::Submit => self.submit(Delivery::Steer),
            Pressed::Rang => {}
            Pressed::Command(command) => self.vi_command(command),
            Pressed::Ignored => self.press_ignored(key),
        }
    }

    /// Keys that the editor leaves to the face.
    fn press_ignored(&mut self, key: Key) {
        match key.code {
            KeyCode::Up if self.editor.is_empty() && !self.queue.is_empty() => {
                self.edit_last_queued();
            }
            KeyCode::Up => self.older(),
            KeyCode::Down => self.newer(),
            KeyCode::Tab if self.run.is_some() => self.submit(Delivery::Queue),
            KeyCode::Esc => self.escape(),
            _ => {}
        }
    }

    pub(crate) fn older(&mut self) {
        let draft = self.editor.text();
        if let Some(text) = self.history.older(&draft) {
            self.editor.set_pieces(self.history.pieces(&text));
        }
    }

    pub(crate) fn newer(&mut self) {
        if let Some(text) = self.history.newer() {
            self.editor.set_pieces(self.history.pieces(&text));
        }
    }

    /// Closes what is open, then clears the draft, then stops the work; twice while nothing is
    /// written and nothing works it opens what can be taken back.
    fn escape(&mut self) {
        let was_pressed = self
            .last_esc
            .is_some_and(|last| self.now.saturating_duration_since(last) <= TWICE);
        self.last_esc = Some(self.now);
        if self.menu.take().is_some() {
            return;
        }
        // With vi's keys Esc is pressed for habit's sake, and must cost no text.
        if !self.editor.is_empty() && self.editor.vi_state().is_none() {
            self.editor.clear();
            return self.draft_edited();
        }
        if self.run.is_some() {
            return self.effect(Effect::Send(Command::Interrupt));
        }
        if was_pressed && self.editor.is_empty() {
            self.last_esc = None;
            self.rewind();
        }
    }

    /// Ctrl+C.
    pub(crate) fn stop(&mut self) {
        if self.run.is_some() {
            return self.effect(Effect::Send(Command::Interrupt));
        }
        if !self.editor.is_empty() {
            self.editor.clear();
            return self.draft_edited();
        }
        self.effect(Effect::Leave(Departure::Out));
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Stop => self.stop(),
            Action::Leave => self.effect(Effect::Leave(Departure::Out)),
            Action::Redraw => self.effect(Effect::Repaint),
            Action::Viewer => {
                let text = crate::viewer::as_the_model_sees_it(&self.messages);
                self.layers.push(Layer::Pager(Pager::viewer(text)));
            }
            Action::SearchHistory => {
                let session = self.history.session().to_vec();
                let project = self.history.project().to_vec();
                let search = HistorySearch::new(session, project);
                self.layers.push(Layer::History(search));
            }
            Action::EditOutside => {
                let text = flatten(&self.editor.pieces());
                self.effect(Effect::EditText(text));
            }
            Action::Jobs if self.feed.runs_movable() => {
                self.effect(Effect::Send(Command::Background));
                self.say("To the background; Ctrl+B again shows commands");
            }
            Action::Jobs => self.show_jobs(),
            Action::Todos => self.shows_todos = !self.shows_todos,
            Action::CycleMode => self.cycle_mode(),
            Action::DropLatch => {
                self.latch = BypassLatch::Off;
                self.effect(Effect::Send(Command::DropLatch));
            }
            Action::PageUp => self.scroll_up(self.page.saturating_sub(2).max(1)),
            Action::PageDown => self.scroll_down(self.page.saturating_sub(2).max(1)),
            Action::LineUp => self.scroll_up(1),
            Action::LineDown => self.scroll_down(1),
            Action::Top => self.scroll.go_to_top(),
            Action::End => self.scroll.go_to_end(),
            Action::PreviousPrompt => self.jump(Way::Back),
            Action::NextPrompt => self.jump(Way::On),
            Action::Unfold => {
                self.view = match self.view {
                    View::Compact => View::Expanded,
                    View::Expanded => View::Compact,
                };
            }
            Action::UnfoldLast => {
                let last = self.drawn.0.iter().rev().map(|(cell, _)| *cell);
                let folds = |cell: &usize| {
                    let cell = self.feed.cells.get(self.printed + cell);
                    cell.is_some_and(Cell::can_fold)
                };
                if let Some(cell) = last.into_iter().find(folds) {
                    self.fold(cell);
                }
            }
            Action::TurnDiffs => {
                self.preferences.diffs = match self.preferences.diffs {
                    Diffs::BesideEachOther => Diffs::BelowEachOther,
                    Diffs::BelowEachOther => Diffs::BesideEachOther,
                };
                self.say(match self.preferences.diffs {
                    Diffs::BesideEachOther => "Both sides of changes stand beside each other",
                    Diffs::BelowEachOther => "Both sides of changes stand below each other",
                });
            }
            Action::Suspend => self.effect(Effect::Suspend),
            Action::PasteImage => self.effect(Effect::ReadClipboard),
            Action::Stash => self.stash(),
            Action::Keys => self.show_keys(),
            Action::ToggleMouse => {
                self.mouse = match self.mouse {
                    Mouse::On => Mouse::Off,
                    Mouse::Off => Mouse::On,
                };
                self.say(match self.mouse {
                    Mouse::On => "The mouse scrolls; hold Shift to select",
                    Mouse::Off => "The mouse is the terminal's",
                });
                self.effect(Effect::CaptureMouse(self.mouse));
            }
            Action::ExpandChip => {}
            Action::EditQueued => self.edit_last_queued(),
            Action::Queue => self.show_queue(),
            Action::Find => self.begin_finding(),
        }
    }

    pub(crate) fn cycle_mode(&mut self) {
        let mode = match self.status.mode.as_str() {
            "default" => PermissionMode::AcceptEdits,
            "acceptEdits" => PermissionMode::Plan,
            "plan" => PermissionMode::Auto,
            "auto" => PermissionMode::DontAsk,
            "dontAsk" => PermissionMode::BypassPermissions,
            _ => PermissionMode::Default,
        };
        match self.link {
            Link::Open(_) => self.effect(Effect::Send(Command::SetMode { mode })),
            Link::Looking | Link::Opening | Link::Failed | Link::Over => {
                self.say("The session is not there yet");
            }
        }
    }

    fn scroll_up(&mut self, by: usize) {
        let mut scroll = std::mem::take(&mut self.scroll);
        scroll.up(by, &self.feed.cells, self.page, &self.lay());
        self.scroll = scroll;
    }

    fn scroll_down(&mut self, by: usize) {
        let mut scroll = std::mem::take(&mut self.scroll);
        scroll.down(by, &self.feed.cells, self.page, &self.lay());
        self.scroll = scroll;
    }

    /// From prompt to prompt.
    fn jump(&mut self, way: Way) {
        let mut scroll = std::mem::take(&mut self.scroll);
        let cells = &self.feed.cells;
        let top = scroll.top_cell(cells, self.page, &self.lay());
        let is_prompt = |place: &usize| {
            matches!(
                cells.get(*place).map(|cell| &cell.kind),
                Some(CellKind::Prompt(_))
            )
        };
        let found = match way {
            Way::Back => (0..top).rev().find(is_prompt),
            Way::On => (top + 1..cells.len()).find(is_prompt),
        };
        match (found, way) {
            (Some(cell), _) => scroll.go_to_cell(cell, cells, self.page, &self.lay()),
            (None, Way::Back) => scroll.go_to_top(),
            (None, Way::On) => scroll.go_to_end(),
        }
        self.scroll = scroll;
    }

    /// Whether the menu took the key.
    fn press_in_menu(&mut self, key: Key) -> bool {
        let Some(menu) = &mut self.menu else {
            return false;
        };
        if key.modifiers != Modifiers::none() {
            return false;
        }
        match key.code {
            KeyCode::Up => menu.up(),
            KeyCode::Down => menu.down(),
            KeyCode::Esc => self.menu = None,
            KeyCode::Tab => self.complete(),
            KeyCode::Enter => {
                let Some(offer) = menu.choice() else {
                    return false;
                };
                let text = self.editor.text();
                let is_whole = text == offer.text;
                let is_written = text.get(menu.range.clone()) == Some(offer.text.as_str());
                let needs_nothing = offer.needs_nothing();
                match menu.kind {
                    crate::completion::Kind::Command if is_whole => return false,
                    crate::completion::Kind::Command => {
                        self.complete();
                        if needs_nothing {
                            self.submit(Delivery::Steer);
                        }
                    }
                    // What is written is sent as it is; Tab completes it.
                    crate::completion::Kind::Argument => return false,
                    crate::completion::Kind::File if is_written => return false,
                    crate::completion::Kind::File => self.complete(),
                }
            }
            _ => return false,
        }
        true
    }

    /// Writes what is chosen in the menu.
    fn complete(&mut self) {
        let Some(menu) = self.menu.take() else {
            return;
        };
        let Some(offer) = menu.choice() else {
            return;
        };
        let gap = if offer.text.ends_with([':', '/']) {
            ""
        } else {
            " "
        };
        let text = format!("{}{gap}", offer.text);
        self.editor.replace(menu.range.clone(), &text);
        self.draft_edited();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Back,
    On,
}
