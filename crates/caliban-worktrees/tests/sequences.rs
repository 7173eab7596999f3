//! Whatever people and agents do, in whatever order: every line that was written is in a checkout, in
//! a worktree, or in a commit that a ref leads to.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]
#![cfg(unix)]

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use caliban_git::Git;
use caliban_process::Guard;
use caliban_worktrees::{IgnoredFiles, Merge, Repository, Request, Worktree};

/// Steps of one sequence.
const STEPS: usize = 24;
/// Sequences that are tried; more by `CALIBAN_TEST_SEQUENCES`.
const SEQUENCES: u64 = 4;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % sides
    }
}

struct World {
    temp: tempfile::TempDir,
    repository: Repository,
    /// Agents at work.
    at_work: Vec<Worktree>,
    /// Every line that anybody wrote.
    written: Vec<String>,
    dice: Dice,
}

fn git(directory: &Path, args: &[&str]) -> Option<String> {
    let done = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t"])
        .args(args)
        .current_dir(directory)
        .env("HOME", directory)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    done.status.success().then_some(text)
}

impl World {
    async fn new(seed: u64) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("r");
        fs::create_dir(&root).unwrap();
        git(&root, &["init", "-q", "-b", "main"]).unwrap();
        for file in ["a.txt", "b.txt"] {
            fs::write(root.join(file), "first\n").unwrap();
        }
        fs::write(root.join(".gitignore"), "*.log\n").unwrap();
        git(&root, &["add", "-A"]).unwrap();
        git(&root, &["commit", "-qm", "first"]).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let environment: Vec<(OsString, OsString)> =
            vec![("PATH".into(), path), ("HOME".into(), temp.path().into())];
        let tool = Git::new(root, environment, Guard::None).await;
        let data = temp.path().join("data");
        let repository = Repository::open(tool, &data).await.unwrap();
        Self {
            temp,
            repository,
            at_work: Vec::new(),
            written: Vec::new(),
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
        }
    }

    fn root(&self) -> PathBuf {
        self.repository.root().to_owned()
    }

    /// Adds a line that nobody else writes to a file.
    fn write(&mut self, directory: &Path) {
        let files = ["a.txt", "b.txt", "new.txt", "run.log", "deep/c.txt"];
        let file = files[usize::try_from(self.dice.roll(5)).unwrap()];
        let path = directory.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let line = format!("line-{}", self.written.len());
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        writeln!(file, "{line};").unwrap();
        self.written.push(format!("{line};"));
    }

    async fn step(&mut self) -> &'static str {
        let root = self.root();
        let agent = if self.at_work.is_empty() {
            None
        } else {
            let count = u64::try_from(self.at_work.len()).unwrap();
            Some(usize::try_from(self.dice.roll(count)).unwrap())
        };
        match (self.dice.roll(14), agent) {
            (0 | 1, _) if self.at_work.len() < 3 => {
                let request = Request {
                    purpose: "work".to_owned(),
                    session: "s".to_owned(),
                    ..Request::default()
                };
                self.at_work
                    .push(self.repository.create(request).await.unwrap());
                "create"
            }
            (2..=4, Some(agent)) => {
                let path = self.at_work[agent].path().to_owned();
                self.write(&path);
                "agent writes"
            }
            (5, Some(agent)) => {
                let path = self.at_work[agent].path().to_owned();
                let what: &[&str] = match self.dice.roll(4) {
                    0 => &["add", "-A"],
                    1 => &["commit", "-qam", "work"],
                    2 => &["checkout", "-q", "--detach"],
                    _ => &["branch", "-m", "renamed"],
                };
                git(&path, what);
                "agent uses git"
            }
            (6, Some(agent)) => {
                let worktree = self.at_work.swap_remove(agent);
                worktree.finish(&[]).await.unwrap();
                "agent is done"
            }
            (7, Some(agent)) => {
                // Its process is ended, and perhaps somebody cleans up.
                drop(self.at_work.swap_remove(agent));
                if self.dice.roll(2) == 0 {
                    self.repository.sweep(&[]).await.unwrap();
                }
                "agent is killed"
            }
            (8 | 9, _) => {
                self.write(&root);
                "user writes"
            }
            (10, _) => {
                git(&root, &["add", "-A"]);
                git(&root, &["commit", "-qm", "mine"]);
                "user commits"
            }
            (roll, _) => {
                let listed = self.repository.list().await.unwrap();
                let Some(one) = listed.first() else {
                    return "nothing";
                };
                let entry = one.entry.clone();
                let how = match self.dice.roll(3) {
                    0 => Merge::Apply,
                    1 => Merge::Commit,
                    _ => Merge::Branch,
                };
                // Refusals are fine, as long as nothing is lost.
                if roll == 11 {
                    let _ = self
                        .repository
                        .remove(entry, IgnoredFiles::Rebuildable, &[])
                        .await;
                    return "rm";
                }
                let _ = self.repository.merge(entry, how, &[]).await;
                "merge"
            }
        }
    }

    /// The lines that are nowhere.
    fn lost(&self) -> Vec<&String> {
        let root = self.root();
        let mut all = git(&root, &["log", "--all", "-p", "--format="]).unwrap();
        // A merge shows no patch.
        all += &git(&root, &["log", "--all", "-p", "-m", "--format="]).unwrap();
        let mut pending = vec![root];
        while let Some(directory) = pending.pop() {
            for file in fs::read_dir(directory).unwrap().flatten() {
                let path = file.path();
                if path.file_name().is_some_and(|name| name == ".git") {
                    continue;
                }
                if path.is_dir() {
                    pending.push(path);
                } else if let Ok(text) = fs::read_to_string(&path) {
                    all += &text;
                }
            }
        }
        let is_lost = |line: &&String| !all.contains(line.as_str());
        self.written.iter().filter(is_lost).collect()
    }
}

#[tokio::test]
async fn no_sequence_loses_a_line() {
    let wanted = std::env::var("CALIBAN_TEST_SEQUENCES").ok();
    let wanted = wanted.and_then(|text| text.parse().ok());
    for seed in 1..=wanted.unwrap_or(SEQUENCES) {
        let mut world = World::new(seed).await;
        let mut done = Vec::new();
        for _ in 0..STEPS {
            done.push(world.step().await);
            let lost = world.lost();
            assert!(lost.is_empty(), "seed {seed}: {lost:?} after {done:?}");
        }
        assert!(world.temp.path().exists());
    }
}
