//! What the face wants done outside of itself, and what comes of it. Changing the state does
//! none of it.

use std::path::PathBuf;
use std::sync::Arc;

use caliban_compose::ImageAtom;
use caliban_session::Command;

use crate::host::{Desk, Look, Opened, RuleDraft, SessionRow, Which};
use crate::preferences::{Mouse, StatusCommand};

/// Something to be done.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Tell the session.
    Send(Command),
    Look,
    Trust,
    Open(Which),
    /// Bytes for the terminal that draw nothing: title, bell, clipboard.
    Bytes(Vec<u8>),
    /// Write the text in an editor.
    EditText(String),
    /// Show the text in an editor; what becomes of it does not matter.
    ShowText(String),
    /// Print rows on the main screen.
    Dump(Vec<String>),
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
    /// Prompts of all projects.
    LoadHistories(PathBuf),
    SaveDraft(Option<String>),
    SaveRule(Arc<dyn Desk>, RuleDraft),
    ReadClipboard,
    /// Read an image that was dropped or pasted as a path.
    ReadImage(PathBuf),
    /// Change the input of a call in an editor, and permit it so.
    EditInput {
        question: Arc<str>,
        text: String,
    },
    /// Copy to the clipboard of this machine.
    Copy(String),
    RunStatus,
    /// Errands are run so from now on.
    Configure {
        status: Option<StatusCommand>,
        files: Option<String>,
    },
    Leave,
    /// There is no session, and there was none.
    GiveUp,
    /// Talk in lines instead.
    TalkInLines,
}

/// What came of something.
#[derive(Debug)]
pub(crate) enum Done {
    Looked(Result<Box<Look>, String>),
    Trusted(Result<(), String>),
    Opened(Result<Box<Opened>, String>),
    Edited(Result<String, String>),
    InputEdited {
        question: Arc<str>,
        edited: Result<String, String>,
    },
    Files(Arc<[String]>),
    Sessions(Result<Vec<SessionRow>, String>),
    Models(Result<Vec<(String, String)>, String>),
    Histories(Vec<String>),
    RuleSaved(Result<(RuleDraft, PathBuf), String>),
    Clipboard(Result<Clipboard, String>),
    Status(Option<String>),
}

/// What the clipboard holds.
#[derive(Debug)]
pub(crate) enum Clipboard {
    Image(ImageAtom),
    Text(String),
    Nothing,
}
