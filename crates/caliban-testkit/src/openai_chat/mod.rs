//! OpenAI Chat Completions, with the deviations of the servers that imitate it.

mod check;
mod stream;

pub(crate) use check::check;
pub(crate) use stream::{document, events};

use crate::quirk::{Quirk, Quirks};
use crate::turn::Thoughts;

/// Only compatible servers show their reasoning here.
pub(crate) fn thoughts(quirks: &Quirks) -> Thoughts {
    if quirks.has(Quirk::ReasoningContent) || quirks.has(Quirk::Reasoning) {
        Thoughts::Shown
    } else {
        Thoughts::Dropped
    }
}
