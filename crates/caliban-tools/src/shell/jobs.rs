//! Background jobs: commands that outlive their call but not their session, with their output
//! in private files.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use caliban_model::CancellationToken;
use caliban_process::{Ending, Finished, Sink, drive};
use caliban_sandbox::{Call, Success};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::interpreter::{Room, Shell, Started};
use super::job::{Job, JobProgress, JobStatus, Log, lock};

/// How many ended jobs are remembered; the oldest are forgotten with their output.
const MAX_ENDED: usize = 256;

/// How often it is looked at what a confined job leaves behind.
const LOOK: Duration = Duration::from_secs(2);

/// The most of its end that a look at a job's output returns.
const MAX_TAIL: usize = 64 * 1024;

/// A job in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedJob {
    pub id: String,
    pub command: String,
    pub age: Duration,
    /// Nothing while it runs.
    pub end: Option<JobEnd>,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    Exited(i32),
    /// By a signal, by its time limit, or because somebody wanted it.
    Killed,
}

/// The bounds of background jobs.
#[derive(Debug, Clone)]
pub struct JobLimits {
    /// How many may run at the same time.
    pub running: usize,
    /// How much output of each is kept on disk; the rest is read and dropped.
    pub output_bytes: u64,
    /// How long each may run.
    pub lifetime: Duration,
}

impl Default for JobLimits {
    fn default() -> Self {
        Self {
            running: 32,
            output_bytes: 5 * 1024 * 1024 * 1024,
            lifetime: Duration::from_hours(12),
        }
    }
}

/// The background jobs of a session. Dropping it ends them all and removes their output;
/// [`shutdown`](Self::shutdown) does the same and waits for it.
#[derive(Debug)]
pub struct Jobs {
    shell: Arc<Shell>,
    parent: PathBuf,
    limits: JobLimits,
    state: Mutex<State>,
    /// Told when commands that are waited for are to go on as jobs.
    background: Notify,
    /// Sub-agents that can be moved there, with what they run.
    movable: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// Made with the first job, so that a session without jobs leaves no trace.
    directory: Option<TempDir>,
    jobs: Vec<Arc<Job>>,
    started: u64,
    closed: bool,
}

/// Why a job was not started.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error("{0} background jobs are running, which is the limit; end one with `KillShell` first")]
    TooMany(usize),
    #[error("the session is ending; no more jobs can be started")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A sub-agent that can be moved to the background.
#[derive(Debug)]
pub(crate) struct Movable<'a>(&'a Jobs);

impl Movable<'_> {
    /// Waits until that is wanted.
    pub(crate) async fn wanted_in_background(&self) {
        self.0.background.notified().await;
    }
}

