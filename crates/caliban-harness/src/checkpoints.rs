//! Keeps what the prompts of a session change in the workspace, so that it can be taken back.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use caliban_agent::{Effect, Event, Hearing, ToolCall, ToolOutput, TypedTool, Witness, Workspace};
use caliban_checkpoints::{
    Before, Beginning, Environment, Error, InUse, Kind, Limits, Mark, Prompt, RealDisk, RealTree,
    ScanLimits, Scanner, Session, Stamp, Store, Tree as _, git_head,
};
use caliban_model::{BuiltInTool, file_path};
use caliban_permissions::shell::only_looks;
use caliban_session::PromptId;
use caliban_sessions::SessionName;
use caliban_settings::variables::names;
use caliban_tools::{Bash, Jobs};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::configuration::Configuration;
use crate::error::{LaunchError, Problem};
use crate::notice_sink::NoticeSink;
use crate::rewinding::Rewinder;

/// The variables that git needs to find itself and the user's settings.
const FOR_GIT: [&str; 3] = ["PATH", "HOME", "XDG_CONFIG_HOME"];
/// How long a look ahead counts. What changes between it and the call is taken for the call's.
const FRESH: Duration = Duration::from_secs(1);
/// How many paths are looked at because those who hear of an end may change them.
const TIDIED: usize = 256;
/// What is told of checkpoints that cannot be made.
const NOTICE: &str = "checkpoint";

/// Where the checkpoints of a session lie.
#[derive(Debug, Clone)]
pub struct CheckpointPlace {
    store: Store,
    name: String,
    session: Session,
    environment: Environment,
}

/// The checkpoints of the workspace; nothing where they are switched off.
pub fn checkpoint_store(configuration: &Configuration) -> Result<Option<Store>, LaunchError> {
    let environment = configuration.environment();
    if environment.is_on(names::CALIBAN_CHECKPOINT_DISABLED) {
        return Ok(None);
    }
    let usual = Limits::default();
    let limits = Limits {
        file: environment
            .number(names::CALIBAN_CHECKPOINT_MAX_FILE_BYTES)?
            .unwrap_or(usual.file),
        project: environment
            .number(names::CALIBAN_CHECKPOINT_MAX_BYTES)?
            .unwrap_or(usual.project),
    };
    let directory = configuration
        .locations
        .checkpoints(&configuration.workspace);
    Ok(Some(Store::new(Arc::new(RealDisk), directory, limits)))
}

/// Where copies of files are kept, of this workspace and of others. A workspace that lies among them
/// is none.
pub(crate) fn kept_files(configuration: &Configuration) -> PathBuf {
    let locations = &configuration.locations;
    let root = locations.checkpoints_root();
    let real = root.canonicalize().unwrap_or_else(|_| root.clone());
    if configuration.workspace.starts_with(&real) {
        locations.project_state(&configuration.workspace)
    } else {
        root
    }
}

/// Who takes back what the prompts of a session did; nobody where checkpoints are switched off.
pub fn rewinder(
    configuration: &Configuration,
    name: &SessionName,
) -> Result<Option<Rewinder>, LaunchError> {
    let place = CheckpointPlace::wanted(name.as_str(), configuration)?;
    Ok(place.map(|place| place.rewinder(configuration.workspace.clone())))
}

/// Removes the checkpoints of sessions that are no more, in whichever workspace they were made.
pub fn forget_checkpoints(
    configuration: &Configuration,
    sessions: &[SessionName],
) -> Result<(), LaunchError> {
    if sessions.is_empty() || checkpoint_store(configuration)?.is_none() {
        return Ok(());
    }
    let projects = std::fs::read_dir(configuration.locations.checkpoints_root());
    for project in projects.into_iter().flatten().flatten() {
        let directory = project.path().join("checkpoints");
        let store = Store::new(Arc::new(RealDisk), directory.clone(), Limits::default());
        for session in sessions {
            if directory.join(session.as_str()).is_dir() {
                // What cannot be removed now is removed by nobody else, and harms nobody.
                let _ = store.remove_session(session.as_str());
            }
        }
    }
    Ok(())
}

