//! The command line of a run, without its commands: to describe all of those costs as much as the
//! rest of the start, and most runs name none.

use std::ffi::OsString;

use clap::{Arg, ArgMatches, Args, value_parser};

use super::{Dialect, McpArgs, RuleArgs, RunArgs, SessionArgs, SettingsArgs};

/// What makes a line one that the whole command line has to read: the names of commands, and the
/// ways to ask about them.
const NAMES: [&str; 33] = [
    "demo",
    "models",
    "doctor",
    "config",
    "settings",
    "trust",
    "sessions",
    "usage",
    "rewind",
    "worktrees",
    "perms",
    "sandbox",
    "memory",
    "serve",
    "mcp",
    "plugin",
    "router",
    "completions",
    "man",
    "agents",
    "fleet",
    "daemon",
    "attach",
    "logs",
    "stop",
    "kill",
    "respawn",
    "rm",
    "help",
    "--help",
    "-h",
    "--version",
    "-V",
];

/// What the words say, where they name no command and nothing is wrong with them.
pub(super) fn read(words: &[OsString]) -> Option<ArgMatches> {
    let is_named = |word: &OsString| NAMES.iter().any(|name| word == name);
    if words.iter().skip(1).any(is_named) {
        return None;
    }
    // What is wrong is told by the whole command line.
    command().try_get_matches_from(words).ok()
}

fn command() -> clap::Command {
    let command = clap::Command::new("caliban").args_override_self(true);
    let command = RunArgs::augment_args(command);
    let command = SettingsArgs::augment_args(command);
    let command = RuleArgs::augment_args(command);
    let command = SessionArgs::augment_args(command);
    let command = McpArgs::augment_args(command);
    let dialect = Arg::new("dialect").long("dialect");
    command.arg(dialect.value_parser(value_parser!(Dialect)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_command_is_known_by_name() {
        let whole = Cli::command();
        let commands = whole.get_subcommands();
        let names =
            commands.flat_map(|it| std::iter::once(it.get_name()).chain(it.get_all_aliases()));
        for name in names {
            assert!(NAMES.contains(&name), "{name}");
        }
    }

    #[test]
    fn every_option_is_the_same() {
        fn described(command: &clap::Command) -> BTreeSet<String> {
            let args = command.get_arguments();
            args.map(|arg| {
                format!(
                    "{} {:?} {:?} {:?} {:?} {:?} {:?}",
                    arg.get_id(),
                    arg.get_long_and_visible_aliases(),
                    arg.get_short(),
                    arg.get_num_args(),
                    arg.get_action(),
                    arg.get_default_values(),
                    arg.get_value_delimiter(),
                )
            })
            .collect()
        }
        assert_eq!(described(&command()), described(&Cli::command()));
    }
}
