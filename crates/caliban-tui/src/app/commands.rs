//! Commands that the face obeys itself, because they are about the face.

use std::fmt::Write as _;
use std::sync::Arc;

use caliban_agent::Task;
use caliban_compose::ViCommand;
use caliban_model::{Message, Role};
use caliban_session::{Command, Shutdown};

use crate::app::effect::{Effect, KeyErrand, PanelEffect};
use crate::app::state::{App, Link, TodoRow, TodoState};
use crate::custom_theme::CustomTheme;
use crate::farewell::Departure;
use crate::host::Which;
use crate::keys::ACTIONS;
use crate::layers::{Layer, Pager, RulesPanel, ServersPanel, SettingsPanel, ThemesPanel};
use crate::preferences::{Mouse, Screen, ThemeChoice, View};
use crate::transcript::{Cell, CellKind, Tone};

/// The commands that are obeyed here alone, whatever follows them.
const OWN: [&str; 21] = [
    "quit",
    "exit",
    "web",
    "help",
    "hooks",
    "skills",
    "agents",
    "output-style",
    "login",
    "logout",
    "resume",
    "keys",
    "system",
    "permissions",
    "config",
    "mcp",
    "copy",
    "theme",
    "vim",
    "statusline",
    "tui",
];

/// The command that forgets what was said.
pub(crate) const CLEAR: &str = "/clear";

impl App {
    /// Whether a prompt is a command that the face obeys; others are the session's.
    pub(crate) fn obey(&mut self, text: &str) -> bool {
        let Some(line) = text.strip_prefix('/') else {
            return false;
        };
        let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let arguments = arguments.trim();
        if let Some(fault) = Self::fault(text, name, arguments) {
            self.feed.push(Cell::prompt(text));
            self.feed.push(Cell::notice(Tone::Error, fault));
            return true;
        }
        let named = (!arguments.is_empty()).then(|| arguments.to_owned());
        match name {
            "quit" | "exit" => self.effect(Effect::Leave(Departure::Out)),
            "web" => self.go_to_page(),
            "help" => self.show_help(),
            "agents" if arguments == "watch" => self.show_agents(),
            "hooks" | "skills" | "agents" | "output-style" => self.show_list(name),
            "memory" => match arguments.split_once(char::is_whitespace) {
                None if matches!(arguments, "" | "list") => self.show_list(name),
                Some(("edit", topic)) => self.edit_memory(topic.trim()),
                Some(_) | None => return false,
            },
            "login" => self.errand(PanelEffect::ListProviders(KeyErrand::Give, named)),
            "logout" => self.errand(PanelEffect::ListProviders(KeyErrand::Forget, named)),
            "resume" => {
                arguments.clone_into(&mut self.query);
                self.effect(Effect::ListSessions);
            }
            "clear" => self.ask_to_clear(),
            "keys" => self.show_keys(),
            "system" => match &self.desk {
                Some(desk) => {
                    // What was said since may have been replaced with what stands before it.
                    let is_system = |message: &&Arc<Message>| message.role == Role::System;
                    let told = self.messages.iter().filter(is_system);
                    let told: Vec<String> = told.map(|message| message.text()).collect();
                    let prompt = if told.is_empty() {
                        desk.system_prompt()
                    } else {
                        told.join("\n\n")
                    };
                    self.layers
                        .push(Layer::Pager(Pager::new("System prompt", prompt)));
                }
                None => self.say("The session is not there yet"),
            },
            "permissions" => match self.desk.clone() {
                Some(desk) => self.layers.push(Layer::Rules(RulesPanel::new(desk))),
                None => self.say("The session is not there yet"),
            },
            "config" => match self.desk.clone() {
                Some(desk) => {
                    let panel = SettingsPanel::new(desk, arguments);
                    self.layers.push(Layer::Settings(panel));
                }
                None => self.say("The session is not there yet"),
            },
            "mcp" => match self.desk.clone() {
                Some(desk) => self.layers.push(Layer::Servers(ServersPanel::new(desk))),
                None => self.say("The session is not there yet"),
            },
            "model" if arguments.is_empty() => match self.desk.clone() {
                Some(desk) => self.effect(Effect::ListModels(desk)),
                None => self.say("The session is not there yet"),
            },
            "rewind" if arguments.is_empty() => self.rewind(),
            "copy" => self.copy_said(arguments),
            "theme" => self.choose_theme(arguments),
            "vim" => self.toggle_vi(),
            "statusline" => self.show_status_line(),
            "tui" => self.choose_screen(arguments),
            _ => return false,
        }
        true
    }