impl CheckpointPlace {
    /// Where a session of this name keeps its checkpoints; nothing where they are switched off.
    pub(crate) fn wanted(
        name: &str,
        configuration: &Configuration,
    ) -> Result<Option<Self>, LaunchError> {
        let variables = &configuration.process.variables;
        let for_git = variables
            .iter()
            .filter(|(variable, _): &&(OsString, OsString)| {
                FOR_GIT.iter().any(|wanted| variable == *wanted)
            });
        let environment = Environment(for_git.cloned().collect());
        let Some(store) = checkpoint_store(configuration)? else {
            return Ok(None);
        };
        let session = store.session(name).map_err(Problem::from_error);
        Ok(Some(Self {
            session: session.map_err(LaunchError::Configuration)?,
            store,
            name: name.to_owned(),
            environment,
        }))
    }

    pub(crate) fn rewinder(&self, root: PathBuf) -> Rewinder {
        Rewinder::new(self.session.clone(), root).with_git(self.environment.clone())
    }
}

/// Notes what calls change, prompt by prompt.
#[derive(Debug, Clone)]
pub(crate) struct Checkpoints(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    name: String,
    session: Session,
    workspace: Workspace,
    tree: Arc<RealTree>,
    notice_sink: NoticeSink,
    jobs: Option<Arc<Jobs>>,
    state: Mutex<State>,
    /// Looks at the workspace that nobody waits for yet.
    looking: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct State {
    current: Option<Current>,
    scanner: Scanner,
    /// Calls that run, and what they may change.
    running: HashMap<Arc<str>, Reach>,
    /// How calls left their files of which not everybody has been told.
    left: HashMap<Arc<str>, Option<Stamp>>,
    background: Background,
    /// Bytes that all checkpoints keep; nothing where that was not looked up.
    kept: Option<u64>,
    /// What was as calls left it when those who hear of an end began to be asked.
    settled: Vec<PathBuf>,
    /// When the workspace was looked at for a call that is about to run.
    looked: Option<Instant>,
}

/// The prompt that is worked on.
#[derive(Debug)]
struct Current {
    kind: Kind,
    text: String,
    at: Timestamp,
    began: Option<Mark>,
    id: Option<PromptId>,
    /// Where the repository stood.
    git_head: Option<String>,
    /// Begun when something is about to change.
    checkpoint: Option<Prompt>,
}

/// What a call may change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reach {
    File(PathBuf),
    Anything,
}

/// Whether commands have gone on after their calls ended, since the workspace was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Background {
    Idle,
    Busy,
}

impl Checkpoints {
    pub(crate) fn new(
        place: CheckpointPlace,
        workspace: &Workspace,
        notice_sink: &NoticeSink,
        jobs: Option<Arc<Jobs>>,
    ) -> Self {
        let session = place.session;
        let root = workspace.root().to_owned();
        let tree = Arc::new(RealTree::new(root.clone()));
        let scanner = Scanner::new(
            root,
            Arc::clone(&tree) as _,
            session.clone(),
            ScanLimits::default(),
            Some(place.environment),
        );
        Self(Arc::new(Inner {
            store: place.store,
            name: place.name,
            session,
            workspace: workspace.clone(),
            tree,
            notice_sink: notice_sink.clone(),
            jobs,
            state: Mutex::new(State {
                current: None,
                scanner,
                running: HashMap::new(),
                left: HashMap::new(),
                background: Background::Idle,
                kept: None,
                settled: Vec::new(),
                looked: None,
            }),
            looking: Mutex::default(),
        }))
    }

    /// The session that they are kept for.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// A prompt is about to be worked on.
    pub(crate) fn begin(
        &self,
        kind: Kind,
        text: String,
        began: Option<Mark>,
        id: Option<PromptId>,
    ) {
        let current = Current {
            kind,
            text,
            at: Timestamp::now(),
            began,
            id,
            git_head: git_head(self.0.workspace.root()),
            checkpoint: None,
        };
        self.0.lock().current = Some(current);
    }

    /// A call has been announced that may run soon: the look that it would wait for begins.
    pub(crate) fn announced(&self, tool: &str, input: &Value) {
        if tool == Bash::NAME && !is_a_look(input) {
            self.apart(Inner::look_ahead);
        }
    }

