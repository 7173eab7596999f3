//! Reads instruction files and what they import, each at most once in a session.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_agent::{Closed, ReadGuard};

use super::allowlist::{Approval, Approvals, ExternalImport, ImportAllowlist};
use super::directive;
use crate::notice::Notice;
use crate::options::{ImportApproval, Options};
use crate::origin::Origin;
use crate::places::Places;
use crate::section::{Section, Tag};
use crate::source::{self, Document, Fence, FileProblem, Owner};

/// The most that is read of an instruction file; twice what the default budget lets through.
const MAX_FILE: u64 = 256 * 1024;
/// The most instruction files of a session, imports included.
const MAX_FILES: usize = 500;
/// How deep imports may be nested.
const MAX_IMPORT_DEPTH: usize = 5;

/// What reading brought to light beside text.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    pub(super) notices: Vec<Notice>,
    pub(super) external: Vec<ExternalImport>,
}

/// Whether a file's `@path` lines are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Imports {
    Ignored,
    Followed,
}

#[derive(Debug, Clone)]
pub(super) struct Reader {
    home: PathBuf,
    config: PathBuf,
    /// Real directories that somebody chose to work in, whoever owns what is there.
    chosen: Vec<PathBuf>,
    /// The repositories around them.
    repositories: Vec<PathBuf>,
    owner: Option<Owner>,
    approvals: Approvals,
    policy: ImportApproval,
    reading: Arc<dyn ReadGuard>,
    /// Real paths of everything that was read.
    loaded: HashSet<PathBuf>,
    findings: Findings,
}

/// An instruction file with its imports in place.
#[derive(Debug)]
pub(super) struct Instructions {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// How many bytes of the file were not read.
    pub(super) beyond: usize,
}

impl Instructions {
    pub(super) fn section(&self, origin: Origin, tag: Tag) -> Section {
        Section::new(origin, tag, &self.path, &self.text).without(self.beyond)
    }
}

impl Reader {
    pub(super) fn new(places: &Places, options: &Options, workspace: &Path) -> Self {
        let (approvals, notice) = ImportAllowlist::new(&places.imports_allowlist).read();
        let mut reader = Self {
            home: places.home.clone(),
            config: real(&places.config),
            chosen: Vec::new(),
            repositories: Vec::new(),
            owner: fs::metadata(workspace)
                .ok()
                .map(|metadata| Owner::of(&metadata)),
            approvals,
            policy: options.imports,
            reading: Arc::clone(&options.reading),
            loaded: HashSet::new(),
            findings: Findings::default(),
        };
        reader.findings.notices.extend(notice);
        reader
    }

    /// Makes a directory, and the repository around it, one whose files may be read.
    pub(super) fn open_up(&mut self, directory: &Path, repository: Option<&Path>) {
        self.chosen.push(directory.to_owned());
        self.repositories.extend(repository.map(Path::to_owned));
    }

    pub(super) fn notices(&mut self) -> &mut Vec<Notice> {
        &mut self.findings.notices
    }

    pub(super) fn take_findings(&mut self) -> Findings {
        std::mem::take(&mut self.findings)
    }

    /// Reads a file unless it has been read before.
    pub(super) fn read(
        &mut self,
        path: &Path,
        fence: &Fence,
        imports: Imports,
    ) -> Option<Instructions> {
        let resolved = self.resolve(path)?;
        let document = self.admit(path, resolved, Some(fence), path)?;
        let beyond = document.beyond;
        let text = match imports {
            Imports::Ignored => document.text,
            Imports::Followed => self.expand(&document, 0),
        };
        Some(Instructions {
            path: path.to_owned(),
            text,
            beyond,
        })
    }

    fn resolve(&mut self, path: &Path) -> Option<PathBuf> {
        match source::resolve(path) {
            Ok(resolved) => resolved,
            Err(problem) => {
                self.unusable(path, problem);
                None
            }
        }
    }

    /// The document, if it may be read and has not been. Imports have no fence of their own:
    /// only what is the project's or the user's is free to import.
    fn admit(
        &mut self,
        given: &Path,
        resolved: PathBuf,
        fence: Option<&Fence>,
        by: &Path,
    ) -> Option<Document> {
        if self.loaded.contains(&resolved) {
            return None;
        }
        if self.loaded.len() >= MAX_FILES {
            let notice = Notice::TooMany {
                what: "instruction files",
                limit: MAX_FILES,
            };
            if !self.findings.notices.contains(&notice) {
                self.findings.notices.push(notice);
            }
            return None;
        }
        let document = match source::read_head(&resolved, MAX_FILE) {
            Ok(document) => document,
            Err(problem) => {
                self.unusable(given, problem);
                return None;
            }
        };
        match self.standing(&resolved, fence) {
            Standing::Own => {}
            Standing::Shared if self.is_ours(document.owner) => {}
            Standing::Shared => {
                self.unusable(given, FileProblem::OtherOwner);
                return None;
            }
            Standing::External => self.approved(&document, by)?,
        }
        self.findings.notices.extend(document.notice());
        if fence.is_none() && document.beyond > 0 {
            self.findings.notices.push(Notice::Truncated {
                path: document.path.clone(),
                bytes: document.beyond,
            });
        }
        self.loaded.insert(resolved);
        Some(document)
    }

