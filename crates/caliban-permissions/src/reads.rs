//! The files that commands are given to read. A rule or a protected place that closes a file to
//! `Read` closes it to `cat` too: every word that leads to such a file is an objection, unless its
//! program is known to look at names only. What a program opens without being told cannot be seen
//! here.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use caliban_settings::RuleAction;
use globset::{GlobBuilder, GlobMatcher};
use jiff::Timestamp;
use serde_json::json;

use crate::evaluation::{Decision, Heard, Judge, Why};
use crate::git_objects;
use crate::mentions;
use crate::origin::Origin;
use crate::paths::Subject;
use crate::pattern::About;
use crate::protected::Access;
use crate::rule::Rule;
use crate::shell::{self, Candidate};
use crate::twins::{self, Twins};
use crate::values::Values;

/// How many names of a line are looked at, and how many of them may be there.
const MAX_NAMES: usize = 100_000;
const MAX_FILES: usize = 4096;
/// How many files the wildcards of one word are followed to.
const MAX_MATCHES: usize = 256;
/// How many entries of directories that are read as a whole are looked at. What lies beyond is
/// not found.
const MAX_ENTRIES: usize = 20_000;
/// How many directories a line may start from.
const MAX_BASES: usize = 16;

/// Programs that are given names and do not open what they name, or only write it.
const NAMES_ONLY: &[&str] = &[
    "[", "[[", "alias", "basename", "cd", "chgrp", "chmod", "chown", "dirname", "echo", "export",
    "false", "ls", "mkdir", "mkfifo", "popd", "printf", "pushd", "pwd", "readlink", "realpath",
    "rm", "rmdir", "stat", "test", "touch", "true", "truncate", "type", "umask", "unlink", "which",
];

/// Programs that read what is beneath a directory they are given, or give all of it names that no
/// rule is about.
const SEARCHERS: &[&str] = &[
    "7z", "ack", "ag", "bsdtar", "ln", "mv", "rename", "rg", "rsync", "tar", "ugrep", "zip",
];
/// Those that begin where they are if they are given none.
const START_HERE: &[&str] = &["ack", "ag", "grep", "egrep", "fgrep", "git", "rg", "ugrep"];
/// Those that do so when they are told to run something.
const FINDERS: &[&str] = &["fd", "find"];
/// Programs that run another one with what they read.
const FEEDERS: &[&str] = &["parallel", "xargs"];

/// A line as far as the files in its words matter.
struct Line<'a> {
    judge: &'a Judge,
    values: &'a Values,
    bases: Vec<PathBuf>,
    names: Names,
    now: Timestamp,
    /// How many entries of directories may still be looked at.
    entries: Cell<usize>,
    /// Made when a file with several names is met.
    twins: OnceCell<Twins>,
}

/// What becomes of names that a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Kept,
    /// Another command of the line is fed with them.
    Opened,
}

impl Judge {
    /// What is to be said against the files that the commands of a line are given.
    pub(crate) fn closed_operands(
        &self,
        decision: Decision,
        line: &str,
        candidates: &[Candidate],
        values: &Values,
        cwd: Option<&str>,
        now: Timestamp,
    ) -> Decision {
        if decision.action == RuleAction::Deny {
            return decision;
        }
        let commands = candidates
            .iter()
            .filter(|candidate| candidate.from == shell::Origin::Command);
        let commands: Vec<&[String]> = commands.map(|it| it.words.as_slice()).collect();
        let is_feeding = commands
            .iter()
            .any(|words| words.iter().any(|word| FEEDERS.contains(&word.as_str())));
        // What is written anywhere may become an operand of what is fed.
        let fed: Vec<String> = if is_feeding {
            let mentions = mentions::in_line(line).into_iter();
            let words = mentions.map(|mention| mention.path);
            ["xargs".to_owned()].into_iter().chain(words).collect()
        } else {
            Vec::new()
        };
        let line = Line {
            judge: self,
            bases: self.bases(&commands, values, cwd),
            values,
            names: if is_feeding {
                Names::Opened
            } else {
                Names::Kept
            },
            now,
            entries: Cell::new(MAX_ENTRIES),
            twins: OnceCell::new(),
        };
        let mut decision = decision;
        let (mut names, mut files) = (0, 0);
        let mut seen: HashSet<PathBuf> = HashSet::new();
        let stored: Vec<(Operand, PathBuf)> = commands
            .iter()
            .flat_map(|words| line.stored(words))
            .collect();
        if stored.len() > MAX_FILES {
            return unproved(decision);
        }
        for (operand, path) in stored {
            let objection = line.closed(&path, &operand, &decision);
            decision = decision.and_maybe(objection);
        }
        let commands = commands.iter().copied().chain([fed.as_slice()]);
        for operand in commands.flat_map(|words| line.operands(words)) {
            for path in line.paths(&operand.word) {
                names += 1;
                if names > MAX_NAMES || files > MAX_FILES {
                    return unproved(decision);
                }
                // The same words stand in many commands, and to look at the disk takes long.
                if seen.contains(&path) {
                    continue;
                }
                seen.insert(path.clone());
                if !line.may_be_read(&path) {
                    continue;
                }
                files += 1;
                let objection = line.objection(&path, &operand, &decision);
                decision = decision.and_maybe(objection);
            }
        }
        decision
    }

