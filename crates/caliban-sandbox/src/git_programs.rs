//! What the configuration of a repository names: directories of hooks, further configuration, and
//! programs that git runs. Where they lie in a writable directory they are as good as hooks.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::disk::{Disk, Kind};

/// How many files of configuration are read for one repository, those that they include among them.
const MAX_FILES: usize = 32;
/// How many places of one repository are protected.
const MAX_PLACES: usize = 64;

/// Keys whose value is a path. `*` is any name.
const PATHS: &[&str] = &["core.hookspath", "init.templatedir"];
/// Keys whose value is a path beside the file that it stands in.
const INCLUDES: &[&str] = &["include.path", "includeif.*.path"];
/// Keys whose value is run.
const COMMANDS: &[&str] = &[
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.pager",
    "core.sshcommand",
    "credential.*.helper",
    "credential.helper",
    "diff.*.command",
    "diff.*.textconv",
    "diff.external",
    "difftool.*.cmd",
    "difftool.*.path",
    "filter.*.clean",
    "filter.*.process",
    "filter.*.smudge",
    "gpg.*.program",
    "gpg.program",
    "hook.*.command",
    "interactive.difffilter",
    "merge.*.driver",
    "mergetool.*.cmd",
    "mergetool.*.path",
    "pager.*",
    "remote.*.receivepack",
    "remote.*.uploadpack",
    "sequence.editor",
    "trailer.*.cmd",
    "trailer.*.command",
    "uploadpack.packobjectshook",
];
/// Keys whose value is run where it begins with `!`.
const AT_TIMES: &[&str] = &["alias.*", "submodule.*.update"];
/// Programs that run what is named behind them.
const RUNNERS: &[&str] = &[
    "bash", "dash", "deno", "env", "exec", "lua", "node", "nohup", "perl", "php", "python",
    "python3", "ruby", "sh", "time", "zsh",
];
/// What programs of interpreters end in, which may stand alone behind the interpreter.
const SCRIPTS: &[&str] = &[
    "bash", "cjs", "js", "lua", "mjs", "php", "pl", "py", "rb", "sh", "ts",
];

/// A repository, as far as its configuration goes.
#[derive(Debug)]
pub(crate) struct Repository<'a> {
    /// The files of its configuration.
    pub(crate) files: Vec<PathBuf>,
    /// Where its files are checked out, which is where git runs programs.
    pub(crate) tree: &'a Path,
}

/// What is there of what the configuration of a repository names, beneath one of the roots. The
/// user's own configuration counts for every repository.
pub(crate) fn named_by(
    repository: &Repository<'_>,
    home: &Path,
    roots: &[PathBuf],
    disk: &dyn Disk,
) -> BTreeSet<PathBuf> {
    let mut search = Search {
        tree: repository.tree,
        home,
        roots,
        disk,
        found: BTreeSet::new(),
    };
    let users = [".gitconfig", ".config/git/config"].map(|name| home.join(name));
    let mut pending: Vec<PathBuf> = repository.files.iter().cloned().chain(users).collect();
    let mut read = BTreeSet::new();
    while let Some(file) = pending.pop() {
        if read.len() >= MAX_FILES || !read.insert(file.clone()) {
            continue;
        }
        let Some(text) = disk.text(&file) else {
            continue;
        };
        let beside = file.parent().unwrap_or(Path::new("/"));
        for Setting { key, value } in settings(&text) {
            if is_one_of(INCLUDES, &key) {
                let path = search.path(&value, beside);
                search.add(&path);
                pending.push(path);
            } else if is_one_of(PATHS, &key) {
                let path = search.path(&value, repository.tree);
                search.add(&path);
            } else if is_one_of(COMMANDS, &key)
                || (is_one_of(AT_TIMES, &key) && value.starts_with('!'))
            {
                search.add_programs(value.trim_start_matches('!'));
            }
        }
    }
    search.found
}

struct Search<'a> {
    tree: &'a Path,
    home: &'a Path,
    roots: &'a [PathBuf],
    disk: &'a dyn Disk,
    found: BTreeSet<PathBuf>,
}

