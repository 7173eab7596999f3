//! The programs in a workspace that its own configuration starts: who trusts the one trusts the
//! other, as they are.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The largest program that can be recognised again, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;
/// The most programs that one workspace's configuration may start.
pub(super) const MOST: usize = 256;

/// The keys whose values start something, in all spellings of all files that are read.
const STARTERS: [&str; 17] = [
    "hooks",
    "mcp_servers",
    "mcpServers",
    "servers",
    "server",
    "api_key_helper",
    "apiKeyHelper",
    "aws_auth_refresh_command",
    "aws_credential_export",
    "awsCredentialExport",
    "awsAuthRefresh",
    "gcp_auth_refresh_command",
    "statusLine",
    "status_line",
    "telemetry",
    "otelHeadersHelper",
    "tui",
];
/// What decides which program that is, below those keys.
const WORDS: [&str; 6] = [
    "command",
    "args",
    "env",
    "cwd",
    "otel_headers_helper",
    "otelHeadersHelper",
];

/// Which files of the workspace a configuration file names where it starts something. Names are
/// looked for in all words of a command, as the shell would see them from the workspace, from the
/// directory where programs are started, or from the `cwd` of the entry. What a program starts in
/// turn is not known here.
pub(super) fn named_in(text: &str, workspace: &Path, started_in: &Path) -> BTreeSet<PathBuf> {
    let document = serde_json::from_str::<Value>(text)
        .ok()
        .or_else(|| toml::from_str::<Value>(text).ok());
    let mut finder = Finder {
        workspace,
        found: BTreeSet::new(),
    };
    if let Some(Value::Object(document)) = document {
        for (key, value) in &document {
            if STARTERS.contains(&key.as_str()) {
                finder.start(value, started_in);
            }
        }
    }
    finder.found
}

struct Finder<'a> {
    workspace: &'a Path,
    found: BTreeSet<PathBuf>,
}

impl Finder<'_> {
    /// Looks through what starts something; a bare text is a command by itself.
    fn start(&mut self, value: &Value, directory: &Path) {
        match value {
            Value::Object(table) => {
                let directory = match table.get("cwd").and_then(Value::as_str) {
                    Some(cwd) => directory.join(cwd),
                    None => directory.to_owned(),
                };
                for (key, value) in table {
                    if WORDS.contains(&key.as_str()) {
                        self.words(value, &directory);
                    } else if !value.is_string() {
                        self.start(value, &directory);
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.start(value, directory)),
            Value::String(_) => self.words(value, directory),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn words(&mut self, value: &Value, directory: &Path) {
        match value {
            Value::String(text) => {
                let breaks = |c: char| c.is_whitespace() || "\"'`;|&<>()=,".contains(c);
                for word in text.split(breaks).filter(|word| !word.is_empty()) {
                    self.word(word, directory);
                }
                // A name with a space in it.
                self.word(text, directory);
            }
            Value::Array(values) => values.iter().for_each(|value| self.words(value, directory)),
            Value::Object(table) => table
                .values()
                .for_each(|value| self.words(value, directory)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn word(&mut self, word: &str, directory: &Path) {
        if self.found.len() > MOST {
            return;
        }
        // What follows a variable may be meant from the workspace, as what begins with a slash
        // after a quoted one.
        let rest = match word.strip_prefix('$') {
            Some(variable) => match variable.split_once('/') {
                Some((_, rest)) => rest,
                None => return,
            },
            None => word,
        };
        let within = rest.trim_start_matches('/');
        for path in [
            directory.join(rest),
            self.workspace.join(rest),
            self.workspace.join(within),
        ] {
            let Ok(path) = fs::canonicalize(path) else {
                continue;
            };
            if path.starts_with(self.workspace) && path.is_file() {
                self.found.insert(path);
            }
        }
    }
}

/// What a program is; nothing where it is too large to tell, or cannot be read.
pub(super) fn digest(path: &Path) -> Option<[u8; 32]> {
    let file = File::open(path).ok()?;
    if file.metadata().ok()?.len() > LARGEST {
        return None;
    }
    let mut file = file.take(LARGEST);
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hasher.finalize().into()),
            length => hasher.update(&buffer[..length]),
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        let workspace = root.join("w");
        fs::create_dir_all(workspace.join("tools")).unwrap();
        for name in ["a.sh", "tools/b.py", "c d.sh", "README.md"] {
            fs::write(workspace.join(name), "").unwrap();
        }
        fs::write(root.join("outside.sh"), "").unwrap();
        std::os::unix::fs::symlink("a.sh", workspace.join("link")).unwrap();
        let found = named_in(text, &workspace, &workspace);
        let relative = |path: PathBuf| {
            let path = path.strip_prefix(&workspace).unwrap();
            path.display().to_string()
        };
        found.into_iter().map(relative).collect()
    }

    #[test]
    fn programs_are_found_wherever_a_command_names_them() {
        let hook = |command: &str| {
            format!(
                "[[hooks.Stop]]\nmatcher = 'README.md'\n[[hooks.Stop.handlers]]\n\
                 type = 'command'\ncommand = '''{command}'''\n"
            )
        };
        for (text, expected) in [
            (hook("./a.sh --fast"), &["a.sh"][..]),
            (
                hook("cd tools && python3 tools/b.py | cat"),
                &["tools/b.py"],
            ),
            (
                hook("\"$CALIBAN_PROJECT_DIR\"/a.sh; ${X}/tools/b.py"),
                &["a.sh", "tools/b.py"],
            ),
            (hook("sh -c './link'"), &["a.sh"]),
            (hook("../outside.sh /bin/sh"), &[]),
            (
                "[mcp_servers.x]\ncommand = 'python3'\nargs = ['b.py']\ncwd = 'tools'".to_owned(),
                &["tools/b.py"],
            ),
            (
                r#"{"mcpServers": {"x": {"command": "node", "env": {"OPTIONS": "--require=./a.sh"}}}}"#
                    .to_owned(),
                &["a.sh"],
            ),
            ("api_key_helper = './c d.sh'".to_owned(), &["c d.sh"]),
            ("[permissions]\nallow = ['Bash:./a.sh']".to_owned(), &[]),
            ("nonsense [".to_owned(), &[]),
        ] {
            assert_eq!(names(&text), expected, "{text}");
        }
    }
}