    /// Where relative names of a line may start: where it starts, and what it changes to.
    fn bases(&self, commands: &[&[String]], values: &Values, cwd: Option<&str>) -> Vec<PathBuf> {
        let start = cwd.map_or_else(|| self.root().to_owned(), |cwd| self.root().join(cwd));
        let mut bases = vec![start];
        for words in commands {
            let program = words.first().map(String::as_str);
            let changes = matches!(program, Some("cd" | "pushd"));
            let mut operands = words.iter().skip(1).map(String::as_str);
            let operand = operands.find(|word| !word.starts_with('-'));
            // Alone it goes home.
            let target = changes.then(|| operand.unwrap_or("~"));
            let directory = words.windows(2).filter(|pair| pair[0] == "-C");
            let directory = directory.map(|pair| pair[1].as_str());
            for target in target.into_iter().chain(directory) {
                for reading in values.readings(target).into_words() {
                    let more: Vec<PathBuf> = bases
                        .iter()
                        .map(|base| base.join(self.at_home(&reading)))
                        .collect();
                    bases.extend(more);
                    bases.truncate(MAX_BASES);
                }
            }
        }
        bases
    }

    fn at_home<'a>(&'a self, path: &'a str) -> Cow<'a, Path> {
        match (path.strip_prefix('~'), &self.places.home) {
            (Some(""), Some(home)) => Cow::Borrowed(home),
            (Some(rest), Some(home)) if rest.starts_with('/') => {
                Cow::Owned(home.join(rest.trim_start_matches('/')))
            }
            _ => Cow::Borrowed(Path::new(path)),
        }
    }
}

/// A line with too many names is not allowed by anybody.
fn unproved(decision: Decision) -> Decision {
    let what = "the command names more files than are looked at";
    match decision.action {
        RuleAction::Allow => decision.asked(Why::Unproved(what.to_owned())),
        RuleAction::Ask | RuleAction::Deny => decision,
    }
}

/// A word that a program may open.
struct Operand {
    word: String,
    depth: Depth,
}

/// What of a directory is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    Itself,
    Everything,
}

