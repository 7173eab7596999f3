//! The log of decisions: one JSON line each, private to the user, rotated when it has grown.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use caliban_settings::{RuleAction, ensure_private_dir};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::keys::without_keys;
use crate::origin::Origin;

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
    /// Who wrote it; older lines do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
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
    /// Only what rules of these writers decided.
    pub writers: Option<Vec<Origin>>,
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
        let has_grown = |size: u64| size > self.rotation_bytes;
        if std::fs::metadata(&self.path).is_ok_and(|meta| has_grown(meta.len())) {
            self.rotate(now)?;
        }
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
        if has_grown(size) {
            self.rotate(now)?;
        }
        Ok(())
    }

    /// Hands on the entries that pass a filter, oldest first, those of packed logs included.
    pub fn read<E: From<io::Error>>(
        &self,
        filter: &Filter,
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut last = VecDeque::new();
        let mut found = |line: &str| match filter.head {
            None => each(line),
            Some(head) => {
                last.push_back(line.to_owned());
                if last.len() > head {
                    last.pop_front();
                }
                Ok(())
            }
        };
        let (packed, log) = self.snapshot()?;
        for packed in packed {
            if filter.since.is_some_and(|since| packed.ends_before(since)) {
                continue;
            }
            let file = File::open(&packed.path)?;
            let is_compressed = packed.path.extension().is_some_and(|end| end == "gz");
            if is_compressed {
                entries(GzDecoder::new(file), filter, &mut found)?;
            } else {
                entries(file, filter, &mut found)?;
            }
        }
        if let Some(log) = log {
            entries(log, filter, &mut found)?;
        }
        last.iter().try_for_each(|line| each(line))
    }

    /// The packed logs and the log itself at one moment. Nothing is packed away meanwhile; who
    /// reads them slowly keeps nobody from writing.
    fn snapshot(&self) -> io::Result<(Vec<Packed>, Option<File>)> {
        // Without a directory there is no log; one that cannot be written can still be read.
        let lock = self.lock_file().ok();
        if let Some(lock) = &lock {
            lock.lock_shared()?;
        }
        let log = match File::open(&self.path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok((self.packed()?, log))
    }

    /// The logs that were packed away, oldest first.
    fn packed(&self) -> io::Result<Vec<Packed>> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let files = match std::fs::read_dir(directory) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let stem = self.stem();
        let mut packed = Vec::new();
        for file in files {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            packed.extend(Packed::named(&stem, &name, path.clone()));
        }
        packed.sort();
        Ok(packed)
    }

    fn stem(&self) -> String {
        let stem = self.path.file_stem();
        stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
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
        // Whoever follows the log finds a fresh one.
        private(OpenOptions::new().append(true).create(true)).open(&self.path)?;
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
        let stem = self.stem();
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

/// A log that was packed away, ordered by its time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packed {
    /// The day of its last entry.
    day: Date,
    /// Of those of one day.
    number: u32,
    path: PathBuf,
}

impl Packed {
    /// From `<stem>-2026-06-01.jsonl.gz` or `<stem>-2026-06-01-2.jsonl.gz`; without the last end it
    /// is about to be packed.
    fn named(stem: &str, name: &str, path: PathBuf) -> Option<Self> {
        let rest = name.strip_prefix(stem)?.strip_prefix('-')?;
        let rest = rest.strip_suffix(".gz").unwrap_or(rest);
        let rest = rest.strip_suffix(".jsonl")?;
        let (day, number) = match rest.char_indices().filter(|(_, c)| *c == '-').nth(2) {
            Some((at, _)) => (&rest[..at], rest[at + 1..].parse().ok()?),
            None => (rest, 1),
        };
        Some(Self {
            day: day.parse().ok()?,
            number,
            path,
        })
    }

    fn ends_before(&self, since: Timestamp) -> bool {
        self.day < since.to_zoned(TimeZone::UTC).date()
    }
}

