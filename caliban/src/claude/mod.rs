//! The dialect of programs that were written for Claude Code: its command line, its control
//! protocol, its exit codes. The engine, its rules and its sessions are the same as ever.

mod agent_kinds;
mod branch;
mod channel;
mod consents;
mod driver;
mod file_rewinding;
mod flags;
mod grants;
mod hooks;
mod host;
mod inbox;
mod invocation;
mod mode;
mod models;
mod prompt;
mod questions;
mod requests;
mod sent_prompts;
mod servers;
mod session_profile;
mod sessions;
mod set_servers;
mod structured;
mod talk;
mod tool_names;
mod transcript;
mod unavailable;
mod wire;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use caliban_harness::RunOptions;
use caliban_harness::provider::{self, KeySource};
use caliban_model::ProviderKind;
use caliban_protocol::claude::VERSION;
use caliban_settings::variables::{Environment, names};
use clap::ValueEnum;
use serde_json::json;

use crate::args::Dialect;
use crate::console::{Console, note};
use crate::exit::Failure;
use crate::{process, runtime};
use flags::Flags;
use invocation::{Invocation, Privilege};
#[cfg(test)]
pub(crate) use tool_names::ClaudeNames;

/// Which dialect the program has: the flag says, else the variable, else the name it was started
/// under.
pub(crate) fn dialect(
    program: Option<&OsString>,
    words: &[OsString],
    variable: Option<&str>,
) -> Result<Dialect, Failure> {
    // Servers are administered with the same words in both.
    if undirected(words).first().is_some_and(|word| word == "mcp") {
        return Ok(Dialect::Caliban);
    }
    let before_end = words.iter().take_while(|word| *word != "--");
    let mut typed = None;
    let mut words = before_end.peekable();
    while let Some(word) = words.next() {
        let word = word.to_string_lossy();
        if word == "--dialect" {
            typed = words.peek().map(|next| next.to_string_lossy().into_owned());
        } else if let Some(value) = word.strip_prefix("--dialect=") {
            typed = Some(value.to_owned());
        }
    }
    if let Some(text) = typed {
        // What is no dialect is reported by the native command line.
        return Ok(Dialect::from_str(&text, false).unwrap_or(Dialect::Caliban));
    }
    if let Some(text) = variable {
        return Dialect::from_str(text, false).map_err(|_| {
            Failure::Config(format!(
                "`{}` must be caliban or claude, not `{text}`",
                names::CALIBAN_DIALECT
            ))
        });
    }
    let name = program
        .map(std::path::Path::new)
        .and_then(std::path::Path::file_stem);
    Ok(match name {
        Some(name) if name == "claude" => Dialect::Claude,
        _ => Dialect::Caliban,
    })
}

/// The words without the dialect that stands in front of them.
fn undirected<T: AsRef<OsStr>>(mut words: &[T]) -> &[T] {
    loop {
        words = match words {
            [first, _, rest @ ..] if first.as_ref() == "--dialect" => rest,
            [first, rest @ ..] if first.as_ref().to_string_lossy().starts_with("--dialect=") => {
                rest
            }
            _ => return words,
        };
    }
}

/// Runs the program in this dialect, in one thread as the native one.
pub(crate) fn start(words: Vec<OsString>) -> ExitCode {
    runtime::exit_code(started(words))
}

