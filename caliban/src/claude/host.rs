//! What everybody who speaks with the client shares: its line, the frames of the session, its
//! permission mode, and the run that can be stopped.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use caliban_agent::Event;
use caliban_harness::LiveRules;
use caliban_model::CancellationToken;
use caliban_protocol::claude::{
    Audience, Behavior, Cut, Emitted, Encoder, PermissionUpdate, RuleRef, Turn,
};
use caliban_settings::RuleAction;

use super::channel::Channel;
use super::grants::{Places, keep};
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
    /// The rules of the session, once there is one.
    rules: OnceLock<LiveRules>,
    /// Stops the run that is going on.
    stop: Mutex<Option<CancellationToken>>,
    /// How full the model's window is.
    tokens: AtomicU64,
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
            rules: OnceLock::new(),
            stop: Mutex::default(),
            tokens: AtomicU64::new(0),
        })
    }

    /// There is a session now, and these are its rules.
    pub(crate) fn govern(&self, rules: LiveRules) {
        if let Some(mode) = *lock(&self.mode) {
            rules.set_mode(mode.ours());
        }
        // There is one session, so nothing is replaced.
        let _ = self.rules.set(rules);
    }

    pub(crate) fn begin(&self, turn: Turn, stop: CancellationToken) {
        *lock(&self.stop) = Some(stop);
        let frames = lock(&self.encoder).begin(turn);
        self.emit(frames);
    }

    pub(crate) fn show(&self, event: &Event) {
        if let Event::AssistantMessage { usage, .. } = event {
            let tokens = usage.total_input() + usage.output;
            self.tokens.store(tokens, Ordering::Relaxed);
        }
        let frames = lock(&self.encoder).frames(event);
        self.emit(frames);
    }

    /// What there is of the answer that is being written.
    pub(crate) fn cut(&self) -> Cut {
        lock(&self.encoder).cut()
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }

    /// Stops the run that is going on, if there is one.
    pub(crate) fn interrupt(&self) {
        if let Some(stop) = &*lock(&self.stop) {
            stop.cancel();
        }
    }

    pub(crate) fn ended(&self) {
        *lock(&self.stop) = None;
    }

    pub(crate) fn mode(&self) -> Mode {
        let mode = *lock(&self.mode);
        match (mode, self.rules.get()) {
            (Some(mode), Some(rules)) => mode.shown(rules.regime()),
            (Some(mode), None) => mode,
            (None, Some(rules)) => Mode::of(rules.regime()),
            (None, None) => Mode::Default,
        }
    }

    /// Judges by another mode from the next call on, and says so.
    pub(crate) fn set_mode(&self, mode: Mode) {
        *lock(&self.mode) = Some(mode);
        if let Some(rules) = self.rules.get() {
            rules.set_mode(mode.ours());
        }
        let frame = lock(&self.encoder).mode_changed(mode.as_str());
        self.emit(vec![frame]);
    }

    pub(crate) fn say_locally(&self, text: &str) {
        let frame = lock(&self.encoder).local_command(text);
        self.emit(vec![frame]);
    }

    /// Applies what came along with a consent: to the session, and to the files that it names.
    pub(crate) fn apply(&self, updates: &[PermissionUpdate]) {
        let Some(rules) = self.rules.get() else {
            return;
        };
        let add = |refs: &[RuleRef], behavior| {
            for rule in refs {
                if let Err(error) = rules.add(&rule.pattern(), action(behavior)) {
                    note(&format!(
                        "warning: a rule of the client is not used: {error}"
                    ));
                }
            }
        };
        for update in updates {
            if let Err(error) = keep(update, &self.facts.places) {
                note(&format!(
                    "warning: a rule holds only for this session: {error}"
                ));
            }
            match update {
                PermissionUpdate::AddRules {
                    rules: refs,
                    behavior,
                    ..
                } => add(refs, *behavior),
                PermissionUpdate::ReplaceRules {
                    rules: refs,
                    behavior,
                    ..
                } => {
                    rules.clear(action(*behavior));
                    add(refs, *behavior);
                }
                PermissionUpdate::RemoveRules {
                    rules: refs,
                    behavior,
                    ..
                } => {
                    for rule in refs {
                        rules.remove(&rule.pattern(), action(*behavior));
                    }
                }
                PermissionUpdate::SetMode { mode, .. } => match mode.parse() {
                    Ok(mode) if self.may_enter(mode) => self.set_mode(mode),
                    Ok(_) | Err(_) => note(&format!("warning: the mode `{mode}` is not entered")),
                },
                PermissionUpdate::AddDirectories { directories, .. } => {
                    for directory in directories {
                        let pattern = readable(&self.facts.cwd.join(directory));
                        // Every path makes a pattern.
                        let _ = rules.add(&pattern, RuleAction::Allow);
                    }
                }
                PermissionUpdate::RemoveDirectories { directories, .. } => {
                    for directory in directories {
                        let pattern = readable(&self.facts.cwd.join(directory));
                        rules.remove(&pattern, RuleAction::Allow);
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
