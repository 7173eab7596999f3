//! What the face knows, and what changes it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use caliban_compose::{Editor, History, KeySet, Piece};
use caliban_model::Message;
use caliban_session::{Facts, PromptId, Restore, SessionEvent, SessionHandle};
use caliban_terminal::{Capabilities, Focus, Input, Placement, Report};
use rust_decimal::Decimal;

use crate::app::effect::{Done, Effect, PanelEffect};
use crate::app::finding::Finding;
use crate::app::queueing::{Fate, Reordering};
use crate::app::selecting::Selection;
use crate::completion::Menu;
use crate::host::{BypassLatch, Desk, Earlier, Which};
use crate::keys::KeyTable;
use crate::layers::Layer;
use crate::preferences::{Mouse, Preferences, Screen, View};
use crate::questions::{QUIET, Questions};
use crate::theme::Theme;
use crate::transcript::{Feed, Lay, Scroll};

/// How long something said in passing is shown.
const TOAST: Duration = Duration::from_secs(6);
/// How often something moves that moves: once around in a second. The runtime wakes twice for it,
/// as for everything that is further away than 64 ms.
const BEAT: Duration = Duration::from_millis(250);

/// How often a job is looked at that one looks at.
const JOBS: Duration = Duration::from_millis(500);

/// Everything that can happen to the face.
#[derive(Debug)]
pub(crate) enum Msg {
    Input(Input),
    Told(Vec<Arc<SessionEvent>>),
    /// So many events were let go before they were heard.
    Missed(u64),
    /// The session tells nothing any more.
    Silence,
    Done(Done),
    Resized(u16, u16),
    /// A moment that something waited for has come.
    Tick,
}

/// Whether and when the screen is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Redraw {
    #[default]
    No,
    /// With the next frame.
    Soon,
    /// Somebody pressed a key.
    Now,
}

/// Where the session stands.
#[derive(Debug)]
pub(crate) enum Link {
    /// The settings are being read, or trust is asked for.
    Looking,
    Opening,
    Open(SessionHandle),
    /// It did not begin.
    Failed,
    /// It is over.
    Over,
}

/// What is being worked on.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) since: Instant,
    /// Tokens that the model wrote in it.
    pub(crate) written: u64,
}

/// A prompt that was sent and is not worked on yet.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) id: PromptId,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) text: String,
    pub(crate) steers: bool,
    /// The overlay that shows what comes of it; nothing where the transcript does.
    pub(crate) overlay: Option<Reader>,
}

/// An overlay that opens when there is something to read in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) title: &'static str,
    /// When somebody typed last before it was asked for.
    pub(crate) asked: Option<Instant>,
}

/// What the status line tells.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub(crate) facts: Option<Arc<Facts>>,
    pub(crate) model: String,
    pub(crate) mode: String,
    /// What the session came to before it was opened.
    pub(crate) earlier: Earlier,
    pub(crate) turns: u32,
    /// Tokens in the model's window after the last answer.
    pub(crate) used: u64,
    pub(crate) cost: Decimal,
    /// What the operator's program printed.
    pub(crate) custom: Option<String>,
    /// How long the last run took.
    pub(crate) took: Option<Duration>,
}

/// The face. Changed by [`update`](Self::update) alone.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) width: u16,
    pub(crate) height: u16,
    /// Rows of the transcript at the last drawing.
    pub(crate) page: usize,
    pub(crate) capabilities: Capabilities,
    pub(crate) preferences: Preferences,
    /// What the settings said when they were looked at last.
    pub(crate) configured: Preferences,
    pub(crate) theme: Theme,
    pub(crate) view: View,
    pub(crate) mouse: Mouse,
    pub(crate) screen: Screen,
    /// Cells that are in the terminal's scrollback already; none where it is not used.
    pub(crate) printed: usize,
    /// The rows of the transcript that were drawn last, and below which row they ended.
    pub(crate) drawn: (Vec<(usize, usize)>, u16),
    /// What is marked with the mouse.
    pub(crate) selection: Option<Selection>,
    /// Pictures on these rows.
    pub(crate) pictures: Vec<Placement>,
    /// What a cell measures in dots, where the terminal tells.
    pub(crate) cell_dots: Option<(u16, u16)>,
    pub(crate) keys: KeyTable,
    pub(crate) feed: Feed,
    /// Its first cells that are there only until the session is.
    pub(crate) glimpsed: usize,
    pub(crate) scroll: Scroll,
    /// The conversation as the model sees it.
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) editor: Editor,
    pub(crate) history: History,
    pub(crate) histories: Option<PathBuf>,
    /// Files from outside that are to be asked about before the session begins.
    pub(crate) imports: Vec<String>,
    pub(crate) stash: Option<Vec<Piece>>,
    pub(crate) menu: Option<Menu>,
    pub(crate) files: Arc<[String]>,
    pub(crate) files_listed: Option<Instant>,
    /// The conversation is being begun anew.
    pub(crate) is_clearing: bool,
    pub(crate) layers: Vec<Layer>,
    pub(crate) questions: Questions,
    /// The call that ends plan mode, where edits are accepted from then on.
    pub(crate) after_plan: Option<Arc<str>>,
    pub(crate) queue: Vec<Waiting>,
    /// What becomes of prompts that are being taken back.
    pub(crate) fates: Vec<(PromptId, Fate)>,
    pub(crate) reordering: Reordering,
    /// What is looked for in the conversation.
    pub(crate) finding: Option<Finding>,
    pub(crate) link: Link,
    pub(crate) name: Option<String>,
    pub(crate) desk: Option<Arc<dyn Desk>>,
    pub(crate) latch: BypassLatch,
    /// What is to be sent when the session is there.
    pub(crate) unsent: Vec<Waiting>,
    pub(crate) run: Option<Run>,
    pub(crate) status: Status,
    pub(crate) todos: Vec<TodoRow>,
    pub(crate) shows_todos: bool,
    pub(crate) toast: Option<(String, Instant)>,
    pub(crate) focus: Option<Focus>,
    pub(crate) title: String,
    pub(crate) cwd: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) last_typed: Option<Instant>,
    pub(crate) last_esc: Option<Instant>,
    pub(crate) began: Instant,
    pub(crate) now: Instant,
    pub(crate) redraw: Redraw,
    pub(crate) effects: Vec<Effect>,
    /// Calls of this session, for what a rule would have matched.
    pub(crate) calls: Vec<(String, serde_json::Value)>,
    pub(crate) counter: u64,
    /// The overlay that shows what comes of what is being worked on, and how it was asked for.
    pub(crate) overlay: Option<(Reader, String)>,
    /// Prompts that are being taken back.
    pub(crate) rewinding: Option<Rewinding>,
    /// The session that begins when the one that is open is over.
    pub(crate) next: Option<Which>,
    /// What the list of sessions is narrowed to when it comes.
    pub(crate) query: String,
    pub(crate) draft_changed: bool,
    pub(crate) draft_saved: Option<Instant>,
}

