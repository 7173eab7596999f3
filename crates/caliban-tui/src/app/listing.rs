//! Lists of what a session has, models, notes and keys: opened, and acted on.

use caliban_model::{Effort, Reasoning};
use caliban_session::{Command, ServerCommand};
use caliban_slash::{BUILT_IN, Does};

use crate::app::commands::CLEAR;
use crate::app::effect::{Effect, KeyErrand, PanelDone};
use crate::app::state::App;
use crate::host::Which;
use crate::layers::{
    Begins, COMMANDS, Catalogue, Choice, Layer, LoginPanel, MEMORY, MODELS, PROFILES, Pager,
    Picker, READING, STYLES, SettingsPanel, Step, Thing, Wish,
};
use crate::lists_desk::ListRow;
use crate::transcript::{Cell, Tone};

const MEMORY_TITLE: &str = "Memory";
const AGENTS_TITLE: &str = "Agents";
/// How hard a model may think, the least first.
const LEVELS: [Reasoning; 7] = [
    Reasoning::Off,
    Reasoning::Auto,
    Reasoning::Effort(Effort::Low),
    Reasoning::Effort(Effort::Medium),
    Reasoning::Effort(Effort::High),
    Reasoning::Effort(Effort::Xhigh),
    Reasoning::Effort(Effort::Max),
];

fn thing(row: ListRow) -> Thing {
    Thing {
        group: row.group,
        label: row.name,
        about: row.about,
        value: row.value,
    }
}

impl App {
    fn catalogue(&mut self, catalogue: Catalogue) {
        self.layers.push(Layer::Catalogue(catalogue));
    }

    /// Every command, with those of the operator.
    pub(crate) fn show_help(&mut self) {
        let built_in = BUILT_IN.iter().map(|entry| Thing {
            group: entry.category.title().to_owned(),
            label: entry.usage(),
            about: match entry.does {
                Does::Act(_) | Does::NeedsScreen { .. } => entry.summary.to_owned(),
                Does::Missing { part, .. } => format!("{}: there is no {part}", entry.summary),
            },
            value: format!("/{} ", entry.name),
        });
        let facts = self.status.facts.iter();
        let own = facts.flat_map(|facts| &facts.commands);
        let own = own.filter(|(name, _)| caliban_slash::built_in(name).is_none());
        let hints = self.status.facts.as_ref().map(|facts| &facts.hints);
        let own = own.map(|(name, about)| Thing {
            group: if name.starts_with("mcp__") {
                "Prompts of MCP servers".to_owned()
            } else {
                "Your own".to_owned()
            },
            label: match hints.and_then(|hints| hints.get(name)) {
                Some(hint) => format!("/{name} {hint}"),
                None => format!("/{name}"),
            },
            about: about.clone(),
            value: format!("/{name} "),
        });
        let things = built_in.chain(own).collect();
        self.catalogue(Catalogue::new("Help", things, COMMANDS));
    }

    /// A list of what the session has; whether there is such a one.
    pub(crate) fn show_list(&mut self, name: &str) {
        let Some(desk) = &self.desk else {
            return self.say("The session is not there yet");
        };
        let (title, rows, acts) = match name {
            "hooks" => ("Hooks", desk.hooks(), READING),
            "skills" => ("Skills", desk.skills(), COMMANDS),
            "agents" => (AGENTS_TITLE, desk.profiles(), PROFILES),
            "output-style" => ("Output styles", desk.styles(), STYLES),
            _ => (MEMORY_TITLE, desk.memory(), MEMORY),
        };
        let none = match name {
            "hooks" => "no hooks; `[[hooks.EVENT]]` in the settings adds one",
            "skills" => "no skills; `.caliban/skills/NAME/SKILL.md` makes one for this project",
            "agents" => {
                "no agent profiles; `.caliban/agents/NAME.md` makes one for this project. \
                 `/agents watch` shows agents in the background"
            }
            "output-style" => "no output styles",
            _ => "no instructions and no notes; `/init` drafts a CLAUDE.md for this project",
        };
        let things = rows.into_iter().map(thing).collect();
        self.catalogue(Catalogue::new(title, things, acts).or(none));
    }

    pub(crate) fn choose_model(&mut self, models: Vec<ListRow>) {
        let current = self.status.model.clone();
        // A provider need not list what it answers to.
        let is_listed = models.iter().any(|row| row.name == current);
        let own = (!is_listed && !current.is_empty()).then(|| ListRow {
            group: String::new(),
            name: current.clone(),
            about: String::new(),
            value: current.clone(),
        });
        let things = own.into_iter().chain(models).map(|row| {
            let mark = if row.name == current { "current  " } else { "" };
            Thing {
                about: format!("{mark}{}", row.about),
                ..thing(row)
            }
        });
        let mut catalogue = Catalogue::new("Models", things.collect(), MODELS);
        if let Some(desk) = &self.desk {
            catalogue.tell(format!("effort: {}", level(desk.reasoning())));
        }
        self.catalogue(catalogue);
    }

