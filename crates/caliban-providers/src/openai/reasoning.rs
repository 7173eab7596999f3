//! What a model is told about reasoning, and which parameters that leaves it willing to take.

use caliban_model::{
    Effort, ForcedTools, ModelTraits, ParallelCalls, Reasoning, Request, Sampling, ThinkingDefault,
    ThinkingForm, ToolChoice, Warning,
};

/// The `effort` to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    Unset,
    Off,
    Level(Effort),
}

/// Whether the model will reason in this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    Idle,
    Reasoning,
}

impl Thinking {
    /// The request's wish in the model's terms.
    pub(super) fn wished(
        request: &Request,
        traits: &ModelTraits,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let mut drop = |why| warnings.push(Warning::dropped("effort", &request.model, why));
        let knows = traits.thinking == ThinkingForm::Effort;
        let fitted = |effort| traits.efforts.fit(effort).map_or(Self::Unset, Self::Level);
        match request.reasoning {
            Reasoning::Auto => Self::Unset,
            Reasoning::Off if !knows => Self::Unset,
            Reasoning::Off => match traits.default {
                ThinkingDefault::Off | ThinkingDefault::On => Self::Off,
                ThinkingDefault::Always => {
                    drop("the model always reasons");
                    Self::Unset
                }
            },
            Reasoning::Effort(_) | Reasoning::Budget(_) if !knows => {
                drop("no effort levels are known for the model");
                Self::Unset
            }
            Reasoning::Effort(effort) => fitted(effort),
            Reasoning::Budget(tokens) => {
                let level = fitted(Effort::from_budget(tokens));
                warnings.push(Warning::dropped(
                    "thinking_budget",
                    &request.model,
                    &format!(
                        "the model takes levels only, so effort is {}",
                        level.name().unwrap_or("its default")
                    ),
                ));
                level
            }
        }
    }

    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::Unset => None,
            Self::Off => Some("none"),
            Self::Level(effort) => Some(effort.as_str()),
        }
    }

    pub(super) fn activity(self, traits: &ModelTraits) -> Activity {
        match (self, traits.default) {
            (Self::Off, _) | (Self::Unset, ThinkingDefault::Off) => Activity::Idle,
            (Self::Level(_), _) | (Self::Unset, ThinkingDefault::On | ThinkingDefault::Always) => {
                Activity::Reasoning
            }
        }
    }
}

/// The temperature, unless the model would reject it.
pub(super) fn temperature(
    request: &Request,
    traits: &ModelTraits,
    activity: Activity,
    warnings: &mut Vec<Warning>,
) -> Option<f64> {
    let temperature = request.temperature?;
    let why = match (traits.sampling, activity) {
        (Sampling::Accepted, _) | (Sampling::WhenIdle, Activity::Idle) => return Some(temperature),
        (Sampling::WhenIdle, Activity::Reasoning) => {
            "the model takes it only while it does not reason"
        }
        (Sampling::Rejected, _) => "the model does not take it",
    };
    warnings.push(Warning::dropped("temperature", &request.model, why));
    None
}

/// The tool choice, unless the model would reject being forced.
pub(super) fn tool_choice<'a>(
    request: &'a Request,
    traits: &ModelTraits,
    activity: Activity,
    warnings: &mut Vec<Warning>,
) -> &'a ToolChoice {
    let forced = match request.tool_choice {
        ToolChoice::Required | ToolChoice::Named(_) => true,
        ToolChoice::Auto | ToolChoice::None => false,
    };
    let accepted = match (traits.forced_tools, activity) {
        (ForcedTools::Accepted, _) | (ForcedTools::WhenIdle, Activity::Idle) => true,
        (ForcedTools::Rejected, _) | (ForcedTools::WhenIdle, Activity::Reasoning) => false,
    };
    if forced && !accepted {
        warnings.push(Warning::dropped(
            "tool_choice",
            &request.model,
            "the model cannot be forced to use a tool",
        ));
        return &ToolChoice::Auto;
    }
    &request.tool_choice
}

