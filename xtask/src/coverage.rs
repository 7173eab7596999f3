//! `cargo xtask coverage`: how many lines of each crate the tests reach, those of the built binary
//! that they start included.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::environment;
use crate::shell::{KEYRING, cargo, output, root, run, say};

/// The tools that read what a program compiled by this toolchain counts, and the package that has
/// them.
const TOOLS: [(&str, &str); 2] = [("llvm-profdata-22", "llvm-22"), ("llvm-cov-22", "llvm-22")];

/// What this program is called when it compiles.
const COMPILER: &str = "counting-rustc";

/// Lines that could be reached, and those that were.
#[derive(Debug, Default, Clone, Copy)]
struct Lines {
    all: u64,
    reached: u64,
}

pub(crate) fn report() -> Result<()> {
    environment::setup()?;
    environment::install(&TOOLS)?;
    let folder = root().join("target/coverage");
    let profiles = folder.join("profiles");
    if profiles.exists() {
        std::fs::remove_dir_all(&profiles).context("the counts of an earlier run")?;
    }
    std::fs::create_dir_all(&profiles)?;
    let wrapper = wrapper(&folder)?;
    let objects = objects(&wrapper)?;
    // A test that dislikes being counted is no reason to count nothing.
    if let Err(error) = run(counted(&wrapper)
        .args(["test", "--workspace", "--all-targets", "--no-fail-fast"])
        .arg(KEYRING)
        // One file per program, into which its runs are added up.
        .env("LLVM_PROFILE_FILE", profiles.join("%4m.profraw"))
        .env("CALIBAN_TEST_PYTHON", environment::python())
        .env("CALIBAN_TEST_LITELLM", environment::gateway())
        .env("CALIBAN_TEST_NODE", environment::node())
        .env("CALIBAN_TEST_NODE_PACKAGES", environment::node_packages()))
    {
        say(&format!("some tests failed, counting goes on: {error}"));
    }
    let merged = folder.join("merged.profdata");
    let counts = files(&profiles)?;
    run(Command::new(TOOLS[0].0)
        .args(["merge", "--sparse", "--failure-mode=all", "--output"])
        .arg(&merged)
        .args(counts))?;
    let crates = by_crate(&summary(&merged, &objects)?)?;
    print(&crates);
    Ok(())
}

/// A compiler that counts in the crates of this workspace only: this program under another name.
/// A script would lose the variables that a shell has no names for.
fn wrapper(folder: &Path) -> Result<PathBuf> {
    let path = folder.join(COMPILER);
    std::fs::copy(std::env::current_exe()?, &path).context("a copy of this program")?;
    Ok(path)
}

/// Whether this program was started as the compiler.
pub(crate) fn is_compiler(program: Option<&OsString>) -> bool {
    program.is_some_and(|program| Path::new(program).file_name() == Some(OsStr::new(COMPILER)))
}

/// Compiles as the words say, with counting code.
pub(crate) fn compile(mut words: impl Iterator<Item = OsString>) -> Result<()> {
    let compiler = words.next().context("the compiler is not named")?;
    let status = Command::new(compiler)
        .args(words)
        .args(["-C", "instrument-coverage"])
        .status()?;
    // It has said itself what is wrong.
    anyhow::ensure!(status.success(), "the compiler failed");
    Ok(())
}

fn counted(wrapper: &Path) -> Command {
    let mut command = cargo();
    command.env("RUSTC_WORKSPACE_WRAPPER", wrapper);
    command
}

/// The programs that count: tests, and what tests start.
fn objects(wrapper: &Path) -> Result<Vec<PathBuf>> {
    let built = output(counted(wrapper).args([
        "test",
        "--workspace",
        "--all-targets",
        KEYRING,
        "--no-run",
        "--message-format=json",
    ]))?;
    let mut objects: Vec<PathBuf> = built
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .collect();
    objects.sort();
    objects.dedup();
    Ok(objects)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let files: std::io::Result<Vec<PathBuf>> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    Ok(files?)
}

fn summary(merged: &Path, objects: &[PathBuf]) -> Result<Value> {
    let Some((first, others)) = objects.split_first() else {
        bail!("cargo built no tests");
    };
    let mut command = Command::new(TOOLS[1].0);
    command
        .args(["export", "--summary-only", "--instr-profile"])
        .arg(merged)
        .arg(first);
    for object in others {
        command.arg("--object").arg(object);
    }
    serde_json::from_str(&output(&mut command)?).context("what llvm-cov says")
}

fn by_crate(summary: &Value) -> Result<BTreeMap<String, Lines>> {
    let files = summary["data"][0]["files"]
        .as_array()
        .context("llvm-cov tells of no files")?;
    let root = root();
    let mut crates: BTreeMap<String, Lines> = BTreeMap::new();
    for file in files {
        let path = Path::new(file["filename"].as_str().unwrap_or_default());
        let Ok(path) = path.strip_prefix(&root) else {
            continue;
        };
        let mut parts = path.iter().map(|part| part.to_string_lossy());
        let name = match parts.next().as_deref() {
            Some("crates") => parts.next().map(std::borrow::Cow::into_owned),
            Some(name) => Some(name.to_owned()),
            None => None,
        };
        // Tests reach themselves.
        if let Some(name) = name
            && parts.next().as_deref() == Some("src")
            && !path.ends_with("tests.rs")
        {
            let lines = &file["summary"]["lines"];
            let total = crates.entry(name).or_default();
            total.all += lines["count"].as_u64().unwrap_or_default();
            total.reached += lines["covered"].as_u64().unwrap_or_default();
        }
    }
    Ok(crates)
}

#[expect(clippy::print_stdout, reason = "the table is what was asked for")]
fn print(crates: &BTreeMap<String, Lines>) {
    println!("| crate | lines | reached |");
    println!("|---|---|---|");
    let mut total = Lines::default();
    for (name, lines) in crates {
        println!("| `{name}` | {} | {:.1} % |", lines.all, lines.percent());
        total.all += lines.all;
        total.reached += lines.reached;
    }
    println!("| all | {} | {:.1} % |", total.all, total.percent());
}

impl Lines {
    #[expect(clippy::cast_precision_loss, reason = "no crate has that many lines")]
    fn percent(self) -> f64 {
        if self.all == 0 {
            return 100.0;
        }
        self.reached as f64 / self.all as f64 * 100.0
    }
}
