//! What a client can turn in a session: the mode, the model and how hard it thinks.

use std::sync::Arc;

use caliban_model::{Effort, RateCard, Reasoning, capabilities, traits};
use caliban_permissions::{Latch, Regime};
use caliban_protocol::acp::v1::{
    Error, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
    SessionMode, SessionModeState,
};
use caliban_session::{Command, ModelChange};
use caliban_settings::PermissionMode;

const MODE: &str = "mode";
const MODEL: &str = "model";
const THOUGHT: &str = "thought_level";
/// How a number of tokens is called among the levels.
const BUDGET: &str = "budget";

/// Something that can be turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dial {
    Mode,
    Model,
    Thought,
}

/// How everything is set, as the client knows it.
#[derive(Debug, Clone)]
pub(super) struct Dials {
    pub(super) provider: String,
    pub(super) regime: Regime,
    pub(super) model: Arc<str>,
    pub(super) reasoning: Reasoning,
    /// Whether everything may be allowed without asking.
    pub(super) latch: Latch,
}

impl Dials {
    /// The modes, for clients that know no options.
    pub(super) fn modes(&self) -> SessionModeState {
        let modes = self.offered().into_iter().map(|mode| {
            let (name, about) = described(mode);
            SessionMode::new(mode.as_str(), name).description(about)
        });
        let mut modes: Vec<SessionMode> = modes.collect();
        if self.regime == Regime::Disabled {
            modes.push(SessionMode::new(self.regime.as_str(), "Permissions off"));
        }
        SessionModeState::new(self.regime.as_str(), modes)
    }

    fn offered(&self) -> Vec<PermissionMode> {
        let is_offered = |mode: &PermissionMode| {
            *mode != PermissionMode::BypassPermissions
                || self.latch == Latch::Given
                || self.regime == Regime::Rules(*mode)
        };
        let all = PermissionMode::ALL.into_iter();
        all.filter(is_offered).collect()
    }

    /// Everything that can be turned.
    pub(super) fn options(&self) -> Vec<SessionConfigOption> {
        let choices = self.modes().available_modes.into_iter().map(|mode| {
            SessionConfigSelectOption::new(mode.id.0, mode.name).description(mode.description)
        });
        let mode = SessionConfigOption::select(
            MODE,
            "Mode",
            self.regime.as_str(),
            choices.collect::<Vec<_>>(),
        )
        .description("Which calls need consent")
        .category(SessionConfigOptionCategory::Mode);
        let model = SessionConfigOption::select(
            MODEL,
            "Model",
            Arc::clone(&self.model),
            self.models()
                .into_iter()
                .map(|model| SessionConfigSelectOption::new(Arc::clone(&model), model.to_string()))
                .collect::<Vec<_>>(),
        )
        .category(SessionConfigOptionCategory::Model);
        [mode, model].into_iter().chain(self.thought()).collect()
    }

    /// The models of the provider that are known, and the one that answers.
    fn models(&self) -> Vec<Arc<str>> {
        let known = RateCard::builtin().models(&self.provider).map(Arc::from);
        let mut models: Vec<Arc<str>> = known.collect();
        if !models.contains(&self.model) {
            models.insert(0, Arc::clone(&self.model));
        }
        models
    }

    /// How hard the model thinks, where it does.
    fn thought(&self) -> Option<SessionConfigOption> {
        if !capabilities(&self.provider, &self.model).thinking {
            return None;
        }
        let option = SessionConfigSelectOption::new;
        let mut levels = vec![option("auto", "Auto"), option("off", "Off")];
        levels.extend(
            self.efforts()
                .map(|effort| option(effort.as_str(), effort.as_str())),
        );
        if let Reasoning::Budget(tokens) = self.reasoning {
            levels.push(option(BUDGET, &format!("{tokens} tokens")));
        }
        let current = match self.reasoning {
            Reasoning::Auto => "auto",
            Reasoning::Off => "off",
            Reasoning::Effort(wish) => {
                let known = traits(&self.provider, &self.model).efforts;
                known.fit(wish).map_or("auto", Effort::as_str)
            }
            Reasoning::Budget(_) => BUDGET,
        };
        let thought = SessionConfigOption::select(THOUGHT, "Thinking", current, levels);
        Some(thought.category(SessionConfigOptionCategory::ThoughtLevel))
    }

    fn efforts(&self) -> impl Iterator<Item = Effort> + use<> {
        let known = traits(&self.provider, &self.model).efforts;
        let all = Effort::ALL.into_iter();
        all.filter(move |effort| known.contains(*effort))
    }

