//! What a command asks the session to do, read from what is written after its name.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use caliban_model::{Effort, Reasoning};

/// Something that the operator wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Help,
    /// What the model is told before everything else.
    System,
    /// Begin the conversation anew; tasks, plan mode and the system prompt stay.
    Clear,
    Compact {
        instructions: Option<String>,
    },
    /// Say which model answers, or let another one.
    Model(Option<String>),
    /// Say how hard it thinks, or let it think so hard.
    Effort(Option<Reasoning>),
    Status,
    Cost,
    Usage,
    Context,
    /// Turn plan mode on or off.
    Plan,
    Export {
        path: Option<PathBuf>,
        format: ExportFormat,
    },
    /// A summary that changes nothing.
    Recap,
    /// One question beside the conversation, which knows nothing of it.
    Aside {
        question: String,
    },
    /// A review of what changed: a prompt of ours, which [`prompt_of`](crate::prompt_of) tells.
    Review,
    /// The last prompt, again and again.
    Repeat(Repetition),
    /// Draft the file that tells a model about the project.
    Draft(Existing),
    /// What differs from the last commit.
    Diff,
    Rename {
        title: String,
    },
    /// Copy the session; the copy is opened by its name.
    Fork {
        name: Option<String>,
    },
    /// Take prompts back, or say which there are.
    Rewind(RewindAction),
    AddDirectory {
        path: String,
    },
    /// Background jobs and the task list.
    Tasks,
    /// What confines commands.
    Sandbox,
    /// What does not count because the workspace is not trusted.
    Trust,
    /// The settings that count, and where they come from.
    Config {
        /// What the settings that are shown have in them.
        text: Option<String>,
    },
    /// Send this, and nothing else, to who is configured to hear it.
    Feedback {
        text: String,
    },
    Memory(MemoryAction),
    Skills,
    /// Agent profiles.
    Agents,
    Plugins,
    Hooks,
    Mcp,
    Permissions,
    OutputStyle,
    Doctor(Depth),
}

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Kept,
    Replaced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindAction {
    /// Which prompts there are.
    List,
    /// What would change.
    Preview(Rewinding),
    Do(Rewinding),
}

/// Which prompts are taken back, and in what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rewinding {
    /// The prompt at whose end the work goes on; 0 is before the first.
    pub to: u32,
    pub what: TakenBack,
    /// What becomes of files that others have changed since.
    pub changed: Existing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenBack {
    Both,
    Code,
    Conversation,
    /// A summary takes the place of what was said since.
    SummarizeFrom,
    /// A summary takes the place of what was said until then.
    SummarizeUpTo,
}

/// How often something is done, and how long the rests in between are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    pub times: u32,
    pub pause: Duration,
}

impl Default for Repetition {
    fn default() -> Self {
        Self {
            times: 3,
            pause: Duration::from_secs(15),
        }
    }
}

/// How many repetitions there may be; more are a mistake or a job for another program.
const TIMES: RangeInclusive<u32> = 1..=1_000;
/// How long a rest may be: a day.
const SECONDS: RangeInclusive<u64> = 0..=86_400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    Markdown,
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryAction {
    /// What the model is told, and the topics there are.
    List,
    Show {
        topic: String,
    },
    Remove {
        topic: String,
    },
    RebuildIndex,
}

/// How far a look at the installation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Shallow,
    /// Servers and providers are asked.
    Deep,
}

/// For commands that take nothing.
macro_rules! plain {
    ($($name:ident => $action:ident),* $(,)?) => {
        $(pub(crate) fn $name(arguments: &str) -> Result<Action, String> {
            nothing(arguments).map(|()| Action::$action)
        })*
    };
}

plain! {
    help => Help,
    system => System,
    diff => Diff,
    tasks => Tasks,
    sandbox => Sandbox,
    trust => Trust,
    clear => Clear,
    status => Status,
    cost => Cost,
    usage => Usage,
    context => Context,
    plan => Plan,
    recap => Recap,
    skills => Skills,
    plugins => Plugins,
    hooks => Hooks,
    mcp => Mcp,
    permissions => Permissions,
    output_style => OutputStyle,
}

