//! What the settings files say about how an agent works.

use std::num::NonZeroUsize;
use std::sync::Arc;

use caliban_agent::{Micro, ModelOverrides, Settings};
use caliban_model::{Effort, Purpose, Reasoning};
use caliban_settings::EffortLevel;

/// The settings of an agent that runs `model` as configured.
pub fn agent_settings(model: &str, configured: &caliban_settings::Settings) -> Settings {
    let mut settings = Settings::new(model);
    settings.reasoning = match configured.effort {
        None | Some(EffortLevel::Auto) => Reasoning::Auto,
        Some(EffortLevel::Low) => Reasoning::Effort(Effort::Low),
        Some(EffortLevel::Medium) => Reasoning::Effort(Effort::Medium),
        Some(EffortLevel::High) => Reasoning::Effort(Effort::High),
        Some(EffortLevel::Max) => Reasoning::Effort(Effort::Max),
    };
    let pinned = |purpose| model_for(purpose, configured).map(Arc::from);
    settings.overrides = ModelOverrides {
        summarization: pinned(Purpose::Summarization),
        classifier: pinned(Purpose::FastClassifier),
        sub_agent: pinned(Purpose::SubAgent),
    };
    let cap = configured.tool_result_cap().unwrap_or_default();
    settings.capping.limit = usize::try_from(cap).ok().and_then(NonZeroUsize::new);
    settings.min_cached_turn = configured.cache_block_tokens();
    settings.compaction.threshold = configured.compaction_threshold();
    settings.compaction.micro = if configured.micro_compaction() {
        Micro::On
    } else {
        Micro::Off
    };
    settings
}

/// The model that `model_overrides` pins a purpose to; `sub-agent` and `sub_agent` are the same.
pub fn model_for(purpose: Purpose, configured: &caliban_settings::Settings) -> Option<&str> {
    configured
        .model_overrides
        .iter()
        .find(|(name, _)| name.replace('-', "_") == purpose.slug())
        .map(|(_, model)| model.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_are_known_in_both_spellings() {
        let mut configured = caliban_settings::Settings::default();
        for (name, model) in [("main-loop", "a"), ("sub_agent", "b")] {
            let pair = (name.to_owned(), model.to_owned());
            configured.model_overrides.extend([pair]);
        }
        assert_eq!(model_for(Purpose::MainLoop, &configured), Some("a"));
        assert_eq!(model_for(Purpose::SubAgent, &configured), Some("b"));
        assert_eq!(model_for(Purpose::Summarization, &configured), None);
    }

    #[test]
    fn an_absent_key_means_its_default() {
        let plain = agent_settings("m", &caliban_settings::Settings::default());
        assert_eq!(plain.capping.limit, NonZeroUsize::new(50_000));
        assert_eq!(plain.compaction.threshold, Some(0.75));
        assert_eq!(plain.reasoning, Reasoning::Auto);
        assert_eq!(plain.min_cached_turn, 1_024);
        let choosy = caliban_settings::Settings {
            min_cache_block_tokens: Some(2_000),
            ..caliban_settings::Settings::default()
        };
        assert_eq!(agent_settings("m", &choosy).min_cached_turn, 2_000);
        let uncapped = caliban_settings::Settings {
            tool_result_cap_chars: Some(0),
            ..caliban_settings::Settings::default()
        };
        assert_eq!(agent_settings("m", &uncapped).capping.limit, None);
    }
}