/// Prompts that are being taken back.
#[derive(Debug, Clone)]
pub(crate) struct Rewinding {
    pub(crate) id: PromptId,
    pub(crate) what: Restore,
    /// What was typed for the first prompt that goes.
    pub(crate) next: Option<String>,
}

/// A task of the list that the model keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TodoRow {
    pub(crate) text: String,
    pub(crate) state: TodoState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TodoState {
    Pending,
    Active,
    Done,
}

/// What the face begins with.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) capabilities: Capabilities,
    pub(crate) cwd: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) screen: Screen,
    pub(crate) prompt: Option<String>,
    /// What was written the last time and not sent.
    pub(crate) draft: Option<String>,
    pub(crate) now: Instant,
}

impl App {
    pub(crate) fn new(beginning: Beginning) -> Self {
        let preferences = Preferences::default();
        let mut app = Self {
            width: beginning.width,
            height: beginning.height,
            page: usize::from(beginning.height),
            theme: Theme::new(
                preferences.theme,
                None,
                beginning.capabilities.scheme(),
                beginning.capabilities.colours,
                preferences.glyphs,
                0,
            ),
            capabilities: beginning.capabilities,
            view: preferences.view,
            mouse: Mouse::Off,
            screen: beginning.screen,
            printed: 0,
            drawn: (Vec::new(), 0),
            selection: None,
            pictures: Vec::new(),
            cell_dots: None,
            keys: KeyTable::new(&[]),
            configured: preferences.clone(),
            preferences,
            feed: Feed::default(),
            glimpsed: 0,
            scroll: Scroll::default(),
            messages: Vec::new(),
            editor: Editor::new(KeySet::Emacs),
            history: History::open(None),
            histories: None,
            imports: Vec::new(),
            stash: None,
            menu: None,
            files: Arc::from([]),
            files_listed: None,
            is_clearing: false,
            layers: Vec::new(),
            questions: Questions::default(),
            after_plan: None,
            queue: Vec::new(),
            fates: Vec::new(),
            reordering: Reordering::default(),
            finding: None,
            link: Link::Looking,
            name: None,
            desk: None,
            latch: BypassLatch::Off,
            unsent: Vec::new(),
            run: None,
            status: Status::default(),
            todos: Vec::new(),
            shows_todos: true,
            toast: None,
            focus: None,
            title: String::new(),
            cwd: beginning.cwd,
            home: beginning.home,
            last_typed: None,
            last_esc: None,
            began: beginning.now,
            now: beginning.now,
            redraw: Redraw::Now,
            effects: vec![Effect::Glimpse, Effect::Look],
            calls: Vec::new(),
            counter: 0,
            overlay: None,
            rewinding: None,
            next: None,
            query: String::new(),
            draft_changed: false,
            draft_saved: None,
        };
        if let Some(prompt) = beginning.prompt {
            app.editor.set_text(&prompt);
            app.submit(caliban_session::Delivery::Queue);
        }
        if let Some(draft) = beginning.draft {
            app.editor.set_text(&draft);
        }
        app
    }

