//! Decides what a request says about thinking, from what was asked for and what the model takes.

use caliban_model::{
    AnswerLimit, Effort, ModelTraits, Reasoning, Request, ThinkingDefault, ThinkingForm,
};
use serde_json::{Value, json};

use super::encode::Omissions;
use super::messages::ToolLoop;

/// The smallest and largest number of thinking tokens of models whose range is not known.
const BUDGETS: (u32, u32) = (1024, 64_000);

/// What is said about thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    /// Nothing, and the model does not think.
    Unsaid,
    Disabled,
    Manual {
        budget: u32,
    },
    Adaptive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) thinking: Thinking,
    pub(super) effort: Option<Effort>,
    /// Thinking counts as a part of the answer.
    pub(super) max_tokens: u32,
}

impl Thinking {
    pub(super) fn is_on(self) -> bool {
        match self {
            Self::Manual { .. } | Self::Adaptive => true,
            Self::Unsaid | Self::Disabled => false,
        }
    }

    pub(super) fn to_value(self) -> Option<Value> {
        match self {
            Self::Unsaid => None,
            Self::Disabled => Some(json!({"type": "disabled"})),
            Self::Manual { budget } => Some(json!({"type": "enabled", "budget_tokens": budget})),
            // Without `display` the newest models think in silence.
            Self::Adaptive => Some(json!({"type": "adaptive", "display": "summarized"})),
        }
    }
}

pub(super) fn plan(
    request: &Request,
    traits: &ModelTraits,
    tool_loop: ToolLoop,
    omissions: &mut Omissions<'_>,
) -> Plan {
    let mut planner = Planner {
        request,
        traits,
        tool_loop,
        omissions,
    };
    match request.reasoning {
        Reasoning::Auto => planner.plan(planner.by_default()),
        Reasoning::Off => {
            let thinking = planner.off();
            planner.plan(thinking)
        }
        Reasoning::Effort(effort) => planner.by_effort(effort),
        Reasoning::Budget(tokens) => planner.by_budget(tokens),
    }
}

struct Planner<'a, 'b> {
    request: &'a Request,
    traits: &'a ModelTraits,
    tool_loop: ToolLoop,
    omissions: &'a mut Omissions<'b>,
}

impl Planner<'_, '_> {
    fn plan(&self, thinking: Thinking) -> Plan {
        Plan {
            thinking,
            effort: None,
            max_tokens: self.request.max_tokens,
        }
    }

    fn by_default(&self) -> Thinking {
        match self.traits.default {
            ThinkingDefault::Off => Thinking::Unsaid,
            ThinkingDefault::On | ThinkingDefault::Always => Thinking::Adaptive,
        }
    }

    fn off(&mut self) -> Thinking {
        match self.traits.default {
            ThinkingDefault::Off => Thinking::Unsaid,
            ThinkingDefault::On => Thinking::Disabled,
            ThinkingDefault::Always => {
                self.omissions
                    .dropped("thinking", "this model cannot stop thinking");
                Thinking::Adaptive
            }
        }
    }

    fn by_effort(&mut self, wish: Effort) -> Plan {
        let effort = self.traits.efforts.fit(wish);
        let thinking = match self.traits.thinking {
            ThinkingForm::Adaptive | ThinkingForm::AdaptiveOrManual => Thinking::Adaptive,
            // A level is a wish, and has no room of its own.
            ThinkingForm::Manual => {
                let most = self.request.max_tokens;
                self.manual(budget_of(wish).min(room_in(most)), most)
            }
            ThinkingForm::None
            | ThinkingForm::Level
            | ThinkingForm::Effort
            | ThinkingForm::Probed => self.thoughtless("effort"),
        };
        Plan {
            effort,
            ..self.plan(thinking)
        }
    }

