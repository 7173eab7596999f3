//! What the face wants done outside of itself, and what comes of it. Changing the state does
//! none of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use caliban_agent::Answer;
use caliban_compose::ImageAtom;
use caliban_model::{CancellationToken, Image, Message};
use caliban_session::{Command, Rewind};
use caliban_terminal::Raster;

use crate::agents_desk::{AgentChange, AgentRow};
use crate::custom_theme::CustomTheme;
use crate::farewell::Departure;
use crate::host::{
    Desk, FileChanged, ImportVerdict, Look, Opened, PointRow, RewindPreview, RuleDraft, Which,
};
use crate::layers::Begins;
use crate::lists_desk::ListRow;
use crate::preferences::{Mouse, StatusCommand};
use crate::programs::Programs;
use crate::sessions_desk::{SessionChange, SessionRow};

/// Something to be done.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Tell the session.
    Send(Command),
    Look,
    /// The settings may be others now.
    LookAgain,
    /// Get the end of the conversation that goes on.
    Glimpse,
    Trust,
    JudgeImports(ImportVerdict),
    Open(Which),
    /// Bytes for the terminal that draw nothing: title, bell, clipboard.
    Bytes(Vec<u8>),
    /// Write the text in an editor.
    EditText(String),
    /// Show the text in an editor; what becomes of it does not matter.
    ShowText(String),
    /// Print rows on the main screen.
    Dump(Vec<String>),
    /// Let a program have the terminal until it ends.
    HandOver {
        program: PathBuf,
        arguments: Vec<OsString>,
    },
    Suspend,
    /// Draw everything anew.
    Repaint,
    CaptureMouse(Mouse),
    /// What is drawn on is another.
    DrawOn,
    /// List the files that `@` may name.
    ListFiles,
    ListSessions,
    ListModels(Arc<dyn Desk>),
    /// The points that can be gone back to.
    ListPoints(Arc<dyn Desk>),
    /// What going back would do.
    PreviewRewind(Arc<dyn Desk>, Rewind),
    /// Change instructions or a note in an editor.
    EditMemory {
        value: String,
        text: String,
    },
    /// Something that a panel wants.
    Panel(PanelEffect),
    /// Prompts of all projects.
    LoadHistories(PathBuf),
    SaveDraft(Option<String>),
    /// Write rules, and answer then.
    SaveRules(Arc<dyn Desk>, Vec<RuleDraft>, Verdict),
    ReadClipboard,
    /// Read an image that was dropped or pasted as a path.
    ReadImage(PathBuf),
    /// Make an image of the conversation fit to be drawn.
    Picture {
        id: u32,
        image: Image,
        dots: (u32, u32),
    },
    /// Change the input of a call in an editor, and permit it so.
    EditInput {
        question: Arc<str>,
        text: String,
    },
    /// Copy to the clipboard of this machine.
    Copy(String),
    RunStatus,
    /// Read a theme of the operator's own.
    ReadTheme(String),
    /// Errands are run so from now on.
    Configure {
        status: Option<StatusCommand>,
        files: Option<String>,
        programs: Programs,
    },
    Leave(Departure),
    /// There is no session, and there was none.
    GiveUp,
    /// Talk in lines instead.
    TalkInLines,
}

/// Something that a panel wants done, off the loop.
#[derive(Debug)]
pub(crate) enum PanelEffect {
    PreviewSession(String),
    SearchSessions(String),
    ChangeSession(SessionChange),
    LogInToServer(Arc<dyn Desk>, String),
    /// Tell of agents until this is cancelled.
    WatchAgents(Arc<dyn Desk>, CancellationToken),
    ChangeAgent(Arc<dyn Desk>, AgentChange),
    /// Let hooks hear a command.
    Vet(Arc<dyn Desk>, String),
    /// List the providers that have keys, for this, and for the one that was named.
    ListProviders(KeyErrand, Option<String>),
    SaveKey {
        provider: String,
        key: String,
        begins: Begins,
    },
    ForgetKey(String),
}

/// How a question is answered when its rules are written.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) question: Arc<str>,
    pub(crate) answer: Answer,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum PanelDone {
    SessionPreviewed(String, Result<String, String>),
    SessionsFound(String, Result<Vec<(String, String)>, String>),
    SessionChanged(Result<String, String>),
    /// A browser must open this address for the login to a server.
    LoginBegun(String),
    LoggedIn(String, Result<(), String>),
    Agents(Result<Vec<AgentRow>, String>),
    AgentChanged(Result<String, String>),
    /// What hooks made of a command.
    Vetted(Result<String, String>),
    /// The providers that have keys, and what is to be done about one.
    Providers(KeyErrand, Option<String>, Result<Vec<String>, String>),
    KeySaved(Begins, Result<String, String>),
    KeyForgotten(Result<String, String>),
}

/// What is wanted with the key of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyErrand {
    Give,
    Forget,
}

/// What came of something.
#[derive(Debug)]
pub(crate) enum Done {
    Looked(Result<Box<Look>, String>),
    LookedAgain(Result<Box<Look>, String>),
    Glimpsed(Vec<Arc<Message>>),
    Trusted(Result<(), String>),
    ImportsJudged(Result<(), String>),
    Opened(Result<Box<Opened>, String>),
    Edited(Result<String, String>),
    InputEdited {
        question: Arc<str>,
        edited: Result<String, String>,
    },
    Files(Arc<[String]>),
    Sessions(Result<Vec<SessionRow>, String>),
    Points(Result<Vec<PointRow>, String>),
    Previewed(Rewind, Result<RewindPreview, String>),
    Models(Result<Vec<ListRow>, String>),
    MemoryEdited {
        value: String,
        edited: Result<String, String>,
    },
    /// A session did not begin, because this provider has no key.
    KeyMissing {
        provider: String,
        error: String,
    },
    Panel(PanelDone),
    Histories(Vec<String>),
    RulesSaved(Verdict, Result<(RuleDraft, FileChanged), String>),
    Clipboard(Result<Clipboard, String>),
    Theme {
        name: String,
        read: Result<(CustomTheme, Vec<String>), String>,
    },
    Picture {
        id: u32,
        drawn: Result<Raster, String>,
    },
    Status(Option<String>),
}

/// What the clipboard holds.
#[derive(Debug)]
pub(crate) enum Clipboard {
    Image(ImageAtom),
    Text(String),
    Nothing,
}