impl Search<'_> {
    fn path(&self, value: &str, from: &Path) -> PathBuf {
        let path = match value.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => from.join(value),
        };
        plain(&path)
    }

    /// Whatever a line of a shell runs. What only the shell knows, such as a variable, is not
    /// understood.
    fn add_programs(&mut self, line: &str) {
        let ends = |it: char| "`;|&(){}\n".contains(it);
        let is_between = |it: char| it.is_whitespace() || "\"'<>$".contains(it);
        for command in line.split(ends) {
            let mut is_program = true;
            for word in command.split(is_between).filter(|word| !word.is_empty()) {
                let path = Path::new(word);
                let extension = path.extension().and_then(|it| it.to_str());
                let is_script = extension.is_some_and(|it| SCRIPTS.contains(&it));
                if is_script || (is_program && word.contains('/')) {
                    self.add_file(&self.path(word, self.tree));
                }
                let name = path.file_name().and_then(|it| it.to_str());
                let runs_another = name.is_some_and(|it| RUNNERS.contains(&it));
                let is_said_before = word.starts_with('-') || word.contains('=');
                is_program &= runs_another || is_said_before;
            }
        }
    }

    fn add_file(&mut self, path: &Path) {
        let real = self.disk.resolve(path);
        if real.and_then(|real| self.disk.kind(&real)) == Some(Kind::File) {
            self.add(path);
        }
    }

    /// What is a root itself, or above one, cannot be closed.
    fn add(&mut self, path: &Path) {
        let is_within = |path: &Path| {
            let mut roots = self.roots.iter();
            roots.any(|root| path != root && path.starts_with(root))
        };
        let Some(real) = self.disk.resolve(path) else {
            return;
        };
        let is_above = |path: &Path| self.roots.iter().any(|root| root.starts_with(path));
        for place in [path, &real] {
            if is_within(place) && !is_above(place) && self.found.len() < MAX_PLACES {
                self.found.insert(place.to_owned());
            }
        }
    }
}

/// Without `.` and `..`, as git reads paths that have no links in them.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Where a repository that lies elsewhere, such as a submodule's, says its files are checked out.
pub(crate) fn checked_out(git: &Path, disk: &dyn Disk) -> Option<PathBuf> {
    let text = disk.text(&git.join("config"))?;
    let mut settings = settings(&text).into_iter();
    let setting = settings.rfind(|setting| setting.key == "core.worktree")?;
    Some(plain(&git.join(setting.value)))
}

#[derive(Debug, PartialEq, Eq)]
struct Setting {
    /// The section, its name if it has one, and the variable, with dots between.
    key: String,
    value: String,
}

/// Reads a configuration, and more of it than git would rather than less.
fn settings(text: &str) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut section = String::new();
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    for line in joined.lines() {
        let mut rest = line.trim();
        while let Some(heading) = rest.strip_prefix('[') {
            let Some((named, after)) = heading_of(heading) else {
                break;
            };
            section = named;
            rest = after.trim_start();
        }
        if rest.is_empty() || rest.starts_with(['#', ';', '[']) {
            continue;
        }
        let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
        settings.push(Setting {
            key: format!("{section}.{}", name.trim().to_ascii_lowercase()),
            value: value_of(value.trim()),
        });
    }
    settings
}

/// `filter "a.b"]` as `filter.a_b`, and what follows.
fn heading_of(heading: &str) -> Option<(String, &str)> {
    let quoted = heading.find('"');
    let end = match quoted {
        Some(open) if heading[..open].find(']').is_none() => {
            let close = heading[open + 1..].find("\"]")? + open + 1;
            return Some((
                format!(
                    "{}.{}",
                    heading[..open].trim().to_ascii_lowercase(),
                    heading[open + 1..close].replace('.', "_")
                ),
                &heading[close + 2..],
            ));
        }
        Some(_) | None => heading.find(']')?,
    };
    let name = heading[..end].trim().to_ascii_lowercase();
    // An older way to write a section with a name.
    let named = match name.split_once('.') {
        Some((section, name)) => format!("{section}.{}", name.replace('.', "_")),
        None => name,
    };
    Some((named, &heading[end + 1..]))
}

/// A value without its quotes and what is behind it.
fn value_of(text: &str) -> String {
    let mut value = String::new();
    let mut is_quoted = false;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\\' => value.extend(letters.next()),
            '#' | ';' if !is_quoted => break,
            other => value.push(other),
        }
    }
    value.trim_end().to_owned()
}

