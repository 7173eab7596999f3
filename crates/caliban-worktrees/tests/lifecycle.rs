//! Worktrees of real repositories: whatever is in one when it ends is in the tree, on a branch or
//! under a ref of ours afterwards.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]
#![cfg(unix)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use caliban_git::Git;
use caliban_process::Guard;
use caliban_worktrees::{
    Base, Ending, IgnoredFiles, Keep, Merge, Merged, Repository, Request, State, Work, Worktree,
    WorktreeError,
};

struct Bench {
    temp: tempfile::TempDir,
}

impl Bench {
    /// A repository with one commit.
    fn new() -> Self {
        let bench = Self::empty();
        bench.git(&["init", "-q", "-b", "main"]);
        bench.write("a.txt", "one\n");
        bench.write("src/lib.txt", "lib\n");
        bench.write("docs/page.txt", "page\n");
        bench.write(".gitignore", "*.log\n.env\ntarget/\n");
        bench.git(&["add", "-A"]);
        bench.git(&["commit", "-qm", "first"]);
        bench
    }

    fn empty() -> Self {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("my répo")).unwrap();
        Self { temp }
    }

    fn root(&self) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join("my répo")
    }

    fn data(&self) -> PathBuf {
        self.temp.path().join("data")
    }

    fn write(&self, path: &str, text: &str) {
        put(&self.root(), path, text);
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.root(), args)
    }

    async fn open(&self) -> Result<Repository, WorktreeError> {
        self.open_at(&self.root()).await
    }

    async fn open_at(&self, directory: &Path) -> Result<Repository, WorktreeError> {
        let path = std::env::var_os("PATH").unwrap();
        let environment: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), path),
            ("HOME".into(), self.temp.path().into()),
        ];
        let git = Git::new(directory.to_owned(), environment, Guard::None).await;
        Repository::open(git, &self.data()).await
    }

    async fn made(&self, request: Request) -> (Repository, Worktree) {
        let repository = self.open().await.unwrap();
        let worktree = repository.create(request).await.unwrap();
        (repository, worktree)
    }

    fn branches(&self) -> Vec<String> {
        let said = self.git(&["for-each-ref", "--format=%(refname)", "refs"]);
        said.lines().map(str::to_owned).collect()
    }
}

