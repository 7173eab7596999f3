//! What the tools of servers were defined as when they were first seen. A definition that
//! changes later is not used until somebody approves it: a description is text the model obeys.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use caliban_settings::ensure_private_dir;
use serde::{Deserialize, Serialize};

use crate::definition::Definition;

/// How many servers are remembered; the longest untouched go first.
const MAX_SERVERS: usize = 500;
/// The largest file that is read.
const MAX_FILE: u64 = 32 * 1024 * 1024;
const FILE: &str = "mcp-pins.json";
const LOCK: &str = "mcp-pins.lock";
const VERSION: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum PinError {
    #[error("the definitions of MCP tools cannot be kept in `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("`{}` is not used: {reason}; remove it to pin all MCP tools anew", path.display())]
    Unreadable { path: PathBuf, reason: String },
}

/// The pins of all servers in a private file, one writer at a time.
#[derive(Debug, Clone)]
pub struct PinStore {
    directory: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Records {
    version: u32,
    /// The latest changed last.
    servers: Vec<Record>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    /// Who the server is: a digest of its settings.
    identity: String,
    /// What it is called, for people who read the file.
    name: String,
    /// Digests of definitions by the tools' own names.
    tools: Digests,
}

type Digests = BTreeMap<String, String>;

impl PinStore {
    /// The store in a directory, which need not exist.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// Changes the pins of one server and returns what it has afterwards.
    fn update(
        &self,
        identity: &str,
        name: &str,
        change: impl FnOnce(&mut Digests),
    ) -> Result<Digests, PinError> {
        let failed = |source| PinError::Write {
            path: self.path(),
            source,
        };
        ensure_private_dir(&self.directory).map_err(failed)?;
        let _lock = lock(&self.directory.join(LOCK)).map_err(failed)?;
        let mut records = self.read()?;
        let found = records
            .servers
            .iter()
            .position(|record| record.identity == identity);
        let before = found.map(|index| records.servers[index].tools.clone());
        let mut tools = before.clone().unwrap_or_default();
        change(&mut tools);
        if before.as_ref() == Some(&tools) {
            return Ok(tools);
        }
        if let Some(index) = found {
            records.servers.remove(index);
        }
        records.servers.push(Record {
            identity: identity.to_owned(),
            name: name.to_owned(),
            tools: tools.clone(),
        });
        let surplus = records.servers.len().saturating_sub(MAX_SERVERS);
        records.servers.drain(..surplus);
        records.version = VERSION;
        replace(&self.path(), &records).map_err(failed)?;
        Ok(tools)
    }

    fn read(&self) -> Result<Records, PinError> {
        let path = self.path();
        let unreadable = |reason: String| PinError::Unreadable {
            path: self.path(),
            reason,
        };
        let text = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Records::default()),
            Err(error) => return Err(unreadable(error.to_string())),
            Ok(metadata) if metadata.len() > MAX_FILE => {
                return Err(unreadable("it is too large".to_owned()));
            }
            Ok(_) => fs::read_to_string(&path).map_err(|error| unreadable(error.to_string()))?,
        };
        let records: Records =
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        if records.version > VERSION {
            return Err(unreadable(format!("its version is {}", records.version)));
        }
        Ok(records)
    }
}

fn lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    file.lock()?;
    Ok(file)
}

/// Whoever reads sees the old content or the new one.
fn replace(path: &Path, records: &Records) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".mcp-pins-")
        .tempfile_in(directory)?;
    file.write_all(&serde_json::to_vec_pretty(records)?)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// What this session knows: the store's pins, and its own where there is no store.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    store: Option<PinStore>,
    session: Mutex<BTreeMap<String, Digests>>,
}

/// Which of a server's tools may be used.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) accepted: Vec<Definition>,
    /// Defined otherwise than when they were pinned.
    pub(crate) changed: Vec<Definition>,
    /// What is wrong with the store; the session's own pins are used then.
    pub(crate) problem: Option<PinError>,
}

impl Pins {
    pub(crate) fn new(store: Option<PinStore>) -> Self {
        Self {
            store,
            session: Mutex::default(),
        }
    }

    /// Compares tools with their pins and pins those seen for the first time. Touches the disk.
    pub(crate) fn judge(
        &self,
        identity: &str,
        name: &str,
        definitions: Vec<Definition>,
    ) -> Judgement {
        let (pinned, problem) = self.update(identity, name, |digests| {
            for definition in &definitions {
                digests
                    .entry(definition.name.clone())
                    .or_insert_with(|| definition.digest.clone());
            }
        });
        let (accepted, changed) = definitions
            .into_iter()
            .partition(|definition| pinned.get(&definition.name) == Some(&definition.digest));
        Judgement {
            accepted,
            changed,
            problem,
        }
    }

