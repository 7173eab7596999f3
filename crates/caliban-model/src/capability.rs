//! What a model can do and which parameters it accepts: one table, `data/models.csv`.

use std::sync::OnceLock;

use crate::{Effort, RateCard, base_model};

/// What the rest of the program may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    pub tools: ToolSupport,
    pub vision: bool,
    pub thinking: bool,
    pub cache: CacheSupport,
    /// The provider enforces a JSON schema itself.
    pub structured_output: bool,
    pub context_window: Option<u64>,
    pub max_output: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSupport {
    None,
    Basic,
    Parallel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheSupport {
    None,
    Automatic,
    /// Breakpoints are set by us, at most this many.
    Explicit(usize),
}

/// Which parameters a model accepts and in what form; a parameter it would reject is never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTraits {
    pub thinking: ThinkingForm,
    pub default: ThinkingDefault,
    pub efforts: EffortSet,
    pub sampling: Sampling,
    pub forced_tools: ForcedTools,
    pub chat_tools: ChatTools,
    /// Thinking is valid only behind an unchanged conversation: an edit of history must drop it.
    pub bound_thinking: bool,
    /// Allowed thinking tokens, for models that take a number.
    pub budget: Option<(u32, u32)>,
}

/// How thinking is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingForm {
    None,
    /// A number of tokens.
    Manual,
    /// The model decides; effort steers it.
    Adaptive,
    AdaptiveOrManual,
    /// Gemini's levels.
    Level,
    /// OpenAI's reasoning effort.
    Effort,
    /// Only the running server knows.
    Probed,
}

/// What happens when nothing is said about thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingDefault {
    Off,
    On,
    /// On, and cannot be switched off.
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    Accepted,
    Rejected,
    /// Accepted only while the model does not reason.
    WhenIdle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForcedTools {
    Accepted,
    Rejected,
    /// Accepted only while the model does not reason.
    WhenIdle,
}

/// Tools on the Chat Completions API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatTools {
    Accepted,
    /// Only with effort unset or `none`.
    WhenIdle,
    /// Only when effort `none` is sent.
    ExplicitNone,
    Rejected,
}

/// The effort levels a model knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EffortSet(u8);

impl EffortSet {
    pub fn contains(self, effort: Effort) -> bool {
        self.0 & (1 << effort as u8) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The level to send for a wish: the strongest known one that is not stronger, else the
    /// weakest known; nothing if the model knows none.
    pub fn fit(self, wish: Effort) -> Option<Effort> {
        let known = |effort: &Effort| self.contains(*effort);
        Effort::ALL
            .into_iter()
            .rev()
            .filter(|effort| *effort <= wish)
            .find(known)
            .or_else(|| Effort::ALL.into_iter().find(known))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut set = 0;
        for name in text.split('+').filter(|name| !name.is_empty()) {
            set |= 1 << name.parse::<Effort>().ok()? as u8;
        }
        Some(Self(set))
    }
}

/// The traits of `model` in a wire family (`anthropic`, `openai`, `google`, `ollama`). A model
/// the table does not know behaves like the newest of its family.
pub fn traits(family: &str, model: &str) -> ModelTraits {
    let base = base_model(model);
    table()
        .iter()
        .filter(|row| row.family == family && row.covers(base))
        .max_by_key(|row| row.specificity())
        .and_then(|row| parse_traits(row.rest))
        .unwrap_or(UNKNOWN)
}

/// The wire family in which `provider` serves `model`: a cloud speaks that of whoever made it.
pub fn family<'a>(provider: &'a str, model: &str) -> &'a str {
    let base = base_model(model);
    match provider {
        "bedrock" | "vertex" | "azure" if base.starts_with("claude-") => "anthropic",
        "vertex" => "google",
        "azure" => "openai",
        other => other,
    }
}

