//! The arguments that concern plugins.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List the plugins that were found, and whether they count.
    List {
        /// Those instead that the marketplaces have which were added.
        #[arg(long)]
        available: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a plugin's manifest as JSON, with what it brings, runs and costs.
    Info {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Install a plugin from a marketplace or a directory.
    #[command(after_help = "Examples:\n  \
        caliban plugin install reviewer@team-tools\n  \
        caliban plugin install reviewer@https://plugins.example.com/index.json\n  \
        caliban plugin install reviewer@owner/repository\n  \
        caliban plugin install --dir ./my-plugin\n  \
        caliban plugin install --frozen --yes")]
    Install(PluginInstallArgs),
    /// Write what is installed into `.caliban/plugins.lock`, for `install --frozen` elsewhere.
    Lock {
        /// Whose plugins.
        #[arg(long, value_enum, default_value_t)]
        scope: PluginScope,
    },
    /// Bring a plugin up to date; what changes is shown first.
    Update {
        #[arg(value_name = "NAME")]
        name: String,
        /// Agree to what is shown.
        #[arg(long, short = 'y')]
        yes: bool,
        /// Whose plugin is meant [default: the user's, else the project's].
        #[arg(long, value_enum)]
        scope: Option<PluginScope>,
        /// Print what changes as JSON; asks nobody.
        #[arg(long)]
        json: bool,
    },
    /// Remove a plugin that is installed.
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
        /// Whose plugin is meant [default: the user's, else the project's].
        #[arg(long, value_enum)]
        scope: Option<PluginScope>,
    },
    /// Use a plugin again.
    Enable {
        #[arg(value_name = "NAME")]
        name: String,
        /// Whose settings say so.
        #[arg(long, value_enum, default_value_t)]
        scope: PluginScope,
    },
    /// Keep a plugin, but do not use it.
    Disable {
        #[arg(value_name = "NAME")]
        name: String,
        /// Whose settings say so.
        #[arg(long, value_enum, default_value_t)]
        scope: PluginScope,
    },
    /// Tell a plugin what it wants to know; without values, list what that is.
    #[command(after_help = "Examples:\n  \
        caliban plugin configure reviewer\n  \
        caliban plugin configure reviewer server=https://ci.example.com\n  \
        caliban plugin configure reviewer token < token.txt")]
    Configure {
        #[arg(value_name = "NAME")]
        name: String,
        /// Values to keep; the value of a key alone is read from standard input.
        #[arg(value_name = "KEY[=VALUE]")]
        values: Vec<String>,
        /// Forget this value.
        #[arg(long, value_name = "KEY")]
        unset: Vec<String>,
    },
    /// Compare installed plugins with what was agreed to; exits with 1 where files are others.
    Verify {
        /// Only this one.
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what an update would change, and change nothing.
    Diff {
        #[arg(value_name = "NAME")]
        name: String,
        /// Whose plugin is meant [default: the user's, else the project's].
        #[arg(long, value_enum)]
        scope: Option<PluginScope>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check a plugin or a marketplace in a directory; exits with 1 when it cannot be used.
    Validate {
        #[arg(value_name = "PATH", default_value = ".")]
        path: PathBuf,
        /// Also exit with 1 where something is only worth a remark.
        #[arg(long)]
        strict: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Look for a plugin in the marketplaces that were added.
    Search {
        /// Part of a name or description; everything if left out.
        #[arg(value_name = "WORD", default_value = "")]
        word: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Begin a plugin: a directory that can be used as it is.
    New {
        #[arg(value_name = "NAME")]
        name: String,
        /// Where to make it [default: a directory of its name]
        #[arg(long, value_name = "PATH")]
        dir: Option<PathBuf>,
    },
    /// Add and remove marketplaces.
    Marketplace {
        #[command(subcommand)]
        command: MarketplaceCommand,
    },
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(false))]
pub(crate) struct PluginInstallArgs {
    /// The plugin and its marketplace, by name or address.
    #[arg(value_name = "NAME@MARKETPLACE", group = "what")]
    pub(crate) plugin: Option<String>,
    /// A directory of this machine instead, which is copied, or an archive of one (`.zip`, `.tar.gz`).
    #[arg(long, value_name = "PATH", group = "what")]
    pub(crate) dir: Option<PathBuf>,
    /// Everything that `.caliban/plugins.lock` of the project names, to the byte, or nothing.
    #[arg(long, group = "what")]
    pub(crate) frozen: bool,
    /// A version of it that the marketplace has [default: the latest].
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["dir", "frozen"])]
    pub(crate) version: Option<String>,
    /// Whom it is for: the user, everybody who works on this project, or the user in this project.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scope: PluginScope,
    /// Agree to what is shown.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

/// Whom a plugin or a choice is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PluginScope {
    /// The user, everywhere.
    #[default]
    User,
    /// Everybody who works on this project.
    Project,
    /// The user, in this project alone.
    Local,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MarketplaceCommand {
    /// Add a marketplace: an address, `owner/repository` of GitHub, or a directory.
    Add {
        #[arg(value_name = "SOURCE")]
        source: String,
    },
    /// List the marketplaces that are known.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Fetch the lists of marketplaces anew.
    Update {
        /// Only this one.
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Forget a marketplace; what was installed from it stays.
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
    },
}
