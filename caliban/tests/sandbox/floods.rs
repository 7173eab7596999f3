//! What is protected stays so however much a command puts around it, and whatever it does to the
//! things by which it is recognised.

use rstest::rstest;

use crate::repositories::{exec, repository};
use crate::support::Bench;
use crate::{ON, bash, bench, unavailable, write};

/// A workspace that is a repository, with another one in it, a submodule and an environment.
fn crowded() -> Bench {
    let bench = bench(ON, bash("true"));
    let root = bench.workspace.path();
    repository(root);
    repository(&root.join("sub"));
    repository(&root.join("other"));
    let modules = root.join(".git/modules");
    std::fs::create_dir_all(&modules).unwrap();
    std::fs::rename(root.join("other/.git"), modules.join("real")).unwrap();
    write(&root.join("env/pyvenv.cfg"), "");
    write(&root.join("env/bin/python"), "the user's");
    bench
}

#[rstest]
#[case::many_files(
    "seq 1 60000 | xargs touch",
    "git config core.fsmonitor /x; echo x > .git/hooks/pre-commit; echo x > .envrc; mkdir .vscode; echo x > .vscode/tasks.json",
    &[".envrc", ".vscode", ".git/hooks/pre-commit"]
)]
#[case::many_directories(
    "seq -f y%.0f 1 4000 | xargs mkdir",
    "git -C sub config core.fsmonitor /x; echo x > sub/.envrc",
    &["sub/.envrc"]
)]
#[case::many_modules(
    "cd .git/modules && seq 1 3000 | xargs mkdir",
    "git -C .git/modules/real config core.fsmonitor /x",
    &[]
)]
#[case::without_the_marker(
    "rm env/pyvenv.cfg",
    "echo evil > env/bin/python; echo evil > env/bin/new; touch env/pyvenv.cfg",
    &["env/bin/new"]
)]
fn a_crowd_hides_nothing(#[case] flood: &str, #[case] attack: &str, #[case] planted: &[&str]) {
    if unavailable() {
        return;
    }
    let bench = crowded();
    let root = bench.workspace.path();
    let configurations = [".git/config", "sub/.git/config", ".git/modules/real/config"];
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let before = configurations.map(read);
    let ran = exec(&bench, root, flood);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = exec(&bench, root, attack);
    assert_eq!(configurations.map(read), before, "{}", ran.stderr);
    for place in planted {
        assert!(!root.join(place).exists(), "{place}: {}", ran.stderr);
    }
}

#[rstest]
#[case::one_line(
    "git init -q n; printf '[core]fsmonitor=/x#]\n' >> n/.git/config",
    "n/.git/config"
)]
#[case::behind_samples(
    "git init -q n; (cd n/.git/hooks; seq -f %.0f.sample 3000 | xargs touch; echo x > pre-commit)",
    "n/.git/hooks/pre-commit"
)]
#[case::in_what_is_skipped(
    "git init -q node_modules; git -C node_modules config core.fsmonitor /x",
    "node_modules/.git/config"
)]
#[case::bare_in_what_is_skipped(
    "git init -q --bare target; git -C target config core.fsmonitor /x",
    "target/config"
)]
#[case::bare_by_commondir(
    "git init -q --bare x; mkdir e; cp x/HEAD e; echo ../x > e/commondir; echo x > e/config",
    "e/commondir"
)]
fn a_new_repository_runs_nothing(#[case] line: &str, #[case] place: &str) {
    if unavailable() {
        return;
    }
    let bench = bench(ON, bash("true"));
    let root = bench.workspace.path();
    let ran = exec(&bench, root, line);
    assert!(!root.join(place).exists(), "{}", ran.stderr);
    assert!(ran.stderr.contains("was moved to"), "{}", ran.stderr);
}

/// Many packages with places of their own: the workspace of a monorepo.
#[test]
fn a_monorepo_can_be_worked_in() {
    if unavailable() {
        return;
    }
    let bench = bench(ON, bash("true"));
    let root = bench.workspace.path();
    for index in 0..70 {
        write(&root.join(format!("packages/p{index}/.npmrc")), "x");
        write(&root.join(format!("packages/p{index}/CLAUDE.md")), "x");
    }
    let line = "echo y > packages/p69/new && ! echo y > packages/p69/.npmrc";
    let ran = exec(&bench, root, line);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(root.join("packages/p69/new").exists());
}
