//! The directory of an agent. Who holds its lock is alive; all else is read from files that are
//! replaced as a whole.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use caliban_session::Settled;
use caliban_settings::{ensure_private_dir, replace_private_file};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::id::{AgentId, Unresolved, resolve};
use crate::spec::Spec;
use crate::state::{AgentView, End, Phase, Report, boot_id};

/// The largest file that is read: a prompt with everything that was pasted into it.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Bytes of a worker's log before it is put aside; one older one is kept.
const MAX_LOG: u64 = 16 * 1024 * 1024;
/// How often, and after which pause, a lock is tried that somebody may only be looking at.
const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(5);

/// One agent on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDirectory {
    path: PathBuf,
}

/// The lock of an agent, held. Who is started with a copy of the file holds it too.
#[derive(Debug)]
pub(crate) struct Held(pub(crate) File);

impl AgentDirectory {
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Makes a new directory; an id that is taken is an error of the kind `AlreadyExists`.
    pub(crate) fn create(agents: &Path, id: &AgentId) -> io::Result<Self> {
        ensure_private_dir(agents)?;
        let path = agents.join(id.as_str());
        DirBuilder::new().mode(0o700).create(&path)?;
        sync_directory(agents)?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the worker wrote that belongs to no conversation.
    pub fn log(&self) -> PathBuf {
        self.path.join("worker.log")
    }

    /// Whether anything was said in it.
    pub(crate) fn has_conversation(&self) -> bool {
        ["session.json", "session.journal"]
            .iter()
            .any(|name| self.path.join(name).exists())
    }

    fn lock_file(&self) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.path.join("worker.lock"))
    }

    /// Holds the agent; nothing where somebody else does.
    pub(crate) fn hold(&self) -> io::Result<Option<Held>> {
        let file = self.lock_file()?;
        for _ in 0..LOOKS {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Held(file))),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Whether there is a process that answers for the agent.
    pub fn is_held(&self) -> bool {
        let Ok(file) = OpenOptions::new()
            .read(true)
            .open(self.path.join("worker.lock"))
        else {
            return false;
        };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// The file that the worker's standard error goes to.
    pub(crate) fn open_log(&self) -> io::Result<File> {
        let path = self.log();
        if fs::metadata(&path).is_ok_and(|found| found.len() > MAX_LOG) {
            fs::rename(&path, self.path.join("worker.log.1"))?;
        }
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
    }

    pub fn spec(&self) -> io::Result<Spec> {
        self.read("spec.json")
    }

    pub(crate) fn write_spec(&self, spec: &Spec) -> io::Result<()> {
        self.write("spec.json", spec)
    }

    pub fn report(&self) -> io::Result<Report> {
        self.read("state.json")
    }

    pub(crate) fn write_report(&self, report: &Report) -> io::Result<()> {
        self.write("state.json", report)
    }

    /// How it ended; nothing where it did not say.
    pub fn end(&self) -> io::Result<Option<End>> {
        match self.read("end.json") {
            Ok(end) => Ok(Some(end)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn write_end(&self, end: &End) -> io::Result<()> {
        self.write("end.json", end)
    }

    /// How the prompts of its last process ended, where it is a server's; nothing where that did not
    /// say.
    pub fn settled(&self) -> Vec<Settled> {
        self.read("settled.json").unwrap_or_default()
    }

    pub(crate) fn write_settled(&self, settled: &VecDeque<Settled>) -> io::Result<()> {
        self.write("settled.json", settled)
    }

    /// It has not ended after all.
    pub(crate) fn forget_end(&self) -> io::Result<()> {
        match fs::remove_file(self.path.join("end.json")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => sync_directory(&self.path),
        }
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<T> {
        let path = self.path.join(name);
        let wrong = |why: String| {
            let text = format!("`{}`: {why}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let mut text = String::new();
        let file = File::open(&path)?;
        if file.metadata()?.len() > MAX_FILE {
            return Err(wrong("it is too large".to_owned()));
        }
        file.take(MAX_FILE).read_to_string(&mut text)?;
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
    }

    fn write(&self, name: &str, content: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(content)?;
        text.push(b'\n');
        replace_private_file(&self.path.join(name), &text)?;
        sync_directory(&self.path)
    }

    /// The agent as it is, judged by its lock and its files. What cannot be read is told as such
    /// and keeps nothing else from being listed.
    pub fn view(&self, id: &AgentId) -> AgentView {
        // Looked at before the files: whoever ends writes first and lets go then.
        let is_held = self.is_held();
        let spec = self.spec();
        let report = self.report().ok();
        let end = self.end();
        let (state, reason) = match (&spec, is_held, &end) {
            (Err(error), ..) => (Phase::Crashed, Some(format!("it cannot be read: {error}"))),
            (Ok(_), true, _) => (
                report
                    .as_ref()
                    .map_or(Phase::Spawning, |report| report.state),
                None,
            ),
            (Ok(_), false, Ok(Some(end))) => (end.state, end.reason.clone()),
            (Ok(_), false, Ok(None)) => (Phase::Crashed, Some(lost(report.as_ref()))),
            (Ok(_), false, Err(error)) => (Phase::Crashed, Some(error.to_string())),
        };
        let end = end.ok().flatten().filter(|_| !is_held);
        let spec = spec.ok();
        let task = spec.as_ref().map(|spec| &spec.task);
        let last = report.as_ref();
        let spent = end
            .as_ref()
            .map(|end| (end.cost_usd, end.turns))
            .or(last.map(|report| (report.cost_usd, report.turns)));
        let (cost_usd, turns) = spent.unwrap_or((Decimal::ZERO, 0));
        AgentView {
            id: id.clone(),
            state,
            reason,
            label: task.and_then(|task| task.label.clone()),
            prompt: task.map(|task| task.prompt.clone()).unwrap_or_default(),
            needs: last
                .filter(|_| state.is_alive())
                .and_then(|report| report.needs.clone()),
            cwd: task.map(|task| task.cwd.clone()).unwrap_or_default(),
            worktree: spec.as_ref().and_then(Spec::worktree),
            created: spec.as_ref().map_or(Timestamp::UNIX_EPOCH, |it| it.created),
            since: end
                .as_ref()
                .map(|end| end.at)
                .or(last.map(|report| report.since))
                .unwrap_or(Timestamp::UNIX_EPOCH),
            parent: task.and_then(|task| task.parent.clone()),
            model: last.and_then(|report| report.model.clone()),
            session_id: last.and_then(|report| report.session_id.clone()),
            cost_usd,
            turns,
            attached: last
                .filter(|_| state.is_alive())
                .map_or(0, |report| report.attached),
            pid: last
                .filter(|_| state.is_alive())
                .and_then(|report| report.pid),
            exit_code: end.map(|end| end.exit_code),
            socket: last
                .filter(|_| state.is_alive())
                .and_then(|report| report.socket.clone()),
        }
    }

    /// Removes everything.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)?;
        sync_directory(self.path.parent().unwrap_or(Path::new(".")))
    }
}

/// What is known of an agent that left no word.
fn lost(report: Option<&Report>) -> String {
    let then = report.and_then(|report| report.boot.clone());
    match (then, boot_id()) {
        (Some(then), Some(now)) if then != now => "the system was started anew".to_owned(),
        _ => match report.map(|report| report.state) {
            None | Some(Phase::Spawning) => "it ended before it began to work".to_owned(),
            Some(_) => "its process ended without a word".to_owned(),
        },
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The agents of a user.
#[derive(Debug, Clone)]
pub struct Registry {
    agents: PathBuf,
    root: Option<PathBuf>,
}

impl Registry {
    /// Those of one repository.
    pub fn of(agents: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Self {
        Self {
            agents: agents.into(),
            root: Some(root.into()),
        }
    }

    /// Those of all.
    pub fn everywhere(agents: impl Into<PathBuf>) -> Self {
        Self {
            agents: agents.into(),
            root: None,
        }
    }

    /// The ids there are. One whose specification cannot be read is everybody's.
    pub fn ids(&self) -> io::Result<Vec<AgentId>> {
        let entries = match fs::read_dir(&self.agents) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(Ok(id)) = name.to_str().map(str::parse::<AgentId>) else {
                continue;
            };
            if self.is_ours(&id) {
                ids.push(id);
            }
        }
        ids.sort();
        Ok(ids)
    }

    fn is_ours(&self, id: &AgentId) -> bool {
        let Some(root) = &self.root else {
            return true;
        };
        match self.directory(id).spec() {
            Ok(spec) => spec.root == *root,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    pub fn directory(&self, id: &AgentId) -> AgentDirectory {
        AgentDirectory::at(self.agents.join(id.as_str()))
    }

    /// The one agent whose id begins with a text; io errors count as no agents.
    pub fn find(&self, text: &str) -> Result<AgentId, Unresolved> {
        resolve(text, &self.ids().unwrap_or_default())
    }

    /// All of them: those that need somebody first, then the living, then the newest.
    pub fn views(&self) -> io::Result<Vec<AgentView>> {
        let ids = self.ids()?;
        let mut views: Vec<AgentView> = ids.iter().map(|id| self.directory(id).view(id)).collect();
        views.sort_by_key(|view| {
            let is_waited_for = view.needs.as_ref().is_some_and(|needs| needs.id.is_some());
            (
                !is_waited_for,
                !view.state.is_alive(),
                std::cmp::Reverse(view.created),
            )
        });
        Ok(views)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::spec::{Isolation, Task};

    fn agent(agents: &Path, id: &str, root: &str) -> AgentDirectory {
        let id: AgentId = id.parse().unwrap();
        let directory = AgentDirectory::create(agents, &id).unwrap();
        let spec = Spec {
            id,
            root: root.into(),
            created: Timestamp::now(),
            depth: 0,
            task: Task {
                prompt: "p".to_owned(),
                label: None,
                cwd: "/w".into(),
                options: json!({}),
                parent: None,
                profile: None,
                isolation: Isolation::None,
                withheld: Vec::new(),
                handover: None,
                served: None,
            },
        };
        directory.write_spec(&spec).unwrap();
        assert_eq!(directory.spec().unwrap(), spec);
        directory
    }

    fn end(state: Phase) -> End {
        End {
            state,
            outcome: None,
            exit_code: 0,
            reason: None,
            cost_usd: Decimal::ONE,
            turns: 3,
            at: Timestamp::now(),
        }
    }

    #[test]
    fn the_lock_decides_and_the_end_is_the_workers_word() {
        let root = tempfile::tempdir().unwrap();
        let agents = root.path().join("agents");
        let directory = agent(&agents, "0000000a", "/r");
        let id = "0000000a".parse().unwrap();
        let state = |directory: &AgentDirectory| directory.view(&id).state;
        assert_eq!(state(&directory), Phase::Crashed);
        let held = directory.hold().unwrap().unwrap();
        assert_eq!(state(&directory), Phase::Spawning);
        assert!(directory.hold().unwrap().is_none());
        let mut report = Report::registered(Timestamp::now());
        report.state = Phase::Running;
        directory.write_report(&report).unwrap();
        assert_eq!(state(&directory), Phase::Running);
        directory.write_end(&end(Phase::Done)).unwrap();
        assert_eq!(state(&directory), Phase::Running);
        drop(held);
        let view = directory.view(&id);
        assert_eq!((view.state, view.turns), (Phase::Done, 3));
        directory.forget_end().unwrap();
        let view = directory.view(&id);
        assert_eq!(view.state, Phase::Crashed);
        assert_eq!(
            view.reason.as_deref(),
            Some("its process ended without a word")
        );
        report.boot = Some("another".to_owned());
        directory.write_report(&report).unwrap();
        let view = directory.view(&id);
        assert_eq!(view.reason.as_deref(), Some("the system was started anew"));
        directory.remove().unwrap();
        assert!(!directory.path().exists());
    }

    #[test]
    fn a_copy_of_the_file_holds_the_lock_as_well() {
        let root = tempfile::tempdir().unwrap();
        let directory = agent(&root.path().join("agents"), "0000000a", "/r");
        let held = directory.hold().unwrap().unwrap();
        let copy = held.0.try_clone().unwrap();
        drop(held);
        assert!(directory.is_held());
        drop(copy);
        assert!(!directory.is_held());
    }

    #[test]
    fn what_cannot_be_read_hides_nobody() {
        let root = tempfile::tempdir().unwrap();
        let agents = root.path().join("agents");
        agent(&agents, "0000000a", "/r");
        agent(&agents, "0000000b", "/other");
        let broken = agent(&agents, "0000000c", "/r");
        fs::write(broken.path().join("spec.json"), "{").unwrap();
        fs::create_dir(agents.join("no-agent")).unwrap();
        let registry = Registry::of(&agents, "/r");
        let ids: Vec<String> = registry
            .ids()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(ids, ["0000000a", "0000000c"]);
        let views = registry.views().unwrap();
        assert!(views.iter().all(|view| view.state == Phase::Crashed));
        let told = views.iter().filter_map(|view| view.reason.as_deref());
        assert!(told.into_iter().any(|reason| reason.contains("spec.json")));
        assert_eq!(Registry::everywhere(&agents).ids().unwrap().len(), 3);
        assert!(registry.find("0000000b").is_err());
        assert_eq!(registry.find("0000000a").unwrap().as_str(), "0000000a");
    }

    #[test]
    fn an_id_is_given_once() {
        let root = tempfile::tempdir().unwrap();
        let agents = root.path().join("agents");
        agent(&agents, "0000000a", "/r");
        let again = AgentDirectory::create(&agents, &"0000000a".parse().unwrap());
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
