//! What shapes the prompt: memory files, auto-memory, skills, output styles and custom commands.
//!
//! Everything that enters the prompt is bounded, labelled with its origin and free of invisible
//! characters; what was left out, cut or replaced is a [`Notice`]. Nothing here runs a program,
//! and nothing reads the real home or environment: [`Places`] and [`Options`] say it all.

mod agents;
mod commands;
mod expansion;
pub mod frontmatter;
mod invisible;
mod memory;
mod names;
mod notes;
mod notice;
mod options;
mod origin;
mod places;
mod private;
mod prompt;
mod roots;
mod section;
mod skills;
mod source;
mod styles;
mod tiers;

pub use agents::{Profile, ProfileEffort, ProfileIsolation, ProfileMemory, Profiles};
pub use commands::{Command, CommandError, Commands, Expansion, Part};
pub use invisible::is_invisible;
pub use memory::{
    Addition, AllowlistError, Approval, Excludes, ExternalImport, ImportAllowlist, Memory,
    OnDemand, load as load_memory,
};
pub use notes::{
    Author, InvalidTopic, NoteStore, NotesError, ReadMemoryTopic, ReadMemoryTopicInput, Topic,
    TopicName, TopicType, Topics, WriteMemoryTopic, WriteMemoryTopicInput,
    is_anothers as notes_are_anothers,
};
pub use notice::{Kind, Notice, Taken};
pub use options::{
    Customization, DEFAULT_COMBINED_TOKENS, ImportApproval, InstructionFiles, MemoryCaps, Notes,
    Options, SkillSources, opted_in_directories,
};
pub use origin::Origin;
pub use places::{CommandPlace, CommandSays, Places, PluginPlace};
pub use prompt::{BasePrompt, system_prompt};
pub use section::{Section, Tag, Truncation};
pub use skills::{Invocation, Skill, SkillError, SkillTool, Skills};
pub use source::FileProblem;
pub use styles::{
    CodingInstructions, DEFAULT_STYLE, HumanTask, OutputStyle, OutputStyles, Selection, human_tasks,
};
pub use tiers::tiers;

/// Everything that shapes the prompts of a session, and what is worth knowing about it.
#[derive(Debug)]
pub struct Context {
    pub memory: Memory,
    pub skills: Skills,
    pub styles: OutputStyles,
    pub commands: Commands,
    pub profiles: Profiles,
    /// All notices, those of the memory included.
    pub notices: Vec<Notice>,
}

impl Context {
    /// Reads everything. `reserved` are the names of built-in commands.
    pub fn load(places: &Places, options: &Options, reserved: &[&str]) -> Self {
        let memory = load_memory(places, options);
        let mut notices = memory.notices.clone();
        let skills = Skills::load(places, options, &mut notices);
        let styles = OutputStyles::load(places, options, &mut notices);
        let commands = Commands::load(places, options, &skills, reserved, &mut notices);
        let profiles = Profiles::load(places, options, &mut notices);
        Self {
            memory,
            skills,
            styles,
            commands,
            profiles,
            notices,
        }
    }
}
