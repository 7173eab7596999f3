//! What there is in a session besides its conversation, as lists show it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use caliban_context::{Context, NoteStore, Notice, OutputStyles, Profile, Tag};

use crate::profile_report::details;

/// What was found when the session began.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) skills: Vec<Listed>,
    /// Those of them whose names mean other commands.
    pub(crate) hidden_skills: BTreeSet<String>,
    pub(crate) plugins: Vec<Listed>,
    pub(crate) styles: Vec<Listed>,
    pub(crate) profiles: Vec<ListedProfile>,
    pub(crate) output_styles: OutputStyles,
    /// The output style that counts: another one may after the conversation has begun anew.
    style: ArcSwapOption<String>,
    /// The plugin that insists on it.
    pub(crate) style_lock: Option<String>,
    /// What the model is told before everything else.
    pub(crate) instructions: Vec<Instructions>,
    /// The agent's notes, where it may keep any.
    pub(crate) notes: Option<NoteStore>,
}

/// Something with a name.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) origin: String,
}

/// An agent profile.
#[derive(Debug, Clone)]
pub struct ListedProfile {
    pub name: String,
    pub about: String,
    pub origin: String,
    pub path: PathBuf,
    /// What it has of its own, in one line.
    pub details: String,
}

/// A file of instructions.
#[derive(Debug)]
pub(crate) struct Instructions {
    pub(crate) tag: Tag,
    pub(crate) path: PathBuf,
    pub(crate) tokens: u64,
}

impl Inventory {
    pub(crate) fn of(context: &Context, style: Option<&str>, notes: Option<&NoteStore>) -> Self {
        let skills = context.skills.iter().map(|skill| Listed {
            name: skill.name().to_owned(),
            about: skill.description().to_owned(),
            origin: skill.origin().to_string(),
        });
        let styles = context.styles.iter().map(|style| Listed {
            name: style.name().to_owned(),
            about: style.description().to_owned(),
            origin: style.origin().to_string(),
        });
        let sections = context.memory.sections.iter().map(|section| Instructions {
            tag: section.tag,
            path: section.path.clone(),
            tokens: section.tokens(),
        });
        let hidden = context.notices.iter().filter_map(|notice| match notice {
            Notice::SkillHidden { name, .. } => Some(name.clone()),
            _ => None,
        });
        let selected = context.styles.select(style);
        Self {
            skills: skills.collect(),
            hidden_skills: hidden.collect(),
            plugins: Vec::new(),
            styles: styles.collect(),
            profiles: context.profiles.iter().map(listed_profile).collect(),
            output_styles: context.styles.clone(),
            style: ArcSwapOption::from_pointee(selected.style.name().to_owned()),
            style_lock: selected.locked_by.map(str::to_owned),
            instructions: sections.collect(),
            notes: notes.cloned(),
        }
    }

    /// The output style that counts.
    pub(crate) fn style(&self) -> Option<String> {
        self.style
            .load_full()
            .map(|style| style.as_str().to_owned())
    }

    pub(crate) fn set_style(&self, name: &str) {
        self.style.store(Some(Arc::new(name.to_owned())));
    }
}

fn listed_profile(profile: &Profile) -> ListedProfile {
    ListedProfile {
        name: profile.name().to_owned(),
        about: profile.description.clone(),
        origin: profile.origin().to_string(),
        path: profile.path().to_owned(),
        details: details(profile),
    }
}