    /// What is wrong with how a command of the face's own is written.
    fn fault(text: &str, name: &str, arguments: &str) -> Option<String> {
        // These are for a screen alone.
        let verb = arguments.split_whitespace().next();
        let is_for_screens = matches!((name, verb), ("memory", Some("edit")))
            || (name, arguments) == ("agents", "watch");
        ((OWN.contains(&name) || name == "clear") && !is_for_screens)
            .then(|| caliban_slash::fault(text))
            .flatten()
    }

    /// Whether a prompt is a command that the session never hears of, so that nobody else lets
    /// hooks hear it.
    pub(crate) fn is_own(text: &str) -> bool {
        let Some(line) = text.strip_prefix('/') else {
            return false;
        };
        let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let arguments = arguments.trim();
        match name {
            "model" => arguments.is_empty(),
            "memory" => matches!(arguments, "" | "list") || arguments.starts_with("edit "),
            // It is confirmed here and obeyed there.
            "clear" => false,
            name => OWN.contains(&name),
        }
    }

    /// Leaves for the page in the browser, where nothing is lost by it.
    fn go_to_page(&mut self) {
        if self.run.is_some() {
            self.say("Work goes on here: stop it with Esc, or wait for its end");
        } else if self.name.is_none() && !self.messages.is_empty() {
            self.say("The session is not saved, so a page cannot go on with it");
        } else {
            self.effect(Effect::Leave(Departure::Page));
        }
    }

    /// Leaves one session for another.
    pub(crate) fn switch_to(&mut self, name: String) {
        match self.link {
            Link::Open(_) => {
                // A session is its writer's alone: the other one begins when this one is over.
                self.next = Some(Which::Named(name));
                let when = Shutdown::Now;
                self.effect(Effect::Send(Command::Shutdown { when }));
            }
            Link::Looking | Link::Opening | Link::Failed | Link::Over => {
                self.open(Which::Named(name));
            }
        }
    }

    pub(crate) fn show_keys(&mut self) {
        let mut text = String::from(
            "Enter                  send; while work goes on it joins between two steps\n\
             Tab                    send after the work; complete; turn to a question\n\
             Shift+Enter            a new line; also Alt+Enter, Ctrl+J, and \\ before Enter\n\
             Up, Down               earlier prompts\n\
             Esc                    close, clear, stop; twice: take prompts back\n\
             !line                  run a line in the shell\n\
             @path                  bring a file along\n\
             /                      commands\n\n",
        );
        for known in ACTIONS {
            let keys = self.keys.keys_of(known.action).join(", ");
            // Writing to a string does not fail.
            let _ = writeln!(text, "{keys:<21}  {} ({})", known.about, known.name);
        }
        text.push_str(
            "\nThe names in brackets are for keys of your own, in the settings:\n  \
             [tui.keys]\n  \"alt+k\" = \"viewer\"\n",
        );
        self.layers.push(Layer::Pager(Pager::new("Keys", text)));
    }

    /// Copies the last answer, the last code in an answer, or everything.
    fn copy_said(&mut self, what: &str) {
        let cells = self.feed.cells.iter().rev();
        let mut answers = cells.filter_map(|cell| match &cell.kind {
            CellKind::Answer(spoken) => Some(spoken.text()),
            _ => None,
        });
        let found = match what {
            "" => answers.next().ok_or("There is no answer yet"),
            "code" => {
                let code = answers.find_map(|text| last_code(&text));
                code.ok_or("There is no code in an answer yet")
            }
            "all" => Ok(crate::viewer::as_the_model_sees_it(&self.messages)),
            _ => Err("Write `/copy`, `/copy code` or `/copy all`"),
        };
        match found {
            Ok(text) => self.copy(text),
            Err(why) => self.say(why),
        }
    }