pub(crate) fn nothing(arguments: &str) -> Result<(), String> {
    if arguments.is_empty() {
        Ok(())
    } else {
        Err(format!("it takes no arguments, but got `{arguments}`"))
    }
}

fn written(arguments: &str) -> Option<String> {
    (!arguments.is_empty()).then(|| arguments.to_owned())
}

/// What is written after the name, where there must be something.
fn needed(arguments: &str, what: &str) -> Result<String, String> {
    written(arguments).ok_or_else(|| format!("it needs {what}"))
}

fn one_word(arguments: &str, what: &str) -> Result<Option<String>, String> {
    if arguments.contains(char::is_whitespace) {
        return Err(format!("`{arguments}` is not one {what}"));
    }
    Ok(written(arguments))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every entry of the table has this form"
)]
pub(crate) fn review(_: &str) -> Result<Action, String> {
    Ok(Action::Review)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every entry of the table has this form"
)]
pub(crate) fn config(arguments: &str) -> Result<Action, String> {
    let text = written(arguments);
    Ok(Action::Config { text })
}

pub(crate) fn agents(arguments: &str) -> Result<Action, String> {
    match arguments {
        "" => Ok(Action::Agents),
        "watch" => Err("to watch needs a screen; use `caliban agents list`".to_owned()),
        other => Err(format!("`{other}` is not known; use `watch` or nothing")),
    }
}

pub(crate) fn aside(arguments: &str) -> Result<Action, String> {
    let question = needed(arguments, "a question")?;
    Ok(Action::Aside { question })
}

pub(crate) fn feedback(arguments: &str) -> Result<Action, String> {
    let text = needed(arguments, "the words to send")?;
    Ok(Action::Feedback { text })
}

pub(crate) fn rename(arguments: &str) -> Result<Action, String> {
    let title = needed(arguments, "a name")?;
    Ok(Action::Rename { title })
}

pub(crate) fn fork(arguments: &str) -> Result<Action, String> {
    let name = one_word(arguments, "name")?;
    Ok(Action::Fork { name })
}

pub(crate) fn add_directory(arguments: &str) -> Result<Action, String> {
    let path = needed(arguments, "a directory")?;
    Ok(Action::AddDirectory { path })
}

pub(crate) fn draft(arguments: &str) -> Result<Action, String> {
    match arguments {
        "" => Ok(Action::Draft(Existing::Kept)),
        "--force" => Ok(Action::Draft(Existing::Replaced)),
        other => Err(format!("`{other}` is not known; use `--force` or nothing")),
    }
}

/// A number, what it is about, and how.
pub(crate) fn rewind(arguments: &str) -> Result<Action, String> {
    let mut rewinding = Rewinding {
        to: 0,
        what: TakenBack::Both,
        changed: Existing::Kept,
    };
    let mut to = None;
    let mut wished: Option<&str> = None;
    let mut action: fn(Rewinding) -> RewindAction = RewindAction::Do;
    for word in arguments.split_whitespace() {
        let is_wish = matches!(
            word,
            "--both" | "--code" | "--conversation" | "--summarize-from" | "--summarize-up-to"
        );
        if let Some(wished) = wished.filter(|wished| is_wish && *wished != word) {
            return Err(format!(
                "`{word}` after `{wished}`: only one of them can be"
            ));
        }
        if is_wish {
            wished = Some(word);
        }
        match word {
            "--both" => rewinding.what = TakenBack::Both,
            "--code" => rewinding.what = TakenBack::Code,
            "--conversation" => rewinding.what = TakenBack::Conversation,
            "--summarize-from" => rewinding.what = TakenBack::SummarizeFrom,
            "--summarize-up-to" => rewinding.what = TakenBack::SummarizeUpTo,
            "--force" => rewinding.changed = Existing::Replaced,
            "--dry-run" => action = RewindAction::Preview,
            "--list" if arguments == "--list" => return Ok(Action::Rewind(RewindAction::List)),
            number if to.is_none() => {
                let read = number.parse();
                to = Some(read.map_err(|_| format!("`{number}` is no number of a prompt"))?);
            }
            other => return Err(format!("`{other}` is not known")),
        }
    }
    match to {
        Some(to) => Ok(Action::Rewind(action(Rewinding { to, ..rewinding }))),
        None if arguments.is_empty() => Ok(Action::Rewind(RewindAction::List)),
        None => Err("it needs the number of a prompt".to_owned()),
    }
}