    /// The prompt is over.
    pub(crate) async fn end(&self, ended: Option<Mark>) {
        self.looked().await;
        self.blocking(move |inner| inner.end(ended)).await;
    }

    /// Who takes back what prompts did.
    pub(crate) fn rewinder(&self) -> Rewinder {
        let root = self.0.workspace.root().to_owned();
        Rewinder::new(self.0.session.clone(), root)
    }

    /// What commands in the background did until now belongs to the last prompt.
    pub(crate) async fn settle(&self) {
        self.looked().await;
        self.blocking(Inner::settle).await;
    }

    /// What changed until now was not changed by commands.
    pub(crate) async fn look_again(&self) {
        self.looked().await;
        self.blocking(|inner| inner.lock().scanner.look_again())
            .await;
    }

    /// The session is over, and so is whatever it ran.
    pub(crate) async fn close(&self) {
        self.settle().await;
        self.blocking(|inner| inner.lock().scanner.close()).await;
    }

    /// Does what waits for the disk elsewhere, and says what goes wrong there.
    async fn blocking(&self, work: impl FnOnce(&Inner) -> Result<(), Error> + Send + 'static) {
        // If that place is gone, the program is ending.
        let _ = self.elsewhere(work).await;
    }

    /// The same while nobody waits; whoever comes next does.
    fn apart(&self, work: impl FnOnce(&Inner) -> Result<(), Error> + Send + 'static) {
        let done = self.elsewhere(work);
        self.0.looking().push(done);
    }

    /// Waits for what goes on apart.
    async fn looked(&self) {
        let all = std::mem::take(&mut *self.0.looking());
        for done in all {
            let _ = done.await;
        }
    }