impl Line<'_> {
    fn operands(&self, words: &[String]) -> Vec<Operand> {
        let Some((program, arguments)) = words.split_first() else {
            return Vec::new();
        };
        let program = Path::new(program).file_name().unwrap_or_default();
        let program = program.to_str().unwrap_or_default();
        if NAMES_ONLY.contains(&program) {
            return Vec::new();
        }
        let depth = depth(program, arguments, self.names);
        let operand = |word: &String| Operand {
            word: word.clone(),
            depth,
        };
        let mut operands: Vec<Operand> = arguments.iter().map(operand).collect();
        let names_nothing = || {
            let named = arguments.iter().flat_map(|word| self.paths(word));
            !named.into_iter().any(|path| path.exists())
        };
        if depth == Depth::Everything && START_HERE.contains(&program) && names_nothing() {
            operands.push(Operand {
                word: ".".to_owned(),
                depth,
            });
        }
        operands
    }

    /// Every path that a command of these words may have git print, whether it is there or not.
    fn stored(&self, words: &[String]) -> Vec<(Operand, PathBuf)> {
        let words: Vec<String> = words
            .iter()
            .flat_map(|word| self.values.readings(word).into_words())
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let paths = git_objects::stored_paths(&words);
        let bases = if paths.is_empty() {
            Vec::new()
        } else {
            git_objects::beginnings(&self.bases)
        };
        let from = |path: &str| {
            let operand = |base: &PathBuf| {
                let (word, depth) = (path.to_owned(), Depth::Itself);
                (Operand { word, depth }, base.join(path))
            };
            bases.iter().map(operand).collect::<Vec<_>>()
        };
        paths.into_iter().flat_map(from).collect()
    }

    /// Every path that a word, or a part of it, may spell: `-d @file`, `if=file`, `from:to`, an
    /// argument that is a program of its own.
    fn paths(&self, word: &str) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for reading in self.values.readings(word).into_words() {
            for base in &self.bases {
                let reading = if reading.contains('$') {
                    let here = base.to_string_lossy();
                    let reading = reading.replace("${PWD}", &here).replace("$PWD", &here);
                    Cow::Owned(reading)
                } else {
                    Cow::Borrowed(&reading)
                };
                paths.extend(parts(&reading).map(|part| base.join(self.judge.at_home(part))));
            }
        }
        paths.sort();
        paths.dedup();
        paths
    }

    /// Whether there could be something to read: a file, a pattern of files, a protected place.
    fn may_be_read(&self, path: &Path) -> bool {
        is_wild(path)
            || self.judge.protected.name_of(path, Access::Read).is_some()
            || path.symlink_metadata().is_ok()
    }

    fn objection(&self, path: &Path, operand: &Operand, decision: &Decision) -> Option<Decision> {
        let expanded = expanded(path);
        let mut paths = expanded.iter().map(PathBuf::as_path).chain([path]);
        paths.find_map(|path| self.closed(path, operand, decision))
    }

    /// The verdict on a path, if there is something to say against reading it.
    fn closed(&self, path: &Path, operand: &Operand, decision: &Decision) -> Option<Decision> {
        let subject = self.judge.places.subject(path.to_str()?);
        let found = self.verdict(&subject, operand, decision);
        let real = subject.real();
        let is_deep = operand.depth == Depth::Everything && self.judge.closes_beneath(real);
        if found.is_some() || !is_deep || !real.is_dir() {
            return found;
        }
        let mut pending = vec![real.to_owned()];
        while let Some(directory) = pending.pop() {
            let entries = std::fs::read_dir(&directory).into_iter().flatten();
            for entry in entries.flatten().take(self.entries.get()) {
                self.entries.set(self.entries.get().saturating_sub(1));
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_dir() {
                    // Who searches a home does not ask for what we keep there.
                    if !self.judge.protected.keeps_copies_in(&entry.path()) {
                        pending.push(entry.path());
                    }
                } else if kind.is_file()
                    && let Some(found) = self.verdict(&known(entry.path()), operand, decision)
                {
                    return Some(found);
                }
            }
        }
        None
    }

    /// The verdict on a file by all of its names.
    fn verdict(&self, file: &Subject, operand: &Operand, decision: &Decision) -> Option<Decision> {
        let judge = self.judge;
        let judged = |subject: &Subject| {
            let input = json!({"path": subject.given()});
            let heard = Heard::NamingTools;
            judge.subject_decision("Read", subject, Access::Read, heard, &input, self.now)
        };
        let twins = match std::fs::metadata(file.real()) {
            Ok(meta) if twins::is_shared(&meta) => {
                let twins = self.twins.get_or_init(|| Twins::of(judge));
                twins.names(&meta)
            }
            Ok(_) | Err(_) => &[],
        };
        let twins = twins.iter().map(|name| judged(&known(name.clone())));
        let verdict = twins.fold(judged(file), Decision::and);
        let objects = match (verdict.action, &verdict.why) {
            (RuleAction::Allow, _) | (_, Why::Unresolved(_)) => false,
            // Whoever allowed the command with this very word has thought of it.
            (_, Why::Protected { .. }) => {
                decision.action != RuleAction::Allow || !judge.spells(&operand.word)
            }
            // A default only says that nobody has a wish.
            (RuleAction::Ask | RuleAction::Deny, _) => {
                judge.book.rules()[verdict.rule].origin != Origin::BuiltIn
            }
        };
        objects.then_some(verdict)
    }
}