    /// Takes in what happened. What is to be done outside is in `effects` afterwards.
    pub(crate) fn update(&mut self, msg: Msg, now: Instant) {
        self.now = now;
        match msg {
            // What the terminal says of itself is nothing that anybody waits to see.
            Msg::Input(Input::Report(report)) => self.hear_report(&report),
            Msg::Input(input) => {
                self.want(Redraw::Now);
                self.hear_input(input);
            }
            Msg::Told(events) => {
                self.want(Redraw::Soon);
                for event in events {
                    self.hear(&event);
                }
            }
            Msg::Missed(count) => {
                self.want(Redraw::Soon);
                self.say(format!("{count} events were not shown"));
            }
            Msg::Silence => self.silence(),
            Msg::Done(done) => {
                self.want(Redraw::Now);
                self.done(done);
            }
            Msg::Resized(width, height) => {
                (self.width, self.height) = (width, height);
                self.want(Redraw::Soon);
            }
            Msg::Tick => self.tick(),
        }
        self.settle_plan();
        self.tell_queue();
    }

    /// When something is to be done without anybody asking.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let toast = self.toast.as_ref().map(|(_, until)| *until);
        let beat = self.is_moving().then(|| self.now + BEAT);
        let draft = self.draft_deadline();
        let layer = match self.layers.last() {
            Some(Layer::Jobs(panel)) if panel.is_live() => Some(self.now + JOBS),
            // How long each is in its state is told, too.
            Some(Layer::Agents(_)) => Some(self.now + JOBS),
            Some(Layer::Servers(panel)) if panel.is_live() => Some(self.now + JOBS),
            Some(Layer::Opening(question)) => question.deadline(self.now),
            Some(_) | None => None,
        };
        let question = self.questions.deadline(self.now, self.last_typed);
        [toast, beat, draft, layer, question]
            .into_iter()
            .flatten()
            .min()
    }

    fn tick(&mut self) {
        self.want(Redraw::Soon);
        if self
            .toast
            .as_ref()
            .is_some_and(|(_, until)| *until <= self.now)
        {
            self.toast = None;
        }
        let is_empty = self.editor.is_empty();
        self.questions.settle(self.now, self.last_typed, is_empty);
        self.save_draft();
    }

    /// Whether something on the screen moves by itself. What waits for the operator does not.
    fn is_moving(&self) -> bool {
        let is_seen = self.focus != Some(Focus::Lost);
        let moves = self.preferences.motion == crate::preferences::Motion::Usual;
        self.run.is_some() && self.questions.is_empty() && is_seen && moves
    }

    /// How far what moves has moved.
    pub(crate) fn beat(&self) -> usize {
        let passed = self.now.saturating_duration_since(self.began).as_millis();
        usize::try_from(passed / BEAT.as_millis()).unwrap_or_default()
    }

    pub(crate) fn lay(&self) -> Lay<'_> {
        Lay {
            width: self.width,
            theme: &self.theme,
            view: self.view,
            diffs: self.preferences.diffs,
            beat: self.beat(),
            now: self.now,
            began: self.began,
            dots: self.picture_dots(),
            cwd: &self.cwd,
        }
    }

    pub(crate) fn want(&mut self, redraw: Redraw) {
        self.redraw = match (self.redraw, redraw) {
            (Redraw::Now, _) | (_, Redraw::Now) => Redraw::Now,
            (Redraw::Soon, _) | (_, Redraw::Soon) => Redraw::Soon,
            (Redraw::No, Redraw::No) => Redraw::No,
        };
    }

    /// Whether an overlay may open by itself: nobody has typed since it was asked for, or nobody
    /// is writing or reading anything else. No key that was meant for something else acts in it.
    pub(crate) fn may_open(&self, reader: Reader) -> bool {
        let is_quiet = self
            .last_typed
            .is_none_or(|typed| typed + QUIET <= self.now);
        let is_untouched = self.last_typed == reader.asked || is_quiet;
        self.layers.is_empty() && self.finding.is_none() && self.editor.is_empty() && is_untouched
    }

    /// Says something in passing.
    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.toast = Some((text.into(), self.now + TOAST));
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Something for a panel.
    pub(crate) fn errand(&mut self, effect: PanelEffect) {
        self.effect(Effect::Panel(effect));
    }

    /// Something the terminal tells about itself.
    pub(crate) fn hear_report(&mut self, report: &Report) {
        let before = (self.capabilities.scheme(), self.capabilities.colours);
        let answer = self.capabilities.note(report);
        if !answer.is_empty() {
            self.effect(Effect::Bytes(answer));
        }
        if before != (self.capabilities.scheme(), self.capabilities.colours) {
            self.retheme();
            self.want(Redraw::Soon);
        }
    }

    pub(crate) fn retheme(&mut self) {
        self.theme = Theme::new(
            self.preferences.theme,
            self.preferences.custom_theme.as_ref(),
            self.capabilities.scheme(),
            self.capabilities.colours,
            self.preferences.glyphs,
            self.theme.version + 1,
        );
    }

    /// Whether calls may be made visible to somebody who does not look: unknown focus counts as
    /// not looking.
    pub(crate) fn is_away(&self) -> bool {
        self.focus != Some(Focus::Gained)
    }
}