    fn elsewhere(
        &self,
        work: impl FnOnce(&Inner) -> Result<(), Error> + Send + 'static,
    ) -> JoinHandle<()> {
        let inner = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = work(&inner) {
                inner.say(format!("a checkpoint is not complete: {error}"));
            }
        })
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn looking(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.looking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the workspace for a call that is about to run, if nothing runs beside it.
    fn look_ahead(&self) -> Result<(), Error> {
        let mut state = self.lock();
        let is_quiet = state.background == Background::Idle && state.running.is_empty();
        if is_quiet && state.current.is_some() {
            state.scanner.before()?;
            state.looked = Some(Instant::now());
        }
        Ok(())
    }

    fn say(&self, message: String) {
        self.notice_sink.say(Event::Notice {
            subtype: NOTICE.into(),
            message,
        });
    }

    fn runs_in_background(&self) -> bool {
        let jobs = self.jobs.as_ref().map(|jobs| jobs.listed());
        jobs.iter().flatten().any(|job| job.end.is_none())
    }

    /// Looks for what commands changed. Where none goes on, nothing changes by them from here on.
    fn look(&self, state: &mut State, prompt: &mut Prompt, tool: &str) -> Result<(), Error> {
        let goes_on = self.runs_in_background();
        state.scanner.after(prompt, tool)?;
        for path in prompt.outside() {
            prompt.after(&*self.tree, &path)?;
        }
        state.background = if goes_on {
            Background::Busy
        } else {
            Background::Idle
        };
        Ok(())
    }

    fn settle(&self) -> Result<(), Error> {
        let mut state = self.lock();
        if state.background == Background::Idle || state.current.is_some() {
            return Ok(());
        }
        let Some(mut prompt) = self.session.carry_on_last()? else {
            return Ok(());
        };
        self.look(&mut state, &mut prompt, Bash::NAME)?;
        state.at_rest()?;
        let ended = prompt.ended();
        prompt.finish(&*self.tree, ended).map(|_| ())
    }

    /// What a call may change; nothing where it only reads.
    fn reach(&self, call: &ToolCall) -> Option<Reach> {
        if BuiltInTool::named(&call.name).is_some_and(BuiltInTool::edits) {
            let resolved = self
                .workspace
                .resolve_freely(file_path(&call.input)?)
                .ok()?;
            let root = self.workspace.root();
            let inside = resolved.real.strip_prefix(root).map(Path::to_owned);
            return Some(Reach::File(inside.unwrap_or(resolved.real)));
        }
        if &*call.name == Bash::NAME && is_a_look(&call.input) {
            return None;
        }
        match call.effect {
            Effect::ReadOnly | Effect::Session | Effect::Delegates => None,
            Effect::Writes | Effect::Executes => Some(Reach::Anything),
        }
    }

    fn before(&self, call: &ToolCall) -> Result<(), Error> {
        let Some(reach) = self.reach(call) else {
            return Ok(());
        };
        let mut state = self.lock();
        let state = &mut *state;
        let Some(mut current) = state.current.take() else {
            // Nobody asked the model for this: it is the user's own doing.
            return Ok(());
        };
        let noted = self.note_before(state, &mut current, call, &reach);
        state.current = Some(current);
        noted?;
        state.running.insert(Arc::clone(&call.id), reach);
        Ok(())
    }

    fn note_before(
        &self,
        state: &mut State,
        current: &mut Current,
        call: &ToolCall,
        reach: &Reach,
    ) -> Result<(), Error> {
        let prompt = match current.checkpoint.take() {
            Some(prompt) => prompt,
            None => self.session.begin(current.beginning())?,
        };
        let prompt = current.checkpoint.insert(prompt);
        match reach {
            Reach::File(path) => prompt.before(&*self.tree, path, &call.name, Before::Unknown)?,
            Reach::Anything => {
                let is_alone = !state
                    .running
                    .values()
                    .any(|reach| *reach == Reach::Anything);
                let looked = state.looked.take();
                let is_fresh = looked.is_some_and(|at| at.elapsed() < FRESH);
                match (is_alone, state.background) {
                    (true, Background::Idle) if is_fresh => {}
                    (true, Background::Idle) => state.scanner.before()?,
                    // What others change meanwhile cannot be told from what these change.
                    (true, Background::Busy) => self.look(state, prompt, &call.name)?,
                    (false, _) => {}
                }
                state.scanner.begins(prompt, &call.name)?;
            }
        }
        Ok(())
    }

    /// A call has ended: what it left at its path is known, whatever happens next.
    fn ended(&self, id: &str) -> Result<(), Error> {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(Reach::File(path)) = state.running.get(id) else {
            return Ok(());
        };
        let current = state.current.as_mut();
        let Some(prompt) = current.and_then(|it| it.checkpoint.as_mut()) else {
            return Ok(());
        };
        prompt.after(&*self.tree, path)?;
        let stamp = self.tree.look(path).ok().flatten();
        state.left.insert(Arc::from(id), stamp);
        Ok(())
    }

    /// Everybody has been told of its end, and has done what they do then.
    fn over(&self, id: &str, tool: &str) -> Result<(), Error> {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(reach) = state.running.remove(id) else {
            return Ok(());
        };
        let Some(mut prompt) = state.current.as_mut().and_then(|it| it.checkpoint.take()) else {
            return Ok(());
        };
        let left = state.left.remove(id);
        let noted = match reach {
            Reach::File(path) => match left {
                Some(left) if self.tree.look(&path).ok() == Some(left) => Ok(()),
                Some(_) | None => prompt.after(&*self.tree, &path),
            },
            Reach::Anything => self.note_after(state, &mut prompt, tool),
        };
        if let Some(current) = &mut state.current {
            current.checkpoint = Some(prompt);
        }
        noted
    }

    fn note_after(&self, state: &mut State, prompt: &mut Prompt, tool: &str) -> Result<(), Error> {
        self.look(state, prompt, tool)?;
        state.at_rest()
    }

    /// Those who hear that the model has finished may tidy up what it wrote: what was as it left it
    /// stays its own.
    fn at_stop(&self, hearing: Hearing) -> Result<(), Error> {
        let mut state = self.lock();
        let state = &mut *state;
        let current = state.current.as_mut();
        let Some(prompt) = current.and_then(|it| it.checkpoint.as_mut()) else {
            return Ok(());
        };
        match hearing {
            Hearing::Begins => state.settled = prompt.settled(&*self.tree, TIDIED),
            Hearing::Over => {
                for path in std::mem::take(&mut state.settled) {
                    prompt.after(&*self.tree, &path)?;
                }
            }
        }
        Ok(())
    }

    fn end(&self, ended: Option<Mark>) -> Result<(), Error> {
        let mut state = self.lock();
        let state = &mut *state;
        state.running.clear();
        state.left.clear();
        let Some(mut current) = state.current.take() else {
            return Ok(());
        };
        let is_busy = state.background == Background::Busy;
        let mut prompt = match current.checkpoint.take() {
            Some(prompt) => prompt,
            None if is_busy => self.session.begin(current.beginning())?,
            None => return self.session.pass(current.beginning(), ended).map(|_| ()),
        };
        if is_busy {
            self.look(state, &mut prompt, Bash::NAME)?;
            state.at_rest()?;
        }
        let (from, added) = (prompt.index(), prompt.added());
        prompt.finish(&*self.tree, ended)?;
        let kept = state.kept.map(|kept| kept.saturating_add(added));
        state.kept = match kept {
            Some(kept) if self.store.has_room(kept) => Some(kept),
            Some(_) | None => {
                let session = &self.name;
                let room = self.store.make_room(Some(InUse { session, from }))?;
                Some(room.kept)
            }
        };
        Ok(())
    }
}

