//! The repository's own tool: `cargo xtask test`, `cargo xtask model-server`, `cargo xtask bench`.

mod bench;
mod capture;
mod coverage;
mod demo;
mod dependencies;
mod dist;
mod docs;
mod environment;
mod layering;
mod links;
mod model_server;
#[cfg(target_os = "linux")]
mod pictures;
mod settings_page;
mod shell;
mod suite;
mod test;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "xtask", about = "Builds, checks and measures this repository.")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Install what the tests need and run every check. This is what CI runs.
    Test {
        /// Skip the installation; tests that need what is missing fail.
        #[arg(long)]
        no_setup: bool,
    },
    /// Install what the tests need and stop.
    Setup,
    /// Serve scripted model answers on loopback until interrupted.
    ModelServer {
        /// JSON script; see `docs/testing.md`.
        #[arg(long, value_name = "FILE")]
        script: PathBuf,
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
    /// Write the documentation that is generated from the code.
    Docs,
    /// Draw the demo as it looks in a terminal, for the README.
    Capture,
    /// Draw a session in the terminal interface for the guide.
    #[cfg(target_os = "linux")]
    Pictures {
        /// Draw, and only look whether the pictures in the guide are the same.
        #[arg(long)]
        check: bool,
    },
    /// Photograph the page of `caliban serve web` for the guide, in a browser.
    #[cfg(target_os = "linux")]
    Photographs,
    /// Record the cassette of `caliban demo` anew, after the tools have changed.
    RecordDemo,
    /// Run the tests and tell how many lines of each crate they reach.
    Coverage,
    /// Pack the program for those who do not build it: archive, Debian, npm, Python, bill of materials.
    Dist(dist::Options),
    /// Note which functions a run needs, so that they lie together in the program.
    #[cfg(target_os = "linux")]
    Order {
        /// Look at the binary that is there, which must have names.
        #[arg(long)]
        no_build: bool,
    },
    /// Measure the release binary next to `curl` and `rg` in the same run.
    Bench(bench::Options),
}

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args_os();
    if coverage::is_compiler(words.next().as_ref()) {
        return coverage::compile(words);
    }
    match Cli::parse().task {
        Task::Test { no_setup: false } => {
            environment::setup()?;
            test::run()
        }
        Task::Test { no_setup: true } => test::run(),
        Task::Setup => environment::setup().map(drop),
        Task::ModelServer { script, listen } => model_server::run(&script, listen),
        Task::Docs => docs::write(),
        Task::Capture => capture::write(),
        #[cfg(target_os = "linux")]
        Task::Pictures { check: false } => pictures::draw(pictures::Purpose::Write),
        #[cfg(target_os = "linux")]
        Task::Pictures { check: true } => pictures::draw(pictures::Purpose::Compare),
        #[cfg(target_os = "linux")]
        Task::Photographs => pictures::photograph(),
        Task::RecordDemo => demo::record(),
        Task::Coverage => coverage::report(),
        Task::Dist(options) => dist::run(&options),
        #[cfg(target_os = "linux")]
        Task::Order { no_build } => bench::order::run(no_build),
        Task::Bench(options) => bench::run(&options),
    }
}
