//! What the agent remembers of a workspace between sessions: an index that every session reads,
//! and topics that it reads when it wants to.

mod index;
mod owner;
mod store;
mod tools;
mod topic;

use std::path::Path;

pub use owner::is_anothers;
pub use store::{NoteStore, NotesError, Topics};
pub use tools::{ReadMemoryTopic, ReadMemoryTopicInput, WriteMemoryTopic, WriteMemoryTopicInput};
pub use topic::{Author, InvalidTopic, Topic, TopicName, TopicType};

use crate::notice::Notice;
use crate::origin::Origin;
use crate::section::{Section, Tag};
use crate::source::{self, Fence};

/// How much of the index is read.
const MAX_LINES: usize = 200;
const MAX_BYTES: usize = 25 * 1024;

/// The index as a section of the prompt, if it says anything.
pub(crate) fn index_section(directory: &Path, notices: &mut Vec<Notice>) -> Option<Section> {
    let path = directory.join(store::INDEX);
    let directory = directory.canonicalize().ok()?;
    let document = match source::read_within(&path, &Fence::Within(directory), store::MAX_INDEX) {
        Ok(document) => document?,
        Err(problem) => {
            notices.push(Notice::Unusable { path, problem });
            return None;
        }
    };
    notices.extend(document.notice());
    let text = index::shown(&document.text)?;
    let mut section = Section::new(Origin::Agent, Tag::AutoMemoryIndex, &path, &text);
    let lines: usize = text
        .split_inclusive('\n')
        .take(MAX_LINES)
        .map(str::len)
        .sum();
    section.cut(lines.min(MAX_BYTES));
    Some(section)
}