/// A word and the parts of it that may be a name.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let separators =
        |letter: char| letter.is_whitespace() || "=@:,;()[]{}<>|&'\"`".contains(letter);
    let option = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    // The value may stand at its letter: `-T/file`.
    let attached = option.and_then(|rest| Some(&rest[rest.find(['/', '~', '.'])?..]));
    let parts = word.split(separators).chain(attached).chain([word]);
    parts.filter(|part| !part.is_empty() && !part.starts_with('-'))
}

/// A file by a name that no link is part of.
fn known(path: PathBuf) -> Subject {
    Subject::Known {
        given: path.clone(),
        real: path,
    }
}

impl Judge {
    /// Whether a rule that allows commands spells this word.
    fn spells(&self, word: &str) -> bool {
        let spells = |rule: &Rule| match rule.pattern.about() {
            About::Command(patterns) => patterns.any(|pattern| pattern.spells(word)),
            About::Anything
            | About::Path(_)
            | About::Url(_)
            | About::Fields(_)
            | About::Never(_) => false,
        };
        let rules = self.book.rules().iter();
        rules
            .filter(|rule| rule.action == RuleAction::Allow && rule.is_about("Bash"))
            .any(spells)
    }
}

/// Whether a program reads what is beneath the directories it is given.
fn depth(program: &str, arguments: &[String], names: Names) -> Depth {
    let has = |names: &[&str]| arguments.iter().any(|word| names.contains(&word.as_str()));
    let is_recursive = |word: &String| {
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        ["--recursive", "--dereference-recursive", "--archive"].contains(&word.as_str())
            || letters.is_some_and(|letters| letters.contains(['r', 'R', 'a']))
    };
    let is_deep = SEARCHERS.contains(&program)
        || (program == "git" && has(&["grep", "mv"]))
        || (FINDERS.contains(&program) && names == Names::Opened)
        || (FINDERS.contains(&program)
            && has(&[
                "-exec",
                "-execdir",
                "-ok",
                "-okdir",
                "-x",
                "-X",
                "--exec",
                "--exec-batch",
            ]))
        || (["grep", "egrep", "fgrep", "cp", "scp", "diff"].contains(&program)
            && arguments.iter().any(is_recursive));
    if is_deep {
        Depth::Everything
    } else {
        Depth::Itself
    }
}

/// Whether a path has wildcards.
fn is_wild(path: &Path) -> bool {
    path.to_str()
        .is_some_and(|text| text.contains(['*', '?', '[']))
}

/// The files that the wildcards of a path stand for.
fn expanded(path: &Path) -> Vec<PathBuf> {
    if !is_wild(path) {
        return Vec::new();
    }
    let mut found = vec![PathBuf::new()];
    for component in path.components() {
        let component = component.as_os_str();
        let wild = Some(component).filter(|it| is_wild(Path::new(it)));
        let wild = wild.and_then(OsStr::to_str).map(|text| {
            let matcher = GlobBuilder::new(text)
                .build()
                .map(|it| it.compile_matcher());
            (text.starts_with('.'), matcher)
        });
        found = match wild {
            None => found.iter().map(|path| path.join(component)).collect(),
            Some((_, Err(_))) => return Vec::new(),
            Some((hidden, Ok(matcher))) => {
                let entries = found
                    .iter()
                    .flat_map(|path| matches(path, hidden, &matcher));
                entries.take(MAX_MATCHES).collect()
            }
        };
    }
    found
}

fn matches(directory: &Path, hidden: bool, matcher: &GlobMatcher) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let entries = entries.take(MAX_ENTRIES).filter(|entry| {
        let name = entry.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        is_hidden == hidden && matcher.is_match(&name)
    });
    entries.map(|entry| entry.path()).collect()
}
