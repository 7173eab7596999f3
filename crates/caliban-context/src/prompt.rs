//! Puts the system prompt together. The same parts always make the same text, so that providers
//! can cache it.

use crate::section::Section;
use crate::styles::{CodingInstructions, OutputStyle};

/// What the prompt is built around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BasePrompt<'a> {
    /// The program's own.
    Default {
        /// Who the assistant is and where it works.
        identity: &'a str,
        /// How to work on code, which a style may do without.
        coding: &'a str,
    },
    /// The user's own.
    Custom(&'a str),
    /// There shall be no system prompt at all.
    None,
}

/// Memory first, then the style, then the base. `None` where nothing is left to say.
pub fn system_prompt(
    base: BasePrompt<'_>,
    style: Option<&OutputStyle>,
    memory: &[Section],
) -> Option<String> {
    let base = match base {
        BasePrompt::None => return None,
        BasePrompt::Custom(text) => text.to_owned(),
        BasePrompt::Default { identity, coding } => {
            match style.map_or(CodingInstructions::Kept, OutputStyle::coding_instructions) {
                CodingInstructions::Kept => format!("{identity}{coding}"),
                CodingInstructions::Dropped => identity.to_owned(),
            }
        }
    };
    let parts: Vec<String> = memory
        .iter()
        .map(Section::render)
        .chain(style.and_then(OutputStyle::render))
        .chain((!base.trim().is_empty()).then_some(base))
        .collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}