    /// Pins tools as they are defined now. Touches the disk.
    pub(crate) fn approve(
        &self,
        identity: &str,
        name: &str,
        definitions: &[Definition],
    ) -> Result<(), PinError> {
        let (_, problem) = self.update(identity, name, |digests| {
            for definition in definitions {
                digests.insert(definition.name.clone(), definition.digest.clone());
            }
        });
        problem.map_or(Ok(()), Err)
    }

    fn update(
        &self,
        identity: &str,
        name: &str,
        change: impl Fn(&mut Digests),
    ) -> (Digests, Option<PinError>) {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let own = session.entry(identity.to_owned()).or_default();
        let problem = match &self.store {
            None => None,
            Some(store) => match store.update(identity, name, &change) {
                Ok(stored) => {
                    // Another session may have pinned or approved meanwhile.
                    own.clone_from(&stored);
                    return (stored, None);
                }
                Err(problem) => Some(problem),
            },
        };
        change(own);
        (own.clone(), problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, digest: &str) -> Definition {
        Definition {
            name: name.to_owned(),
            description: String::new(),
            schema: serde_json::Value::Null,
            digest: digest.to_owned(),
        }
    }

    fn names(tools: &[Definition]) -> Vec<&str> {
        tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    #[test]
    fn a_change_is_found_in_a_later_session_until_it_is_approved() {
        let directory = tempfile::tempdir().unwrap();
        let store = PinStore::new(directory.path().join("new"));
        let first = Pins::new(Some(store.clone()));
        let seen = first.judge("id", "srv", vec![tool("a", "1"), tool("b", "1")]);
        assert_eq!(names(&seen.accepted), ["a", "b"]);

        let later = Pins::new(Some(store.clone()));
        let seen = later.judge(
            "id",
            "srv",
            vec![tool("a", "2"), tool("b", "1"), tool("c", "1")],
        );
        assert_eq!(names(&seen.accepted), ["b", "c"]);
        assert_eq!(names(&seen.changed), ["a"]);
        later.approve("id", "srv", &seen.changed).unwrap();

        let last = Pins::new(Some(store));
        let seen = last.judge("id", "srv", vec![tool("a", "2")]);
        assert_eq!(names(&seen.accepted), ["a"]);
        let seen = last.judge("id", "srv", vec![tool("a", "1")]);
        assert_eq!(
            names(&seen.changed),
            ["a"],
            "the old one is not approved any more"
        );
    }

    #[test]
    fn another_server_has_its_own_pins() {
        let pins = Pins::default();
        pins.judge("one", "srv", vec![tool("a", "1")]);
        let seen = pins.judge("two", "srv", vec![tool("a", "2")]);
        assert_eq!(names(&seen.accepted), ["a"]);
        let seen = pins.judge("one", "srv", vec![tool("a", "2")]);
        assert_eq!(names(&seen.changed), ["a"], "also without a store");
    }

    #[test]
    fn a_tool_that_went_and_came_back_changed_is_found() {
        let pins = Pins::default();
        pins.judge("one", "srv", vec![tool("a", "1")]);
        pins.judge("one", "srv", vec![]);
        let seen = pins.judge("one", "srv", vec![tool("a", "2")]);
        assert_eq!(names(&seen.changed), ["a"]);
    }

    #[test]
    fn a_broken_store_is_reported_kept_and_stood_in_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        fs::write(&path, "{ nonsense").unwrap();
        let pins = Pins::new(Some(PinStore::new(directory.path())));
        let seen = pins.judge("id", "srv", vec![tool("a", "1")]);
        assert_eq!(names(&seen.accepted), ["a"]);
        assert!(matches!(seen.problem, Some(PinError::Unreadable { .. })));
        let seen = pins.judge("id", "srv", vec![tool("a", "2")]);
        assert_eq!(names(&seen.changed), ["a"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{ nonsense");
    }

    #[test]
    fn the_longest_untouched_servers_are_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let store = PinStore::new(directory.path());
        let records = Records {
            version: VERSION,
            servers: (0..MAX_SERVERS)
                .map(|index| Record {
                    identity: index.to_string(),
                    name: String::new(),
                    tools: Digests::new(),
                })
                .collect(),
        };
        replace(&store.path(), &records).unwrap();
        let pins = Pins::new(Some(store.clone()));
        pins.judge("new", "srv", vec![tool("a", "1")]);
        let records = store.read().unwrap();
        assert_eq!(records.servers.len(), MAX_SERVERS);
        assert_eq!(records.servers[0].identity, "1");
        assert_eq!(records.servers[MAX_SERVERS - 1].identity, "new");
    }
}
