//! What a command asks the session to do, read from what is written after its name.

use std::path::PathBuf;

use caliban_model::{Effort, Reasoning};

/// Something that the operator wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Help,
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
    /// A summary that changes nothing. The only one of these that asks the model.
    Recap,
    Memory(MemoryAction),
    Skills,
    Hooks,
    Mcp,
    Permissions,
    OutputStyle,
    Doctor(Depth),
}

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
    clear => Clear,
    status => Status,
    cost => Cost,
    usage => Usage,
    context => Context,
    plan => Plan,
    recap => Recap,
    skills => Skills,
    hooks => Hooks,
    mcp => Mcp,
    permissions => Permissions,
    output_style => OutputStyle,
}

fn nothing(arguments: &str) -> Result<(), String> {
    if arguments.is_empty() {
        Ok(())
    } else {
        Err(format!("it takes no arguments, but got `{arguments}`"))
    }
}

fn written(arguments: &str) -> Option<String> {
    (!arguments.is_empty()).then(|| arguments.to_owned())
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
    if arguments.contains(char::is_whitespace) {
        return Err(format!("`{arguments}` is not one model"));
    }
    Ok(Action::Model(written(arguments)))
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
