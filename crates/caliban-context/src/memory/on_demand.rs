//! Instructions that a session receives when it first touches the paths they are about. They are
//! additions to the conversation: the prompt that the provider has cached stays as it is.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use super::allowlist::ExternalImport;
use super::excludes::Excludes;
use super::reader::{Imports, Reader};
use super::rules::Rule;
use super::walk::NAMES;
use crate::notice::Notice;
use crate::origin::Origin;
use crate::section::{Section, Tag, rendered_paths};
use crate::source::Fence;

/// The most directories that are looked into.
const MAX_DIRECTORIES: usize = 10_000;

/// What the text of an addition begins with.
const HEADING: &str = "These instructions of the project are about paths that were used:";

/// What a session may still be told.
#[derive(Debug, Clone)]
pub struct OnDemand {
    /// Real directories below which instruction files count, the workspace first; none where
    /// nothing is read on demand.
    pub(super) roots: Vec<(PathBuf, Origin)>,
    pub(super) excludes: Excludes,
    pub(super) reader: Reader,
    /// The rules that have not been activated.
    pub(super) rules: Vec<Rule>,
    /// How many bytes all additions may still take.
    pub(super) budget: usize,
    pub(super) visited: HashSet<PathBuf>,
    pub(super) loaded: Vec<Section>,
}

/// What a touch adds, to be shown to the model once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Addition {
    pub sections: Vec<Section>,
    pub notices: Vec<Notice>,
    pub external: Vec<ExternalImport>,
}

impl Addition {
    /// The text for the model; `None` where there is nothing new.
    pub fn text(&self) -> Option<String> {
        render(&self.sections)
    }
}

impl OnDemand {
    /// Which files are left out, here and in every copy.
    pub fn excludes(&self) -> Excludes {
        self.excludes.clone()
    }

    /// A tool has used this absolute path. Returns what that brings up for the first time.
    pub fn touch(&mut self, path: &Path) -> Addition {
        let mut sections = Vec::new();
        if let Some(path) = existing(path) {
            let mut roots = self.roots.iter();
            let within = roots.find(|(root, _)| path.real.starts_with(root));
            if let Some((root, origin)) = within.cloned() {
                self.nested(&path, &root, &origin, &mut sections);
            }
            self.activate(&path, &mut sections);
        }
        sections.retain(|section| !section.text.is_empty());
        let findings = self.reader.take_findings();
        let mut notices = findings.notices;
        for section in &mut sections {
            self.take_up(section);
            notices.extend(section.shortfall());
        }
        Addition {
            sections,
            notices,
            external: findings.external,
        }
    }

    /// What was added so far, as [`Addition::text`], for a conversation of which nothing is left
    /// but these texts.
    pub fn retell(&self, kept: &[&str]) -> Option<String> {
        let is_gone = |section: &&Section| {
            let rendered = section.render();
            !kept.iter().any(|text| text.contains(&rendered))
        };
        let gone: Vec<Section> = self.loaded.iter().filter(is_gone).cloned().collect();
        render(&gone)
    }

    /// Takes up what an earlier part of the session was told in these texts. It is not told again
    /// before the conversation is shortened; texts that are no additions mean nothing.
    pub fn recall<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) {
        for text in texts.into_iter().filter(|text| text.starts_with(HEADING)) {
            for path in rendered_paths(text) {
                if let Some(mut section) = self.told(&path) {
                    self.take_up(&mut section);
                }
            }
        }
        // Whatever there is to say about them was said then.
        self.reader.take_findings();
    }

    /// The section of a rule or an instruction file that was told before, as it is now.
    fn told(&mut self, path: &Path) -> Option<Section> {
        if let Some(index) = self.rules.iter().position(|rule| rule.path == path) {
            return Some(self.rules.remove(index).section());
        }
        let name = path.file_name()?.to_str()?;
        let mut roots = self.roots.iter();
        let (root, origin) = roots.find(|(root, _)| path.starts_with(root))?.clone();
        if !NAMES.contains(&name) || self.excludes.contains(path) {
            return None;
        }
        self.visited.extend(path.parent().map(Path::to_owned));
        let fence = Fence::Within(root);
        let instructions = self.reader.read(path, &fence, Imports::Followed)?;
        Some(instructions.section(origin, Tag::ProjectClaudeMd))
    }

    /// Counts a section among what was told, as far as the budget lets it.
    fn take_up(&mut self, section: &mut Section) {
        section.cut(self.budget);
        self.budget -= section.text.len();
        self.loaded.push(section.clone());
    }

    /// The instruction files between a root and a path, from the top down.
    fn nested(
        &mut self,
        path: &Existing,
        root: &Path,
        origin: &Origin,
        sections: &mut Vec<Section>,
    ) {
        let mut directories: Vec<&Path> = path
            .directory
            .ancestors()
            .take_while(|directory| *directory != root && directory.starts_with(root))
            .collect();
        directories.reverse();
        for directory in directories {
            if self.visited.len() >= MAX_DIRECTORIES || !self.visited.insert(directory.to_owned()) {
                continue;
            }
            for name in NAMES {
                let file = directory.join(name);
                if self.excludes.contains(&file) {
                    continue;
                }
                let fence = Fence::Within(root.to_owned());
                if let Some(instructions) = self.reader.read(&file, &fence, Imports::Followed) {
                    sections.push(instructions.section(origin.clone(), Tag::ProjectClaudeMd));
                }
            }
        }
    }

    fn activate(&mut self, path: &Existing, sections: &mut Vec<Section>) {
        let is_activated = |rule: &mut Rule| rule.is_activated_by(&path.real);
        let activated = self.rules.extract_if(.., is_activated);
        sections.extend(activated.map(|rule| rule.section()));
    }
}

fn render(sections: &[Section]) -> Option<String> {
    (!sections.is_empty()).then(|| {
        let blocks: Vec<String> = sections.iter().map(Section::render).collect();
        format!("{HEADING}\n\n{}", blocks.join("\n\n"))
    })
}

/// A path that may not exist yet, by what of it does.
struct Existing {
    /// With the links of the existing part followed.
    real: PathBuf,
    /// The deepest directory that exists.
    directory: PathBuf,
}

fn existing(path: &Path) -> Option<Existing> {
    for ancestor in path.ancestors() {
        let Ok(real) = ancestor.canonicalize() else {
            continue;
        };
        let rest = path.strip_prefix(ancestor).ok()?;
        let is_plain = |part| matches!(part, Component::Normal(_));
        if !rest.components().all(is_plain) {
            return None;
        }
        let directory = if real.is_dir() {
            real.clone()
        } else {
            real.parent()?.to_owned()
        };
        return Some(Existing {
            real: real.join(rest),
            directory,
        });
    }
    None
}
