//! What everybody who speaks with the client shares: its line, the frames of the session, its
//! permission mode, and the run that can be stopped.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use caliban_agent::{Event, Outcome, RunTotals, ToolCall};
use caliban_harness::LiveMode;
use caliban_protocol::claude::{
    Audience, Behavior, Emitted, Encoder, PermissionUpdate, RuleRef, Turn,
};
use caliban_session::{Command, EventBatch, RuleChange, SessionEvent, SessionHandle, What};
use caliban_settings::RuleAction;
use serde_json::Value;

use super::channel::Channel;
use super::grants::{Kept, Places, keep};
use super::mode::Mode;
use super::transcript::Transcript;
use super::wire::Wire;
use crate::console::note;

/// Whether everything may be allowed without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bypass {
    /// The program was started with the flag for it.
    Launched,
    NotLaunched,
}

/// Facts that do not change while the session lives.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) session_id: String,
    pub(crate) cwd: PathBuf,
    pub(crate) transcript_path: Option<PathBuf>,
    pub(crate) bypass: Bypass,
    /// Where consents that outlast the session are kept.
    pub(crate) places: Places,
}

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) wire: Wire,
    pub(crate) channel: Channel,
    pub(crate) facts: Facts,
    encoder: Mutex<Encoder>,
    transcript: Mutex<Option<Transcript>>,
    /// The mode that was set; without one it is what the settings say.
    mode: Mutex<Option<Mode>>,
    /// The session, once there is one.
    session: OnceLock<(SessionHandle, LiveMode)>,
    /// What was wanted of it before.
    early: Mutex<Vec<Command>>,
    /// How full the model's window is.
    tokens: AtomicU64,
    /// A consent has changed a settings file, and nobody has noticed yet.
    has_kept: AtomicBool,
}

impl Host {
    pub(crate) fn new(
        wire: Wire,
        facts: Facts,
        encoder: Encoder,
        transcript: Option<Transcript>,
        mode: Option<Mode>,
    ) -> Arc<Self> {
        Arc::new(Self {
            channel: Channel::new(wire.clone()),
            wire,
            facts,
            encoder: Mutex::new(encoder),
            transcript: Mutex::new(transcript),
            mode: Mutex::new(mode),
            session: OnceLock::new(),
            early: Mutex::default(),
            tokens: AtomicU64::new(0),
            has_kept: AtomicBool::new(false),
        })
    }

    /// There is a session now; it hears what was wanted of it before.
    pub(crate) async fn reach(&self, handle: SessionHandle, mode: LiveMode) {
        self.channel.order().follow(handle.clone());
        // There is one session, so nothing is replaced.
        let _ = self.session.set((handle, mode));
        let set = *lock(&self.mode);
        if let Some(mode) = set {
            self.send(Command::SetMode { mode: mode.ours() }).await;
        }
        let early = std::mem::take(&mut *lock(&self.early));
        for command in early {
            self.send(command).await;
        }
    }

    /// Wants something of the session, now or as soon as there is one.
    pub(crate) async fn send(&self, command: Command) {
        match self.session.get() {
            // It may have ended by itself.
            Some((handle, _)) => drop(handle.send(command).await),
            None => lock(&self.early).push(command),
        }
    }

    pub(crate) fn begin(&self, turn: Turn) {
        let frames = lock(&self.encoder).begin(turn);
        self.emit(frames);
    }

    pub(crate) fn show(&self, event: &Event) {
        if self.is_own_change(event) {
            return;
        }
        if let Event::AssistantMessage { usage, .. } = event {
            let tokens = usage.total_input() + usage.output;
            self.tokens.store(tokens, Ordering::Relaxed);
        }
        let frames = lock(&self.encoder).frames(event);
        self.emit(frames);
    }

    /// Whether it tells the client's user that the rules changed which that user just changed.
    fn is_own_change(&self, event: &Event) -> bool {
        let is_about_rules = matches!(event, Event::Notice { subtype, message }
            if &**subtype == "config_change" && message.ends_with(": `permissions.rules` counts from now on"));
        is_about_rules && self.has_kept.swap(false, Ordering::Relaxed)
    }

    /// The client is asked something.
    pub(crate) fn asked(&self) {
        let frames = lock(&self.encoder).asked();
        self.emit(frames);
    }

    /// It need not answer any more.
    pub(crate) fn answered(&self) {
        let frames = lock(&self.encoder).answered();
        self.emit(frames);
    }

    /// The turn ends with a call that is to be decided about later.
    pub(crate) fn defer(&self, call: &ToolCall) {
        lock(&self.encoder).defer(call);
    }

    /// A turn is over; returns its result.
    pub(crate) fn finish(&self, outcome: Outcome, totals: Box<RunTotals>) -> Option<Value> {
        let event = Event::Finished { outcome, totals };
        let frames = lock(&self.encoder).frames(&event);
        let is_result = |emitted: &&Emitted| emitted.frame["type"] == "result";
        let result = frames.iter().find(is_result);
        let result = result.map(|emitted| emitted.frame.clone());
        self.emit(frames);
        result
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }

    /// Stops what is being worked on, if there is anything, and returns when that was heard: the
    /// work that called this goes no further.
    pub(crate) async fn interrupt(&self) {
        let Some((handle, _)) = self.session.get() else {
            return;
        };
        let mut events = handle.subscribe(handle.next_seq());
        // It may have ended by itself.
        let _ = handle.send(Command::Interrupt).await;
        let is_heard = |event: &Arc<SessionEvent>| matches!(event.what, What::Interrupted { .. });
        while let Some(batch) = events.next().await {
            match batch {
                EventBatch::Events(events) if events.iter().any(is_heard) => return,
                EventBatch::Events(_) => {}
                // It may be among them, and nothing is lost by not waiting.
                EventBatch::Missed(_) => return,
            }
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        let set = *lock(&self.mode);
        match (set, self.session.get()) {
            (Some(mode), Some((_, live))) => mode.shown(live.regime()),
            (Some(mode), None) => mode,
            (None, Some((_, live))) => Mode::of(live.regime()),
            (None, None) => Mode::Default,
        }
    }

    /// Judges by another mode from the next call on, and says so.
    pub(crate) async fn set_mode(&self, mode: Mode) {
        *lock(&self.mode) = Some(mode);
        if self.session.get().is_some() {
            self.send(Command::SetMode { mode: mode.ours() }).await;
        }
        let frame = lock(&self.encoder).mode_changed(mode.as_str());
        self.emit(vec![frame]);
    }

    pub(crate) fn say_locally(&self, text: &str) {
        let frame = lock(&self.encoder).local_command(text);
        self.emit(vec![frame]);
    }

    async fn rule(&self, change: RuleChange) {
        self.send(Command::Rule(change)).await;
    }

    async fn add(&self, rules: &[RuleRef], behavior: Behavior) {
        for rule in rules {
            let (pattern, action) = (rule.pattern(), action(behavior));
            self.rule(RuleChange::Add { pattern, action }).await;
        }
    }

    /// Lets calls that match run unasked for the rest of the session.
    pub(crate) async fn allow(&self, patterns: Vec<String>) {
        for pattern in patterns {
            let action = RuleAction::Allow;
            self.rule(RuleChange::Add { pattern, action }).await;
        }
    }

    /// Applies what came along with a consent: to the session, and to the files that it names.
    pub(crate) async fn apply(&self, updates: &[PermissionUpdate]) {
        for update in updates {
            match keep(update, &self.facts.places) {
                Ok(Kept::InFile) => self.has_kept.store(true, Ordering::Relaxed),
                Ok(Kept::Nowhere) => {}
                Err(error) => note(&format!(
                    "warning: a rule holds only for this session: {error}"
                )),
            }
            match update {
                PermissionUpdate::AddRules {
                    rules, behavior, ..
                } => self.add(rules, *behavior).await,
                PermissionUpdate::ReplaceRules {
                    rules, behavior, ..
                } => {
                    let action = action(*behavior);
                    self.rule(RuleChange::Clear { action }).await;
                    self.add(rules, *behavior).await;
                }
                PermissionUpdate::RemoveRules {
                    rules, behavior, ..
                } => {
                    for rule in rules {
                        let (pattern, action) = (rule.pattern(), action(*behavior));
                        self.rule(RuleChange::Remove { pattern, action }).await;
                    }
                }
                PermissionUpdate::SetMode { mode, .. } => match mode.parse() {
                    Ok(mode) if self.may_enter(mode) => self.set_mode(mode).await,
                    Ok(_) | Err(_) => note(&format!("warning: the mode `{mode}` is not entered")),
                },
                PermissionUpdate::AddDirectories { directories, .. } => {
                    let places = directories.iter();
                    let patterns = places.map(|it| readable(&self.facts.cwd.join(it)));
                    self.allow(patterns.collect()).await;
                }
                PermissionUpdate::RemoveDirectories { directories, .. } => {
                    for directory in directories {
                        let pattern = readable(&self.facts.cwd.join(directory));
                        let action = RuleAction::Allow;
                        self.rule(RuleChange::Remove { pattern, action }).await;
                    }
                }
            }
        }
    }

    /// Whether a client may choose this mode.
    pub(crate) fn may_enter(&self, mode: Mode) -> bool {
        mode != Mode::BypassPermissions || self.facts.bypass == Bypass::Launched
    }

    fn emit(&self, frames: Vec<Emitted>) {
        for Emitted { frame, to } in frames {
            if matches!(to, Audience::Both | Audience::Transcript)
                && let Some(transcript) = &mut *lock(&self.transcript)
            {
                transcript.append(&frame);
            }
            if matches!(to, Audience::Both | Audience::Client) {
                self.wire.frame(frame);
            }
        }
    }
}

/// The rule by which what lies in a directory may be read.
pub(crate) fn readable(directory: &Path) -> String {
    format!("Read(/{}/**)", directory.display())
}

fn action(behavior: Behavior) -> RuleAction {
    match behavior {
        Behavior::Allow => RuleAction::Allow,
        Behavior::Deny => RuleAction::Deny,
        Behavior::Ask => RuleAction::Ask,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
