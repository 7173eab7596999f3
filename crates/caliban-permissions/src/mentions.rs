//! The files that a line mentions, for lines that cannot be proved and for names that are spelled
//! by variables: what a rule about every command or a mode lets through must still not touch what
//! is protected or denied.

use crate::shell::{Command, Script};
use crate::values::{Readings, Values};

/// How many redirections of such a line are looked at.
pub(crate) const MAX_REDIRECTIONS: usize = 256;
/// How many names that variables may spell are looked at.
const MAX_NAMES: usize = 16_384;

/// A word of a line, and what stands before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) path: String,
    pub(crate) role: Role,
    pub(crate) spelling: Spelling,
}

impl Mention {
    fn endless(word: &str, role: Role) -> Self {
        Self {
            path: word.to_owned(),
            role,
            spelling: Spelling::Endless,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Spelling {
    AsIs,
    /// By variables: as it is written. The path is what it may stand for.
    Variable(String),
    /// It may stand for more than was looked at.
    Endless,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Word,
    /// Behind `<`.
    Source,
    /// Behind `>`.
    Target,
}

/// What variables of a line may hold.
pub(crate) fn values(line: &str) -> Values {
    values_among(&words(line))
}

fn values_among(words: &[(String, Role)]) -> Values {
    Values::of(words.iter().map(|(word, _)| word.as_str()))
}

/// Of a line whose commands are known, the files it opens or writes under names that are not.
pub(crate) fn unknown(line: &str, script: &Script) -> Vec<Mention> {
    let commands: Vec<&Command> = script.commands.iter().flat_map(Command::all).collect();
    let mut opened = commands.iter().flat_map(|command| &command.redirections);
    let opens_unknown = opened.any(|redirection| redirection.target.is_none());
    let written: Vec<&str> = commands
        .iter()
        .flat_map(|command| &command.writes)
        .map(String::as_str)
        .filter(|text| text.contains('$'))
        .collect();
    let mut mentions = in_line(line);
    if opens_unknown {
        let patterns = mentions.iter_mut().filter(|mention| {
            mention.role == Role::Target && mention.path.contains(['*', '?', '['])
        });
        for pattern in patterns {
            pattern.spelling = Spelling::Endless;
        }
    }
    mentions.retain(|mention| {
        let source = match &mention.spelling {
            Spelling::AsIs => return false,
            Spelling::Variable(source) => source,
            Spelling::Endless => &mention.path,
        };
        mention.role != Role::Word || written.iter().any(|text| source.ends_with(text))
    });
    mentions
}

/// Every word, without quotes, between whatever could separate words.
pub(crate) fn in_line(line: &str) -> Vec<Mention> {
    let words = words(line);
    let values = values_among(&words);
    let mut names = 0;
    words
        .iter()
        .flat_map(|(word, role)| {
            let found = if names < MAX_NAMES || !word.contains('$') {
                mentions(word, *role, &values)
            } else {
                vec![Mention::endless(word, *role)]
            };
            names += if word.contains('$') { found.len() } else { 0 };
            found
        })
        .collect()
}

fn mentions(word: &str, role: Role, values: &Values) -> Vec<Mention> {
    let mention = |path: &str, spelling: Spelling| Mention {
        path: path.to_owned(),
        role,
        spelling,
    };
    let parts = |word: &str| -> Vec<String> {
        match role {
            // An option with its value, or the parts of a brace.
            Role::Word => word
                .split(['=', ','])
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect(),
            Role::Source | Role::Target => vec![word.to_owned()],
        }
    };
    if !word.contains('$') {
        let parts = parts(word);
        return parts
            .iter()
            .map(|part| mention(part, Spelling::AsIs))
            .collect();
    }
    let readings = values.readings(word);
    let endless = matches!(readings, Readings::Cut(_)).then(|| Mention::endless(word, role));
    let readings = readings.into_words();
    let readings = readings.iter().flat_map(|reading| parts(reading));
    readings
        .map(|part| mention(&part, Spelling::Variable(word.to_owned())))
        .chain(endless)
        .collect()
}

fn words(line: &str) -> Vec<(String, Role)> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut role = Role::Word;
    for letter in line.chars() {
        match letter {
            '\'' | '"' | '\\' => {}
            '<' | '>' | '&' | '|' | ';' | '(' | ')' | '`' => {
                end(&mut words, &mut word, role);
                role = match letter {
                    '<' => Role::Source,
                    '>' => Role::Target,
                    // They are parts of `>&` and `>|`.
                    '&' | '|' if role == Role::Target => role,
                    _ => Role::Word,
                };
            }
            letter if letter.is_whitespace() || letter.is_control() => {
                if end(&mut words, &mut word, role) == Ended::Word {
                    role = Role::Word;
                }
            }
            letter => word.push(letter),
        }
    }
    end(&mut words, &mut word, role);
    words
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Word,
    Nothing,
}

fn end(words: &mut Vec<(String, Role)>, word: &mut String, role: Role) -> Ended {
    if word.is_empty() {
        return Ended::Nothing;
    }
    words.push((std::mem::take(word), role));
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
        let spelled = |source: &str| Spelling::Variable(source.to_owned());
        assert!(found.iter().any(|mention| mention.path == "$x"));
        assert_eq!(found.last().unwrap().spelling, spelled("$HOME/a"));
    }

    #[test]
    fn a_name_is_also_what_the_line_makes_of_it() {
        let targets = |line: &str| -> Vec<String> {
            let found = in_line(line).into_iter();
            found
                .filter(|mention| mention.role == Role::Target)
                .map(|mention| mention.path)
                .collect()
        };
        assert_eq!(targets("d=~; echo x > \"$d\"/.bashrc"), ["~/.bashrc"]);
        assert_eq!(targets("for f in a b; do : > $f; done"), ["a", "b"]);
        let operands = |line: &str| -> Vec<String> {
            let script = crate::shell::strict(line).unwrap();
            let found = unknown(line, &script).into_iter();
            found.map(|mention| mention.path).collect()
        };
        assert_eq!(operands("f=x; dd if=$f of=$f"), ["if", "x", "of", "x"]);
        assert!(operands("f=x; cat $f y").is_empty());
    }
}
