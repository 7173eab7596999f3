//! Every key of `[sandbox]`, as the reference of settings lists them, is turned through the built
//! binary and changes what happens, or says here where else that is shown.

use std::path::Path;

use crate::support::Bench;
use crate::{ON, ask, bash, bench, proxy, result, unavailable, write};

const NEIGHBOURS: [&str; 2] = [include_str!("main.rs"), include_str!("consent.rs")];

/// What shows that a key does something.
enum Shown {
    /// The command is told this with one of the settings and not with the other.
    Told {
        without: String,
        with: String,
        command: String,
        said: &'static str,
    },
    /// The run ends so, with one and with the other.
    Ends {
        without: String,
        with: String,
        codes: (i32, i32),
    },
    /// The backend is none with one and some with the other.
    Backend { without: String, with: String },
    /// Tests of the profile for macOS show it; here it has nothing to say.
    InTheProfile,
    /// A test of this name beside this one shows it.
    Elsewhere(&'static str),
}

fn told(key: &str, command: &str, said: &'static str) -> Shown {
    Shown::Told {
        without: ON.to_owned(),
        with: format!("{ON}{key}"),
        command: command.to_owned(),
        said,
    }
}

fn shown(key: &str, folder: &Path) -> Shown {
    let listed = proxy();
    let fetch = "unset NO_PROXY no_proxy; python3 -c 'import urllib.request as u; print(u.urlopen(\"URL\").read())' 2>&1 | tail -1";
    match key {
        "enabled" => Shown::Told {
            without: "[sandbox]\nenabled = false\n".to_owned(),
            with: ON.to_owned(),
            command: "echo x > $HOME/outside".to_owned(),
            said: "Read-only",
        },
        "fail_if_unavailable" => {
            let keys = "[sandbox]\nenabled = true\nbwrap_path = '/no/such'\n";
            Shown::Ends {
                without: keys.to_owned(),
                with: format!("{keys}fail_if_unavailable = true\n"),
                codes: (0, 78),
            }
        }
        "bwrap_path" => Shown::Ends {
            without: ON.to_owned(),
            with: format!("{ON}bwrap_path = '/no/such'\n"),
            codes: (0, 78),
        },
        "enable_weaker_nested_sandbox" => {
            let keys = format!(
                "[sandbox]\nenabled = true\nbwrap_path = '{}'\n",
                without_user_namespaces(folder)
            );
            Shown::Backend {
                without: keys.clone(),
                with: format!("{keys}enable_weaker_nested_sandbox = true\n"),
            }
        }
        "auto_allow_bash_if_sandboxed" => Shown::Elsewhere("every_mode_and_rule_counts_as_it_says"),
        "allow_unsandboxed_commands" => told(
            "allow_unsandboxed_commands = ['ls']\n",
            &format!("ls -d {}", folder.display()),
            "[exit 0",
        ),
        "filesystem.allow_read" => told(
            "[sandbox.filesystem]\nallow_read = ['/usr']\n",
            "ls $HOME/f",
            "cannot access",
        ),
        "filesystem.deny_read" => told(
            "[sandbox.filesystem]\ndeny_read = ['${WORKSPACE}/a']\n",
            "cat a/f",
            "No such file",
        ),
        "filesystem.allow_write" => told(
            "[sandbox.filesystem]\nallow_write = []\n",
            "echo new > a/f",
            "Read-only",
        ),
        "filesystem.deny_write" => told(
            "[sandbox.filesystem]\ndeny_write = ['${WORKSPACE}/a']\n",
            "echo new > a/f",
            "Read-only",
        ),
        "network.allowed_domains" => told(
            &format!("[sandbox.network]\nallowed_domains = ['127.0.0.1:{listed}']\n"),
            &fetch.replace("URL", &format!("http://127.0.0.1:{listed}/")),
            "OPERATORS",
        ),
        "network.http_proxy_port" => told(
            &format!("[sandbox.network]\nhttp_proxy_port = {listed}\n"),
            &fetch.replace("URL", "http://example.test/"),
            "OPERATORS",
        ),
        "network.allow_unix_sockets" => {
            Shown::Elsewhere("sockets_are_reached_only_where_they_may_be")
        }
        "sandbox_exec_path" | "network.allow_local_binding" | "network.allow_mach_lookup" => {
            Shown::InTheProfile
        }
        key => panic!("nothing shows what `sandbox.{key}` does"),
    }
}

/// A bubblewrap that refuses to make user namespaces, as in many containers.
fn without_user_namespaces(folder: &Path) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let script = "#!/bin/sh\nreal=$(command -v /usr/bin/bwrap || command -v bwrap)\nfor word; do\n  if [ \"$before\" = --args ] && tr '\\0' '\\n' < /proc/self/fd/$word | grep -qx -e --unshare-user; then\n    echo 'bwrap: No permissions to create new namespace' >&2; exit 1\n  fi\n  [ \"$word\" = --unshare-user ] && exit 1\n  before=$word\ndone\nexec \"$real\" \"$@\"\n";
    let path = folder.join("bwrap");
    write(&path, script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn stage(settings: &str, command: &str) -> Bench {
    let bench = bench(settings, bash(command));
    write(&bench.workspace.path().join("a/f"), "kept");
    write(&bench.home.path().join("f"), "kept");
    bench
}

#[test]
fn every_key_changes_what_happens() {
    if unavailable() {
        return;
    }
    let reference = include_str!("../../../docs/reference/settings.md");
    let keys = reference.lines().filter_map(|line| {
        let (key, rest) = line.strip_prefix("| `sandbox.")?.split_once('`')?;
        (!rest.starts_with(" | table")).then_some(key)
    });
    let keys: Vec<&str> = keys.collect();
    assert!(keys.len() >= 16, "{keys:?}");
    let folder = tempfile::tempdir().unwrap();
    for key in keys {
        match shown(key, folder.path()) {
            Shown::Told {
                without,
                with,
                command,
                said,
            } => {
                let seen = [without, with].map(|settings| {
                    let bench = stage(&settings, &command);
                    let (ran, _) = ask(&bench, &["--allow", "Bash"]);
                    assert_eq!(ran.code, Some(0), "{key}: {}", ran.stderr);
                    result(&bench)
                });
                let [without, with] = seen.each_ref().map(|text| text.contains(said));
                assert_eq!((without, with), (false, true), "{key}: {seen:#?}");
            }
            Shown::Ends {
                without,
                with,
                codes,
            } => {
                let seen = [without, with].map(|settings| {
                    let bench = stage(&settings, "true");
                    ask(&bench, &["--allow", "Bash"]).0.code
                });
                assert_eq!(seen, [Some(codes.0), Some(codes.1)], "{key}");
            }
            Shown::Backend { without, with } => {
                let seen = [without, with].map(|settings| {
                    let bench = stage(&settings, "true");
                    let (_, frames) = ask(&bench, &["--allow", "Bash"]);
                    frames[0]["sandbox"]["backend"].as_str().unwrap().to_owned()
                });
                assert_eq!(seen[0], "none", "{key}");
                assert_ne!(seen[1], "none", "{key}");
            }
            Shown::Elsewhere(test) => {
                let name = format!("fn {test}(");
                assert!(NEIGHBOURS.iter().any(|file| file.contains(&name)), "{key}");
            }
            Shown::InTheProfile => {}
        }
    }
}