    pub(crate) fn change_effort(&mut self, step: Step) {
        let Some(desk) = &self.desk else {
            return;
        };
        let now = desk.reasoning();
        let place = LEVELS.iter().position(|level| *level == now).unwrap_or(1);
        let place = match step {
            Step::Less => place.saturating_sub(1),
            Step::More => place + 1,
        };
        let Some(reasoning) = LEVELS.get(place).copied() else {
            return;
        };
        self.effect(Effect::Send(Command::SetReasoning { reasoning }));
        if let Some(Layer::Catalogue(catalogue)) = self.layers.last_mut() {
            catalogue.tell(format!("effort: {}", level(reasoning)));
        }
    }

    pub(crate) fn propose_setting(&mut self, key: &str, value: &str) {
        if let Some(desk) = self.desk.clone() {
            let panel = SettingsPanel::proposing(desk, key, value);
            self.layers.push(Layer::Settings(panel));
        }
    }

    /// Says something about notes where they are looked at, else in passing.
    fn tell_of_memory(&mut self, text: String) {
        let rows = self.desk.as_ref().map(|desk| desk.memory());
        match self.layers.last_mut() {
            Some(Layer::Catalogue(catalogue)) if catalogue.is_titled(MEMORY_TITLE) => {
                catalogue.replace(rows.unwrap_or_default().into_iter().map(thing).collect());
                catalogue.tell(text);
            }
            Some(Layer::Catalogue(catalogue)) if catalogue.is_titled(AGENTS_TITLE) => {
                catalogue.tell(text);
            }
            Some(_) | None => self.say(text),
        }
    }

    pub(crate) fn read_memory(&mut self, value: &str) {
        let Some(desk) = &self.desk else {
            return;
        };
        match desk.memory_text(value) {
            Ok(text) => self.layers.push(Layer::Pager(Pager::new(value, text))),
            Err(error) => self.tell_of_memory(error),
        }
    }

    pub(crate) fn edit_memory(&mut self, value: &str) {
        let Some(desk) = &self.desk else {
            return self.say("The session is not there yet");
        };
        match desk.memory_text(value) {
            Ok(text) => self.effect(Effect::EditMemory {
                value: value.to_owned(),
                text,
            }),
            Err(error) => self.tell_of_memory(error),
        }
    }

    pub(crate) fn memory_edited(&mut self, value: &str, edited: Result<String, String>) {
        let Some(desk) = &self.desk else {
            return;
        };
        let saved = edited.and_then(|text| desk.save_memory(value, &text));
        self.tell_of_memory(saved.unwrap_or_else(|error| error));
    }

    pub(crate) fn ask_to_forget(&mut self, value: String) {
        let title = format!("Delete the note `{value}`?");
        let picker = yes_or_no(title, "Delete it", value, Wish::ForgetMemory);
        self.layers.push(Layer::Picker(picker));
    }

    pub(crate) fn ask_to_compact(&mut self) {
        let title = "Condense the conversation? It asks the model, and the summary takes its place";
        let choices = vec![
            choice("Keep it as it is", String::new()),
            choice("Condense it", "/compact".to_owned()),
        ];
        let picker = Picker::new(title, choices, "", Wish::SendLine);
        self.layers.push(Layer::Picker(picker));
    }

    pub(crate) fn ask_to_clear(&mut self) {
        let choices = vec![
            choice("Keep the conversation", String::new()),
            choice("Begin anew, and forget what was said", CLEAR.to_owned()),
        ];
        let picker = Picker::new("Clear the conversation?", choices, "", Wish::SendLine);
        self.layers.push(Layer::Picker(picker));
    }

    pub(crate) fn forget_memory(&mut self, value: &str) {
        if let (Some(desk), false) = (&self.desk, value.is_empty()) {
            let done = desk.forget_memory(value);
            self.tell_of_memory(done.unwrap_or_else(|error| error));
        }
    }