impl Drop for Movable<'_> {
    fn drop(&mut self) {
        self.0.movable.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Jobs {
    /// The shell that jobs run in.
    pub fn shell(&self) -> &Arc<Shell> {
        &self.shell
    }

    /// Jobs run in `shell`, with their output in a private directory made beneath `parent`.
    pub fn new(shell: Arc<Shell>, parent: PathBuf, limits: JobLimits) -> Self {
        Self {
            shell,
            parent,
            limits,
            state: Mutex::default(),
            background: Notify::new(),
            movable: AtomicUsize::new(0),
        }
    }

    /// Starts a command; returns the id of the job. `limit` shortens its life.
    pub(super) fn start(
        &self,
        command: &str,
        directory: &Path,
        limit: Option<Duration>,
        room: Room,
        trace: Option<&str>,
    ) -> Result<Arc<str>, StartError> {
        let mut state = self.state();
        if state.closed {
            return Err(StartError::Closed);
        }
        let running = state.jobs.iter().filter(|job| job.is_running()).count();
        if running >= self.limits.running {
            return Err(StartError::TooMany(running));
        }
        let started = || self.shell.start(command, directory, room, trace);
        let lifetime = limit.map_or(self.limits.lifetime, |limit| {
            limit.min(self.limits.lifetime)
        });
        self.add(&mut state, command, lifetime, Vec::new(), started)
    }

    /// Whether a command that runs may become a job.
    pub(super) fn has_room(&self) -> bool {
        let state = self.state();
        let running = state.jobs.iter().filter(|job| job.is_running()).count();
        !state.closed && running < self.limits.running
    }

    /// Makes a job of a command that runs already and has said so much.
    pub(super) fn adopt(
        &self,
        command: &str,
        started: Started,
        said: Vec<u8>,
    ) -> Result<Arc<str>, StartError> {
        let mut state = self.state();
        let lifetime = self.limits.lifetime;
        self.add(&mut state, command, lifetime, said, || Ok(started))
    }

    /// Commands that are waited for are not waited for any more: they go on as jobs.
    pub fn send_to_background(&self) {
        self.background.notify_waiters();
    }

    /// Waits until that is wanted of a command. While there are sub-agents to move it is them that
    /// are meant, and what they run ends here.
    pub(super) async fn wanted_in_background(&self) {
        loop {
            self.background.notified().await;
            if self.movable.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    }

    /// A sub-agent can be moved there from now on, for as long as what is returned lives.
    pub(crate) fn movable(&self) -> Movable<'_> {
        self.movable.fetch_add(1, Ordering::Relaxed);
        Movable(self)
    }

    fn add(
        &self,
        state: &mut State,
        command: &str,
        lifetime: Duration,
        said: Vec<u8>,
        started: impl FnOnce() -> io::Result<Started>,
    ) -> Result<Arc<str>, StartError> {
        let id: Arc<str> = format!("bash_{}", state.started + 1).into();
        let path = state.directory(&self.parent)?.join(&*id);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let Started {
            process,
            output,
            call,
        } = started()?;
        state.started += 1;

        let progress = Arc::new(Mutex::new(JobProgress::new()));
        let mut log = Log {
            file: tokio::fs::File::from_std(file),
            limit: self.limits.output_bytes,
            progress: Arc::clone(&progress),
        };
        let cancel = CancellationToken::new();
        let ended = CancellationToken::new();
        let task = tokio::spawn({
            let output_at = path.clone();
            let cancel = cancel.clone();
            let ended = ended.clone().drop_guard();
            async move {
                log.take(&said).await;
                let driving = drive(process, output, lifetime, &cancel, &mut log);
                let (finished, lines) = attended(driving, call, &output_at).await;
                for line in lines {
                    log.take(format!("[{line}]\n").as_bytes()).await;
                }
                lock(&log.progress).finish(finished);
                drop(ended);
            }
        });
        state.jobs.push(Arc::new(Job {
            id: Arc::clone(&id),
            command: command.to_owned(),
            started: Instant::now(),
            path,
            progress,
            cancel,
            ended,
            task: task.abort_handle(),
            offset: tokio::sync::Mutex::new(0),
        }));
        state.forget_oldest();
        Ok(id)
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Job>> {
        self.state()
            .jobs
            .iter()
            .find(|job| &*job.id == id)
            .map(Arc::clone)
    }

    /// The ids of all jobs that are remembered, oldest first.
    pub(super) fn ids(&self) -> Vec<Arc<str>> {
        let state = self.state();
        state.jobs.iter().map(|job| Arc::clone(&job.id)).collect()
    }

    /// All jobs that are remembered, oldest first.
    pub fn listed(&self) -> Vec<ListedJob> {
        let state = self.state();
        let jobs = state.jobs.iter().map(|job| ListedJob {
            id: job.id.to_string(),
            command: job.command.clone(),
            age: job.age(),
            end: match job.progress().status {
                JobStatus::Running => None,
                JobStatus::Ended(finished) => Some(match finished.ending {
                    Ending::Exited(code) => JobEnd::Exited(code),
                    Ending::Signalled(_) | Ending::TimedOut | Ending::Cancelled => JobEnd::Killed,
                }),
                JobStatus::Lost(_) => Some(JobEnd::Killed),
            },
        });
        jobs.collect()
    }

    /// The end of what a job has written; who reads on by `BashOutput` misses nothing of it.
    pub fn tail(&self, id: &str) -> Option<String> {
        let job = self.find(id)?;
        end_of(&job.path).ok()
    }

    /// Asks a job to end; whether there is one.
    pub fn end(&self, id: &str) -> bool {
        let job = self.find(id);
        if let Some(job) = &job {
            job.cancel.cancel();
        }
        job.is_some()
    }

    /// Ends all jobs, waits for their end and removes their output. No job can be started after.
    pub async fn shutdown(&self) {
        let (jobs, directory) = {
            let mut state = self.state();
            state.closed = true;
            (std::mem::take(&mut state.jobs), state.directory.take())
        };
        for job in &jobs {
            job.cancel.cancel();
        }
        for job in &jobs {
            job.ended.cancelled().await;
        }
        // Output may be large, and removing it slow. That it cannot be removed is for whoever
        // cleans the parent directory.
        let _ = tokio::task::spawn_blocking(|| drop(directory)).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Waits for the end of a job, looking now and then at what it leaves behind; what there is to say
/// about that.
async fn attended(
    driving: impl Future<Output = io::Result<Finished>>,
    call: Option<Call>,
    output_at: &Path,
) -> (io::Result<Finished>, Vec<String>) {
    let Some(mut call) = call else {
        return (driving.await, Vec::new());
    };
    let mut driving = std::pin::pin!(driving);
    let mut lines = Vec::new();
    let finished = loop {
        tokio::select! {
            finished = &mut driving => break finished,
            () = tokio::time::sleep(LOOK) => lines.extend(call.look()),
        }
    };
    let success = match &finished {
        Ok(finished) if finished.ending == Ending::Exited(0) => Success::Yes,
        Ok(_) | Err(_) => Success::No,
    };
    // What cannot be read is not explained.
    let said = end_of(output_at).unwrap_or_default();
    lines.extend(call.finish(success, &said));
    (finished, lines)
}

/// The end of a file that may be growing.
fn end_of(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let written = file.metadata()?.len();
    let length = usize::try_from(written).map_or(MAX_TAIL, |written| written.min(MAX_TAIL));
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, written - length as u64)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for job in &self.state().jobs {
            job.task.abort();
        }
    }
}

impl State {
    fn directory(&mut self, parent: &Path) -> io::Result<&Path> {
        let directory = match self.directory.take() {
            Some(directory) => directory,
            None => private_directory(parent)?,
        };
        Ok(self.directory.insert(directory).path())
    }

    fn forget_oldest(&mut self) {
        let ended = self.jobs.iter().filter(|job| !job.is_running()).count();
        let mut excess = ended.saturating_sub(MAX_ENDED);
        self.jobs.retain(|job| {
            let forgotten = excess > 0 && !job.is_running();
            if forgotten {
                excess -= 1;
                // The directory goes with the session anyway.
                let _ = std::fs::remove_file(&job.path);
            }
            !forgotten
        });
    }
}

fn private_directory(parent: &Path) -> io::Result<TempDir> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(parent)?;
    tempfile::Builder::new()
        .prefix("jobs-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::job::{Boundary, MAX_READING};
    use caliban_process::{Ending, Guard};

    fn jobs(parent: &Path, limits: JobLimits) -> Jobs {
        let path = ("PATH".into(), std::env::var_os("PATH").unwrap());
        let shell = Shell::new(Guard::None, vec![path]);
        Jobs::new(Arc::new(shell), parent.to_owned(), limits)
    }

    async fn finished(jobs: &Jobs, command: &str, parent: &Path) -> Arc<Job> {
        let id = jobs
            .start(command, parent, None, Room::Usual, None)
            .unwrap();
        let job = jobs.find(&id).unwrap();
        job.ended.cancelled().await;
        job
    }

    fn ending(job: &Job) -> Ending {
        match job.progress().status {
            JobStatus::Ended(finished) => finished.ending,
            status => panic!("{status:?}"),
        }
    }

    #[tokio::test]
    async fn output_is_private_and_goes_with_the_session() {
        let parent = tempfile::tempdir().unwrap();
        let jobs = jobs(&parent.path().join("new"), JobLimits::default());
        let job = finished(&jobs, "echo hi", parent.path()).await;
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&job.path), 0o600);
        let directory = job.path.parent().unwrap().to_owned();
        assert_eq!(mode(&directory), 0o700);
        jobs.shutdown().await;
        assert!(!directory.exists());
        let refused = jobs.start("true", parent.path(), None, Room::Usual, None);
        assert!(matches!(refused, Err(StartError::Closed)));
    }

    #[tokio::test]
    async fn output_beyond_the_limit_is_counted_only() {
        let parent = tempfile::tempdir().unwrap();
        let limits = JobLimits {
            output_bytes: 1000,
            ..JobLimits::default()
        };
        let jobs = jobs(parent.path(), limits);
        let job = finished(&jobs, "head -c 300000 /dev/zero", parent.path()).await;
        let progress = job.progress();
        assert_eq!((progress.written, progress.dropped), (1000, 299_000));
        assert_eq!(job.path.metadata().unwrap().len(), 1000);
        assert_eq!(ending(&job), Ending::Exited(0));
    }

    #[tokio::test]
    async fn long_output_is_read_in_parts_without_loss() {
        let parent = tempfile::tempdir().unwrap();
        let jobs = jobs(parent.path(), JobLimits::default());
        let job = finished(&jobs, "seq 1 100000", parent.path()).await;
        let mut all = Vec::new();
        loop {
            let reading = job.read(Boundary::Character).await.unwrap();
            assert!(reading.bytes.len() <= MAX_READING);
            assert!(reading.bytes.ends_with(b"\n"));
            all.extend(reading.bytes);
            assert_eq!(all.len() as u64 + reading.left, reading.progress.written);
            if reading.left == 0 {
                break;
            }
        }
        let expected: String = (1..=100_000)
            .flat_map(|number| [number.to_string(), "\n".to_owned()])
            .collect();
        assert!(all == expected.as_bytes());
        let nothing = job.read(Boundary::Character).await.unwrap();
        assert!(nothing.bytes.is_empty());
    }

    #[tokio::test]
    async fn running_jobs_are_limited_and_ended_ones_are_not() {
        let parent = tempfile::tempdir().unwrap();
        let limits = JobLimits {
            running: 1,
            ..JobLimits::default()
        };
        let jobs = jobs(parent.path(), limits);
        finished(&jobs, "true", parent.path()).await;
        let id = jobs
            .start("sleep 100", parent.path(), None, Room::Usual, None)
            .unwrap();
        let refused = jobs.start("true", parent.path(), None, Room::Usual, None);
        assert!(matches!(refused, Err(StartError::TooMany(1))));
        let job = jobs.find(&id).unwrap();
        job.kill().await;
        assert_eq!(ending(&job), Ending::Cancelled);
        finished(&jobs, "true", parent.path()).await;
        assert_eq!(jobs.ids().join(" "), "bash_1 bash_2 bash_3");
    }

    #[tokio::test]
    async fn a_lifetime_ends_a_job() {
        let parent = tempfile::tempdir().unwrap();
        let jobs = jobs(parent.path(), JobLimits::default());
        let limit = Some(Duration::from_millis(100));
        let id = jobs
            .start("sleep 100", parent.path(), limit, Room::Usual, None)
            .unwrap();
        let job = jobs.find(&id).unwrap();
        job.ended.cancelled().await;
        assert_eq!(ending(&job), Ending::TimedOut);
    }

    #[tokio::test]
    async fn dropping_the_jobs_ends_them() {
        let parent = tempfile::tempdir().unwrap();
        let jobs = jobs(parent.path(), JobLimits::default());
        let id = jobs
            .start("sleep 100", parent.path(), None, Room::Usual, None)
            .unwrap();
        let job = jobs.find(&id).unwrap();
        drop(jobs);
        job.ended.cancelled().await;
        assert!(!job.path.exists());
    }

    #[tokio::test]
    async fn the_oldest_ended_jobs_are_forgotten() {
        let mut state = State::default();
        let parent = tempfile::tempdir().unwrap();
        let jobs = jobs(parent.path(), JobLimits::default());
        let job = finished(&jobs, "true", parent.path()).await;
        state.jobs = vec![job; MAX_ENDED + 2];
        state.forget_oldest();
        assert_eq!(state.jobs.len(), MAX_ENDED);
        assert!(!state.jobs[0].path.exists());
    }
}