/// Hands on the entries of one log that pass a filter.
fn entries<E: From<io::Error>>(
    log: impl Read,
    filter: &Filter,
    each: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mut log = BufReader::new(log);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
        if log.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        // The parts of a line that is too long are no entries either, nor is one that was torn by
        // a full disk.
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        let entry = serde_json::from_str::<Entry>(text);
        if entry.is_ok_and(|entry| filter.passes(&entry)) {
            each(text)?;
        }
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

    /// The beginning of an input, on one line and without keys.
    pub fn excerpt(input: &str) -> String {
        let one_line = |letter: char| if letter.is_control() { ' ' } else { letter };
        // A key that is cut off is still known by its beginning.
        let beginning: String = input.chars().take(4 * EXCERPT_CHARS).collect();
        let masked = without_keys(&beginning);
        masked.chars().take(EXCERPT_CHARS).map(one_line).collect()
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
        let scope = entry.matched_rule.scope.as_deref();
        let writer = self.writers.as_ref().is_none_or(|writers| {
            let mut writers = writers.iter();
            writers.any(|writer| scope == Some(writer.as_str()))
        });
        after && tool && action && writer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &AuditLog, filter: &Filter) -> Vec<String> {
        let mut lines = Vec::new();
        let all = log.read(filter, |line| {
            lines.push(line.to_owned());
            Ok::<_, io::Error>(())
        });
        all.unwrap();
        lines
    }

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
                scope: Some("user".into()),
            },
            decided_by: DecidedBy::Rule,
            permission_mode: "default".into(),
        }
    }

    #[test]
    fn lines_are_as_documented_and_filters_find_them() {
        let folder = tempfile::tempdir().unwrap();
        let log = AuditLog::new(folder.path().join("state/permission-decisions.jsonl"));
        assert!(read(&log, &Filter::default()).is_empty());
        let now = Timestamp::UNIX_EPOCH;
        for (tool, action) in [
            ("Bash", RuleAction::Allow),
            ("Write", RuleAction::Deny),
            ("Bash", RuleAction::Deny),
        ] {
            log.append(&entry(tool, action), now).unwrap();
        }
        let all = read(&log, &Filter::default());
        assert_eq!(
            all[0],
            r#"{"ts":"2026-06-01T14:23:01.123456Z","session_id":"s","turn_index":4,"tool_use_id":"tu","tool_name":"Bash","input_excerpt":"{\"command\":\"git push\"}","action":"allow","matched_rule":{"pattern":"Bash:git *","action":"allow","scope":"user"},"decided_by":"rule","permission_mode":"default"}"#
        );
        let count = |filter: Filter| read(&log, &filter).len();
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
        let head = |head| Filter {
            head: Some(head),
            ..some()
        };
        assert_eq!(read(&log, &head(1)), all[2..]);
        let of = |writer: Origin| Filter {
            writers: Some(vec![writer]),
            ..some()
        };
        assert_eq!(
            (count(of(Origin::User)), count(of(Origin::Project))),
            (3, 0)
        );
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
    fn a_log_that_had_grown_is_packed_before_the_next_decision() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("permission-decisions.jsonl");
        let old = entry("Read", RuleAction::Allow);
        let log = AuditLog::new(path.clone());
        log.append(&old, Timestamp::UNIX_EPOCH).unwrap();
        let size = std::fs::metadata(&path).unwrap().len();
        let log = log.with_rotation_at(size - 1);
        log.append(&old, Timestamp::UNIX_EPOCH).unwrap();
        // The one line alone is more than the limit, so it is packed as well, and a fresh log is
        // there for the next.
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        let log = log.with_rotation_at(size + 1);
        log.append(&old, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), size);
        assert_eq!(read(&log, &Filter::default()).len(), 3);
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
        let files = std::fs::read_dir(folder.path()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let packed: Vec<String> = names.filter(|name| name.ends_with(".jsonl.gz")).collect();
        assert!(packed.len() > 1);
        for name in &packed {
            let begin = "permission-decisions-1970-01-01";
            assert!(name.starts_with(begin), "{name}");
        }
        assert_eq!(read(&log, &Filter::default()).len(), 200);
        let later = Filter {
            since: Some("2026-06-02T00:00:00Z".parse().unwrap()),
            ..Filter::default()
        };
        assert!(read(&log, &later).is_empty());
    }

    #[test]
    fn packed_logs_are_known_by_their_names_and_read_in_order() {
        let named = |name: &str| Packed::named("log", name, PathBuf::from(name));
        let order = [
            "log-2026-06-01.jsonl.gz",
            "log-2026-06-01-2.jsonl.gz",
            "log-2026-06-01-10.jsonl",
            "log-2026-10-01.jsonl.gz",
        ];
        let packed: Vec<Packed> = order.iter().map(|name| named(name).unwrap()).collect();
        assert!(packed.is_sorted());
        for other in [
            "log.jsonl",
            "log-x.jsonl.gz",
            "log-2026-06-01.gz.part",
            "blog-2026-06-01.jsonl",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
        let since = |text: &str| text.parse::<Timestamp>().unwrap();
        assert!(packed[0].ends_before(since("2026-06-02T00:00:00Z")));
        assert!(!packed[0].ends_before(since("2026-06-01T23:00:00Z")));
    }
}
