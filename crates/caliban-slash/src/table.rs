//! Every built-in command, in the order of lists.

use crate::action;
use crate::entry::{Asks, Category, Completes, Does, Entry};

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
        completes: Completes::Nothing,
        asks: Asks::Nobody,
        does,
    }
}

/// The same for one that a model answers.
const fn asking(entry: Entry) -> Entry {
    Entry {
        asks: Asks::Model,
        ..entry
    }
}

const fn also(entry: Entry, aliases: &'static [&'static str]) -> Entry {
    Entry { aliases, ..entry }
}

/// The same with words that can be completed.
const fn with(words: &'static [&'static str], entry: Entry) -> Entry {
    Entry {
        completes: Completes::Words(words),
        ..entry
    }
}

const fn with_models(entry: Entry) -> Entry {
    Entry {
        completes: Completes::Models,
        ..entry
    }
}

#[rustfmt::skip]
pub const BUILT_IN: &[Entry] = {
    use Category::{Diagnostics, Extensions, General, Memory, Model, Output, Permissions, Session, Usage};
    use Does::{Act, Missing, NeedsScreen};
    &[
        entry("help", General, "", "List the commands", Act(action::help)),
        also(entry("quit", General, "", "Leave caliban",
            NeedsScreen { instead: "end the input, and the session ends when everything is done" }), &["exit"]),
        entry("keys", General, "", "Show the keys and what they do",
            NeedsScreen { instead: "keys are those of a terminal; others are set in `tui.keys`" }),
        with(&["code", "all"], entry("copy", General, "[code|all]", "Copy the last answer, its last code, or everything to the clipboard",
            NeedsScreen { instead: "what is said stands there as text to be taken; in print mode a pipe takes it" })),

        entry("clear", Session, "", "Begin the conversation anew; tasks, plan mode and system prompt stay",
            Act(action::clear)),
        asking(entry("compact", Session, "[what matters]", "Condense the conversation to a summary",
            Act(action::compact))),
        asking(entry("recap", Session, "", "Summarize the conversation without changing it",
            Act(action::recap))),
        asking(entry("btw", Session, "QUESTION", "Ask the small model something beside the conversation",
            Act(action::aside))),
        asking(entry("loop", Session, "[--n=3] [--interval=15]", "Repeat the last prompt, with seconds in between",
            Act(action::repeat))),
        with(&["--format json", "--format markdown"], entry("export", Session, "[path] [--format json]", "Write the conversation to a file",
            Act(action::export))),
        entry("rename", Session, "NAME", "Call the session and its files something else", Act(action::rename)),
        entry("fork", Session, "[NAME]", "Copy the session as it is now", Act(action::fork)),
        entry("resume", Session, "[text]", "Open an earlier session",
            NeedsScreen { instead: "start caliban with `-c` or `--resume NAME`; `caliban sessions list` shows them" }),
        entry("rewind", Session, "[N] [--code|--conversation|--summarize-from|--summarize-up-to] [--dry-run] [--force]",
            "List the prompts, or go back to the end of one, in files and conversation", Act(action::rewind)),
        entry("web", Session, "", "Go on with this session in a page of the browser",
            NeedsScreen { instead: "start `caliban serve web NAME`; `caliban sessions list` shows the names" }),
        entry("tasks", Session, "", "Show background jobs and the task list", Act(action::tasks)),
        with(&["--force"], entry("init", Session, "[--force]", "Draft `CLAUDE.md` from what the project says about itself",
            Act(action::draft))),
        entry("diff", Session, "", "Show what differs from the last commit", Act(action::diff)),
        asking(entry("review", Session, "[what]", "Review what changed; a command of your own of this name takes its place",
            Act(action::review))),

        with_models(entry("model", Model, "[id]", "List the models, or change to one", Act(action::model))),
        with(&["low", "medium", "high", "xhigh", "max", "auto", "off"], entry("effort", Model, "[level]", "Show or set how hard the model thinks: low, medium, high, xhigh, max, auto, off",
            Act(action::effort))),
        entry("status", Model, "", "Show session, provider, model and mode", Act(action::status)),
        entry("system", Model, "", "Show what the model is told before everything else", Act(action::system)),
        entry("login", Model, "[provider]", "Give the key of a provider",
            NeedsScreen { instead: "set the provider's key variable, for example `ANTHROPIC_API_KEY`, or `api_key_helper` in the settings; `caliban mcp login NAME` logs in to MCP servers" }),
        entry("logout", Model, "[provider]", "Forget the key of a provider",
            NeedsScreen { instead: "unset its key variable or `api_key_helper`; `caliban mcp logout NAME` forgets those of MCP servers" }),
        entry("setup-token", Model, "", "Make a lasting token for CI",
            Missing { part: "provider that makes tokens for other programs", instead: "make a key at the provider and give it to CI as a variable, for example `ANTHROPIC_API_KEY`, or by `api_key_helper`" }),

        entry("permissions", Permissions, "", "Show mode and rules", Act(action::permissions)),
        entry("plan", Permissions, "", "Turn plan mode on or off", Act(action::plan)),
        entry("add-dir", Permissions, "PATH", "Let the session work in a further directory", Act(action::add_directory)),
        entry("trust", Permissions, "", "Show what the workspace may not set, and how to trust it", Act(action::trust)),
        entry("sandbox", Permissions, "", "Show what confines commands, and how to change it", Act(action::sandbox)),

        entry("cost", Usage, "", "Show what the session cost, by model", Act(action::cost)),
        entry("usage", Usage, "", "Show the tokens of the session, by model", Act(action::usage)),
        entry("context", Usage, "", "Show what fills the model's window", Act(action::context)),

        with(&["list", "show", "edit", "rm", "rebuild-index"], entry("memory", Memory, "[list|show TOPIC|edit TOPIC|rm TOPIC|rebuild-index]", "Show what the model is told, and its notes",
            Act(action::memory))),

        entry("skills", Extensions, "", "List the skills", Act(action::skills)),
        entry("hooks", Extensions, "", "List the hooks by event", Act(action::hooks)),
        entry("mcp", Extensions, "", "List the MCP servers and their state", Act(action::mcp)),
        entry("config", Extensions, "[text]", "Show the settings that count and where they come from, or those with a text",
            Act(action::config)),
        entry("plugins", Extensions, "", "List the plugins and whether they count", Act(action::plugins)),
        with(&["watch"], entry("agents", Extensions, "[watch]", "List the agent profiles, or watch agents in the background", Act(action::agents))),

        entry("output-style", Output, "", "Show the output style and those there are", Act(action::output_style)),
        with(&["auto", "dark", "light", "colour-blind", "none"], entry("theme", Output, "[auto|dark|light|none|NAME]", "Choose the colours",
            NeedsScreen { instead: "colours are those of a terminal; `tui.theme` in the settings keeps them" })),
        entry("vim", Output, "", "Turn vi keys on or off",
            NeedsScreen { instead: "keys are those of a terminal; `editor_mode` in the settings keeps them" }),
        with(&["fullscreen", "inline"], entry("tui", Output, "[fullscreen|inline]", "Choose how the terminal is drawn on, or show what it can do",
            NeedsScreen { instead: "there is nothing to draw on" })),
        entry("statusline", Output, "", "Show how the status line is made",
            NeedsScreen { instead: "look at `statusLine` in `caliban config print`" }),

        with(&["--deep"], entry("doctor", Diagnostics, "[--deep]", "Check settings, keys, servers, skills and hooks",
            Act(action::doctor))),
        also(entry("feedback", Diagnostics, "WORDS", "Send these words, version and platform to `feedback_url` of the settings",
            Act(action::feedback)), &["bug"]),
        entry("heapdump", Diagnostics, "", "Write a profile of the memory in use",
            Missing { part: "heap profiler", instead: "measure the program from outside, for example with `heaptrack`" }),
    ]
};