async fn started(words: Vec<OsString>) -> ExitCode {
    let words = words
        .into_iter()
        .map(|word| word.to_string_lossy().into_owned());
    match run(words).await {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            if !matches!(failure, Failure::OutputClosed | Failure::Silent(_)) {
                note(&complaint(&failure));
            }
            match failure {
                Failure::Silent(code) => ExitCode::from(code),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// Messages of ours begin as those of this dialect do.
fn complaint(failure: &Failure) -> String {
    let text = failure.to_string();
    if text.starts_with("error:") || text.starts_with("Error:") {
        text
    } else {
        format!("Error: {text}")
    }
}

async fn run(words: impl Iterator<Item = String>) -> Result<u8, Failure> {
    let plain = process::environment();
    // This dialect's own names of variables that we have, too.
    let environment = Environment::new(move |name| {
        let read = plain.reader();
        match name {
            names::CALIBAN_MAX_RETRIES => read(name).or_else(|| read("CLAUDE_CODE_MAX_RETRIES")),
            names::CALIBAN_PROVIDER => read(name).or_else(|| cloud(read)),
            _ => read(name),
        }
    });
    let words: Vec<String> = words.collect();
    let mut console = Console::new();
    if let [first, second, ..] = undirected(&words)
        && (first.as_str(), second.as_str()) == ("auth", "status")
    {
        console.write(&caliban_protocol::line(&auth_status(environment)?))?;
        return Ok(0);
    }
    let flags = Flags::parse(words).map_err(|error| Failure::Usage(error.to_string()))?;
    if flags.has("version") {
        let version = env!("CARGO_PKG_VERSION");
        console.write(&format!("{VERSION} (caliban {version})\n"))?;
        return Ok(0);
    }
    if flags.has("help") {
        console.write(HELP)?;
        return Ok(0);
    }
    if let Some(name) = unbuilt_cloud(environment.reader()) {
        return Err(Failure::Config(format!(
            "`{name}`: Bedrock's Messages endpoint (Mantle) is not built in; set `CLAUDE_CODE_USE_BEDROCK=1` to reach Claude at Bedrock with InvokeModel"
        )));
    }
    let invocation = Invocation::new(&flags, &environment, privilege())?;
    Box::pin(driver::run(invocation, environment)).await
}

/// The variables with which this dialect's users choose a cloud, and the provider that each means.
const CLOUDS: [(&str, ProviderKind); 3] = [
    ("CLAUDE_CODE_USE_BEDROCK", ProviderKind::Bedrock),
    ("CLAUDE_CODE_USE_VERTEX", ProviderKind::Vertex),
    ("CLAUDE_CODE_USE_FOUNDRY", ProviderKind::Azure),
];

/// The cloud that a variable chooses; `0` and `false` choose none.
fn cloud(read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let chosen = CLOUDS.iter().find(|(name, _)| is_on(read, name));
    chosen.map(|(_, kind)| kind.as_str().to_owned())
}

/// The variable that chooses a cloud which is not here, unless another one is chosen as well.
fn unbuilt_cloud(read: &dyn Fn(&str) -> Option<String>) -> Option<&'static str> {
    let name = "CLAUDE_CODE_USE_MANTLE";
    (is_on(read, name) && cloud(read).is_none()).then_some(name)
}

fn is_on(read: &dyn Fn(&str) -> Option<String>, name: &str) -> bool {
    let value = read(name).unwrap_or_default().to_ascii_lowercase();
    !matches!(value.trim(), "" | "0" | "false" | "no" | "off")
}

const HELP: &str = "\
Usage: claude [options] [prompt]

This is caliban, which takes the options of Claude Code for programs that were written for it.
-p, --print answers and exits; --input-format stream-json reads prompts and control messages.
`caliban --help` shows caliban's own options, and its manual has a chapter on embedding.
";

/// Whether there is a key for the provider that would be asked, and where it comes from.
fn auth_status(environment: Environment) -> Result<serde_json::Value, Failure> {
    let (configuration, _) = driver::configured(&mut RunOptions::default(), environment)?;
    let kind = provider::kind(None, None, &configuration)?;
    let is_set = |name: &str| configuration.environment().text(name).is_some();
    let method = match provider::key_source(kind, &configuration)? {
        KeySource::Program { .. } => "api_key_helper",
        KeySource::Variable if is_set("ANTHROPIC_API_KEY") => "api_key",
        KeySource::Variable if is_set("ANTHROPIC_AUTH_TOKEN") => "oauth_token",
        KeySource::Variable | KeySource::Keyring(_) | KeySource::File(_) => "api_key",
        KeySource::Absent => "none",
    };
    // A provider without keys asks for none.
    let is_ready = method != "none" || !kind.needs_key();
    Ok(json!({
        "loggedIn": is_ready,
        "authMethod": method,
        "apiProvider": match kind {
            ProviderKind::Anthropic => "firstParty",
            ProviderKind::Azure => "foundry",
            ProviderKind::OpenAi
            | ProviderKind::Google
            | ProviderKind::Ollama
            | ProviderKind::Bedrock
            | ProviderKind::Vertex => kind.as_str(),
        },
    }))
}

#[cfg(unix)]
fn privilege() -> Privilege {
    if rustix::process::geteuid().is_root() {
        Privilege::Root
    } else {
        Privilege::Ordinary
    }
}

#[cfg(not(unix))]
fn privilege() -> Privilege {
    Privilege::Ordinary
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("caliban", &["-p", "x"], None, Dialect::Caliban)]
    #[case("/usr/bin/claude", &["-p", "x"], None, Dialect::Claude)]
    #[case("claude", &["--dialect", "caliban"], None, Dialect::Caliban)]
    #[case("caliban", &["--dialect=claude", "-p"], None, Dialect::Claude)]
    #[case("caliban", &["-p", "--", "--dialect=claude"], None, Dialect::Caliban)]
    #[case("caliban", &["-p"], Some("claude"), Dialect::Claude)]
    #[case("claude", &["-p"], Some("caliban"), Dialect::Caliban)]
    #[case("claude", &["mcp", "list"], None, Dialect::Caliban)]
    #[case("claude", &["-p", "mcp"], None, Dialect::Claude)]
    #[case("caliban", &["--dialect", "claude", "mcp", "list"], None, Dialect::Caliban)]
    #[case("caliban", &["--dialect=claude", "mcp", "list"], None, Dialect::Caliban)]
    #[case("caliban", &["--dialect", "mcp"], None, Dialect::Caliban)]
    #[case("caliban", &["--dialect=claude", "-p", "mcp"], None, Dialect::Claude)]
    #[case("caliban", &["--dialect", "caliban"], Some("claude"), Dialect::Caliban)]
    fn a_flag_beats_a_variable_beats_the_name(
        #[case] program: &str,
        #[case] words: &[&str],
        #[case] variable: Option<&str>,
        #[case] expected: Dialect,
    ) {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let found = dialect(Some(&OsString::from(program)), &words, variable);
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn a_variable_that_names_no_dialect_is_an_error() {
        let found = dialect(None, &[], Some("klingon"));
        assert!(matches!(found, Err(Failure::Config(_))));
    }
}
