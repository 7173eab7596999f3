//! The log of decisions: one JSON line each, private to the user, rotated when it has grown.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use caliban_settings::{RuleAction, ensure_private_dir};
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A log beyond this is packed away.
const ROTATION_BYTES: u64 = 100 * 1024 * 1024;
/// How much of a call's input is kept.
const EXCERPT_CHARS: usize = 256;
/// Longer lines are not ours and are skipped when reading.
const MAX_LINE: usize = 64 * 1024;

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub ts: String,
    pub session_id: String,
    pub turn_index: u32,
    pub tool_use_id: String,
    pub tool_name: String,
    pub input_excerpt: String,
    pub action: RuleAction,
    pub matched_rule: MatchedRule,
    /// Who had the last word.
    pub decided_by: DecidedBy,
    pub permission_mode: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchedRule {
    pub pattern: String,
    pub action: RuleAction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    Rule,
    Mode,
    Classifier,
    Hook,
    Operator,
    /// Nobody could be asked.
    Unattended,
}

/// Where decisions are written. Opened for every line, so that several processes and rotations
/// never lose one.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
    rotation_bytes: u64,
}

/// Which entries are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub since: Option<Timestamp>,
    pub tool: Option<String>,
    pub action: Option<RuleAction>,
    /// Only so many, the most recent ones.
    pub head: Option<usize>,
}

impl AuditLog {
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            rotation_bytes: ROTATION_BYTES,
        }
    }

    /// The same with another limit, for tests.
    #[must_use]
    pub fn with_rotation_at(self, rotation_bytes: u64) -> Self {
        Self {
            rotation_bytes,
            ..self
        }
    }

    /// Appends one line, in one write.
    pub fn append(&self, entry: &Entry, now: Timestamp) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        ensure_private_dir(directory)?;
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let size = {
            // Writers share the lock; a rotation waits for them and they for it.
            let lock = self.lock_file()?;
            lock.lock_shared()?;
            let mut file =
                private(OpenOptions::new().append(true).create(true)).open(&self.path)?;
            file.write_all(&line)?;
            file.metadata()?.len()
        };
        if size > self.rotation_bytes {
            self.rotate(now)?;
        }
        Ok(())
    }

    /// The entries that pass a filter, oldest first.
    pub fn read(&self, filter: &Filter) -> io::Result<Vec<String>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut lines = std::collections::VecDeque::new();
        for line in BufReader::new(file).lines() {
            let line = line?;
            if line.len() > MAX_LINE {
                continue;
            }
            // A line torn by a full disk is no entry.
            let Ok(entry) = serde_json::from_str::<Entry>(&line) else {
                continue;
            };
            if filter.passes(&entry) {
                lines.push_back(line);
                if filter.head.is_some_and(|head| lines.len() > head) {
                    lines.pop_front();
                }
            }
        }
        Ok(lines.into())
    }

    fn rotate(&self, now: Timestamp) -> io::Result<()> {
        let lock = self.lock_file()?;
        lock.lock()?;
        // Another process may have been faster.
        match std::fs::metadata(&self.path) {
            Ok(meta) if meta.len() > self.rotation_bytes => {}
            Ok(_) | Err(_) => return Ok(()),
        }
        let day = now.strftime("%Y-%m-%d").to_string();
        let (renamed, packed) = self.free_names(&day);
        std::fs::rename(&self.path, &renamed)?;
        let mut source = File::open(&renamed)?;
        let partial = packed.with_extension("gz.part");
        let target =
            private(OpenOptions::new().write(true).create(true).truncate(true)).open(&partial)?;
        let mut encoder = GzEncoder::new(target, Compression::default());
        io::copy(&mut source, &mut encoder)?;
        encoder.finish()?.sync_all()?;
        std::fs::rename(&partial, &packed)?;
        std::fs::remove_file(&renamed)
    }

    /// Names of the day that are not taken: a second rotation on one day gets a number.
    fn free_names(&self, day: &str) -> (PathBuf, PathBuf) {
        let stem = self
            .path
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let names = |number: u32| {
            let suffix = if number == 1 {
                String::new()
            } else {
                format!("-{number}")
            };
            let name = format!("{stem}-{day}{suffix}.jsonl");
            (
                self.path.with_file_name(&name),
                self.path.with_file_name(format!("{name}.gz")),
            )
        };
        let mut number = 1;
        loop {
            let (renamed, packed) = names(number);
            if !renamed.exists() && !packed.exists() {
                return (renamed, packed);
            }
            number += 1;
        }
    }

    fn lock_file(&self) -> io::Result<File> {
        let path = self.path.with_extension("lock");
        private(OpenOptions::new().write(true).create(true).truncate(false)).open(path)
    }
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