/// `parallel_tool_calls`, where it is not the default.
pub(super) fn parallel(request: &Request) -> Option<bool> {
    match request.parallel_calls {
        ParallelCalls::Allowed => None,
        ParallelCalls::OneAtATime => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use caliban_model::{Message, traits};
    use rstest::rstest;

    fn wish(model: &str, reasoning: Reasoning) -> (Option<&'static str>, Activity, usize) {
        let mut request = Request::new(model, vec![Arc::new(Message::user("x"))].into()).unwrap();
        request.reasoning = reasoning;
        let traits = traits("openai", model);
        let mut warnings = Vec::new();
        let thinking = Thinking::wished(&request, &traits, &mut warnings);
        (thinking.name(), thinking.activity(&traits), warnings.len())
    }

    #[rstest]
    #[case("gpt-4.1", Reasoning::Auto, None, Activity::Idle, 0)]
    #[case("gpt-4.1", Reasoning::Off, None, Activity::Idle, 0)]
    #[case("gpt-4.1", Reasoning::Effort(Effort::High), None, Activity::Idle, 1)]
    #[case("o3", Reasoning::Off, None, Activity::Reasoning, 1)]
    #[case(
        "o3",
        Reasoning::Effort(Effort::Max),
        Some("high"),
        Activity::Reasoning,
        0
    )]
    #[case("gpt-5", Reasoning::Auto, None, Activity::Reasoning, 0)]
    #[case("gpt-5.1", Reasoning::Auto, None, Activity::Idle, 0)]
    #[case("gpt-5.1", Reasoning::Off, Some("none"), Activity::Idle, 0)]
    #[case(
        "gpt-5.2",
        Reasoning::Effort(Effort::Max),
        Some("xhigh"),
        Activity::Reasoning,
        0
    )]
    #[case(
        "gpt-5.4",
        Reasoning::Budget(9_000),
        Some("medium"),
        Activity::Reasoning,
        1
    )]
    #[case("gpt-5.5", Reasoning::Auto, None, Activity::Reasoning, 0)]
    #[case("gpt-5.5", Reasoning::Off, Some("none"), Activity::Idle, 0)]
    #[case(
        "gpt-6-sol",
        Reasoning::Effort(Effort::Max),
        Some("max"),
        Activity::Reasoning,
        0
    )]
    #[case("gpt-6-astra", Reasoning::Off, None, Activity::Reasoning, 1)]
    fn a_wish_becomes_what_the_model_knows(
        #[case] model: &str,
        #[case] reasoning: Reasoning,
        #[case] effort: Option<&str>,
        #[case] activity: Activity,
        #[case] warnings: usize,
    ) {
        assert_eq!(wish(model, reasoning), (effort, activity, warnings));
    }

    #[rstest]
    #[case("gpt-4.1", Activity::Idle, Some(0.2))]
    #[case("gpt-5", Activity::Reasoning, None)]
    #[case("gpt-5.4", Activity::Idle, Some(0.2))]
    #[case("gpt-5.4", Activity::Reasoning, None)]
    #[case("qwen3", Activity::Idle, Some(0.2))]
    fn sampling_follows_the_table(
        #[case] model: &str,
        #[case] activity: Activity,
        #[case] sent: Option<f64>,
    ) {
        let mut request = Request::new(model, vec![Arc::new(Message::user("x"))].into()).unwrap();
        request.temperature = Some(0.2);
        let mut warnings = Vec::new();
        let traits = traits("openai", model);
        assert_eq!(
            temperature(&request, &traits, activity, &mut warnings),
            sent
        );
        assert_eq!(warnings.len(), usize::from(sent.is_none()));
    }

    #[test]
    fn a_model_that_cannot_be_forced_is_left_to_choose() {
        let mut request = Request::new("m", vec![Arc::new(Message::user("x"))].into()).unwrap();
        request.tool_choice = ToolChoice::Required;
        let mut traits = traits("openai", "m");
        traits.forced_tools = ForcedTools::WhenIdle;
        let mut warnings = Vec::new();
        let idle = tool_choice(&request, &traits, Activity::Idle, &mut warnings);
        assert_eq!((idle, warnings.len()), (&ToolChoice::Required, 0));
        let busy = tool_choice(&request, &traits, Activity::Reasoning, &mut warnings);
        assert_eq!((busy, warnings.len()), (&ToolChoice::Auto, 1));
    }
}
