//! Taking prompts back, whoever asks for it: files and conversation go to the same point, and what
//! interrupts that is finished by the next one to look.

use std::path::PathBuf;
use std::sync::Arc;

use caliban_checkpoints::{
    Action, Environment, Error, Followed, History, Mark, Plan, RealTree, Restored, Restoring,
    Session, Tree, git_head,
};
use caliban_model::{Block, Message};
use caliban_session::{Others, Restore, Rewind};
use caliban_sessions::{Durability, Position, Record, SessionState, Writer};
use jiff::Timestamp;

/// Files that the model is told of by name.
const NAMED: usize = 20;

/// Takes back what the prompts of one session did.
#[derive(Debug, Clone)]
pub struct Rewinder {
    session: Session,
    tree: Arc<RealTree>,
    root: PathBuf,
    git: Option<Environment>,
}

/// Why nothing was taken back, or not everything.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    #[error(transparent)]
    Checkpoints(#[from] Error),
    #[error(
        "what was said until the end of prompt {0} is no longer kept; the files alone can go back"
    )]
    Forgotten(u32),
}

impl Rewinder {
    /// The root of the workspace is canonical.
    pub(crate) fn new(session: Session, root: PathBuf) -> Self {
        let tree = Arc::new(RealTree::new(root.clone()));
        Self {
            session,
            tree,
            root,
            git: None,
        }
    }

    /// The same, which finds contents in the repository.
    pub(crate) fn with_git(mut self, environment: Environment) -> Self {
        self.git = Some(environment);
        self
    }

    /// Finds out what calls did that ran when another process was killed. Only for whoever has the
    /// session to itself and has not begun to work in it.
    pub fn recover(&self) -> Result<(), Error> {
        let tree = Arc::clone(&self.tree) as Arc<dyn Tree>;
        self.session.recover(&self.root, &tree, self.git.clone())
    }

    /// What there is to go back to.
    pub fn history(&self) -> Result<History, Error> {
        self.session.history()
    }

    /// What a rewind would do to the files.
    pub fn plan(&self, rewind: Rewind) -> Result<Plan, Error> {
        let others = match rewind.others {
            Others::Spared => caliban_checkpoints::Others::Spared,
            Others::Overwritten => caliban_checkpoints::Others::Overwritten,
        };
        match rewind.what {
            Restore::Both | Restore::Code => {
                let plan = self.session.plan(&*self.tree, rewind.to, others)?;
                Ok(plan.seen_from(&self.history()?, git_head(&self.root)))
            }
            Restore::Conversation | Restore::SummarizeFrom | Restore::SummarizeUpTo => {
                let last = self.history()?.last();
                if rewind.to > last {
                    let wanted = rewind.to;
                    return Err(Error::NoSuchPoint { wanted, last });
                }
                Ok(Plan::nothing(rewind.to))
            }
        }
    }

    /// How the content of a path would change, in lines.
    pub fn difference(&self, action: &Action) -> Option<String> {
        self.session.difference(&*self.tree, action)
    }

    /// Carries out a plan: first the files, then the conversation.
    pub fn carry_out(
        &self,
        rewind: Rewind,
        plan: &Plan,
        writer: &mut Writer,
    ) -> Result<Restored, RewindError> {
        let history = self.history()?;
        let conversation = match rewind.what {
            Restore::Both | Restore::Conversation => {
                Some(point(&history, writer.state(), rewind.to)?)
            }
            Restore::Code | Restore::SummarizeFrom | Restore::SummarizeUpTo => None,
        };
        let restoring = Restoring {
            at: Timestamp::now(),
            began: Some(mark(writer.state().position())),
            conversation,
        };
        let left = remains(&history, rewind, plan);
        let mut companion = |followed: &Followed<'_>| follow(writer, followed, left.as_deref());
        let restored = self
            .session
            .restore(&*self.tree, plan, restoring, &mut companion)?;
        Ok(restored)
    }

    /// Whether a restore has to be finished first.
    pub fn is_interrupted(&self) -> Result<bool, Error> {
        self.session.is_interrupted()
    }

    /// Finishes what was interrupted, if anything was.
    pub fn finish(&self, writer: &mut Writer) -> Result<Option<Restored>, Error> {
        let mut companion = |followed: &Followed<'_>| follow(writer, followed, None);
        self.session.resume(&*self.tree, &mut companion)
    }
}

/// The point of the conversation at the end of a prompt, which must still be there.
pub(crate) fn point(history: &History, state: &SessionState, to: u32) -> Result<Mark, RewindError> {
    let wanted = match history.mark(to) {
        Some(mark) => mark,
        // What was cut off before anything came after it ends where everything ends.
        None if to >= history.last() => mark(state.position()),
        None => return Err(RewindError::Forgotten(to)),
    };
    match state.conversation_at(position(wanted)) {
        Some(_) => Ok(wanted),
        None => Err(RewindError::Forgotten(to)),
    }
}