impl Entry {
    /// The time as it is written.
    pub fn stamp(now: Timestamp) -> String {
        now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
    }

    /// The beginning of an input, on one line.
    pub fn excerpt(input: &str) -> String {
        let one_line = |letter: char| if letter.is_control() { ' ' } else { letter };
        input.chars().take(EXCERPT_CHARS).map(one_line).collect()
    }
}

impl Filter {
    fn passes(&self, entry: &Entry) -> bool {
        let after = self.since.is_none_or(|since| {
            entry
                .ts
                .parse::<Timestamp>()
                .is_ok_and(|written| written >= since)
        });
        let tool = self
            .tool
            .as_ref()
            .is_none_or(|tool| *tool == entry.tool_name);
        let action = self.action.is_none_or(|action| action == entry.action);
        after && tool && action
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn entry(tool: &str, action: RuleAction) -> Entry {
        Entry {
            ts: Entry::stamp("2026-06-01T14:23:01.123456Z".parse().unwrap()),
            session_id: "s".into(),
            turn_index: 4,
            tool_use_id: "tu".into(),
            tool_name: tool.into(),
            input_excerpt: Entry::excerpt("{\"command\":\"git\npush\"}"),
            action,
            matched_rule: MatchedRule {
                pattern: "Bash:git *".into(),
                action: RuleAction::Allow,
            },
            decided_by: DecidedBy::Rule,
            permission_mode: "default".into(),
        }
    }

    #[test]
    fn lines_are_as_documented_and_filters_find_them() {
        let folder = tempfile::tempdir().unwrap();
        let log = AuditLog::new(folder.path().join("state/permission-decisions.jsonl"));
        assert!(log.read(&Filter::default()).unwrap().is_empty());
        let now = Timestamp::UNIX_EPOCH;
        for (tool, action) in [
            ("Bash", RuleAction::Allow),
            ("Write", RuleAction::Deny),
            ("Bash", RuleAction::Deny),
        ] {
            log.append(&entry(tool, action), now).unwrap();
        }
        let all = log.read(&Filter::default()).unwrap();
        assert_eq!(
            all[0],
            r#"{"ts":"2026-06-01T14:23:01.123456Z","session_id":"s","turn_index":4,"tool_use_id":"tu","tool_name":"Bash","input_excerpt":"{\"command\":\"git push\"}","action":"allow","matched_rule":{"pattern":"Bash:git *","action":"allow"},"decided_by":"rule","permission_mode":"default"}"#
        );
        let count = |filter: Filter| log.read(&filter).unwrap().len();
        let some = Filter::default;
        assert_eq!(
            count(Filter {
                tool: Some("Bash".into()),
                ..some()
            }),
            2
        );
        assert_eq!(
            count(Filter {
                action: Some(RuleAction::Deny),
                ..some()
            }),
            2
        );
        assert_eq!(
            count(Filter {
                head: Some(1),
                ..some()
            }),
            1
        );
        let later = "2026-06-02T00:00:00Z".parse().unwrap();
        assert_eq!(
            count(Filter {
                since: Some(later),
                ..some()
            }),
            0
        );
        let last = log
            .read(&Filter {
                head: Some(1),
                ..some()
            })
            .unwrap();
        assert_eq!(last, all[2..]);
    }

    #[test]
    #[cfg(unix)]
    fn the_log_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/log.jsonl");
        let log = AuditLog::new(path.clone());
        log.append(&entry("Bash", RuleAction::Allow), Timestamp::UNIX_EPOCH)
            .unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    #[test]
    fn nothing_is_lost_when_many_write_and_rotate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("permission-decisions.jsonl");
        let log = AuditLog::new(path).with_rotation_at(4 * 1024);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        log.append(&entry("Bash", RuleAction::Allow), Timestamp::UNIX_EPOCH)
                            .unwrap();
                    }
                });
            }
        });
        let mut total = log.read(&Filter::default()).unwrap().len();
        let mut packed = 0;
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if let Some(stem) = name.strip_suffix(".jsonl.gz") {
                assert!(
                    stem.starts_with("permission-decisions-1970-01-01"),
                    "{name}"
                );
                let mut text = String::new();
                flate2::read::GzDecoder::new(File::open(&path).unwrap())
                    .read_to_string(&mut text)
                    .unwrap();
                total += text.lines().count();
                packed += 1;
            }
        }
        assert!(packed > 1);
        assert_eq!(total, 200);
    }
}
