//! What each Claude generation accepts.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    Free,
    /// Only values that change nothing.
    DefaultOnly,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Accepted `thinking.type` values.
    pub(super) thinking: &'static [&'static str],
    /// Types that need an effort of at most `high`.
    pub(super) gentle: &'static [&'static str],
    /// Whether the model thinks when nothing is said about it.
    pub(super) thinks_unasked: Support,
    pub(super) efforts: &'static [&'static str],
    pub(super) sampling: Sampling,
    pub(super) forced_tool: Support,
    pub(super) prefill: Support,
    pub(super) display: &'static str,
    /// Thinking blocks are valid only after the very conversation they were written in.
    pub(super) bound: Support,
    /// `system` entries among the messages.
    pub(super) system_role: Support,
}

pub(super) const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

const CLASSIC: Rules = Rules {
    thinking: &["enabled", "disabled"],
    gentle: &[],
    thinks_unasked: Support::No,
    efforts: &[],
    sampling: Sampling::Free,
    forced_tool: Support::Yes,
    prefill: Support::Yes,
    display: "summarized",
    bound: Support::No,
    system_role: Support::No,
};

/// Also what an unknown Claude model is held to.
const MODERN: Rules = Rules {
    thinking: &["adaptive", "disabled"],
    efforts: &EFFORTS,
    sampling: Sampling::Never,
    prefill: Support::No,
    display: "omitted",
    ..CLASSIC
};

const ALWAYS_THINKING: Rules = Rules {
    thinking: &["adaptive"],
    thinks_unasked: Support::Yes,
    system_role: Support::Yes,
    ..MODERN
};

const LATEST: Rules = Rules {
    forced_tool: Support::No,
    bound: Support::Yes,
    ..ALWAYS_THINKING
};

/// The rules of a model; `None` for ids that are no Claude at all.
pub(super) fn rules(model: &str) -> Option<Rules> {
    let name = undated(model.strip_prefix("claude-")?);
    Some(match name {
        "haiku-4-5" | "sonnet-4-5" => CLASSIC,
        "opus-4-5" => Rules {
            efforts: &["low", "medium", "high"],
            ..CLASSIC
        },
        "sonnet-4-6" | "opus-4-6" => Rules {
            thinking: &["adaptive", "enabled", "disabled"],
            efforts: &["low", "medium", "high", "max"],
            prefill: Support::No,
            ..CLASSIC
        },
        "opus-4-8" => Rules {
            system_role: Support::Yes,
            ..MODERN
        },
        "sonnet-5" => Rules {
            sampling: Sampling::DefaultOnly,
            thinks_unasked: Support::Yes,
            ..MODERN
        },
        "opus-5" => Rules {
            gentle: &["disabled"],
            thinks_unasked: Support::Yes,
            system_role: Support::Yes,
            ..MODERN
        },
        "fable-5" | "mythos-5" => ALWAYS_THINKING,
        "fable-5-1" | "fable-5-2" | "mythos-5-1" | "mythos-5-2" | "opus-5-5" => LATEST,
        "sonnet-5-5" => Rules {
            thinking: &["adaptive", "between_tools"],
            gentle: &["between_tools"],
            ..LATEST
        },
        "haiku-5-5" => Rules {
            thinking: &["adaptive", "disabled"],
            gentle: &["disabled"],
            forced_tool: Support::Yes,
            ..LATEST
        },
        // `opus-4-7` and everything unknown.
        _ => MODERN,
    })
}

/// The id without a trailing snapshot date.
fn undated(name: &str) -> &str {
    match name.rsplit_once(['-', '@']) {
        Some((base, date))
            if date == "latest"
                || (date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit())) =>
        {
            base
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dated_ids_follow_their_family() {
        assert_eq!(
            rules("claude-sonnet-4-5-20250929").unwrap().sampling,
            Sampling::Free
        );
        assert_eq!(
            rules("claude-haiku-4-5@20251001").unwrap().prefill,
            Support::Yes
        );
        assert_eq!(rules("claude-opus-4-7").unwrap().sampling, Sampling::Never);
        assert_eq!(
            rules("claude-unheard-of").unwrap().thinking,
            ["adaptive", "disabled"]
        );
        assert!(rules("test-model").is_none());
    }
}