/// What `provider` offers for `model`, from the built-in tables.
pub fn capabilities(provider: &str, model: &str) -> Capabilities {
    let family = family(provider, model);
    let traits = traits(family, model);
    let rate = RateCard::builtin().lookup(provider, model);
    let thinks = match traits.thinking {
        ThinkingForm::None | ThinkingForm::Probed => false,
        ThinkingForm::Manual
        | ThinkingForm::Adaptive
        | ThinkingForm::AdaptiveOrManual
        | ThinkingForm::Level
        | ThinkingForm::Effort => true,
    };
    Capabilities {
        tools: match provider {
            "ollama" => ToolSupport::Basic,
            _ => ToolSupport::Parallel,
        },
        vision: rate.map_or(provider != "ollama", |rate| rate.vision) && !is_blind(provider, model),
        thinking: rate.map_or(thinks, |rate| rate.thinking),
        cache: match family {
            "anthropic" => CacheSupport::Explicit(4),
            "ollama" | "bedrock" => CacheSupport::None,
            _ => CacheSupport::Automatic,
        },
        structured_output: true,
        context_window: rate.and_then(|rate| rate.context_window),
        max_output: rate.and_then(|rate| rate.max_output),
    }
}

const UNKNOWN: ModelTraits = ModelTraits {
    thinking: ThinkingForm::None,
    default: ThinkingDefault::Off,
    efforts: EffortSet(0),
    sampling: Sampling::Accepted,
    forced_tools: ForcedTools::Accepted,
    chat_tools: ChatTools::Accepted,
    bound_thinking: false,
    budget: None,
};

/// A line of the table; what it says of the model is read when it is asked for.
struct Row {
    family: &'static str,
    prefix: &'static str,
    rest: &'static str,
}

/// Whether a model is known to see no images.
fn is_blind(family: &str, model: &str) -> bool {
    // A server of many models writes its maker before it.
    let base = base_model(model);
    let base = base.rsplit('/').next().unwrap_or(base);
    let lines = include_str!("../data/blind.csv").lines();
    lines
        .filter_map(|line| line.split_once(','))
        .any(|(of, prefix)| of == family && covers(prefix, base))
}

/// See the head of the table for the forms of a prefix.
fn covers(prefix: &str, base: &str) -> bool {
    if let Some(name) = prefix.strip_suffix('$') {
        return base == name;
    }
    prefix == "*"
        || base.strip_prefix(prefix).is_some_and(|rest| {
            prefix.ends_with('-') || rest.is_empty() || rest.starts_with(['-', ':'])
        })
}

impl Row {
    fn covers(&self, base: &str) -> bool {
        covers(self.prefix, base)
    }

    fn specificity(&self) -> usize {
        if self.prefix == "*" {
            0
        } else {
            self.prefix.len()
        }
    }
}

fn table() -> &'static [Row] {
    static TABLE: OnceLock<Vec<Row>> = OnceLock::new();
    TABLE.get_or_init(|| {
        include_str!("../data/models.csv")
            .lines()
            .filter(|line| !line.starts_with('#') && !line.starts_with("family,"))
            .filter_map(parse_row)
            .collect()
    })
}

fn parse_row(line: &'static str) -> Option<Row> {
    let (family, rest) = line.split_once(',')?;
    let (prefix, rest) = rest.split_once(',')?;
    Some(Row {
        family,
        prefix,
        rest,
    })
}

