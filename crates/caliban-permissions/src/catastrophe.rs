//! Commands that destroy a machine or a home. Nothing allows them automatically, whatever rules
//! and modes say; a person who is asked may still say yes.

use std::path::Path;

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

/// Why a command must not run by itself.
pub(crate) fn in_command(words: &[String], home: Option<&Path>) -> Option<&'static str> {
    let (program, arguments) = words.split_first()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let is_vital = |word: &String| is_vital(word, home);
    let has_flag = |short: char, long: &str| {
        arguments.iter().any(|word| {
            word == long
                || (word.starts_with('-') && !word.starts_with("--") && word.contains(short))
        })
    };
    let recursive = || has_flag('r', "--recursive") || has_flag('R', "--recursive");
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
        "find"
            if arguments.first().is_some_and(is_vital)
                && arguments.iter().any(|word| word == "-delete") =>
        {
            Some("it removes a directory that the machine or its user cannot lose")
        }
        "dd" | "shred" | "wipefs" | "tee" | "cp" if arguments.iter().any(|word| is_disk(word)) => {
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
    let mut word = word;
    loop {
        let shorter = word
            .strip_suffix("/*")
            .or_else(|| word.strip_suffix("/."))
            .or_else(|| word.strip_suffix("/.."))
            .or_else(|| word.strip_suffix('/'));
        match shorter {
            Some("") => return true,
            Some(shorter) => word = shorter,
            None => break,
        }
    }
    let collapsed = word.replace("//", "/");
    VITAL.contains(&collapsed.as_str()) || home.is_some_and(|home| Path::new(&collapsed) == home)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn check(line: &str) -> bool {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        in_command(&words, Some(Path::new("/home/me"))).is_some()
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
    fn ordinary_commands_are_not(#[case] line: &str) {
        assert!(!check(line), "{line}");
    }

    #[test]
    fn the_fork_bomb_is_recognised_with_any_blanks() {
        assert!(in_line(":() { :|: & }; :").is_some());
        assert!(in_line("f() { echo; }").is_none());
    }
}
