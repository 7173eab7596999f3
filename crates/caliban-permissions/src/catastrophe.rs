//! Commands that destroy a machine or a home. Nothing allows them automatically, whatever rules
//! and modes say; a person who is asked may still say yes.

use std::path::Path;

use crate::values::Values;

/// Directories whose loss is the loss of the machine or of somebody's work.
const VITAL: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
    "/Applications",
    "/Library",
    "/System",
    "/Users",
    "~",
    "$HOME",
    "${HOME}",
];

const FORK_BOMB: &str = ":(){:|:&};:";

/// Why a line must not run by itself.
pub(crate) fn in_line(line: &str) -> Option<&'static str> {
    let dense: String = line
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .collect();
    dense
        .contains(FORK_BOMB)
        .then_some("it starts processes without end")
}

/// What a command of a line is run with.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    values: &'a Values,
    home: Option<&'a Path>,
    /// Whether the line changes to a directory that cannot be lost.
    directory: Directory,
    /// Whether a command names such a directory to whoever reads what it prints.
    printed: Directory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directory {
    Ordinary,
    Vital,
}

impl<'a> Surroundings<'a> {
    pub(crate) fn of<'w>(
        commands: impl IntoIterator<Item = &'w Vec<String>>,
        values: &'a Values,
        home: Option<&'a Path>,
    ) -> Self {
        let mut it = Self {
            values,
            home,
            directory: Directory::Ordinary,
            printed: Directory::Ordinary,
        };
        for words in commands {
            let Some((program, arguments)) = words.split_first() else {
                continue;
            };
            let mut targets = arguments.iter().filter(|word| !word.starts_with('-'));
            match program.as_str() {
                "cd" | "pushd" => {
                    let target = targets.next();
                    if target.map_or(program == "cd", |target| it.is_vital(target)) {
                        it.directory = Directory::Vital;
                    }
                }
                "echo" | "printf" | "find" | "ls" | "yes"
                    if targets.any(|target| it.is_vital(target)) =>
                {
                    it.printed = Directory::Vital;
                }
                _ => {}
            }
        }
        it
    }

    /// Whether a word, or what its variables may make of it, is meant.
    fn may_be(&self, word: &str, is_meant: impl Fn(&str) -> bool) -> bool {
        let readings = || self.values.readings(word).into_words();
        is_meant(word) || word.contains('$') && readings().iter().any(|word| is_meant(word))
    }

    fn is_vital(&self, word: &str) -> bool {
        let is_all_here = matches!(word, "*" | "." | "./" | "./*" | ".*");
        self.directory == Directory::Vital && is_all_here
            || self.printed == Directory::Vital && word.contains("{}")
            || self.may_be(word, |word| is_vital(word, self.home))
    }
}

/// Why a command must not run by itself.
pub(crate) fn in_command(
    words: &[String],
    surroundings: &Surroundings<'_>,
) -> Option<&'static str> {
    let (program, arguments) = words.split_first()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let is_vital = |word: &String| surroundings.is_vital(word);
    let has_flag = |short: char, long: &str| {
        arguments.iter().any(|word| {
            word == long
                || (word.starts_with('-') && !word.starts_with("--") && word.contains(short))
        })
    };
    let recursive = || has_flag('r', "--recursive") || has_flag('R', "--recursive");
    let removes_found = || {
        let runs = arguments.windows(2).any(|pair| {
            matches!(pair[0].as_str(), "-exec" | "-execdir") && pair[1].ends_with("rm")
        });
        runs || arguments.iter().any(|word| word == "-delete")
    };
    match program {
        "rm" if arguments.iter().any(|word| word == "--no-preserve-root") => {
            Some("it removes the root directory")
        }
        "rm" if recursive() && arguments.iter().any(is_vital) => {
            Some("it removes a directory that the machine or its user cannot lose")
        }
        "chmod" | "chown" | "chgrp" if recursive() && arguments.iter().any(is_vital) => {
            Some("it changes the access to a whole system or home")
        }
        "find" if arguments.first().is_some_and(is_vital) && removes_found() => {
            Some("it removes a directory that the machine or its user cannot lose")
        }
        "dd" | "shred" | "wipefs" | "tee" | "cp"
            if arguments
                .iter()
                .any(|word| surroundings.may_be(word, is_disk)) =>
        {
            Some("it overwrites a disk")
        }
        "wipefs" | "mkswap" => Some("it overwrites a disk"),
        program if program == "mkfs" || program.starts_with("mkfs.") => Some("it formats a disk"),
        _ => None,
    }
}