    pub(crate) fn copy(&mut self, text: String) {
        let length = text.chars().count();
        self.effect(Effect::Copy(text));
        self.say(format!("{length} characters to the clipboard"));
    }

    fn choose_theme(&mut self, name: &str) {
        if name.is_empty() {
            let before = self.preferences.theme;
            let panel = ThemesPanel::new(before, self.preferences.custom_theme.clone());
            return self.layers.push(Layer::Themes(Box::new(panel)));
        }
        match ThemeChoice::named(name) {
            Some(choice) => {
                self.try_theme(choice, None);
            }
            None => self.effect(Effect::ReadTheme(name.to_owned())),
        }
    }

    /// Shows everything in these colours.
    pub(crate) fn try_theme(&mut self, theme: ThemeChoice, custom: Option<CustomTheme>) {
        self.preferences.theme = theme;
        self.preferences.custom_theme = custom;
        self.retheme();
    }

    /// A theme of the operator's own was read.
    pub(crate) fn themed(&mut self, name: &str, read: Result<(CustomTheme, Vec<String>), String>) {
        match read {
            Ok((theme, faults)) => {
                self.preferences.custom_theme = Some(theme);
                self.retheme();
                for fault in faults {
                    self.feed.push(Cell::notice(Tone::Warning, fault));
                }
            }
            Err(problem) => self.say(format!("`{name}` is no theme: {problem}")),
        }
    }

    fn toggle_vi(&mut self) {
        use caliban_compose::KeySet;
        self.preferences.keys = match self.preferences.keys {
            KeySet::Emacs => KeySet::Vi,
            KeySet::Vi => KeySet::Emacs,
        };
        self.editor.set_keys(self.preferences.keys);
        self.say(match self.preferences.keys {
            KeySet::Emacs => "The usual keys",
            KeySet::Vi => "vi keys; `editor_mode = \"vim\"` keeps them",
        });
    }

    fn show_status_line(&mut self) {
        let text = match &self.preferences.status {
            None => "no `statusLine.command` is set. In `settings.toml`, for example:\n\n  \
                     [statusLine]\n  command = \"git branch --show-current\"\n\n\
                     The first line of what it prints then stands first in the status line."
                .to_owned(),
            Some(status) => format!(
                "command: {}\ntimeout: {} ms\npadding: {}\nlast: {}",
                status.command,
                status.patience.as_millis(),
                status.padding,
                self.status.custom.as_deref().unwrap_or("nothing yet")
            ),
        };
        self.feed.push(Cell::new(CellKind::Report(text.into())));
    }

    fn choose_screen(&mut self, name: &str) {
        match name {
            "" => self.report_terminal(),
            "fullscreen" => self.draw_on(Screen::Fullscreen),
            "inline" => self.draw_on(Screen::Inline),
            "plain" => self.say("Leave and start with `--screen-reader` for that"),
            other => self.say(format!("`{other}` is no surface; use fullscreen or inline")),
        }
    }

    pub(crate) fn draw_on(&mut self, screen: Screen) {
        if screen != self.screen {
            self.screen = screen;
            self.printed = 0;
            if screen == Screen::Inline {
                let glimpsed = std::mem::take(&mut self.glimpsed);
                self.feed.cells.drain(..glimpsed.min(self.feed.cells.len()));
            }
            self.scroll.go_to_end();
            self.effect(Effect::DrawOn);
        }
    }

