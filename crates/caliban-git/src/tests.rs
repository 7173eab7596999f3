use std::process::Command;

use super::*;

fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    vec![("PATH".into(), path), ("HOME".into(), home.into())]
}

fn set_up(root: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t"])
        .args(args)
        .current_dir(root)
        .env("HOME", root)
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
}

#[tokio::test]
async fn nothing_that_a_repository_names_is_run() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path();
    set_up(root, &["init", "-q"]);
    let canary = root.join("canary");
    let touch = format!("touch '{}'; cat", canary.display());
    std::fs::create_dir_all(root.join(".git/hooks")).unwrap();
    let hook = root.join(".git/hooks/post-commit");
    std::fs::write(&hook, format!("#!/bin/sh\n{touch}\n")).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for key in ["filter.x.clean", "filter.x.smudge", "core.fsmonitor"] {
        set_up(root, &["config", key, &touch]);
    }
    std::fs::write(root.join(".gitattributes"), "* filter=x\n").unwrap();
    std::fs::write(root.join("f"), "text\n").unwrap();
    let git = Git::new(root.to_owned(), environment(root), Guard::None).await;
    let git = git.with(&[
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@a"),
        ("GIT_COMMITTER_NAME", "a"),
        ("GIT_COMMITTER_EMAIL", "a@a"),
    ]);
    git.run(["add", "-A"]).await.unwrap();
    git.run(["commit", "-q", "-m", "x"]).await.unwrap();
    std::fs::remove_file(root.join("f")).unwrap();
    git.run(["checkout", "-q", "--", "f"]).await.unwrap();
    assert_eq!(git.ask(&["status", "--short"]).await.unwrap(), "");
    assert!(!canary.exists());
    assert_eq!(std::fs::read_to_string(root.join("f")).unwrap(), "text\n");
}

#[tokio::test]
async fn refusals_are_told_in_one_line() {
    let temp = tempfile::tempdir().unwrap();
    let git = Git::new(
        temp.path().to_owned(),
        environment(temp.path()),
        Guard::None,
    )
    .await;
    let refused = git.run(["rev-parse", "HEAD"]).await.unwrap_err();
    assert!(refused.reason().starts_with("not a git repository"));
    let refused = git.ask(&["rev-parse", "HEAD"]).await.unwrap_err();
    assert!(refused.starts_with("not a git repository"), "{refused}");
}