    fn by_budget(&mut self, tokens: u32) -> Plan {
        match self.traits.thinking {
            ThinkingForm::Manual | ThinkingForm::AdaptiveOrManual => {
                let max_tokens = self.raised(tokens);
                let thinking = self.manual(tokens.min(room_in(max_tokens)), max_tokens);
                if let Thinking::Manual { budget } = thinking
                    && budget != tokens
                {
                    let (low, high) = self.range();
                    let why = if (low..=high).contains(&tokens) {
                        format!(
                            "{tokens} of {max_tokens} tokens leave no room for an answer; {budget} is used instead"
                        )
                    } else {
                        format!("{tokens} is out of range; {budget} is used instead")
                    };
                    self.omissions.dropped("budget_tokens", &why);
                }
                Plan {
                    max_tokens: match thinking {
                        Thinking::Manual { .. } => max_tokens,
                        Thinking::Unsaid | Thinking::Disabled | Thinking::Adaptive => {
                            self.request.max_tokens
                        }
                    },
                    ..self.plan(thinking)
                }
            }
            ThinkingForm::Adaptive => {
                let effort = self.traits.efforts.fit(Effort::from_budget(tokens));
                let instead = effort.map_or_else(String::new, |effort| {
                    format!("; effort `{}` is used instead", effort.as_str())
                });
                self.omissions.dropped(
                    "budget_tokens",
                    &format!("this model decides itself how long it thinks{instead}"),
                );
                Plan {
                    effort,
                    ..self.plan(Thinking::Adaptive)
                }
            }
            ThinkingForm::None
            | ThinkingForm::Level
            | ThinkingForm::Effort
            | ThinkingForm::Probed => {
                let thinking = self.thoughtless("budget_tokens");
                self.plan(thinking)
            }
        }
    }

    /// The tokens of thinking that the model takes.
    fn range(&self) -> (u32, u32) {
        self.traits.budget.unwrap_or(BUDGETS)
    }

    /// The limit of an answer that has a budget for thinking beside the room it had, unless
    /// somebody named it. No model answers more than it may think.
    fn raised(&self, budget: u32) -> u32 {
        let own = self.request.max_tokens;
        match self.request.answer_limit {
            AnswerLimit::Fixed => own,
            AnswerLimit::Open => {
                let (low, high) = self.range();
                let both = budget.clamp(low, high).saturating_add(own);
                both.min(high).max(own)
            }
        }
    }

    fn thoughtless(&mut self, parameter: &str) -> Thinking {
        self.omissions
            .dropped(parameter, "this model does not think");
        Thinking::Unsaid
    }

    /// A budget near `wish`. It must stay below the limit of the answer.
    fn manual(&mut self, wish: u32, max_tokens: u32) -> Thinking {
        let (low, high) = self.range();
        let high = high.min(max_tokens.saturating_sub(1));
        if high < low {
            self.omissions.dropped(
                "thinking",
                &format!("it needs at least {low} tokens and `max_tokens` is {max_tokens}"),
            );
            return Thinking::Unsaid;
        }
        match self.tool_loop {
            ToolLoop::None | ToolLoop::BegunThinking => Thinking::Manual {
                budget: wish.clamp(low, high),
            },
            ToolLoop::BegunWithoutThinking => {
                self.omissions.dropped(
                    "thinking",
                    "the tool calls in progress were begun without it",
                );
                Thinking::Unsaid
            }
        }
    }
}

/// How much of an answer may be thinking: a quarter stays for what is said.
fn room_in(max_tokens: u32) -> u32 {
    max_tokens - max_tokens / 4
}