    /// What the terminal said of itself, and what is made of it.
    fn report_terminal(&mut self) {
        let known = &self.capabilities;
        let mouse = match self.mouse {
            Mouse::On => "taken",
            Mouse::Off => "the terminal's",
        };
        let view = match self.view {
            View::Compact => "compact",
            View::Expanded => "expanded",
        };
        let (surface, other) = match self.screen {
            Screen::Fullscreen => ("fullscreen", "inline"),
            Screen::Inline => ("inline", "fullscreen"),
        };
        let text = format!(
            "surface: {surface}; `/tui {other}` changes it, `tui.screen` keeps it\nterminal: {}\nsize: {} × {}\ncolours: {:?}\nbackground: {:?}\nsynchronised frames: {:?}\nkeyboard protocol: {:?}\nmouse: {mouse}\nview: {view}",
            known.name.as_deref().unwrap_or("it did not say"),
            self.width,
            self.height,
            known.colours,
            known.scheme(),
            known.synchronised,
            known.kitty_keys,
        );
        self.feed.push(Cell::new(CellKind::Report(text.into())));
    }

    /// Shows what can be gone back to.
    pub(crate) fn rewind(&mut self) {
        match self.desk.clone() {
            _ if self.run.is_some() => self.say("Prompts can be taken back when the work is done"),
            Some(desk) => self.effect(Effect::ListPoints(desk)),
            None => self.say("The session is not there yet"),
        }
    }

    pub(crate) fn vi_command(&mut self, command: ViCommand) {
        match command {
            ViCommand::Copy(text) => self.copy(text),
            ViCommand::Older => self.older(),
            ViCommand::Newer => self.newer(),
        }
    }

    pub(crate) fn take_tasks(&mut self, tasks: &[Task]) {
        self.todos = tasks
            .iter()
            .map(|task| TodoRow {
                text: task.text.clone(),
                state: match task.state {
                    caliban_agent::TaskState::Pending => TodoState::Pending,
                    caliban_agent::TaskState::Active => TodoState::Active,
                    caliban_agent::TaskState::Done => TodoState::Done,
                },
            })
            .collect();
    }

    /// Calls somebody who does not look.
    pub(crate) fn call_operator(&mut self, text: &str) {
        use crate::preferences::Notify;
        if !self.is_away() {
            return;
        }
        let bytes = match self.preferences.notify {
            Notify::Off => return,
            Notify::Bell => caliban_terminal::bell(),
            Notify::Terminal => caliban_terminal::notify(text, &self.capabilities),
        };
        self.effect(Effect::Bytes(bytes));
    }

    /// The title says what goes on; it is written only when it changes.
    pub(crate) fn show_title(&mut self) {
        let place = self
            .cwd
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let place = place.unwrap_or_default();
        let state = if self.run.is_some() { "… " } else { "" };
        let title = format!("{state}caliban {place}");
        if title != self.title {
            let bytes = caliban_terminal::title(&title);
            self.title = title;
            self.effect(Effect::Bytes(bytes));
        }
    }
}

/// What stands in the last fenced block of a text, without the fences.
fn last_code(text: &str) -> Option<String> {
    let (mut last, mut open): (Option<String>, Option<(&str, String)>) = (None, None);
    for line in text.lines() {
        let begin = line.trim_start();
        match &mut open {
            None => {
                let fence = ["```", "~~~"].into_iter().find(|it| begin.starts_with(it));
                open = fence.map(|fence| (fence, String::new()));
            }
            Some((fence, code)) if begin.trim_end() == *fence => {
                last = Some(std::mem::take(code));
                open = None;
            }
            Some((_, code)) => {
                code.push_str(line);
                code.push('\n');
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::last_code;

    #[rstest]
    #[case("no code", None)]
    #[case("a\n```rust\nfn a() {}\n\n  b\n```\nz", Some("fn a() {}\n\n  b\n"))]
    #[case("```\none\n```\n~~~\ntwo\n```\n~~~", Some("two\n```\n"))]
    #[case("```\none\n```\n```\nnot ended", Some("one\n"))]
    fn the_last_block_of_code_is_found(#[case] text: &str, #[case] code: Option<&str>) {
        assert_eq!(last_code(text).as_deref(), code);
    }
}
