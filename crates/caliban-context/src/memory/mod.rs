//! Instruction files and notes that precede the conversation, and those that join it later.

mod allowlist;
mod budget;
mod directive;
mod excludes;
mod on_demand;
mod reader;
mod rules;
mod walk;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

pub use allowlist::{AllowlistError, Approval, ExternalImport, ImportAllowlist};
pub use excludes::Excludes;
pub use on_demand::{Addition, OnDemand};

use crate::notes;
use crate::notice::Notice;
use crate::options::{InstructionFiles, Notes, Options};
use crate::origin::Origin;
use crate::places::{Places, foreign_part, project_part};
use crate::section::{Section, Tag, bytes_of};
use crate::source::Fence;
use reader::{Imports, Reader, real};
use rules::{Rule, RuleScope};
use walk::{NAMES, Walk};

/// The memory of a session as it starts.
#[derive(Debug)]
pub struct Memory {
    /// In the order of the prompt: the user's, the project's from broad to narrow, rules, notes.
    pub sections: Vec<Section>,
    /// Files from outside, which are read only once somebody approved them.
    pub external: Vec<ExternalImport>,
    pub notices: Vec<Notice>,
    /// What the session may be told later.
    pub on_demand: OnDemand,
}

/// Reads the memory of a workspace.
pub fn load(places: &Places, options: &Options) -> Memory {
    let workspace = real(&places.workspace);
    let mut notices = Vec::new();
    let mut loader = Loader {
        excludes: Excludes::new(&workspace, &options.excludes, &mut notices),
        reader: Reader::new(places, options, &workspace),
        sections: Vec::new(),
    };
    let mut roots = Vec::new();
    let mut scoped_rules = Vec::new();
    match options.instructions {
        InstructionFiles::Off => {}
        InstructionFiles::WorkspaceOnly => {
            loader.reader.open_up(&workspace, None);
            loader.global(places, Imports::Ignored);
            loader.workspace_only(&workspace);
        }
        InstructionFiles::Walk => {
            roots.push((workspace.clone(), Origin::Project));
            let further = options.directories.iter().map(|directory| real(directory));
            roots.extend(further.map(|directory| (directory, Origin::Additional)));
            let walks: Vec<Walk> = roots.iter().map(|(root, _)| Walk::from(root)).collect();
            for ((root, _), walk) in roots.iter().zip(&walks) {
                loader.reader.open_up(root, walk.repository.as_deref());
            }
            loader.global(places, Imports::Followed);
            for ((_, origin), walk) in roots.iter().zip(&walks) {
                loader.walk(walk, origin);
            }
            let of_workspace = walks.first();
            // Outside a repository the directories above may be anybody's.
            let foreign = match of_workspace.filter(|walk| walk.repository.is_some()) {
                Some(walk) => &walk.directories[..],
                None => std::slice::from_ref(&workspace),
            };
            scoped_rules = loader.rules(&real(&places.project), foreign);
        }
    }
    let Loader {
        excludes,
        mut reader,
        mut sections,
    } = loader;
    match options.notes {
        Notes::Off => {}
        Notes::On => sections.extend(notes::index_section(&places.notes, &mut notices)),
    }
    let findings = reader.take_findings();
    notices.extend(findings.notices);
    notices.extend(budget::enforce(&mut sections, &options.caps));
    let budget = options.caps.instructions.unwrap_or(u64::MAX);
    Memory {
        sections,
        external: findings.external,
        notices,
        on_demand: OnDemand {
            roots,
            excludes,
            reader,
            rules: scoped_rules,
            budget: bytes_of(budget.min(options.caps.combined)),
            visited: HashSet::new(),
            loaded: Vec::new(),
        },
    }
}

struct Loader {
    excludes: Excludes,
    reader: Reader,
    sections: Vec<Section>,
}

impl Loader {
    fn global(&mut self, places: &Places, imports: Imports) {
        let own = places.config.join("CLAUDE.md");
        for path in std::iter::once(&own).chain(&places.foreign_instructions) {
            self.add(
                path,
                &Fence::Open,
                imports,
                &Origin::User,
                Tag::GlobalClaudeMd,
            );
        }
    }

    fn workspace_only(&mut self, workspace: &Path) {
        let path = workspace.join("CLAUDE.md");
        let fence = Fence::Within(workspace.to_owned());
        self.project(&path, &fence, Imports::Ignored, &Origin::Project);
    }

    fn walk(&mut self, walk: &Walk, origin: &Origin) {
        for directory in &walk.directories {
            let fence = Fence::Within(walk.repository.clone().unwrap_or_else(|| directory.clone()));
            for name in NAMES {
                self.project(&directory.join(name), &fence, Imports::Followed, origin);
            }
        }
    }

    fn project(&mut self, path: &Path, fence: &Fence, imports: Imports, origin: &Origin) {
        if !self.excludes.contains(path) {
            self.add(path, fence, imports, origin, Tag::ProjectClaudeMd);
        }
    }

    /// Adds the rules that always count and returns the others. What was written for another
    /// program is taken of the nearest of these directories, the last of which is the workspace.
    fn rules(&mut self, project: &Path, foreign: &[PathBuf]) -> Vec<Rule> {
        let own = (project, project_part(project, "rules"));
        let foreign = foreign
            .iter()
            .rev()
            .map(|of| (&**of, foreign_part(of, "rules")));
        let foreign = foreign.filter(|(_, directory)| directory.is_dir());
        let mut scoped = Vec::new();
        for (of, directory) in std::iter::once(own).chain(foreign.take(1)) {
            for rule in rules::load(of, &directory, self.reader.notices()) {
                match rule.scope {
                    RuleScope::Always => self.sections.push(rule.section()),
                    RuleScope::Paths(_) => scoped.push(rule),
                }
            }
        }
        scoped
    }

    fn add(&mut self, path: &Path, fence: &Fence, imports: Imports, origin: &Origin, tag: Tag) {
        if let Some(instructions) = self.reader.read(path, fence, imports) {
            let section = instructions.section(origin.clone(), tag);
            if !section.text.is_empty() {
                self.sections.push(section);
            }
        }
    }
}
