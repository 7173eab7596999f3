//! The arguments that concern agents in the background.

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents of this repository, those that wait for an answer first.
    List {
        /// Those of all repositories.
        #[arg(long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Start an agent in the background and print its id.
    Spawn(SpawnArgs),
    /// Show what an agent does as it happens, and type to it; Ctrl+D detaches.
    Attach(AttachArgs),
    /// Print an agent's conversation.
    Logs(LogsArgs),
    /// End an agent; its conversation stays.
    Kill(KillArgs),
    /// Start an agent's task anew, under another id; the old agent is removed.
    Respawn(RespawnArgs),
    /// Remove an agent that has ended, with its conversation.
    Rm(RmArgs),
    /// Let an agent that has ended or crashed go on, under its id.
    Resume(ResumeArgs),
    /// Answer a question that an agent waits with.
    Answer(AnswerArgs),
    /// Remove agents that ended some time ago, and what killed ones left behind.
    Prune {
        /// Those that ended at least so many days ago.
        #[arg(long, value_name = "N", default_value_t = 30)]
        days: u32,
    },
    /// List the agent profiles of this workspace and of the user.
    Profiles {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the agents of this repository as they change.
    Watch {
        /// Print a line of JSON for every change.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SpawnArgs {
    /// What the agent is to do; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT", required = true)]
    pub(crate) prompt: String,
    /// A name for people, shown in lists.
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<String>,
    #[command(flatten)]
    pub(crate) isolation: IsolationArgs,
    /// Agents are always in the background.
    #[arg(long, hide = true)]
    pub(crate) bg: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where an agent in the background works.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct IsolationArgs {
    /// Where the agent in the background works: in this directory, or in a git worktree of its own,
    /// which goes when the agent is removed, with its work on a branch.
    #[arg(
        long,
        value_enum,
        value_name = "WHERE",
        help_heading = "Background agents"
    )]
    pub(crate) isolation: Option<Apartness>,
    /// What the agent's worktree begins from: head, fresh (almost no files) or a revision.
    #[arg(long, value_name = "REV", help_heading = "Background agents")]
    pub(crate) base_ref: Option<String>,
}

impl IsolationArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.isolation.is_some() || self.base_ref.is_some()
    }
}

/// Whether an agent has a directory for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Apartness {
    None,
    Worktree,
}

#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The agent, or the first digits of its id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Watch, and type nothing.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Type in place of whoever does.
    #[arg(long, conflicts_with = "read_only")]
    pub(crate) take: bool,
    /// Leave out everything up to this number.
    #[arg(long, value_name = "SEQ")]
    pub(crate) since: Option<u64>,
    /// Read and write frames, one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The agent, or the first digits of its id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print the session file as it is.
    #[arg(long, conflicts_with_all = ["follow", "tail", "worker"])]
    pub(crate) json: bool,
    /// Go on with what happens, until the agent ends.
    #[arg(long, short = 'f', conflicts_with = "worker")]
    pub(crate) follow: bool,
    /// Only the last lines.
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<usize>,
    /// What the agent's process wrote, instead of its conversation.
    #[arg(long)]
    pub(crate) worker: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    /// The agent, or the first digits of its id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Give it no time to put its things in order.
    #[arg(long)]
    pub(crate) now: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RespawnArgs {
    /// The agent, or the first digits of its id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// The agent, or the first digits of its id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Also one that is alive, which is ended at once.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The agent, or the first digits of its id.
    #[arg(value_name = "ID", required_unless_present = "all_crashed")]
    pub(crate) id: Option<String>,
    /// What it is to do next; without it, what it was at when it crashed.
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// All that crashed.
    #[arg(long, conflicts_with_all = ["id", "prompt"])]
    pub(crate) all_crashed: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The agent, or the first digits of its id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The question, or the first digits of its id; `-` for the one it waits with.
    #[arg(value_name = "QUESTION")]
    pub(crate) question: String,
    #[arg(value_name = "ANSWER", value_enum)]
    pub(crate) answer: QuestionAnswer,
    /// Why not, for the model.
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum QuestionAnswer {
    Allow,
    /// This call and those like it, for the rest of the session.
    AllowSession,
    Deny,
}

impl QuestionAnswer {
    /// As a frame has it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AllowSession => "allow-session",
            Self::Deny => "deny",
        }
    }
}

/// The commands that need not be spelled with `agents`.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentShorthand {
    /// Attach to an agent (`agents attach`).
    Attach(AttachArgs),
    /// Print an agent's conversation (`agents logs`).
    Logs(LogsArgs),
    /// End an agent (`agents kill`).
    Stop(KillArgs),
    /// End an agent (`agents kill`).
    Kill(KillArgs),
    /// Start an agent's task anew (`agents respawn`).
    Respawn(RespawnArgs),
    /// Remove an agent that has ended (`agents rm`).
    Rm(RmArgs),
}

impl From<AgentShorthand> for AgentsCommand {
    fn from(command: AgentShorthand) -> Self {
        match command {
            AgentShorthand::Attach(args) => Self::Attach(args),
            AgentShorthand::Logs(args) => Self::Logs(args),
            AgentShorthand::Stop(args) | AgentShorthand::Kill(args) => Self::Kill(args),
            AgentShorthand::Respawn(args) => Self::Respawn(args),
            AgentShorthand::Rm(args) => Self::Rm(args),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Say how the daemon is doing, where it listens, and how many agents it has.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// End the daemon; agents go on.
    Stop,
}
