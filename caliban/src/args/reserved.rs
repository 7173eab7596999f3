//! Commands of parts that this version does not have: named, so that none of them is taken for a
//! prompt and sent to a model.

use clap::{Args, Subcommand};

use crate::exit::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Reserved {
    #[command(hide = true, disable_help_flag = true)]
    Attach(Words),
    #[command(hide = true, disable_help_flag = true)]
    Logs(Words),
    #[command(hide = true, disable_help_flag = true)]
    Stop(Words),
    #[command(hide = true, disable_help_flag = true)]
    Kill(Words),
    #[command(hide = true, disable_help_flag = true)]
    Respawn(Words),
    #[command(hide = true, disable_help_flag = true)]
    Rm(Words),
    #[command(hide = true, disable_help_flag = true)]
    Daemon(Words),
}

/// Whatever follows.
#[derive(Debug, Args)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Reserved {
    /// What the user is told.
    pub(crate) fn refusal(&self) -> Failure {
        let (name, part) = match self {
            Self::Attach(_) => ("attach", BACKGROUND),
            Self::Logs(_) => ("logs", BACKGROUND),
            Self::Stop(_) => ("stop", BACKGROUND),
            Self::Kill(_) => ("kill", BACKGROUND),
            Self::Respawn(_) => ("respawn", BACKGROUND),
            Self::Rm(_) => ("rm", BACKGROUND),
            Self::Daemon(_) => ("daemon", BACKGROUND),
        };
        Failure::Runtime(format!(
            "`caliban {name}` is not available: this version has no {part}; to send the word to the model, use `-p`"
        ))
    }
}

const BACKGROUND: &str = "background agents";

/// What `--bg` is answered with.
pub(crate) fn no_background() -> Failure {
    Failure::Runtime(format!(
        "`--bg` is not available: this version has no {BACKGROUND}; use `-p` and wait for the answer"
    ))
}