fn git(directory: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t"])
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(directory)
        .env("HOME", directory)
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
    String::from_utf8(done.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn request(purpose: &str) -> Request {
    Request {
        purpose: purpose.to_owned(),
        session: "s".to_owned(),
        ..Request::default()
    }
}

fn work(ending: &Ending) -> &Work {
    match ending {
        Ending::Branch(work) => work,
        other => panic!("{other:?}"),
    }
}

fn reason(ending: &Ending) -> &str {
    match ending {
        Ending::Kept { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_unchanged_one_leaves_nothing() {
    let bench = Bench::new();
    bench.write("a.txt", "parent's own change\n");
    bench.write("new.txt", "new\n");
    let before = bench.git(&["status", "--porcelain"]);
    let (repository, worktree) = bench.made(request("Look around")).await;
    assert_eq!(worktree.uncommitted.files, 2);
    let path = worktree.path().to_owned();
    assert_eq!(fs::read_to_string(path.join("a.txt")).unwrap(), "one\n");
    assert!(!path.join("new.txt").exists());
    let place = bench.root().join(".caliban/worktrees");
    assert_eq!(fs::read_to_string(place.join(".gitignore")).unwrap(), "*\n");
    assert_eq!(bench.git(&["status", "--porcelain"]), before);
    let listed = repository.list().await.unwrap();
    assert_eq!((listed.len(), &listed[0].state), (1, &State::Active));
    assert_eq!(worktree.finish(&[]).await.unwrap(), Ending::NOTHING);
    assert!(!path.exists());
    assert_eq!(bench.branches(), ["refs/heads/main"]);
    assert_eq!(repository.list().await.unwrap(), []);
}

#[tokio::test]
async fn dirty_staged_and_untracked_work_is_committed() {
    let bench = Bench::new();
    let (repository, worktree) = bench.made(request("Write")).await;
    let path = worktree.path().to_owned();
    put(&path, "a.txt", "staged\n");
    git(&path, &["add", "a.txt"]);
    put(&path, "a.txt", "and then changed\n");
    put(&path, "deep/new.txt", "untracked\n");
    fs::remove_file(path.join("src/lib.txt")).unwrap();
    let ending = worktree.finish(&[]).await.unwrap();
    let work = work(&ending);
    assert!(!path.exists());
    let show = |path: &str| bench.git(&["show", &format!("{}:{path}", work.branch)]);
    assert_eq!(show("a.txt"), "and then changed");
    assert_eq!(show("deep/new.txt"), "untracked");
    let staged = bench.git(&["show", &format!("{}~1:a.txt", work.branch)]);
    assert_eq!(staged, "staged");
    assert_eq!((work.commits, work.committed), (2, 3));
    assert!(work.diffstat.contains("deep/new.txt"), "{}", work.diffstat);
    let author = bench.git(&["log", "-1", "--format=%an <%ae>", &work.branch]);
    assert_eq!(author, "caliban <caliban@localhost>");
    let listed = repository.list().await.unwrap();
    assert_eq!(listed[0].state, State::Branch);
    assert_eq!(listed[0].commits, 2);
}

#[tokio::test]
async fn what_git_ignores_and_nobody_can_make_again_keeps_the_tree() {
    let bench = Bench::new();
    let (repository, worktree) = bench.made(request("Log")).await;
    let path = worktree.path().to_owned();
    put(&path, "target/debug/x", "built\n");
    put(&path, "run.log", "precious\n");
    put(&path, "a.txt", "two\n");
    let ending = worktree.finish(&[]).await.unwrap();
    assert!(reason(&ending).contains("`run.log`"), "{ending:?}");
    assert!(path.join("run.log").exists());
    let listed = repository.list().await.unwrap();
    assert!(matches!(listed[0].state, State::Kept(_)));
    // What could be committed is.
    assert_eq!(listed[0].uncommitted, 0);
    let entry = listed[0].entry.clone();
    let kept = repository
        .remove(entry.clone(), IgnoredFiles::Rebuildable, &[])
        .await
        .unwrap();
    assert!(reason(&kept).contains("run.log"));
    let all = repository.remove(entry, IgnoredFiles::All, &[]).await;
    assert_eq!(work(&all.unwrap()).commits, 1);
    assert!(!path.exists());
}

#[tokio::test]
async fn names_of_the_settings_may_go() {
    let bench = Bench::new();
    let (_, worktree) = bench.made(request("Log")).await;
    put(worktree.path(), "run.log", "x\n");
    let ending = worktree.finish(&["run.log".to_owned()]).await.unwrap();
    assert_eq!(ending, Ending::NOTHING);
}

#[tokio::test]
async fn commits_without_a_branch_are_rescued() {
    let bench = Bench::new();
    let (repository, worktree) = bench.made(request("Detach")).await;
    let path = worktree.path().to_owned();
    git(&path, &["checkout", "-q", "--detach"]);
    put(&path, "a.txt", "detached\n");
    git(&path, &["commit", "-qam", "detached"]);
    put(&path, "b.txt", "and more\n");
    let ending = worktree.finish(&[]).await.unwrap();
    let work = work(&ending);
    assert!(work.branch.starts_with("refs/caliban/rescue/"), "{work:?}");
    let show = |path: &str| bench.git(&["show", &format!("{}:{path}", work.branch)]);
    assert_eq!(
        (show("a.txt"), show("b.txt")),
        ("detached".into(), "and more".into())
    );
    let listed = repository.list().await.unwrap();
    assert_eq!(listed[0].commits, 2);
}

#[tokio::test]
async fn commits_that_were_switched_away_from_are_found() {
    let bench = Bench::new();
    bench.git(&["branch", "theirs"]);
    let (repository, worktree) = bench.made(request("Try two ways")).await;
    let (path, name) = (worktree.path().to_owned(), worktree.entry.name.clone());
    let own = worktree.entry.branch.clone();
    let commit = |text: &str| {
        put(&path, "way.txt", text);
        git(&path, &["add", "-A"]);
        git(&path, &["commit", "-qm", text]);
        git(&path, &["rev-parse", "HEAD"])
    };
    // Looked at, and nothing made there.
    git(&path, &["checkout", "-q", "theirs"]);
    git(&path, &["checkout", "-q", "--detach", "main"]);
    let lost = commit("first");
    git(&path, &["checkout", "-q", "main~0", "-b", "second"]);
    let second = commit("second");
    git(&path, &["checkout", "-q", &own]);
    put(&path, "away.txt", "away\n");
    git(&path, &["stash", "-q", "-u"]);
    let ending = worktree.finish(&[]).await.unwrap();
    let work = work(&ending);
    assert_eq!((&*work.branch, &work.tip), ("second", &second));
    let rescue = format!("refs/caliban/rescue/{name}");
    assert_eq!(bench.git(&["rev-parse", &rescue]), lost);
    assert_eq!(work.besides.len(), 2, "{:?}", work.besides);
    assert!(work.besides[0].contains(&rescue), "{:?}", work.besides);
    assert!(
        work.besides[1].contains("git stash apply"),
        "{:?}",
        work.besides
    );
    assert!(!path.exists());
    let listed = repository.list().await.unwrap();
    assert_eq!(listed[0].state, State::Branch);
}

#[tokio::test]
async fn commits_without_a_branch_survive_their_tree() {
    let bench = Bench::new();
    let (repository, worktree) = bench.made(request("Detach and vanish")).await;
    let (path, name) = (worktree.path().to_owned(), worktree.entry.name.clone());
    git(&path, &["checkout", "-q", "--detach"]);
    put(&path, "n.txt", "1\n");
    git(&path, &["add", "-A"]);
    git(&path, &["commit", "-qm", "n"]);
    let made = git(&path, &["rev-parse", "HEAD"]);
    drop(worktree);
    fs::remove_dir_all(&path).unwrap();
    let ended = repository.sweep(&[]).await.unwrap();
    let ending = ended.into_iter().next().unwrap().1.unwrap();
    let rescue = format!("refs/caliban/rescue/{name}");
    assert_eq!(work(&ending).branch, rescue);
    assert_eq!(work(&ending).besides, Vec::<String>::new());
    assert_eq!(bench.git(&["rev-parse", &rescue]), made);
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_lock_of_a_git_that_was_killed_holds_up_nothing() {
    let bench = Bench::new();
    let (_, worktree) = bench.made(request("Killed while it commits")).await;
    let path = worktree.path().to_owned();
    put(&path, "n.txt", "1\n");
    let own = git(&path, &["rev-parse", "--absolute-git-dir"]);
    let index = Path::new(&own).join("index.lock");
    let reference = format!(".git/refs/heads/{}.lock", worktree.entry.branch);
    let reference = bench.root().join(reference);
    for lock in [&index, &reference] {
        fs::write(lock, "").unwrap();
    }
    // Somebody who is in it may be at work.
    let mut somebody = Command::new("sleep")
        .arg("60")
        .current_dir(&path)
        .spawn()
        .unwrap();
    let data = bench.data();
    let repository = bench.open().await.unwrap();
    let ending = worktree.finish(&[]).await.unwrap();
    assert!(reason(&ending).contains("index.lock"), "{ending:?}");
    assert!(index.exists() && reference.exists() && data.exists());
    somebody.kill().unwrap();
    somebody.wait().unwrap();
    let entry = repository.find("killed").await.unwrap();
    let rule = IgnoredFiles::Rebuildable;
    let ending = repository.remove(entry, rule, &[]).await.unwrap();
    assert_eq!(work(&ending).commits, 1);
    assert!(!reference.exists());
}

#[tokio::test]
async fn commits_that_were_rewritten_are_no_work_of_their_own() {
    let bench = Bench::new();
    let (_, worktree) = bench.made(request("Amend")).await;
    let path = worktree.path().to_owned();
    put(&path, "n.txt", "1\n");
    git(&path, &["add", "-A"]);
    git(&path, &["commit", "-qm", "n"]);
    git(&path, &["commit", "-q", "--amend", "-m", "better"]);
    git(&path, &["reset", "-q", "--soft", "HEAD~1"]);
    git(&path, &["commit", "-qm", "best"]);
    git(&path, &["checkout", "-q", "main~0"]);
    git(&path, &["checkout", "-q", "-"]);
    let ending = worktree.finish(&[]).await.unwrap();
    assert_eq!(work(&ending).besides, Vec::<String>::new());
    assert_eq!(work(&ending).commits, 1);
}

#[tokio::test]
async fn what_was_only_stashed_is_told() {
    let bench = Bench::new();
    let (_, worktree) = bench.made(request("Stash")).await;
    let path = worktree.path().to_owned();
    put(&path, "a.txt", "changed\n");
    git(&path, &["stash", "-q"]);
    let ending = worktree.finish(&[]).await.unwrap();
    let Ending::Unchanged { besides } = ending else {
        panic!("{ending:?}");
    };
    assert_eq!(besides.len(), 1, "{besides:?}");
    assert_eq!(bench.git(&["stash", "list"]).lines().count(), 1);
}

#[tokio::test]
async fn a_renamed_branch_keeps_its_work() {
    let bench = Bench::new();
    let (repository, worktree) = bench.made(request("Rename")).await;
    let path = worktree.path().to_owned();
    git(&path, &["branch", "-m", "feature/mine"]);
    put(&path, "a.txt", "mine\n");
    let ending = worktree.finish(&[]).await.unwrap();
    assert_eq!(work(&ending).branch, "feature/mine");
    assert_eq!(bench.git(&["show", "feature/mine:a.txt"]), "mine");
    assert!(!path.exists());
    let listed = repository.list().await.unwrap();
    assert_eq!(listed[0].entry.branch, "feature/mine");
    let entry = listed[0].entry.clone();
    let merged = repository.merge(entry, Merge::Apply, &[]).await.unwrap();
    assert_eq!(merged, Merged::Applied { files: 1 });
}

#[tokio::test]
async fn work_on_two_branches_is_merged_and_removed_when_it_is_on_one() {
    let bench = Bench::new();
    let (repository, worktree) = bench.made(request("Split")).await;
    let (entry, path) = (worktree.entry.clone(), worktree.path().to_owned());
    put(&path, "own.txt", "on its own branch\n");
    git(&path, &["add", "-A"]);
    git(&path, &["commit", "-qm", "own"]);
    git(&path, &["switch", "-qc", "other", &entry.base]);
    put(&path, "other.txt", "on another\n");
    git(&path, &["add", "-A"]);
    git(&path, &["commit", "-qm", "other"]);
    let ending = worktree.finish(&[]).await.unwrap();
    for branch in [entry.branch.as_str(), "`other`"] {
        assert!(reason(&ending).contains(branch), "{ending:?}");
    }
    for how in [Merge::Apply, Merge::Commit] {
        let refused = repository.merge(entry.clone(), how, &[]).await;
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("on two branches"), "{said}");
    }
    let rule = IgnoredFiles::Rebuildable;
    let kept = repository.remove(entry.clone(), rule, &[]).await.unwrap();
    assert!(reason(&kept).contains("on two branches"), "{kept:?}");
    assert!(path.exists());
    git(&path, &["merge", "-q", "--no-edit", &entry.branch]);
    let merged = repository.merge(entry, Merge::Commit, &[]).await.unwrap();
    assert!(matches!(merged, Merged::Committed { .. }), "{merged:?}");
    for file in ["own.txt", "other.txt"] {
        assert!(bench.root().join(file).exists(), "{file}");
    }
}

#[tokio::test]
async fn what_git_is_in_the_middle_of_stays() {
    let bench = Bench::new();
    bench.git(&["branch", "other"]);
    let (_, worktree) = bench.made(request("Merge")).await;
    let path = worktree.path().to_owned();
    put(&path, "a.txt", "ours\n");
    git(&path, &["commit", "-qam", "ours"]);
    git(&path, &["checkout", "-q", "other"]);
    put(&path, "a.txt", "theirs\n");
    git(&path, &["commit", "-qam", "theirs"]);
    let name = worktree.entry.branch.clone();
    git(&path, &["checkout", "-q", &name]);
    let merge = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "merge",
            "other",
        ])
        .current_dir(&path)
        .output()
        .unwrap();
    assert!(!merge.status.success());
    let ending = worktree.finish(&[]).await.unwrap();
    assert!(
        reason(&ending).contains("a merge is under way"),
        "{ending:?}"
    );
    assert!(
        fs::read_to_string(path.join("a.txt"))
            .unwrap()
            .contains("<<<<")
    );
}

#[tokio::test]
async fn repositories_and_submodules_in_it_keep_it() {
    let bench = Bench::new();
    let (_, worktree) = bench.made(request("Nest")).await;
    let path = worktree.path().to_owned();
    fs::create_dir(path.join("nested")).unwrap();
    git(&path.join("nested"), &["init", "-q"]);
    put(&path, "nested/work.txt", "inner\n");
    let ending = worktree.finish(&[]).await.unwrap();
    assert!(
        reason(&ending).contains("repository of its own"),
        "{ending:?}"
    );
    assert!(path.join("nested/work.txt").exists());

    let bench = Bench::new();
    let inner = bench.temp.path().join("inner");
    fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q"]);
    git(&inner, &["commit", "-q", "--allow-empty", "-m", "x"]);
    bench.git(&["submodule", "add", "-q", inner.to_str().unwrap(), "sub"]);
    bench.git(&["commit", "-qm", "sub"]);
    let (_, worktree) = bench.made(request("Sub")).await;
    assert!(worktree.remarks[0].contains("submodules"));
    let path = worktree.path().to_owned();
    let empty = fs::read_dir(path.join("sub")).unwrap().count();
    assert_eq!(empty, 0);
    git(&path, &["submodule", "update", "-q", "--init"]);
    put(&path, "sub/work.txt", "inner\n");
    let ending = worktree.finish(&[]).await.unwrap();
    assert!(reason(&ending).contains("submodule `sub`"), "{ending:?}");
    assert!(path.join("sub/work.txt").exists());
}

#[tokio::test]
async fn changes_that_git_overlooks_keep_it() {
    let bench = Bench::new();
    let (_, worktree) = bench.made(request("Hide")).await;
    let path = worktree.path().to_owned();
    git(&path, &["update-index", "--assume-unchanged", "a.txt"]);
    put(&path, "a.txt", "hidden\n");
    let ending = worktree.finish(&[]).await.unwrap();
    assert!(reason(&ending).contains("overlook"), "{ending:?}");
    assert_eq!(fs::read_to_string(path.join("a.txt")).unwrap(), "hidden\n");
}

#[tokio::test]
async fn a_large_file_keeps_it() {
    let bench = Bench::new();
    let (_, worktree) = bench.made(request("Large")).await;
    let path = worktree.path().to_owned();
    let file = fs::File::create(path.join("big")).unwrap();
    file.set_len((10 << 20) + 1).unwrap();
    let ending = worktree.finish(&[]).await.unwrap();
    assert!(reason(&ending).contains("larger than 10 MiB"), "{ending:?}");
    assert!(path.join("big").exists());
}

#[tokio::test]
async fn a_checkout_may_be_limited() {
    let bench = Bench::new();
    let (_, worktree) = bench
        .made(Request {
            sparse_paths: vec!["src/".to_owned()],
            ..request("Sparse")
        })
        .await;
    let path = worktree.path().to_owned();
    assert!(path.join("src/lib.txt").exists() && path.join("a.txt").exists());
    assert!(!path.join("docs").exists());
    put(&path, "docs/other.txt", "outside\n");
    put(&path, "src/lib.txt", "changed\n");
    let ending = worktree.finish(&[]).await.unwrap();
    let branch = &work(&ending).branch;
    let files = bench.git(&["ls-tree", "-r", "--name-only", branch]);
    for file in ["docs/page.txt", "docs/other.txt", "src/lib.txt", "a.txt"] {
        assert!(files.contains(file), "{file}: {files}");
    }

    let (_, worktree) = bench
        .made(Request {
            sparse_paths: vec!["src/".to_owned(), "a.txt".to_owned()],
            ..request("Files")
        })
        .await;
    let path = worktree.path().to_owned();
    assert!(path.join("a.txt").exists() && path.join("src/lib.txt").exists());
    assert!(!path.join(".gitignore").exists());
    assert_eq!(worktree.finish(&[]).await.unwrap(), Ending::NOTHING);

    let (repository, worktree) = bench
        .made(Request {
            base: Base::Fresh,
            ..request("Fresh")
        })
        .await;
    let path = worktree.path().to_owned();
    let names: Vec<_> = fs::read_dir(&path).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    put(&path, "only.txt", "x\n");
    let diff = repository.diff(&worktree.entry).await.unwrap();
    let diff = String::from_utf8(diff).unwrap();
    assert!(
        diff.contains("only.txt") && !diff.contains("deleted"),
        "{diff}"
    );
    let ending = worktree.finish(&[]).await.unwrap();
    let files = bench.git(&["ls-tree", "-r", "--name-only", &work(&ending).branch]);
    assert!(files.contains("only.txt") && files.contains("docs/page.txt"));
    for path in ["../x", "", "!a", "a\nb", "-x"] {
        let odd = bench.open().await.unwrap();
        let odd = odd
            .create(Request {
                sparse_paths: vec![path.to_owned()],
                ..request("Odd")
            })
            .await;
        assert!(
            matches!(odd, Err(WorktreeError::BadSparsePath(_))),
            "{path}"
        );
    }
}

#[tokio::test]
async fn files_and_directories_are_brought_along() {
    let bench = Bench::new();
    bench.write(".worktreeinclude", ".env\nconf/*.log\n");
    bench.write(".env", "SECRET=1\n");
    bench.write("conf/x.log", "x\n");
    bench.write("other.log", "not asked for\n");
    bench.write("target/debug/bin", "built\n");
    let (_, worktree) = bench
        .made(Request {
            linked: vec!["target".to_owned()],
            ..request("Seed")
        })
        .await;
    let path = worktree.path().to_owned();
    assert_eq!(fs::read_to_string(path.join(".env")).unwrap(), "SECRET=1\n");
    assert!(path.join("conf/x.log").exists() && !path.join("other.log").exists());
    assert!(path.join("target/debug/bin").exists());
    put(&path, "a.txt", "work\n");
    let ending = worktree.finish(&[]).await.unwrap();
    let files = bench.git(&["ls-tree", "-r", "--name-only", &work(&ending).branch]);
    assert!(!files.contains("target"), "{files}");
    // What is linked is the parent's.
    assert!(bench.root().join("target/debug/bin").exists());
    assert!(!path.exists());

    let (_, worktree) = bench.made(request("Seed")).await;
    let path = worktree.path().to_owned();
    put(&path, ".env", "SECRET=2\n");
    let ending = worktree.finish(&[]).await.unwrap();
    assert!(reason(&ending).contains(".env"), "{ending:?}");
    assert_eq!(fs::read_to_string(path.join(".env")).unwrap(), "SECRET=2\n");

    for (odd, why) in [
        ("missing", "no such directory"),
        ("../x", "beneath"),
        ("src", "committed"),
        (".git", "belongs"),
    ] {
        let repository = bench.open().await.unwrap();
        let made = repository
            .create(Request {
                linked: vec![odd.to_owned()],
                ..request("Odd link")
            })
            .await;
        let error = made.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let left: Vec<String> = bench
        .branches()
        .into_iter()
        .filter(|name| name.contains("odd-link"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn where_there_can_be_none_it_says_so() {
    let bench = Bench::empty();
    assert!(matches!(
        bench.open().await.unwrap_err(),
        WorktreeError::NoRepository(_)
    ));
    bench.git(&["init", "-q", "--bare"]);
    assert!(matches!(
        bench.open().await.unwrap_err(),
        WorktreeError::Bare(_)
    ));
    let bench = Bench::empty();
    bench.git(&["init", "-q"]);
    let repository = bench.open().await.unwrap();
    assert!(matches!(
        repository.create(request("x")).await.unwrap_err(),
        WorktreeError::Unborn(_)
    ));
    let bench = Bench::new();
    let repository = bench.open().await.unwrap();
    let odd = Request {
        base: Base::from("no-such-branch"),
        ..request("x")
    };
    assert!(matches!(
        repository.create(odd).await.unwrap_err(),
        WorktreeError::NoCommit(_)
    ));
    let option = Request {
        base: Base::from("--all"),
        ..request("x")
    };
    assert!(matches!(
        repository.create(option).await.unwrap_err(),
        WorktreeError::NoCommit(_)
    ));
    let outside = bench.temp.path().join("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, bench.root().join(".caliban")).unwrap();
    assert!(matches!(
        repository.create(request("x")).await.unwrap_err(),
        WorktreeError::Planted(_)
    ));
    assert_eq!(fs::read_dir(outside).unwrap().count(), 0);
    assert_eq!(bench.branches(), ["refs/heads/main"]);
}

#[tokio::test]
async fn a_detached_parent_and_another_base_are_fine() {
    let bench = Bench::new();
    bench.git(&["branch", "old"]);
    bench.write("a.txt", "two\n");
    bench.git(&["commit", "-qam", "second"]);
    bench.git(&["checkout", "-q", "--detach"]);
    let (_, worktree) = bench
        .made(Request {
            base: Base::from("old"),
            ..request("Old")
        })
        .await;
    let text = fs::read_to_string(worktree.path().join("a.txt")).unwrap();
    assert_eq!(text, "one\n");
    assert_eq!(worktree.finish(&[]).await.unwrap(), Ending::NOTHING);
}

#[tokio::test]
async fn a_worktree_of_a_worktree_is_one() {
    let bench = Bench::new();
    let (_, outer) = bench.made(request("Outer")).await;
    let repository = bench.open_at(outer.path()).await.unwrap();
    let inner = repository.create(request("Inner")).await.unwrap();
    let path = inner.path().to_owned();
    assert!(path.starts_with(outer.path()));
    put(&path, "a.txt", "inner\n");
    // The outer one must not go while there is something in it.
    let outer_path = outer.path().to_owned();
    let ending = outer.finish(&[]).await.unwrap();
    assert!(matches!(ending, Ending::Kept { .. }), "{ending:?}");
    assert!(outer_path.exists() && path.exists());
    let ending = inner.finish(&[]).await.unwrap();
    let branch = &work(&ending).branch;
    assert_eq!(bench.git(&["show", &format!("{branch}:a.txt")]), "inner");
}

#[tokio::test]
async fn a_vanished_one_leaves_its_commits() {
    let bench = Bench::new();
    let (repository, worktree) = bench.made(request("Vanish")).await;
    let path = worktree.path().to_owned();
    put(&path, "a.txt", "committed\n");
    git(&path, &["commit", "-qam", "done"]);
    fs::remove_dir_all(&path).unwrap();
    let ending = worktree.finish(&[]).await.unwrap();
    let branch = &work(&ending).branch;
    assert_eq!(
        bench.git(&["show", &format!("{branch}:a.txt")]),
        "committed"
    );
    assert!(!bench.git(&["worktree", "list"]).contains("vanish"));
    let entry = repository.find("vanish").await.unwrap();
    assert_eq!(repository.list().await.unwrap()[0].state, State::Branch);
    bench.git(&["branch", "-D", &entry.branch]);
    assert_eq!(repository.list().await.unwrap(), []);
}

#[tokio::test]
async fn kept_by_wish_and_found_without_the_registry() {
    let bench = Bench::new();
    let (repository, worktree) = bench
        .made(Request {
            keep: Keep::Always,
            ..request("Keep me")
        })
        .await;
    let path = worktree.path().to_owned();
    put(&path, "a.txt", "kept\n");
    let ending = worktree.finish(&[]).await.unwrap();
    assert!(matches!(&ending, Ending::Kept { work: Some(_), .. }));
    assert!(path.exists());
    fs::remove_dir_all(bench.data()).unwrap();
    let listed = repository.list().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].commits, listed[0].state.as_str()),
        (1, "abandoned")
    );
    let ending = repository
        .remove(listed[0].entry.clone(), IgnoredFiles::Rebuildable, &[])
        .await
        .unwrap();
    let branch = &work(&ending).branch;
    assert_eq!(bench.git(&["show", &format!("{branch}:a.txt")]), "kept");
}

#[tokio::test]
async fn one_that_was_to_be_kept_is_removed_by_plain_git() {
    let bench = Bench::new();
    let (repository, worktree) = bench
        .made(Request {
            keep: Keep::Always,
            ..request("Keep me")
        })
        .await;
    let (path, branch) = (worktree.path().to_owned(), worktree.entry.branch.clone());
    put(&path, "a.txt", "kept\n");
    worktree.finish(&[]).await.unwrap();
    bench.git(&["merge", "-q", &branch]);
    bench.git(&["worktree", "remove", path.to_str().unwrap()]);
    bench.git(&["branch", "-d", &branch]);
    let entry = repository.find("keep-me").await.unwrap();
    let rule = IgnoredFiles::Rebuildable;
    let ending = repository.remove(entry, rule, &[]).await.unwrap();
    assert_eq!(ending, Ending::NOTHING);
    assert!(repository.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn who_works_in_one_is_not_disturbed() {
    let bench = Bench::new();
    let (repository, worktree) = bench.made(request("Busy")).await;
    let entry = worktree.entry.clone();
    let removed = repository
        .remove(entry.clone(), IgnoredFiles::All, &[])
        .await;
    assert!(matches!(removed.unwrap_err(), WorktreeError::InUse(_)));
    let merged = repository.merge(entry, Merge::Apply, &[]).await;
    assert!(matches!(merged.unwrap_err(), WorktreeError::InUse(_)));
    assert!(repository.sweep(&[]).await.unwrap().is_empty());
    put(worktree.path(), "a.txt", "left behind\n");
    // Its process was ended.
    drop(worktree);
    assert_eq!(repository.list().await.unwrap()[0].state, State::Abandoned);
    let swept = repository.sweep(&[]).await.unwrap();
    let branch = &work(swept[0].1.as_ref().unwrap()).branch;
    assert_eq!(
        bench.git(&["show", &format!("{branch}:a.txt")]),
        "left behind"
    );
}

#[tokio::test]
async fn twelve_at_once() {
    let bench = Bench::new();
    let repository = bench.open().await.unwrap();
    let making = (0..12).map(|index| {
        let repository = repository.clone();
        tokio::spawn(async move { repository.create(request(&format!("Agent {index}"))).await })
    });
    let making: Vec<_> = making.collect();
    let mut made = Vec::new();
    for one in making {
        made.push(one.await.unwrap().unwrap());
    }
    let ends = made.into_iter().enumerate().map(|(index, worktree)| {
        put(worktree.path(), "a.txt", &format!("{index}\n"));
        tokio::spawn(async move { worktree.finish(&[]).await })
    });
    let ends: Vec<_> = ends.collect();
    for end in ends {
        assert_eq!(work(&end.await.unwrap().unwrap()).commits, 1);
    }
    assert_eq!(repository.list().await.unwrap().len(), 12);
}

#[tokio::test]
async fn merging_brings_everything_or_nothing() {
    let bench = Bench::new();
    let (repository, worktree) = bench.made(request("Merge me")).await;
    put(worktree.path(), "a.txt", "theirs\n");
    put(worktree.path(), "new.txt", "new\n");
    worktree.finish(&[]).await.unwrap();
    let entry = repository.find("merge").await.unwrap();
    // Something of the user's is in the way.
    bench.write("a.txt", "mine\n");
    for how in [Merge::Apply, Merge::Commit] {
        let refused = repository.merge(entry.clone(), how, &[]).await.unwrap_err();
        assert!(
            refused.to_string().contains("nothing was changed"),
            "{refused}"
        );
        assert!(refused.to_string().contains("a.txt"), "{refused}");
        assert_eq!(
            fs::read_to_string(bench.root().join("a.txt")).unwrap(),
            "mine\n"
        );
        assert!(!bench.root().join("new.txt").exists());
    }
    bench.git(&["commit", "-qam", "mine"]);
    let head = bench.git(&["rev-parse", "HEAD"]);
    let refused = repository.merge(entry.clone(), Merge::Commit, &[]).await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("conflicts in `a.txt`")
    );
    assert_eq!(bench.git(&["rev-parse", "HEAD"]), head);
    bench.git(&["reset", "-q", "--hard", "HEAD~1"]);
    bench.write("src/lib.txt", "mine, uncommitted\n");
    let merged = repository.merge(entry.clone(), Merge::Commit, &[]).await;
    let Merged::Committed { commit } = merged.unwrap() else {
        panic!("it was not committed");
    };
    assert_eq!(bench.git(&["rev-parse", "HEAD"]), commit);
    let read = |path: &str| fs::read_to_string(bench.root().join(path)).unwrap();
    assert_eq!(read("a.txt"), "theirs\n");
    assert_eq!(read("src/lib.txt"), "mine, uncommitted\n");
    let again = repository.merge(entry.clone(), Merge::Commit, &[]).await;
    assert_eq!(again.unwrap(), Merged::Already);
    // All of it is in the branch that is checked out, so its own may go.
    let ending = repository
        .remove(entry, IgnoredFiles::Rebuildable, &[])
        .await;
    assert_eq!(ending.unwrap(), Ending::NOTHING);
    assert_eq!(bench.branches(), ["refs/heads/main"]);
}

#[tokio::test]
async fn what_is_applied_is_not_committed_and_the_branch_stays() {
    let bench = Bench::new();
    let (repository, worktree) = bench.made(request("Apply me")).await;
    put(worktree.path(), "bin", "a\0b");
    fs::remove_file(worktree.path().join("docs/page.txt")).unwrap();
    worktree.finish(&[]).await.unwrap();
    let entry = repository.find("apply").await.unwrap();
    bench.write("src/lib.txt", "mine\n");
    let merged = repository.merge(entry.clone(), Merge::Apply, &[]).await;
    assert_eq!(merged.unwrap(), Merged::Applied { files: 2 });
    assert_eq!(fs::read(bench.root().join("bin")).unwrap(), b"a\0b");
    assert!(!bench.root().join("docs/page.txt").exists());
    let ending = repository
        .remove(entry, IgnoredFiles::Rebuildable, &[])
        .await;
    // Nobody has committed it, so the branch is what keeps it.
    assert_eq!(work(&ending.unwrap()).commits, 1);
}

#[tokio::test]
async fn nothing_of_the_repository_is_run() {
    let bench = Bench::new();
    let canary = bench.temp.path().join("canary");
    let touch = format!("touch '{}'; cat", canary.display());
    for hook in [
        "post-checkout",
        "pre-commit",
        "post-commit",
        "reference-transaction",
    ] {
        let path = bench.root().join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{touch}\n")).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    for key in [
        "filter.x.smudge",
        "filter.x.clean",
        "merge.x.driver",
        "core.fsmonitor",
    ] {
        bench.git(&["config", key, &touch]);
    }
    bench.git(&["config", "diff.external", &touch]);
    fs::write(
        bench.root().join(".git/info/attributes"),
        "* filter=x merge=x diff=x\n",
    )
    .unwrap();
    let (repository, worktree) = bench.made(request("Canary")).await;
    put(worktree.path(), "a.txt", "two\n");
    repository.diff(&worktree.entry).await.unwrap();
    worktree.finish(&[]).await.unwrap();
    let entry = repository.find("canary").await.unwrap();
    repository.merge(entry, Merge::Commit, &[]).await.unwrap();
    assert!(!canary.exists());
    assert_eq!(
        fs::read_to_string(bench.root().join("a.txt")).unwrap(),
        "two\n"
    );
}
