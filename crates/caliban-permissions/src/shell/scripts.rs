//! The little languages of `sed` and `awk`, as far as needed to say that a script only edits text.

/// Whether a script of `sed` neither runs commands nor touches files: addresses and the commands
/// that print, delete, substitute and move text. Anything else counts as harm.
pub(super) fn is_harmless_sed(script: &str) -> bool {
    let mut rest = script.trim();
    while !rest.is_empty() {
        rest = match sed_command(rest) {
            Some(rest) => rest.trim_start_matches([';', ' ', '\t', '\n', '}']),
            None => return false,
        };
    }
    true
}

/// What follows one command; none where it is not a harmless one.
fn sed_command(text: &str) -> Option<&str> {
    let mut rest = sed_address(text)?;
    if let Some(second) = rest.trim_start().strip_prefix(',') {
        rest = sed_address(second.trim_start().trim_start_matches(['+', '~']))?;
    }
    let rest = rest.trim_start().trim_start_matches('!').trim_start();
    let command = rest.chars().next()?;
    let rest = &rest[command.len_utf8()..];
    match command {
        'p' | 'P' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'x' | '=' => ends(rest),
        'q' | 'Q' => ends(rest.trim_start_matches(|c: char| c.is_ascii_digit())),
        // Its commands follow, and the end is skipped like a separator.
        '{' => Some(rest.trim_start()),
        's' => {
            let rest = sed_parts(rest)?;
            // Of the flags, `e` runs and `w` writes.
            ends(rest.trim_start_matches(|c: char| c.is_ascii_digit() || "gpiIM".contains(c)))
        }
        'y' => ends(sed_parts(rest)?),
        _ => None,
    }
}

/// A number, `$`, or a pattern between slashes, if there is one.
fn sed_address(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('$') {
        return Some(rest);
    }
    if let Some(rest) = text.strip_prefix('/') {
        let rest = after_delimiter(rest, '/')?;
        return Some(rest.trim_start_matches(['I', 'M']));
    }
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    // `first~step`
    Some(rest.strip_prefix('~').map_or(rest, |rest| {
        rest.trim_start_matches(|c: char| c.is_ascii_digit())
    }))
}

/// What follows the two parts of `s` and `y`.
fn sed_parts(text: &str) -> Option<&str> {
    let delimiter = text.chars().next().filter(char::is_ascii_punctuation)?;
    if delimiter == '\\' {
        return None;
    }
    after_delimiter(after_delimiter(&text[1..], delimiter)?, delimiter)
}

fn after_delimiter(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            // In brackets the delimiter may be a plain character: not decided here.
            '[' | '\n' => return None,
            _ if c == delimiter => return Some(&text[index + c.len_utf8()..]),
            _ => {}
        }
    }
    None
}

/// The rest, if a command may end here.
fn ends(rest: &str) -> Option<&str> {
    let trimmed = rest.trim_start_matches([' ', '\t']);
    (trimmed.is_empty() || trimmed.starts_with([';', '}', '\n'])).then_some(trimmed)
}

/// Whether a program of `awk` neither runs commands nor touches other files. It is not parsed:
/// whatever could be a pipe, a redirection, a call of the system or of a loaded library is harm.
pub(super) fn is_harmless_awk(script: &str) -> bool {
    let without_or = script.replace("||", "");
    !without_or.contains(['|', '>', '@'])
        && ![
            "system",
            "getline",
            "close",
            "fflush",
            "ARGV",
            "ENVIRON",
            "extension",
        ]
        .iter()
        .any(|word| script.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{is_harmless_awk, is_harmless_sed};

    #[test]
    fn scripts_that_only_edit_text_are_harmless() {
        for script in [
            "1,20p",
            "$p",
            "5q",
            "/foo/d",
            "/a/,/b/p",
            "s/a/b/",
            "s/a/b/g",
            "s|/usr|/opt|gI",
            "p;d",
            "1d; $d",
            "/x/!d",
            "y/abc/xyz/",
            "/a/{p;d}",
            "2,+3p",
            "0~4p",
            "10,$ p",
            "s/\\//x/2",
        ] {
            assert!(is_harmless_sed(script), "{script}");
        }
    }

    #[test]
    fn scripts_that_run_or_write_are_not() {
        for script in [
            "e rm x",
            "1e",
            "s/a/b/e",
            "s/a/id/ge",
            "w out",
            "s/a/b/w out",
            "1,2w /etc/x",
            "r /etc/passwd",
            "W x",
            "p;e id",
            "p\ne id",
            "s/[/]/x/;e",
            "1{e id\n}",
            "/x/{w out\n}",
            "s/a/b",
            "y/a/",
            "c text",
            "a\\\nfoo",
            "s\na\nb\n",
            "v;e",
            "\\,x,e id",
        ] {
            assert!(!is_harmless_sed(script), "{script}");
        }
    }

    #[test]
    fn awk_is_harmless_without_pipes_files_and_calls() {
        for script in [
            "{print $1}",
            "NR==1 || /x/ {print}",
            "BEGIN{FS=\":\"} {s+=$2} END{print s}",
        ] {
            assert!(is_harmless_awk(script), "{script}");
        }
        for script in [
            "BEGIN{system(\"id\")}",
            "{print | \"sh\"}",
            "{print > \"f\"}",
            "{\"id\" | getline x}",
            "@load \"x\"",
            "{print |& \"x\"}",
            "{while ((getline line < f) > 0) print}",
        ] {
            assert!(!is_harmless_awk(script), "{script}");
        }
    }
}
