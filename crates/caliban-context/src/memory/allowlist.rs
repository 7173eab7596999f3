//! The files outside a workspace that its instructions may import, by path and content.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::notice::Notice;
use crate::private;
use crate::source;

/// The largest list, in bytes.
const MAX_SIZE: u64 = 1024 * 1024;
/// How many approvals, and how many refusals, are remembered; the oldest go first.
const MAX_APPROVALS: usize = 1000;
const VERSION: u32 = 1;

/// A file outside the workspace that an instruction file wants included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalImport {
    /// The real path.
    pub path: PathBuf,
    /// The SHA-256 of its content, in hexadecimal.
    pub digest: String,
    /// Its length as it would be shown, in bytes.
    pub bytes: usize,
    /// The file that wants it.
    pub imported_by: PathBuf,
    pub approval: Approval,
}

/// Whether an import has been approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    Approved,
    /// It was approved with other content.
    Changed,
    /// It was refused as it is.
    Refused,
    Unknown,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot write the list of approved imports `{}`: {source}", path.display())]
pub struct AllowlistError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// The list in its file, which need not exist.
#[derive(Debug, Clone)]
pub struct ImportAllowlist {
    path: PathBuf,
}

/// The list as it was read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Approvals {
    version: u32,
    /// The latest last.
    imports: Vec<JudgedImport>,
    /// Those that nobody is asked about again as they are; the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused: Vec<JudgedImport>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct JudgedImport {
    path: PathBuf,
    digest: String,
}

impl ImportAllowlist {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Lets a file be imported with the content that was seen.
    pub fn approve(&self, import: &ExternalImport) -> Result<(), AllowlistError> {
        self.update(&import.path, Verdict::Approve(&import.digest))
    }

    /// Keeps a file out with the content that was seen.
    pub fn refuse(&self, import: &ExternalImport) -> Result<(), AllowlistError> {
        self.update(&import.path, Verdict::Refuse(&import.digest))
    }

    /// Takes an approval, or a refusal, back.
    pub fn revoke(&self, path: &Path) -> Result<(), AllowlistError> {
        self.update(path, Verdict::Forget)
    }

