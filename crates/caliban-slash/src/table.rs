//! Every built-in command, in the order of lists.

use crate::action;
use crate::entry::{Category, Does, Entry};

const fn entry(
    name: &'static str,
    category: Category,
    arguments: &'static str,
    summary: &'static str,
    does: Does,
) -> Entry {
    Entry {
        name,
        aliases: &[],
        category,
        arguments,
        summary,
        does,
    }
}

#[rustfmt::skip]
pub const BUILT_IN: &[Entry] = {
    use Category::{Diagnostics, Extensions, General, Memory, Model, Output, Permissions, Session, Usage};
    use Does::{Act, Missing, NeedsScreen};
    &[
        entry("help", General, "", "List the commands", Act(action::help)),
        Entry {
            aliases: &["exit"],
            ..entry("quit", General, "", "Leave caliban",
                NeedsScreen { instead: "end the input, and the session ends when everything is done" })
        },

        entry("clear", Session, "", "Begin the conversation anew; tasks, plan mode and system prompt stay",
            Act(action::clear)),
        entry("compact", Session, "[what matters]", "Condense the conversation to a summary",
            Act(action::compact)),
        entry("recap", Session, "", "Summarize the conversation without changing it; asks the model",
            Act(action::recap)),
        entry("export", Session, "[path] [--format json]", "Write the conversation to a file",
            Act(action::export)),
        entry("resume", Session, "[text]", "Open an earlier session",
            NeedsScreen { instead: "start caliban with `-c` or `--resume NAME`; `caliban sessions list` shows them" }),
        entry("rewind", Session, "", "Take prompts back, in files and conversation",
            Missing { part: "checkpoints" }),

        entry("model", Model, "[id]", "Show or change the model", Act(action::model)),
        entry("effort", Model, "[level]", "Show or set how hard the model thinks: low, medium, high, xhigh, max, auto, off",
            Act(action::effort)),
        entry("status", Model, "", "Show session, provider, model and mode", Act(action::status)),

        entry("permissions", Permissions, "", "Show mode and rules", Act(action::permissions)),
        entry("plan", Permissions, "", "Turn plan mode on or off", Act(action::plan)),

        entry("cost", Usage, "", "Show what the session cost, by model", Act(action::cost)),
        entry("usage", Usage, "", "Show the tokens of the session, by model", Act(action::usage)),
        entry("context", Usage, "", "Show what fills the model's window", Act(action::context)),

        entry("memory", Memory, "[list|show TOPIC|rm TOPIC|rebuild-index]", "Show what the model is told, and its notes",
            Act(action::memory)),

        entry("skills", Extensions, "", "List the skills", Act(action::skills)),
        entry("hooks", Extensions, "", "List the hooks by event", Act(action::hooks)),
        entry("mcp", Extensions, "", "List the MCP servers and their state", Act(action::mcp)),
        entry("config", Extensions, "", "Look at settings and change them",
            NeedsScreen { instead: "use `caliban config print` and `caliban settings`" }),
        entry("plugins", Extensions, "", "List the plugins", Missing { part: "plugins" }),
        entry("agents", Extensions, "", "List the background agents", Missing { part: "background agents" }),

        entry("output-style", Output, "", "Show the output style and those there are", Act(action::output_style)),

        entry("doctor", Diagnostics, "[--deep]", "Check settings, keys, servers, skills and hooks",
            Act(action::doctor)),
        entry("statusline", Diagnostics, "", "Show how the status line is made",
            NeedsScreen { instead: "look at `status_line` in `caliban config print`" }),
    ]
};
