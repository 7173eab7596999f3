//! The commands that can be typed at the prompt: `/name arguments`. This is the one place that
//! knows their names, where they work and what they do; doing it is the session's.

mod action;
mod entry;
mod page;
mod prompts;
mod reading;
mod report;
mod table;

pub use action::{
    Action, Depth, Existing, ExportFormat, MemoryAction, Repetition, RewindAction, Rewinding,
    TakenBack,
};
pub use entry::{Asks, Category, Completes, Does, Entry, Place};
pub use page::reference_page;
pub use prompts::prompt_of;
pub use reading::{Known, Reading, called, fault, read};
pub use report::{ContextBlock, ContextKind, ContextPart, ContextReport};
pub use table::BUILT_IN;

/// The built-in command of a name or an alias.
pub fn built_in(name: &str) -> Option<&'static Entry> {
    BUILT_IN
        .iter()
        .find(|entry| entry.name == name || entry.aliases.contains(&name))
}

/// Every name that belongs to a built-in command and to nobody else, aliases too.
pub fn reserved() -> Vec<&'static str> {
    let names = |entry: &'static Entry| {
        [entry.name]
            .into_iter()
            .chain(entry.aliases.iter().copied())
    };
    let ours = BUILT_IN.iter().filter(|entry| !prompts::yields(entry));
    ours.flat_map(names).collect()
}