/// Whether a redirection into this target destroys a disk.
pub(crate) fn is_disk(target: &str) -> bool {
    let target = target.strip_prefix("of=").unwrap_or(target);
    [
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md",
    ]
    .iter()
    .any(|kind| {
        target
            .strip_prefix("/dev/")
            .and_then(|name| name.strip_prefix(kind))
            .is_some()
    })
}

fn is_vital(word: &str, home: Option<&Path>) -> bool {
    let mut directory = word;
    while let Some(shorter) = directory.strip_suffix("/*") {
        directory = shorter;
    }
    let mut path: Vec<&str> = Vec::new();
    for component in directory.split('/') {
        match (component, path.last()) {
            ("" | ".", _) => {}
            // Whatever is above a home cannot be lost either.
            ("..", Some(last)) if VITAL.contains(last) => return true,
            ("..", Some(last)) if *last != ".." => drop(path.pop()),
            _ => path.push(component),
        }
    }
    let root = if word.starts_with('/') { "/" } else { "" };
    let path = format!("{root}{}", path.join("/"));
    VITAL.contains(&path.as_str()) || home.is_some_and(|home| Path::new(&path) == home)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn check(line: &str) -> bool {
        let commands: Vec<Vec<String>> = line
            .split("; ")
            .map(|command| command.split(' ').map(str::to_owned).collect())
            .collect();
        let values = Values::of(["d=/"]);
        let home = Some(Path::new("/home/me"));
        let surroundings = Surroundings::of(&commands, &values, home);
        commands
            .iter()
            .any(|words| in_command(words, &surroundings).is_some())
    }

    #[rstest]
    #[case("rm -rf /")]
    #[case("rm -fr /*")]
    #[case("rm -r -f ~")]
    #[case("/bin/rm --recursive --force $HOME/")]
    #[case("rm -Rf /home/me")]
    #[case("rm -rf //")]
    #[case("rm -rf /usr/")]
    #[case("rm x --no-preserve-root")]
    #[case("find / -name x -delete")]
    #[case("dd if=/dev/zero of=/dev/sda")]
    #[case("mkfs.ext4 /dev/sdb1")]
    #[case("chmod -R 777 /")]
    #[case("rm -rf $d")]
    #[case("rm -rf ${d}usr")]
    #[case("rm -rf ${HOME:?}")]
    #[case("rm -rf /tmp/..")]
    #[case("rm -rf ~/..")]
    #[case("rm -rf /home/me/./*")]
    #[case("cd /; rm -rf *")]
    #[case("cd; rm -rf ./*")]
    #[case("find ~ -type f -exec rm {} +")]
    #[case("echo /; rm -rf {}")]
    #[case("printf ~/; rm -rf {}")]
    fn catastrophes_are_recognised(#[case] line: &str) {
        assert!(check(line), "{line}");
    }

    #[rstest]
    #[case("rm -rf /tmp")]
    #[case("rm -rf target")]
    #[case("rm -rf /home/me/project/target")]
    #[case("rm /etc/motd")]
    #[case("dd if=/dev/zero of=disk.img")]
    #[case("chmod 755 /usr/local/bin/x")]
    #[case("find / -name x")]
    #[case("rm -rf a/.. ../b")]
    #[case("cd sub; rm -rf *")]
    #[case("cd /; rm -rf tmp/x")]
    #[case("rm -rf $e")]
    #[case("echo a; rm -rf {}")]
    #[case("echo /; rm -rf a")]
    fn ordinary_commands_are_not(#[case] line: &str) {
        assert!(!check(line), "{line}");
    }

    #[test]
    fn the_fork_bomb_is_recognised_with_any_blanks() {
        assert!(in_line(":() { :|: & }; :").is_some());
        assert!(in_line("f() { echo; }").is_none());
    }
}