    /// What to tell the session so that an option has this value.
    pub(super) fn turn(&self, option: &str, value: &str) -> Result<(Dial, Command), Error> {
        match option {
            MODE => self.mode(value).map(|command| (Dial::Mode, command)),
            MODEL if value.trim().is_empty() => Err(refused("a model has a name")),
            MODEL => {
                let model = ModelChange::Named(value.into());
                Ok((Dial::Model, Command::SetModel { model }))
            }
            THOUGHT => {
                let reasoning = match value {
                    "auto" => Reasoning::Auto,
                    "off" => Reasoning::Off,
                    BUDGET if matches!(self.reasoning, Reasoning::Budget(_)) => self.reasoning,
                    level => {
                        let Ok(effort) = level.parse::<Effort>() else {
                            let offered: Vec<&str> = ["auto", "off"]
                                .into_iter()
                                .chain(self.efforts().map(Effort::as_str))
                                .collect();
                            return Err(refused(&format!(
                                "there is no level `{value}`; choose one of {}",
                                offered.join(", ")
                            )));
                        };
                        Reasoning::Effort(effort)
                    }
                };
                Ok((Dial::Thought, Command::SetReasoning { reasoning }))
            }
            other => Err(refused(&format!(
                "there is no option `{other}`; use `{MODE}`, `{MODEL}` or `{THOUGHT}`"
            ))),
        }
    }

    /// What to tell the session so that it is in this mode.
    pub(super) fn mode(&self, mode: &str) -> Result<Command, Error> {
        let mode = mode.parse().map_err(|error: String| refused(&error))?;
        if !self.offered().contains(&mode) {
            return Err(refused(&format!(
                "the mode `{mode}` needs `--allow-dangerously-skip-permissions` on the command \
                 line of the program"
            )));
        }
        Ok(Command::SetMode { mode })
    }
}

fn refused(reason: &str) -> Error {
    Error::new(-32602, reason)
}

fn described(mode: PermissionMode) -> (&'static str, &'static str) {
    match mode {
        PermissionMode::Default => ("Default", "Asks before it changes files or runs commands"),
        PermissionMode::AcceptEdits => ("Accept edits", "Changes files without asking"),
        PermissionMode::Plan => ("Plan", "Looks and plans, and changes nothing"),
        PermissionMode::Auto => ("Auto", "Asks only about what is not clearly harmless"),
        PermissionMode::DontAsk => ("Don't ask", "Refuses what no rule allows"),
        PermissionMode::BypassPermissions => {
            ("Bypass permissions", "Runs everything without asking")
        }
    }
}

#[cfg(test)]
mod tests {
    use caliban_protocol::acp::v1::SessionConfigKind;

    use super::*;

    fn dials(latch: Latch) -> Dials {
        Dials {
            provider: "anthropic".to_owned(),
            regime: Regime::Rules(PermissionMode::Default),
            model: "claude-sonnet-4-6".into(),
            reasoning: Reasoning::Auto,
            latch,
        }
    }

    #[test]
    fn everything_is_allowed_only_if_the_operator_said_so() {
        let bypass = |dials: &Dials| {
            let modes = dials.modes().available_modes;
            modes.iter().any(|mode| &*mode.id.0 == "bypassPermissions")
        };
        assert!(!bypass(&dials(Latch::Absent)));
        assert!(bypass(&dials(Latch::Given)));
        let error = dials(Latch::Absent).mode("bypassPermissions").unwrap_err();
        assert!(error.message.contains("--allow-dangerously"), "{error}");
        assert!(dials(Latch::Given).mode("bypassPermissions").is_ok());
    }

    #[test]
    fn what_is_set_is_among_what_can_be_chosen() {
        let mut dials = dials(Latch::Absent);
        dials.model = "something-new".into();
        dials.reasoning = Reasoning::Budget(7);
        for option in dials.options() {
            let SessionConfigKind::Select(select) = option.kind else {
                panic!("a choice");
            };
            let shown = serde_json::to_value(&select).unwrap();
            let current = shown["currentValue"].clone();
            let values = shown["options"].as_array().unwrap();
            assert!(values.iter().any(|it| it["value"] == current), "{shown}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let dials = dials(Latch::Absent);
        for (option, value) in [
            ("mode", "x"),
            ("thought_level", "x"),
            ("model", " "),
            ("x", "y"),
        ] {
            assert!(dials.turn(option, value).is_err(), "{option}={value}");
        }
        let error = dials.turn("thought_level", "x").unwrap_err();
        assert!(error.message.contains("auto, off, "), "{error}");
    }
}