    fn update(&self, path: &Path, verdict: Verdict<'_>) -> Result<(), AllowlistError> {
        let failed = |source| AllowlistError {
            path: self.path.clone(),
            source,
        };
        private::ensure_directory(self.path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        let lock = private::lock(&self.path.with_extension("json.lock")).map_err(failed)?;
        let (mut approvals, notice) = self.read();
        if notice.is_some() {
            // Nothing is lost: whoever wonders what it said can still look.
            let aside = self.path.with_extension("json.corrupt");
            std::fs::rename(&self.path, aside).map_err(failed)?;
        }
        approvals.version = VERSION;
        let (approved, refused) = match verdict {
            Verdict::Approve(digest) => (Some(digest), None),
            Verdict::Refuse(digest) => (None, Some(digest)),
            Verdict::Forget => (None, None),
        };
        put(&mut approvals.imports, path, approved);
        put(&mut approvals.refused, path, refused);
        let text = serde_json::to_string_pretty(&approvals)
            .map_err(|error| failed(io::Error::other(error)))?;
        private::replace(&self.path, &text).map_err(failed)?;
        drop(lock);
        Ok(())
    }

    /// A list that cannot be understood, or that others can write, approves nothing.
    pub(super) fn read(&self) -> (Approvals, Option<Notice>) {
        let distrust = |reason: String| {
            let path = self.path.clone();
            (
                Approvals::default(),
                Some(Notice::Allowlist { path, reason }),
            )
        };
        let document = match source::resolve(&self.path) {
            Ok(None) => return (Approvals::default(), None),
            Ok(Some(path)) => source::read(&path, MAX_SIZE),
            Err(problem) => Err(problem),
        };
        let text = match document {
            Ok(document) => document.text,
            Err(problem) => return distrust(problem.to_string()),
        };
        if private::is_writable_by_others(&self.path) {
            return distrust("others can write to it".to_owned());
        }
        match serde_json::from_str::<Approvals>(&text) {
            Ok(approvals) if approvals.version == VERSION => (approvals, None),
            Ok(approvals) => distrust(format!("its version is {}", approvals.version)),
            Err(error) => distrust(error.to_string()),
        }
    }
}

/// What was decided about a file.
#[derive(Debug, Clone, Copy)]
enum Verdict<'a> {
    Approve(&'a str),
    Refuse(&'a str),
    Forget,
}

/// Leaves a file in a list with this content, or takes it out.
fn put(list: &mut Vec<JudgedImport>, path: &Path, digest: Option<&str>) {
    list.retain(|known| known.path != path);
    list.extend(digest.map(|digest| JudgedImport {
        path: path.to_owned(),
        digest: digest.to_owned(),
    }));
    let surplus = list.len().saturating_sub(MAX_APPROVALS);
    list.drain(..surplus);
}

impl Approvals {
    pub(super) fn lookup(&self, path: &Path, digest: &str) -> Approval {
        let is_it = |import: &JudgedImport| import.path == path && import.digest == digest;
        if self.refused.iter().any(is_it) {
            return Approval::Refused;
        }
        match self.imports.iter().find(|import| import.path == path) {
            Some(import) if import.digest == digest => Approval::Approved,
            Some(_) => Approval::Changed,
            None => Approval::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(path: &str, digest: &str) -> ExternalImport {
        ExternalImport {
            path: PathBuf::from(path),
            digest: digest.to_owned(),
            bytes: 0,
            imported_by: PathBuf::from("/w/CLAUDE.md"),
            approval: Approval::Unknown,
        }
    }

    #[test]
    fn approvals_are_for_a_path_and_a_content() {
        let temp = tempfile::tempdir().unwrap();
        let list = ImportAllowlist::new(temp.path().join(".caliban/list.json"));
        let lookup = |path: &str, digest: &str| list.read().0.lookup(Path::new(path), digest);
        assert_eq!(lookup("/a", "1"), Approval::Unknown);
        list.approve(&import("/a", "1")).unwrap();
        assert_eq!(lookup("/a", "1"), Approval::Approved);
        assert_eq!(lookup("/a", "2"), Approval::Changed);
        assert_eq!(lookup("/b", "1"), Approval::Unknown);
        list.approve(&import("/a", "2")).unwrap();
        assert_eq!(lookup("/a", "1"), Approval::Changed);
        list.revoke(Path::new("/a")).unwrap();
        assert_eq!(lookup("/a", "2"), Approval::Unknown);
        list.refuse(&import("/a", "2")).unwrap();
        assert_eq!(lookup("/a", "2"), Approval::Refused);
        assert_eq!(lookup("/a", "3"), Approval::Unknown);
        list.approve(&import("/a", "2")).unwrap();
        assert_eq!(lookup("/a", "2"), Approval::Approved);
    }

    #[cfg(unix)]
    #[test]
    fn a_list_that_cannot_be_trusted_approves_nothing() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("list.json");
        let list = ImportAllowlist::new(&path);
        list.approve(&import("/a", "1")).unwrap();
        let good = std::fs::read_to_string(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let (approvals, notice) = list.read();
        assert_eq!(approvals.lookup(Path::new("/a"), "1"), Approval::Unknown);
        assert!(notice.unwrap().to_string().contains("others can write"));
        for text in ["{", r#"{"version": 9, "imports": []}"#] {
            private::replace(&path, text).unwrap();
            assert!(list.read().1.is_some());
            list.approve(&import("/b", "1")).unwrap();
            assert_eq!(
                list.read().0.lookup(Path::new("/b"), "1"),
                Approval::Approved
            );
        }
        assert!(good.contains("\"version\": 1"));
    }
}