impl State {
    /// Where nothing runs that may change anything, what changes from here on is somebody else's.
    fn at_rest(&mut self) -> Result<(), Error> {
        let mut running = self.running.values();
        let is_quiet =
            self.background == Background::Idle && !running.any(|reach| *reach == Reach::Anything);
        if is_quiet {
            self.scanner.ends()
        } else {
            Ok(())
        }
    }
}

impl Current {
    fn beginning(&self) -> Beginning<'_> {
        Beginning {
            kind: self.kind,
            prompt: &self.text,
            at: self.at,
            began: self.began,
            id: self.id.as_deref(),
            git_head: self.git_head.as_deref(),
        }
    }
}

impl Witness for Checkpoints {
    /// What is done in a worktree is on its branch, and no file of this workspace.
    fn for_elsewhere(self: Arc<Self>) -> Option<Arc<dyn Witness>> {
        None
    }

    /// What a call may change is kept before it runs; it does not run otherwise.
    fn before_run<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Result<(), String>> {
        if self.0.reach(call).is_none() {
            return async { Ok(()) }.boxed();
        }
        let (inner, its) = (Arc::clone(&self.0), call.clone());
        async move {
            self.looked().await;
            let kept = tokio::task::spawn_blocking(move || inner.before(&its)).await;
            let told = |error: &dyn std::fmt::Display| {
                format!(
                    "{} did not run, because what it may change could not be kept: {error}; make \
                     room, or set `CALIBAN_CHECKPOINT_DISABLED` to do without",
                    call.name
                )
            };
            match kept {
                Ok(kept) => kept.map_err(|error| told(&error)),
                Err(error) => Err(told(&error)),
            }
        }
        .boxed()
    }

    fn after_end<'a>(&'a self, call: &'a ToolCall, _: &'a ToolOutput) -> BoxFuture<'a, ()> {
        match self.0.reach(call) {
            Some(Reach::File(_)) => {
                let id = Arc::clone(&call.id);
                self.blocking(move |inner| inner.ended(&id)).boxed()
            }
            // It is looked for when hooks have done theirs.
            Some(Reach::Anything) | None => async {}.boxed(),
        }
    }

    /// What hooks make of a change belongs to it.
    fn over<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ()> {
        if self.0.reach(call).is_none() {
            return async {}.boxed();
        }
        let (id, tool) = (Arc::clone(&call.id), Arc::clone(&call.name));
        if let Some(Reach::Anything) = self.0.reach(call) {
            // The model can think meanwhile.
            self.apart(move |inner| inner.over(&id, &tool));
            return async {}.boxed();
        }
        self.blocking(move |inner| inner.over(&id, &tool)).boxed()
    }

    fn at_stop(&self, hearing: Hearing) -> BoxFuture<'_, ()> {
        async move {
            self.looked().await;
            self.blocking(move |inner| inner.at_stop(hearing)).await;
        }
        .boxed()
    }
}

/// Whether a call of the shell provably changes nothing.
fn is_a_look(input: &Value) -> bool {
    let line = input.get("command").and_then(Value::as_str);
    line.is_some_and(only_looks)
}
