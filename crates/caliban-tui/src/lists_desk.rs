//! What lists show of a session: hooks, skills, styles, and what the model is told.

use std::fmt::Debug;

/// Things of a session that can be looked up, and notes that can be changed.
pub trait ListsDesk: Debug + Send + Sync {
    /// Handlers by event, with how often each fired and what came of it last.
    fn hooks(&self) -> Vec<ListRow>;

    fn skills(&self) -> Vec<ListRow>;

    /// Agent profiles; the value of each is its file.
    fn profiles(&self) -> Vec<ListRow>;

    fn styles(&self) -> Vec<ListRow>;

    /// Files of instructions, and notes.
    fn memory(&self) -> Vec<ListRow>;

    /// What stands in one of them or in a profile, by the value of its row.
    fn memory_text(&self, value: &str) -> Result<String, String>;

    /// Writes one of them anew, and says what was done.
    fn save_memory(&self, value: &str, text: &str) -> Result<String, String>;

    /// Deletes a note.
    fn forget_memory(&self, value: &str) -> Result<String, String>;
}

/// Something in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRow {
    pub group: String,
    pub name: String,
    pub about: String,
    /// What it is looked up by, or all there is to read about it.
    pub value: String,
}