/// `--n=3 --interval=15`, with spaces as well.
pub(crate) fn repeat(arguments: &str) -> Result<Action, String> {
    let mut repetition = Repetition::default();
    let mut words = arguments
        .split(|c: char| c.is_whitespace() || c == '=')
        .filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        match word {
            "--n" => repetition.times = bounded(value, &TIMES)?,
            "--interval" => {
                repetition.pause = Duration::from_secs(bounded(value, &SECONDS)?);
            }
            other => return Err(format!("`{other}` is not known")),
        }
    }
    Ok(Action::Repeat(repetition))
}

fn bounded<T>(text: &str, range: &RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        format!("`{text}` is not a number from {least} to {most}")
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every entry of the table has this form"
)]
pub(crate) fn compact(arguments: &str) -> Result<Action, String> {
    Ok(Action::Compact {
        instructions: written(arguments),
    })
}

pub(crate) fn model(arguments: &str) -> Result<Action, String> {
    one_word(arguments, "model").map(Action::Model)
}

pub(crate) fn effort(arguments: &str) -> Result<Action, String> {
    Ok(Action::Effort(match arguments {
        "" => None,
        "auto" => Some(Reasoning::Auto),
        "off" => Some(Reasoning::Off),
        level => {
            let level: Effort = level.parse().map_err(|_| {
                format!("`{level}` is no level; use low, medium, high, xhigh, max, auto or off")
            })?;
            Some(Reasoning::Effort(level))
        }
    }))
}

pub(crate) fn export(arguments: &str) -> Result<Action, String> {
    let (mut path, mut format) = (None, ExportFormat::Markdown);
    let mut words = arguments.split_whitespace();
    while let Some(word) = words.next() {
        let named = match word.strip_prefix("--format") {
            Some("") => Some(words.next().unwrap_or_default()),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        match named {
            Some("json") => format = ExportFormat::Json,
            Some("markdown" | "md") => format = ExportFormat::Markdown,
            Some(other) => return Err(format!("`{other}` is no format; use markdown or json")),
            None if word.starts_with("--") => return Err(format!("`{word}` is not known")),
            None if path.is_some() => return Err(format!("`{word}` is one path too many")),
            None => path = Some(PathBuf::from(word)),
        }
    }
    Ok(Action::Export { path, format })
}

pub(crate) fn memory(arguments: &str) -> Result<Action, String> {
    let (verb, topic) = arguments
        .split_once(char::is_whitespace)
        .unwrap_or((arguments, ""));
    let topic = topic.trim();
    let named = || match topic {
        "" => Err(format!("`{verb}` needs the name of a topic")),
        topic => Ok(topic.to_owned()),
    };
    Ok(Action::Memory(match verb {
        "" | "list" => nothing(topic).map(|()| MemoryAction::List)?,
        "show" => MemoryAction::Show { topic: named()? },
        "rm" | "delete" => MemoryAction::Remove { topic: named()? },
        "rebuild-index" => nothing(topic).map(|()| MemoryAction::RebuildIndex)?,
        "edit" => {
            return Err("an editor needs a terminal; use `caliban memory edit`".to_owned());
        }
        other => {
            return Err(format!(
                "`{other}` is not known; use list, show, rm or rebuild-index"
            ));
        }
    }))
}

pub(crate) fn doctor(arguments: &str) -> Result<Action, String> {
    match arguments {
        "" => Ok(Action::Doctor(Depth::Shallow)),
        "--deep" => Ok(Action::Doctor(Depth::Deep)),
        other => Err(format!("`{other}` is not known; use `--deep` or nothing")),
    }
}
