//! What fills the model's window, as a value that faces draw and programs read.

use serde::{Deserialize, Serialize};

/// The window and what is in it. Tokens are estimates, but for the window itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextReport {
    pub window: u64,
    pub used: u64,
    /// Of the window, rounded down.
    pub percent: u64,
    /// From so many tokens on the conversation is condensed by itself; nothing where it never is.
    pub compacts_at: Option<u64>,
    /// What `/compact` makes room of at most; its summary takes some of it back.
    pub compaction_frees: u64,
    pub parts: Vec<ContextPart>,
    /// The largest blocks of the conversation.
    pub largest: Vec<ContextBlock>,
    /// The tools of MCP servers that the model sees.
    pub mcp_tools: Vec<String>,
    /// How many of them a search may keep offered; nothing where there are no servers.
    pub mcp_limit: Option<u64>,
}

/// What one kind of content takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextPart {
    pub kind: ContextKind,
    pub tokens: u64,
    /// Pieces of it; none where it is not made of pieces.
    pub blocks: u64,
}

/// What is in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextKind {
    SystemPrompt,
    Tools,
    Prompts,
    Answers,
    Thoughts,
    Calls,
    Results,
    Images,
    Other,
}

impl ContextKind {
    pub const ALL: [Self; 9] = [
        Self::SystemPrompt,
        Self::Tools,
        Self::Prompts,
        Self::Answers,
        Self::Thoughts,
        Self::Calls,
        Self::Results,
        Self::Images,
        Self::Other,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::SystemPrompt => "system prompt",
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Answers => "answers",
            Self::Thoughts => "thoughts",
            Self::Calls => "calls",
            Self::Results => "results",
            Self::Images => "images",
            Self::Other => "other",
        }
    }

    /// A letter that stands for it where there is no room for a word.
    pub fn letter(self) -> char {
        match self {
            Self::SystemPrompt => 'S',
            Self::Tools => 'T',
            Self::Prompts => 'P',
            Self::Answers => 'A',
            Self::Thoughts => 'H',
            Self::Calls => 'C',
            Self::Results => 'R',
            Self::Images => 'I',
            Self::Other => 'O',
        }
    }
}

/// A block of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextBlock {
    pub kind: ContextKind,
    /// How it begins.
    pub what: String,
    pub tokens: u64,
    pub characters: u64,
}