    /// What a panel wanted has come.
    pub(crate) fn panel_done(&mut self, done: PanelDone) {
        match done {
            PanelDone::SessionPreviewed(name, text) => {
                if let Some(panel) = self.sessions_panel() {
                    panel.previewed(&name, text.unwrap_or_else(|error| error));
                }
            }
            PanelDone::SessionsFound(text, found) => {
                if let Some(panel) = self.sessions_panel() {
                    match found {
                        Ok(hits) => panel.found(&text, hits),
                        Err(error) => panel.tell(error),
                    }
                }
            }
            PanelDone::SessionChanged(done) => self.session_changed(done),
            PanelDone::LoginBegun(address) => {
                let text = format!("open {address}");
                self.effect(Effect::Copy(address));
                self.tell_of_servers(text);
            }
            PanelDone::LoggedIn(server, Ok(())) => {
                self.tell_of_servers(format!("logged in to `{server}`"));
                let command = ServerCommand::Reconnect { server };
                self.effect(Effect::Send(Command::Servers(command)));
            }
            PanelDone::LoggedIn(_, Err(error)) => self.tell_of_servers(error),
            PanelDone::Agents(told) => {
                if let Some(panel) = self.agents_panel() {
                    match told {
                        Ok(rows) => panel.changed(rows),
                        Err(error) => panel.tell(error),
                    }
                }
            }
            PanelDone::AgentChanged(done) => {
                let text = done.unwrap_or_else(|error| error);
                match self.agents_panel() {
                    Some(panel) => panel.tell(text),
                    None => self.say(text),
                }
            }
            PanelDone::Vetted(Ok(line)) => {
                if !self.obey(&line) {
                    self.send_line(&line);
                }
            }
            PanelDone::Vetted(Err(reason)) => {
                let text = format!("A hook refused it: {reason}");
                self.feed.push(Cell::notice(Tone::Error, text));
            }
            PanelDone::Providers(errand, named, listed) => {
                self.providers_listed(errand, named.as_deref(), listed);
            }
            PanelDone::KeySaved(begins, saved) => self.key_saved(begins, saved),
            PanelDone::KeyForgotten(forgotten) => {
                let text = forgotten.unwrap_or_else(|error| error);
                self.feed.push(Cell::notice(Tone::Warning, text));
            }
        }
    }

    /// A session cannot begin without a key: it is asked for, and tried again.
    pub(crate) fn key_missing(&mut self, provider: String, error: &str) {
        let said = error.lines().next().unwrap_or_default().to_owned();
        let panel = LoginPanel::new(vec![provider], said, Begins::Session);
        self.layers.push(Layer::Login(panel));
    }

    /// Asks for the key of a provider, or whether it is to be forgotten: of the one that was named,
    /// else of the one that a session would begin with.
    fn providers_listed(
        &mut self,
        errand: KeyErrand,
        named: Option<&str>,
        listed: Result<Vec<String>, String>,
    ) {
        let listed = listed.and_then(|providers| with_first(providers, named));
        match (listed, errand) {
            (Err(error), _) => self.say(error),
            (Ok(providers), KeyErrand::Give) => {
                let panel = LoginPanel::new(providers, String::new(), Begins::Nothing);
                self.layers.push(Layer::Login(panel));
            }
            (Ok(providers), KeyErrand::Forget) => {
                let mut providers = providers.into_iter();
                let provider = providers.next().unwrap_or_default();
                let title = format!("Forget the key of {provider}?");
                let others = providers
                    .map(|other| choice(&format!("Forget that of {other}"), other.clone()));
                let choices = [
                    choice("Keep it", String::new()),
                    choice("Forget it", provider),
                ];
                let choices = choices.into_iter().chain(others).collect();
                let picker = Picker::new(title, choices, "", Wish::ForgetKey);
                self.layers.push(Layer::Picker(picker));
            }
        }
    }

    pub(crate) fn key_saved(&mut self, begins: Begins, saved: Result<String, String>) {
        match (saved, self.layers.last_mut()) {
            (Err(error), Some(Layer::Login(panel))) => panel.tell(error),
            (Err(error), _) => self.say(error),
            (Ok(text), top) => {
                if let Some(Layer::Login(_)) = top {
                    self.layers.pop();
                }
                self.feed.push(Cell::notice(Tone::Warning, text));
                match begins {
                    Begins::Session => self.open(Which::Asked),
                    Begins::Nothing => {}
                }
            }
        }
    }
}

/// These providers, the one that was named before the others.
fn with_first(mut providers: Vec<String>, named: Option<&str>) -> Result<Vec<String>, String> {
    if let Some(named) = named {
        let place = providers.iter().position(|provider| provider == named);
        let place = place.ok_or_else(|| {
            format!(
                "No provider with a key is called `{named}`; there are {}",
                providers.join(", ")
            )
        })?;
        let first = providers.remove(place);
        providers.insert(0, first);
    }
    Ok(providers)
}

fn choice(label: &str, value: String) -> Choice {
    Choice {
        label: label.to_owned(),
        about: String::new(),
        value,
    }
}

fn yes_or_no(title: String, yes: &str, value: String, wish: fn(String) -> Wish) -> Picker {
    let choices = vec![choice("Keep it", String::new()), choice(yes, value)];
    Picker::new(title, choices, "", wish)
}

fn level(reasoning: Reasoning) -> String {
    match reasoning {
        Reasoning::Auto => "auto".to_owned(),
        Reasoning::Off => "off".to_owned(),
        Reasoning::Effort(effort) => effort.as_str().to_owned(),
        Reasoning::Budget(tokens) => format!("{tokens} tokens"),
    }
}
