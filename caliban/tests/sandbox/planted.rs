//! Places that are as good as hooks, by what the user's own configuration says of them.

use super::*;

fn git(directory: &Path, args: &[&str]) {
    let done = std::process::Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// What a command came to, tried in a repository with this configuration and these files.
fn tried(configuration: &[&[&str]], files: &[&str], line: &str) -> (Bench, Ran) {
    let bench = bench(ON, bash("true"));
    let root = bench.workspace.path();
    git(root, &["init", "-q"]);
    for pair in configuration {
        let args: Vec<&str> = ["config"].iter().chain(*pair).copied().collect();
        git(root, &args);
    }
    for file in files {
        write(&root.join(file), "the user's");
    }
    let ran = sandbox(&bench, &["exec", "--", "sh", "-c", line]);
    (bench, ran)
}

#[rstest]
#[case::hooks(&["core.hooksPath", ".githooks"], ".githooks/pre-commit")]
#[case::hooks_elsewhere(&["core.hooksPath", "tools/hooks"], "tools/hooks/pre-push")]
#[case::further_configuration(&["include.path", "../.gitsettings"], ".gitsettings")]
#[case::filter(&["filter.x.clean", "tools/clean.sh %f"], "tools/clean.sh")]
#[case::alias(&["alias.st", "!./bin/st"], "bin/st")]
fn what_git_runs_stays_the_users(#[case] configuration: &[&str], #[case] file: &str) {
    if unavailable() {
        return;
    }
    let folder = Path::new(file).parent().unwrap().display().to_string();
    let line = format!(
        "echo planted > {file}; mv {file} x && echo planted > {file}; [ -z '{folder}' ] || \
         {{ mv '{folder}' y && mkdir -p '{folder}' && echo planted > {file}; }}; exit 1"
    );
    let (bench, ran) = tried(&[configuration], &[file], &line);
    let path = bench.workspace.path().join(file);
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text, "the user's", "{}", ran.stderr);
    assert!(ran.stderr.contains("is protected"), "{}", ran.stderr);
}

#[test]
fn hooks_that_are_not_there_yet_are_taken_away() {
    if unavailable() {
        return;
    }
    let line = "mkdir .githooks && echo planted > .githooks/pre-commit";
    let (bench, ran) = tried(&[&["core.hooksPath", ".githooks"]], &[], line);
    assert!(!bench.workspace.path().join(".githooks").exists());
    assert!(ran.stderr.contains(".githooks"), "{}", ran.stderr);
}

#[test]
fn the_users_own_settings_of_git_count_too() {
    if unavailable() {
        return;
    }
    let bench = bench(ON, bash("true"));
    let root = bench.workspace.path();
    git(root, &["init", "-q"]);
    write(
        &bench.home.path().join(".gitconfig"),
        "[core]\n\thooksPath = .githooks\n",
    );
    write(&root.join(".githooks/pre-commit"), "the user's");
    sandbox(
        &bench,
        &[
            "exec",
            "--",
            "sh",
            "-c",
            "echo planted > .githooks/pre-commit",
        ],
    );
    let text = std::fs::read_to_string(root.join(".githooks/pre-commit")).unwrap();
    assert_eq!(text, "the user's");
}

#[test]
fn a_home_that_can_be_written_keeps_what_it_starts_from() {
    if unavailable() {
        return;
    }
    let settings = format!("{ON}[sandbox.filesystem]\nallow_write = ['${{HOME}}']\n");
    let bench = bench(&settings, bash("true"));
    let home = bench.home.path();
    write(&home.join(".bashrc"), "the user's");
    write(&home.join(".local/bin/tool"), "the user's");
    write(&home.join(".ssh/id"), "the user's");
    let line = "for f in .bashrc .profile .zshrc .gitconfig .local/bin/tool .local/bin/ls .ssh/id \
                .ssh/authorized_keys .config/autostart/x .config/fish/config.fish; do \
                mkdir -p $(dirname $HOME/$f); echo planted > $HOME/$f; done; \
                cat $HOME/.ssh/id; echo work > $HOME/work";
    let ran = sandbox(&bench, &["exec", "--", "sh", "-c", line]);
    let planted = std::process::Command::new("grep")
        .args(["-rl", "--exclude-dir=quarantine", "planted"])
        .arg(home)
        .output()
        .unwrap();
    let planted = String::from_utf8_lossy(&planted.stdout).into_owned();
    assert_eq!(planted, "", "{}", ran.stderr);
    assert!(!ran.stdout.contains("the user's"), "{}", ran.stdout);
    let work = std::fs::read_to_string(home.join("work")).unwrap();
    assert_eq!(work, "work\n", "{}", ran.stderr);
}

#[test]
fn what_is_not_in_the_list_of_reading_is_said_to_be_so() {
    if unavailable() {
        return;
    }
    let settings = format!("{ON}[sandbox.filesystem]\nallow_read = ['${{WORKSPACE}}']\n");
    let bench = bench(&settings, bash("true"));
    let ran = sandbox(&bench, &["exec", "--", "cat", "/etc/hosts"]);
    let said = "it is not in `sandbox.filesystem.allow_read`";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

/// Copies of files tell what the files themselves do not tell any more.
#[test]
fn what_is_kept_to_be_taken_back_is_not_seen() {
    if unavailable() {
        return;
    }
    let settings = format!("{ON}[sandbox.filesystem]\ndeny_read = ['${{WORKSPACE}}/.env']\n");
    let look = "find $HOME -name '*.bin' -exec cat {} +; ls -R $HOME/.caliban; : > x";
    let script = calls(vec![
        ("Write", json!({"path": "a", "content": "new"})),
        ("Bash", json!({"command": look})),
    ]);
    let bench = bench(&settings, script);
    write(&bench.workspace.path().join("a"), "KEPT SECRET");
    write(&bench.workspace.path().join(".env"), "KEPT SECRET");
    let (ran, _) = ask(&bench, &["--no-permissions"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let seen = result(&bench);
    assert!(
        !seen.contains("KEPT SECRET") && !seen.contains("prompt-001"),
        "{seen}"
    );
}

/// A server runs as long as its session; what it plants does not lie there as long.
#[test]
fn what_a_server_plants_is_taken_away_while_it_runs() {
    if unavailable() {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let server = "[mcp_servers.stub]\ncommand = 'bash'\nargs = ['-c', '(sleep 1; echo x > .envrc; touch planted) & exec python3 stub.py']\nsandbox = true\n";
    let look = "until [ -e planted ]; do sleep 0.1; done; n=0; \
                while [ -e .envrc ] && [ $n -lt 150 ]; do sleep 0.1; n=$((n + 1)); done; ls -A";
    let bench = bench(&format!("{ON}{server}"), bash(look));
    std::fs::copy(script, bench.workspace.path().join("stub.py")).unwrap();
    let (ran, frames) = ask(&bench, &["--no-permissions"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let seen = result(&bench);
    assert!(
        seen.contains("planted") && !seen.contains(".envrc"),
        "{seen}"
    );
    let told = format!("{} {frames:?}", ran.stderr);
    assert!(told.contains(".envrc` was created"), "{told}");
}