    fn standing(&self, resolved: &Path, fence: Option<&Fence>) -> Standing {
        let beneath = |roots: &[PathBuf]| roots.iter().any(|root| resolved.starts_with(root));
        let is_configuration = resolved.starts_with(&self.config)
            && resolved
                .extension()
                .is_some_and(|extension| extension == "md");
        if fence == Some(&Fence::Open) || is_configuration || beneath(&self.chosen) {
            Standing::Own
        } else if beneath(&self.repositories)
            || matches!(fence, Some(Fence::Within(root)) if resolved.starts_with(root))
        {
            Standing::Shared
        } else {
            Standing::External
        }
    }

    fn is_ours(&self, owner: Owner) -> bool {
        self.owner.is_none_or(|ours| owner.speaks_to(ours))
    }

    /// Lets an approved document pass and warns of any other.
    fn approved(&mut self, document: &Document, by: &Path) -> Option<()> {
        let approval = match self.policy {
            ImportApproval::All => Approval::Approved,
            ImportApproval::Listed => self.approvals.lookup(&document.path, &document.digest),
        };
        self.findings.external.push(ExternalImport {
            path: document.path.clone(),
            digest: document.digest.clone(),
            bytes: document.text.len(),
            imported_by: by.to_owned(),
            approval,
        });
        let (path, by) = (document.path.clone(), by.to_owned());
        let notice = match approval {
            Approval::Approved => return Some(()),
            Approval::Changed => Notice::ImportChanged { path, by },
            Approval::Refused | Approval::Unknown => Notice::ImportUnapproved { path, by },
        };
        self.findings.notices.push(notice);
        None
    }

    /// The text with imported files in place of the lines that ask for them. Lines that cannot
    /// be followed stay as they are.
    fn expand(&mut self, document: &Document, depth: usize) -> String {
        let mut result = String::with_capacity(document.text.len());
        let in_code = directive::lines_in_code(&document.text);
        for (line, in_code) in document.text.lines().zip(in_code) {
            let imported = match directive::target(line) {
                Some(target) if !in_code => self.import(target, document, depth),
                Some(_) | None => None,
            };
            result.push_str(imported.as_deref().unwrap_or(line));
            result.push('\n');
        }
        result
    }

    /// What rules and protected places close is not read because a file says so.
    fn check_readable(&self, given: &Path, real: &Path) -> Result<(), Closed> {
        self.reading.by_name(given, real)?;
        match fs::metadata(real) {
            Ok(meta) => self.reading.by_identity(&meta),
            Err(_) => Ok(()),
        }
    }

    fn import(&mut self, target: &str, importer: &Document, depth: usize) -> Option<String> {
        let by = importer.path.clone();
        let target_text = target.to_owned();
        if target.contains("://") {
            self.findings.notices.push(Notice::ImportRemote {
                by,
                target: target_text,
            });
            return None;
        }
        let directory = importer.path.parent().unwrap_or(Path::new("/"));
        let path = match target.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => directory.join(target),
        };
        let Some(resolved) = self.resolve(&path) else {
            if is_clearly_a_path(target) {
                self.findings.notices.push(Notice::ImportMissing {
                    by,
                    target: target_text,
                });
            }
            return None;
        };
        if let Err(closed) = self.check_readable(&path, &resolved) {
            self.unusable(&path, FileProblem::Closed(closed.to_string()));
            return None;
        }
        if depth == MAX_IMPORT_DEPTH {
            self.findings.notices.push(Notice::ImportDepth {
                by,
                target: target_text,
                limit: MAX_IMPORT_DEPTH,
            });
            return None;
        }
        let document = self.admit(&path, resolved, None, &by)?;
        let text = self.expand(&document, depth + 1);
        let shown = document.path.display();
        let gap = match document.beyond {
            0 => String::new(),
            bytes => format!("[truncated: {bytes} bytes]\n"),
        };
        Some(format!(
            "<!-- imported from {shown} -->\n{}\n{gap}<!-- end of {shown} -->",
            text.trim_matches('\n')
        ))
    }

    fn unusable(&mut self, path: &Path, problem: FileProblem) {
        let path = path.to_owned();
        self.findings
            .notices
            .push(Notice::Unusable { path, problem });
    }
}

/// How a file relates to the project.
enum Standing {
    /// The project's or the user's.
    Own,
    /// Around the project, where others may write too.
    Shared,
    External,
}

/// Lines such as `@Override` are no imports that failed.
fn is_clearly_a_path(target: &str) -> bool {
    ["./", "../", "~/", "/"]
        .iter()
        .any(|prefix| target.starts_with(prefix))
        || source::markdown_stem(target).is_some()
}

/// A path with its links followed, where that is possible.
pub(super) fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