/// The thinking tokens that stand for an effort where the model takes a number.
fn budget_of(effort: Effort) -> u32 {
    match effort {
        Effort::Low => 4_096,
        Effort::Medium => 8_192,
        Effort::High => 32_768,
        Effort::Xhigh => 49_152,
        Effort::Max => 64_000,
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode::encode;
    use super::*;
    use crate::memory::Memory;
    use caliban_model::Message;
    use std::sync::Arc;

    /// What is sent about thinking, and what is warned of.
    #[derive(Debug, PartialEq)]
    struct Said {
        thinking: Value,
        effort: Value,
        beta: bool,
        warnings: Vec<String>,
    }

    fn said(model: &str, reasoning: Reasoning, max_tokens: u32) -> Said {
        let mut request = Request::new(model, vec![Arc::new(Message::user("q"))].into()).unwrap();
        request.reasoning = reasoning;
        request.max_tokens = max_tokens;
        let encoded = encode(&request, &Memory::default());
        let body = encoded.call.body.unwrap().values();
        let at = |pointer: &str| {
            Value::Object(body.clone())
                .pointer(pointer)
                .cloned()
                .unwrap_or_default()
        };
        Said {
            thinking: at("/thinking"),
            effort: at("/output_config/effort"),
            beta: encoded.call.headers.iter().any(|(name, value)| {
                name == "anthropic-beta" && value == "interleaved-thinking-2025-05-14"
            }),
            warnings: encoded
                .warnings
                .into_iter()
                .map(|warning| warning.message)
                .collect(),
        }
    }

    fn adaptive() -> Value {
        json!({"type": "adaptive", "display": "summarized"})
    }

    fn enabled(budget: u32) -> Value {
        json!({"type": "enabled", "budget_tokens": budget})
    }

    #[test]
    fn each_generation_is_asked_in_its_own_way() {
        use Effort::{High, Low, Max, Medium, Xhigh};
        let (none, disabled) = (Value::Null, json!({"type": "disabled"}));
        for (model, reasoning, thinking, effort) in [
            ("claude-3-5-haiku", Reasoning::Auto, none.clone(), ""),
            ("claude-3-5-haiku", Reasoning::Off, none.clone(), ""),
            ("claude-haiku-4-5", Reasoning::Auto, none.clone(), ""),
            ("claude-haiku-4-5", Reasoning::Off, none.clone(), ""),
            (
                "claude-haiku-4-5",
                Reasoning::Effort(Low),
                enabled(4_096),
                "",
            ),
            (
                "claude-haiku-4-5",
                Reasoning::Effort(Medium),
                enabled(8_192),
                "",
            ),
            (
                "claude-haiku-4-5",
                Reasoning::Effort(High),
                enabled(32_768),
                "",
            ),
            (
                "claude-haiku-4-5",
                Reasoning::Effort(Max),
                enabled(64_000),
                "",
            ),
            (
                "claude-opus-4-1",
                Reasoning::Effort(Max),
                enabled(32_000),
                "",
            ),
            (
                "claude-haiku-4-5",
                Reasoning::Budget(5_000),
                enabled(5_000),
                "",
            ),
            (
                "claude-opus-4-5",
                Reasoning::Effort(Xhigh),
                enabled(49_152),
                "high",
            ),
            ("claude-sonnet-4-6", Reasoning::Auto, none.clone(), ""),
            (
                "claude-sonnet-4-6",
                Reasoning::Effort(Max),
                adaptive(),
                "max",
            ),
            (
                "claude-sonnet-4-6",
                Reasoning::Effort(Xhigh),
                adaptive(),
                "high",
            ),
            (
                "claude-sonnet-4-6",
                Reasoning::Budget(2_000),
                enabled(2_000),
                "",
            ),
            ("claude-opus-4-7", Reasoning::Auto, none.clone(), ""),
            ("claude-opus-4-7", Reasoning::Off, none, ""),
            (
                "claude-opus-4-7",
                Reasoning::Effort(Xhigh),
                adaptive(),
                "xhigh",
            ),
            ("claude-sonnet-5", Reasoning::Auto, adaptive(), ""),
            ("claude-sonnet-5", Reasoning::Off, disabled, ""),
            ("claude-fable-5", Reasoning::Auto, adaptive(), ""),
            ("claude-opus-5-5", Reasoning::Effort(Low), adaptive(), "low"),
            ("claude-zeta-9", Reasoning::Auto, adaptive(), ""),
        ] {
            let effort = match effort {
                "" => Value::Null,
                name => json!(name),
            };
            let expected = Said {
                beta: thinking["type"] == "enabled",
                thinking,
                effort,
                warnings: Vec::new(),
            };
            assert_eq!(
                said(model, reasoning, 100_000),
                expected,
                "{model} {reasoning:?}"
            );
        }
    }

    #[test]
    fn a_budget_stays_below_the_limit_and_a_level_leaves_room_for_the_answer() {
        let fitted = |reasoning, max_tokens| said("claude-haiku-4-5", reasoning, max_tokens);
        assert_eq!(
            fitted(Reasoning::Effort(Effort::High), 8_192).thinking,
            enabled(6_144)
        );
        let high = fitted(Reasoning::Budget(9_000), 8_192);
        assert_eq!(high.thinking, enabled(6_144));
        assert_eq!(
            high.warnings,
            [
                "`budget_tokens` was not sent to claude-haiku-4-5: 9000 of 8192 tokens leave no room for an answer; 6144 is used instead"
            ]
        );
        assert_eq!(fitted(Reasoning::Budget(7), 8_192).thinking, enabled(1_024));
        assert_eq!(fitted(Reasoning::Budget(7), 1_025).thinking, enabled(1_024));
        let tiny = fitted(Reasoning::Budget(7), 1_024);
        assert_eq!((tiny.thinking, tiny.beta), (Value::Null, false));
        assert_eq!(
            tiny.warnings,
            [
                "`thinking` was not sent to claude-haiku-4-5: it needs at least 1024 tokens and `max_tokens` is 1024"
            ]
        );
    }

    /// Nobody has limited the answer, so it is as long as it would be without thinking.
    #[test]
    fn a_budget_comes_on_top_of_an_answer_that_nobody_has_limited() {
        let sent = |model: &str, budget| {
            let mut request =
                Request::new(model, vec![Arc::new(Message::user("q"))].into()).unwrap();
            request.reasoning = Reasoning::Budget(budget);
            request.answer_limit = AnswerLimit::Open;
            let encoded = encode(&request, &Memory::default());
            let body = encoded.call.body.unwrap().values();
            let budget = body["thinking"]["budget_tokens"].as_u64();
            (budget, body["max_tokens"].as_u64(), encoded.warnings.len())
        };
        let haiku = |budget| sent("claude-haiku-4-5", budget);
        assert_eq!(haiku(8_192), (Some(8_192), Some(16_384), 0));
        assert_eq!(haiku(64_000), (Some(48_000), Some(64_000), 1));
        assert_eq!(
            sent("claude-opus-4-7", 8_192),
            (None, Some(8_192), 1),
            "it takes no number"
        );
    }

    #[test]
    fn what_a_model_cannot_do_is_replaced_with_a_warning() {
        let always = said("claude-fable-5-1", Reasoning::Off, 8_192);
        assert_eq!(always.thinking, adaptive());
        assert_eq!(
            always.warnings,
            ["`thinking` was not sent to claude-fable-5-1: this model cannot stop thinking"]
        );
        let budget = said("claude-opus-4-8", Reasoning::Budget(30_000), 8_192);
        assert_eq!(budget.thinking, adaptive());
        assert_eq!(budget.effort, "high");
        assert_eq!(
            budget.warnings,
            [
                "`budget_tokens` was not sent to claude-opus-4-8: this model decides itself how long it thinks; effort `high` is used instead"
            ]
        );
        for reasoning in [Reasoning::Effort(Effort::High), Reasoning::Budget(5_000)] {
            let none = said("claude-3-5-haiku", reasoning, 8_192);
            assert_eq!(
                (none.thinking, none.effort, none.warnings.len()),
                (Value::Null, Value::Null, 1)
            );
        }
    }

    #[test]
    fn a_budget_is_not_brought_into_a_tool_loop_that_began_without_thinking() {
        let mut request = Request::new(
            "claude-haiku-4-5",
            vec![
                Arc::new(Message::user("q")),
                Arc::new(Message::new(
                    caliban_model::Role::Assistant,
                    vec![caliban_model::Block::ToolUse {
                        id: "t".into(),
                        name: "Bash".into(),
                        input: json!({}),
                        private: None,
                    }],
                )),
            ]
            .into(),
        )
        .unwrap();
        request.reasoning = Reasoning::Effort(Effort::Low);
        let encoded = encode(&request, &Memory::default());
        assert_eq!(encoded.call.body.unwrap().values().get("thinking"), None);
        assert_eq!(encoded.warnings.len(), 1);
    }
}
