//! What there is to know about a request before anybody is asked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use caliban_model::{
    Block, CachePolicy, CacheTtl, Effort, Purpose, Reasoning, Request, ToolChoice, ToolContent,
};

/// What a model must be able to do for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    Vision,
    Tools,
    Thinking,
    ForcedTool,
}

/// A request, as far as it matters for who answers it.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub purpose: Purpose,
    /// The model that was asked for: a name, an alias or a route.
    pub model: Arc<str>,
    pub needs: BTreeSet<Need>,
    /// By estimate.
    pub input_tokens: u64,
    pub max_tokens: u32,
    pub reasoning: Reasoning,
    /// Whose conversation it is.
    pub session: Option<Arc<str>>,
    /// Whether results of calls are handed back, so that a prompt is still being worked on.
    pub goes_on: bool,
    /// How many messages there are; fewer than before means that they were condensed.
    pub messages: usize,
    /// How long a provider keeps what it has read.
    pub cache_ttl: Duration,
}

impl Need {
    pub const ALL: [Self; 4] = [Self::Vision, Self::Tools, Self::Thinking, Self::ForcedTool];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::Tools => "tools",
            Self::Thinking => "thinking",
            Self::ForcedTool => "a forced tool",
        }
    }

    /// What in a request asks for it.
    pub fn cause(self) -> &'static str {
        match self {
            Self::Vision => "there is an image in the conversation",
            Self::Tools => "tools are offered",
            Self::Thinking => "an effort above low or a thinking budget is set",
            Self::ForcedTool => "a tool must be called",
        }
    }

    /// Whether a request makes no sense without it. The rest can be left out.
    pub fn is_essential(self) -> bool {
        match self {
            Self::Vision | Self::Tools => true,
            Self::Thinking | Self::ForcedTool => false,
        }
    }
}

impl Facts {
    /// A request that needs nothing in particular.
    pub fn plain(purpose: Purpose, model: impl Into<Arc<str>>) -> Self {
        Self {
            purpose,
            model: model.into(),
            needs: BTreeSet::new(),
            input_tokens: 0,
            max_tokens: Request::DEFAULT_MAX_TOKENS,
            reasoning: Reasoning::Auto,
            session: None,
            goes_on: false,
            messages: 0,
            cache_ttl: CACHE_5M,
        }
    }

    /// Looks through a request once.
    pub fn of(request: &Request) -> Self {
        let mut facts = Self {
            needs: needs(request),
            input_tokens: (request.text_bytes() as u64).div_ceil(4),
            ..Self::briefly(request)
        };
        if thinks(request.reasoning) {
            facts.needs.insert(Need::Thinking);
        }
        facts
    }

    /// What can be told without looking at every message: all that matters where there is nobody
    /// to choose from.
    pub(crate) fn briefly(request: &Request) -> Self {
        Self {
            max_tokens: request.max_tokens,
            reasoning: request.reasoning,
            session: request.metadata.session.as_deref().map(Arc::from),
            goes_on: request.turns().last().is_some_and(|last| {
                let mut blocks = last.content.iter();
                blocks.any(|block| matches!(block, Block::ToolResult { .. }))
            }),
            messages: request.messages().len(),
            cache_ttl: match request.cache {
                CachePolicy::Off => Duration::ZERO,
                CachePolicy::Ephemeral(CacheTtl::FiveMinutes) => CACHE_5M,
                CachePolicy::Ephemeral(CacheTtl::OneHour) => Duration::from_hours(1),
            },
            ..Self::plain(request.metadata.purpose, Arc::clone(&request.model))
        }
    }
}

const CACHE_5M: Duration = Duration::from_mins(5);

fn needs(request: &Request) -> BTreeSet<Need> {
    let mut needs = BTreeSet::new();
    if request
        .messages()
        .iter()
        .any(|message| shows(&message.content))
    {
        needs.insert(Need::Vision);
    }
    if !request.tools.is_empty() {
        needs.insert(Need::Tools);
        match request.tool_choice {
            ToolChoice::Required | ToolChoice::Named(_) => {
                needs.insert(Need::ForcedTool);
            }
            ToolChoice::Auto | ToolChoice::None => {}
        }
    }
    needs
}

fn shows(content: &[Block]) -> bool {
    content.iter().any(|block| match block {
        Block::Image(_) => true,
        Block::ToolResult { content, .. } => content
            .iter()
            .any(|part| matches!(part, ToolContent::Image(_))),
        Block::Text { .. }
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolUse { .. }
        | Block::Opaque { .. } => false,
    })
}

/// Whether so much reasoning is asked for that the model must be able to.
pub fn thinks(reasoning: Reasoning) -> bool {
    match reasoning {
        Reasoning::Auto | Reasoning::Off | Reasoning::Effort(Effort::Low) => false,
        Reasoning::Effort(Effort::Medium | Effort::High | Effort::Xhigh | Effort::Max)
        | Reasoning::Budget(_) => true,
    }
}
