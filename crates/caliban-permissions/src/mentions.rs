//! The files that a line mentions, for lines that cannot be proved and for names that begin with a
//! variable: what a rule about every command or a mode lets through must still not touch what is
//! protected or denied.

/// How many redirections of such a line are looked at.
pub(crate) const MAX_REDIRECTIONS: usize = 64;

/// A word of a line, and what stands before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) path: String,
    pub(crate) role: Role,
    pub(crate) spelling: Spelling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    AsIs,
    /// It begins with `$HOME`, which is the home unless the line sets it.
    Variable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Word,
    /// Behind `<`.
    Source,
    /// Behind `>`.
    Target,
}

/// Every word, without quotes, between whatever could separate words.
pub(crate) fn in_line(line: &str) -> Vec<Mention> {
    let mut mentions = Vec::new();
    let mut path = String::new();
    let mut role = Role::Word;
    for letter in line.chars() {
        match letter {
            '\'' | '"' | '\\' => {}
            '<' | '>' | '&' | '|' | ';' | '(' | ')' | '`' | '=' | ',' => {
                end(&mut mentions, &mut path, role);
                role = match letter {
                    '<' => Role::Source,
                    '>' => Role::Target,
                    // They are parts of `>&` and `>|`.
                    '&' | '|' if role == Role::Target => role,
                    _ => Role::Word,
                };
            }
            letter if letter.is_whitespace() || letter.is_control() => {
                if end(&mut mentions, &mut path, role) == Ended::Word {
                    role = Role::Word;
                }
            }
            letter => path.push(letter),
        }
    }
    end(&mut mentions, &mut path, role);
    mentions
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Word,
    Nothing,
}

fn end(mentions: &mut Vec<Mention>, path: &mut String, role: Role) -> Ended {
    if path.is_empty() {
        return Ended::Nothing;
    }
    let spelled = std::mem::take(path);
    let in_home = spelled
        .strip_prefix("$HOME/")
        .or_else(|| spelled.strip_prefix("${HOME}/"));
    let (path, spelling) = match in_home {
        Some(rest) => (format!("~/{rest}"), Spelling::Variable),
        None => (spelled, Spelling::AsIs),
    };
    mentions.push(Mention {
        path,
        role,
        spelling,
    });
    Ended::Word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whatever_the_quotes() {
        let found = in_line("echo x >| '.g'it/config; eval \"$x\" 2>&1 <in >>$HOME/a");
        let files: Vec<_> = found
            .iter()
            .filter(|mention| mention.role != Role::Word)
            .map(|mention| (mention.role, mention.path.as_str()))
            .collect();
        assert_eq!(
            files,
            [
                (Role::Target, ".git/config"),
                (Role::Target, "1"),
                (Role::Source, "in"),
                (Role::Target, "~/a"),
            ]
        );
        assert!(found.iter().any(|mention| mention.path == "$x"));
        let variable = |mention: &&Mention| mention.spelling == Spelling::Variable;
        let variables: Vec<_> = found.iter().filter(variable).collect();
        assert_eq!(variables, [found.last().unwrap()]);
    }
}