/// What was typed for the first prompt after a point, among those that count if there is one.
pub fn prompt_after(history: &History, state: &SessionState, to: u32) -> Option<String> {
    let standing = history.standing();
    let later = history.checkpoints.range(to.saturating_add(1)..);
    let mut prompts = later.filter(|(_, manifest)| manifest.rewound_to.is_none());
    let first = prompts.clone().find(|(index, _)| standing.contains(index));
    let (_, manifest) = first.or_else(|| prompts.next())?;
    let began = position(manifest.began?);
    let with_it = Position {
        messages: began.messages.checked_add(1)?,
        ..began
    };
    let conversation = state.conversation_at(with_it)?;
    typed(conversation.last()?)
}

fn typed(message: &Message) -> Option<String> {
    message.content.iter().find_map(|block| match block {
        Block::Text { text, .. } => Some(text.clone()),
        _ => None,
    })
}

/// Lets the conversation follow the files, once.
fn follow(
    writer: &mut Writer,
    followed: &Followed<'_>,
    left: Option<&str>,
) -> Result<Option<Mark>, String> {
    let is_done = writer.state().past.rewound() == Some(followed.token);
    if !is_done {
        let record = Record::Rewound {
            restore: followed.token.to_owned(),
            checkpoint: followed.checkpoint,
            to: followed.to,
            position: followed.conversation.map(position),
            note: note(followed, left),
        };
        let kept = writer.append(record, Durability::Synced);
        kept.map_err(|error| error.to_string())?;
    }
    Ok(Some(mark(writer.state().position())))
}

/// What the model has to know that its conversation does not tell.
fn note(followed: &Followed<'_>, left: Option<&str>) -> Option<String> {
    let mut parts = Vec::new();
    if followed.conversation.is_none() {
        let when = match followed.to {
            0 => "before the first prompt of this session".to_owned(),
            to => format!("after prompt {to} of this session"),
        };
        let paths = followed.restored.done.iter();
        let names = named(paths.map(|path| path.to_string_lossy().into_owned()));
        parts.push(format!(
            "The user took changes back: these files are again as they were {when}: {names}. Read \
             them again before you rely on what was said about them."
        ));
    }
    if !followed.restored.failed.is_empty() {
        let paths = followed.restored.failed.iter();
        let names = named(paths.map(|failed| failed.path.to_string_lossy().into_owned()));
        parts.push(format!("These could not be put back: {names}."));
    }
    parts.extend(left.map(str::to_owned));
    (!parts.is_empty()).then(|| format!("[{}]", parts.join(" ")))
}

/// What a rewind leaves as it is and the conversation would not know of.
fn remains(history: &History, rewind: Rewind, plan: &Plan) -> Option<String> {
    let later = history.checkpoints.range(rewind.to.saturating_add(1)..);
    let has_changes = later
        .clone()
        .any(|(_, manifest)| !manifest.entries.is_empty());
    match rewind.what {
        Restore::Conversation if has_changes => Some(
            "The conversation was taken back to this point. The files were not: they are as later \
             work left them."
                .to_owned(),
        ),
        Restore::Both | Restore::Code => {
            let conflicts = plan.conflicts.iter();
            let conflicts = conflicts.map(|it| it.path.to_string_lossy().into_owned());
            let lost = plan.lost.iter().map(|it| it.path.clone());
            let all: Vec<String> = conflicts.chain(lost).collect();
            (!all.is_empty()).then(|| {
                let names = named(all.into_iter());
                format!("These are not as they were then: {names}.")
            })
        }
        Restore::Conversation | Restore::SummarizeFrom | Restore::SummarizeUpTo => None,
    }
}

/// Names for the model, as many as are worth it. A name cannot end its line or the remark.
fn named(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let harmless = |name: &String| {
        let visible = name.chars().filter(|it| !it.is_control() && *it != ']');
        format!("`{}`", visible.collect::<String>())
    };
    let mut shown: Vec<String> = names.iter().take(NAMED).map(harmless).collect();
    if let Some(more) = names.len().checked_sub(NAMED).filter(|more| *more > 0) {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

pub(crate) fn mark(position: Position) -> Mark {
    Mark {
        epoch: position.epoch,
        messages: position.messages,
    }
}

pub(crate) fn position(mark: Mark) -> Position {
    Position {
        epoch: mark.epoch,
        messages: mark.messages,
    }
}