fn is_one_of(patterns: &[&str], key: &str) -> bool {
    patterns.iter().any(|pattern| {
        let (wanted, had): (Vec<&str>, Vec<&str>) =
            (pattern.split('.').collect(), key.split('.').collect());
        wanted.len() == had.len()
            && wanted
                .iter()
                .zip(&had)
                .all(|(want, have)| *want == "*" || want == have)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::tests::Listed;
    use rstest::rstest;

    fn named(config: &str, there: &[&str]) -> Vec<String> {
        let mut disk = Listed::new(there);
        disk.write("/w/.git/config", config);
        let repository = Repository {
            files: vec!["/w/.git/config".into()],
            tree: Path::new("/w"),
        };
        let found = named_by(&repository, Path::new("/home/me"), &["/w".into()], &disk);
        found.iter().map(|it| it.display().to_string()).collect()
    }

    #[rstest]
    #[case::hooks("[core]\n\thooksPath = .githooks\n", "/w/.githooks/")]
    #[case::in_other_letters("[CORE] HooksPath=./.githooks # ours", "/w/.githooks/")]
    #[case::quoted("[core]\n\thookspath = \"my hooks\"\n", "/w/my hooks/")]
    #[case::absolute("[core]\n\thookspath = /w/tools/hooks\n", "/w/tools/hooks/")]
    #[case::continued("[core]\n\thooksPath = .git\\\nhooks\n", "/w/.githooks/")]
    #[case::included("[include]\n\tpath = ../.gitconfig\n", "/w/.gitconfig")]
    #[case::included_at_times("[includeIf \"gitdir:~/x.y/\"]\n\tpath = ../c\n", "/w/c")]
    #[case::filter("[filter \"a.b\"]\n\tclean = tools/clean.sh %f\n", "/w/tools/clean.sh")]
    #[case::script("[diff \"x\"]\n\ttextconv = python3 show.py\n", "/w/show.py")]
    #[case::alias("[alias]\n\tst = \"!f() { ./bin/st; }; f\"\n", "/w/bin/st")]
    #[case::without_an_end("[diff \"x\"]\n\tcommand = LANG=C sh -e tools/show\n", "/w/tools/show")]
    #[case::old_heading("[filter.x]\n\tsmudge = ./s\n", "/w/s")]
    fn what_git_would_run_is_found(#[case] config: &str, #[case] there: &str) {
        assert_eq!(named(config, &[there]), [there.trim_end_matches('/')]);
    }

    #[rstest]
    #[case::the_tree_itself("[core]\n\thooksPath = .\n")]
    #[case::above("[core]\n\thooksPath = ..\n")]
    #[case::elsewhere("[core]\n\thooksPath = /usr/hooks\n")]
    #[case::not_there("[core]\n\thooksPath = .nohooks\n")]
    #[case::an_address("[remote \"o\"]\n\turl = ./x\n")]
    #[case::no_program("[alias]\n\tsave = add README.md\n")]
    #[case::a_directory_that_is_named("[alias]\n\tl = !git log -- src/\n")]
    #[case::a_file_that_is_read("[alias]\n\tl = !git diff src/main.c\n")]
    #[case::a_script_of_no_program("[alias]\n\tl = diff ./x.sh\n")]
    #[case::nonsense("[core\nhooksPath = x")]
    fn nothing_else_is(#[case] config: &str) {
        let there = [
            "/w/x",
            "/w/README.md",
            "/w/src/main.c",
            "/w/x.sh",
            "/usr/hooks/",
        ];
        assert!(named(config, &there).is_empty());
    }

    #[test]
    fn the_users_own_configuration_counts_and_circles_end() {
        let mut disk = Listed::new(&["/w/.git/", "/w/.githooks/"]);
        disk.write(
            "/home/me/.gitconfig",
            "[core]\nhooksPath = .githooks\n[include]\npath = .gitconfig\n",
        );
        let repository = Repository {
            files: vec!["/w/.git/config".into()],
            tree: Path::new("/w"),
        };
        let found = named_by(&repository, Path::new("/home/me"), &["/w".into()], &disk);
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [Path::new("/w/.githooks")]
        );
    }
}
