//! Worktrees and submodules in the sandbox: work in them succeeds, and what makes git run programs
//! stays as it is. And programs that are not commands: servers.

use std::path::Path;
use std::process::Command;

use rstest::rstest;
use serde_json::Value;

use crate::support::{Bench, Ran, bare, run};
use crate::{ON, bash, bench, unavailable, write};

pub(crate) fn git(directory: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// What was committed last.
fn latest(directory: &Path) -> String {
    git(directory, &["log", "-1", "--format=%s"])
        .trim()
        .to_owned()
}

/// A repository with one commit.
pub(crate) fn repository(directory: &Path) {
    write(&directory.join("a.txt"), "a\n");
    git(directory, &["init", "-q"]);
    git(directory, &["add", "."]);
    git(directory, &["commit", "-q", "-m", "first"]);
}

/// Runs a line of a shell in the sandbox, in a directory.
pub(crate) fn exec(bench: &Bench, directory: &Path, line: &str) -> Ran {
    let mut command = bare(bench.home.path(), directory);
    run(command.args(["sandbox", "exec", "--", "bash", "-c", line]))
}

const COMMIT: &str =
    "echo b >> a.txt && git -c user.name=a -c user.email=a@b commit -q -a -m second";

#[test]
fn a_worktree_can_be_worked_in_and_its_repository_keeps_its_hooks() {
    if unavailable() {
        return;
    }
    let bench = bench(ON, bash("true"));
    let folder = tempfile::tempdir().unwrap();
    let (main, tree) = (folder.path().join("main"), folder.path().join("tree"));
    repository(&main);
    std::fs::remove_dir_all(main.join(".git/hooks")).unwrap();
    git(&main, &["worktree", "add", "-q", "../tree"]);
    let ran = exec(&bench, &tree, COMMIT);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(latest(&tree), "second");
    // What is there is read-only, and what is not there yet does not stay.
    let common = main.join(".git");
    let evil = format!(
        "echo x >> {0}/config; mkdir -p {0}/hooks && echo x > {0}/hooks/post-commit; echo x > {0}/worktrees/tree/commondir; true",
        common.display()
    );
    let before = std::fs::read_to_string(common.join("config")).unwrap();
    let ran = exec(&bench, &tree, &evil);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let after = std::fs::read_to_string(common.join("config")).unwrap();
    assert_eq!(before, after);
    assert!(!common.join("hooks/post-commit").exists(), "{}", ran.stderr);
    let pointer = std::fs::read_to_string(common.join("worktrees/tree/commondir")).unwrap();
    assert_eq!(pointer.trim(), "../..");
}

/// A repository with a submodule `sub`, made in `folder`.
fn with_module(folder: &Path) {
    let (inner, outer) = (folder.join("inner"), folder.join("outer"));
    repository(&inner);
    repository(&outer);
    git(&outer, &["submodule", "--quiet", "add", "../inner", "sub"]);
    git(&outer, &["commit", "-q", "-m", "module"]);
}

#[rstest]
#[case::from_above("outer", "cd sub && ")]
#[case::in_itself("outer/sub", "")]
fn a_submodule_can_be_worked_in_and_keeps_its_configuration(
    #[case] place: &str,
    #[case] enter: &str,
) {
    if unavailable() {
        return;
    }
    let bench = bench(ON, bash("true"));
    let folder = tempfile::tempdir().unwrap();
    with_module(folder.path());
    let workspace = folder.path().join(place);
    let ran = exec(&bench, &workspace, &format!("{enter}{COMMIT}"));
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let sub = folder.path().join("outer/sub");
    assert_eq!(latest(&sub), "second");
    let module = folder.path().join("outer/.git/modules/sub");
    std::fs::remove_dir_all(module.join("hooks")).unwrap();
    let before = std::fs::read_to_string(module.join("config")).unwrap();
    let evil = format!(
        "echo x >> {0}/config; mv {0} {0}2; mkdir -p {0}/hooks && echo x > {0}/hooks/post-commit; echo x > {0}/commondir; true",
        module.display()
    );
    let ran = exec(&bench, &workspace, &evil);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let after = std::fs::read_to_string(module.join("config")).unwrap();
    assert_eq!(before, after);
    for planted in ["hooks/post-commit", "commondir"] {
        assert!(!module.join(planted).exists(), "{planted}: {}", ran.stderr);
    }
}

#[rstest]
#[case::confined(ON, "sandbox = true\n", "connected", false)]
#[case::open(ON, "", "connected", true)]
#[case::without_a_sandbox("", "sandbox = true\n", "failed", false)]
fn a_server_may_be_confined(
    #[case] settings: &str,
    #[case] key: &str,
    #[case] status: &str,
    #[case] writes: bool,
) {
    if unavailable() {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let server = format!(
        "[mcp_servers.stub]\ncommand = 'bash'\nargs = ['-c', 'echo x > $HOME/served; exec python3 stub.py']\n{key}"
    );
    let bench = bench(&format!("{settings}{server}"), bash("true"));
    // In the workspace, which is seen within the sandbox wherever this repository lies.
    std::fs::copy(script, bench.workspace.path().join("stub.py")).unwrap();
    let mut command = bare(bench.home.path(), bench.workspace.path());
    let ran = run(command.args(["mcp", "status", "--json"]));
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    let shown = shown.to_string();
    assert!(shown.contains(&format!("\"{status}\"")), "{shown}");
    assert_eq!(bench.home.path().join("served").exists(), writes);
}