fn parse_traits(rest: &str) -> Option<ModelTraits> {
    let fields: Vec<&str> = rest.split(',').collect();
    let [
        thinking,
        default,
        efforts,
        sampling,
        forced,
        chat,
        bound,
        budget,
    ] = fields[..]
    else {
        return None;
    };
    Some(ModelTraits {
        thinking: match thinking {
            "none" => ThinkingForm::None,
            "manual" => ThinkingForm::Manual,
            "adaptive" => ThinkingForm::Adaptive,
            "adaptive+manual" => ThinkingForm::AdaptiveOrManual,
            "level" => ThinkingForm::Level,
            "effort" => ThinkingForm::Effort,
            "probed" => ThinkingForm::Probed,
            _ => return None,
        },
        default: match default {
            "off" => ThinkingDefault::Off,
            "on" => ThinkingDefault::On,
            "always" => ThinkingDefault::Always,
            _ => return None,
        },
        efforts: EffortSet::parse(efforts)?,
        sampling: match sampling {
            "yes" => Sampling::Accepted,
            "no" => Sampling::Rejected,
            "idle" => Sampling::WhenIdle,
            _ => return None,
        },
        forced_tools: match forced {
            "yes" => ForcedTools::Accepted,
            "no" => ForcedTools::Rejected,
            "idle" => ForcedTools::WhenIdle,
            _ => return None,
        },
        chat_tools: match chat {
            "yes" => ChatTools::Accepted,
            "idle" => ChatTools::WhenIdle,
            "explicit" => ChatTools::ExplicitNone,
            "no" => ChatTools::Rejected,
            _ => return None,
        },
        bound_thinking: bound == "yes",
        budget: match budget.split_once('-') {
            Some((low, high)) => Some((low.parse().ok()?, high.parse().ok()?)),
            None => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let lines = include_str!("../data/models.csv")
            .lines()
            .filter(|line| !line.starts_with('#') && !line.starts_with("family,"))
            .count();
        assert_eq!(table().len(), lines);
        let mut rows = table().iter();
        assert!(rows.all(|row| parse_traits(row.rest).is_some()));
        assert!(lines > 50);
    }

    #[test]
    fn some_models_are_known_to_see_nothing() {
        let sees = |provider, model| capabilities(provider, model).vision;
        assert!(!sees("openai", "o3-mini"));
        assert!(!sees("openai", "o3-mini-2025-01-31"));
        assert!(!sees("openai", "openai/gpt-oss-120b"));
        assert!(sees("openai", "o3"));
        assert!(sees("openai", "gpt-5.5"));
        assert!(sees("openai", "what-nobody-knows"));
        assert!(!sees("anthropic", "claude-2.1"));
        assert!(sees("anthropic", "claude-sonnet-4-6"));
    }

    #[test]
    fn the_longest_prefix_wins_and_ends_at_a_boundary() {
        assert_eq!(
            traits("openai", "gpt-5-mini").default,
            ThinkingDefault::Always
        );
        assert_eq!(traits("openai", "gpt-5.1").default, ThinkingDefault::Off);
        assert_eq!(
            traits("openai", "gpt-5.5-2026-04-23").chat_tools,
            ChatTools::ExplicitNone
        );
        assert_eq!(
            traits("anthropic", "claude-sonnet-4-6").thinking,
            ThinkingForm::AdaptiveOrManual
        );
        assert_eq!(
            traits("anthropic", "us.anthropic.claude-haiku-4-5-20251001-v1:0").thinking,
            ThinkingForm::Manual
        );
    }

    #[test]
    fn unknown_models_behave_like_the_newest_of_their_family() {
        let newest = traits("anthropic", "claude-zeta-9");
        assert_eq!(newest.thinking, ThinkingForm::Adaptive);
        assert_eq!(newest.sampling, Sampling::Rejected);
        assert_eq!(traits("anthropic", "claude-sonnet-4-7"), newest);
        assert_eq!(traits("anthropic", "claude-opus-5-9"), newest);
        assert_eq!(traits("openai", "gpt-5.9").chat_tools, ChatTools::Rejected);
        // A compatible server's own model is not an OpenAI model.
        assert_eq!(traits("openai", "qwen3").sampling, Sampling::Accepted);
    }

    #[test]
    fn a_wished_effort_is_fitted_to_what_the_model_knows() {
        let sonnet = traits("anthropic", "claude-sonnet-4-6").efforts;
        assert_eq!(sonnet.fit(Effort::Xhigh), Some(Effort::High));
        assert_eq!(sonnet.fit(Effort::Max), Some(Effort::Max));
        assert_eq!(
            traits("openai", "o3").efforts.fit(Effort::Max),
            Some(Effort::High)
        );
        assert_eq!(EffortSet::default().fit(Effort::Low), None);
    }
}
