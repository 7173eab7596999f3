//! Which rules could match a shell command: a line may hold hundreds of commands and a book
//! thousands of rules.

use std::collections::HashMap;

use caliban_settings::RuleAction;

use crate::pattern::{About, CommandPattern, FieldValue, Reach};
use crate::rule::Rule;

/// The places of rules about commands, by a word that such a command has.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandIndex {
    /// Rules by the program they spell.
    by_program: HashMap<String, Vec<usize>>,
    /// Objections to a command anywhere in a line by the word they begin with.
    by_word: HashMap<String, Vec<usize>>,
    /// Rules that may match any command.
    any_program: Vec<usize>,
}

impl CommandIndex {
    pub(crate) fn of(rules: &[Rule]) -> Self {
        let mut built = Self::default();
        for (index, rule) in rules.iter().enumerate() {
            if !rule.is_about("Bash") {
                continue;
            }
            for begin in begins(rule) {
                let indices = match begin {
                    Begin::Program(program) => built.by_program.entry(program).or_default(),
                    Begin::Word(word) => built.by_word.entry(word).or_default(),
                    Begin::Unknown => &mut built.any_program,
                };
                indices.push(index);
            }
        }
        built
    }

    /// The rules that could match a command of these words, in order.
    pub(crate) fn about(&self, words: &[&str]) -> Vec<usize> {
        let program = words.first().copied().unwrap_or_default();
        let by_program = self.by_program.get(program);
        // A word with blanks in it looks to a pattern like several.
        let by_word = words.iter().filter_map(|word| {
            let begin = word.split(' ').next()?;
            self.by_word.get(begin)
        });
        let mut indices = self.any_program.clone();
        let any = indices.len();
        indices.extend(by_program.into_iter().chain(by_word).flatten());
        if indices.len() > any {
            indices.sort_unstable();
            indices.dedup();
        }
        indices
    }
}

/// What a command must have to be matched by a rule.
enum Begin {
    /// It begins with this word.
    Program(String),
    /// One of its words begins with this one.
    Word(String),
    Unknown,
}

/// What each alternative of a rule needs.
fn begins(rule: &Rule) -> Vec<Begin> {
    let commands = match rule.pattern.about() {
        About::Command(commands) => Some(commands),
        About::Fields(fields) => fields.iter().find_map(|field| match &field.value {
            FieldValue::Command(commands) => Some(commands),
            FieldValue::Text(_) | FieldValue::Path(_) | FieldValue::Url(_) => None,
        }),
        About::Never(_) => return Vec::new(),
        About::Anything | About::Path(_) | About::Url(_) => None,
    };
    match commands {
        Some(commands) => commands
            .iter()
            .map(|command| begin(command, rule.action))
            .collect(),
        None => vec![Begin::Unknown],
    }
}

fn begin(command: &CommandPattern, action: RuleAction) -> Begin {
    let Some(word) = command.glob.first_word() else {
        return Begin::Unknown;
    };
    match (command.reach, action) {
        // It may begin behind another command.
        (_, RuleAction::Ask | RuleAction::Deny) if command.spells_operator() => {
            Begin::Word(word.to_owned())
        }
        (Reach::Whole | Reach::Prefix, _) => Begin::Program(word.to_owned()),
        // One that allows looks behind wrappers, whose words may not show it.
        (Reach::Anywhere, RuleAction::Allow) => Begin::Unknown,
        (Reach::Anywhere, RuleAction::Ask | RuleAction::Deny) => Begin::Word(word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use caliban_settings::RuleSpec;

    use super::*;
    use crate::origin::Origin;

    #[test]
    fn the_index_keeps_the_order() {
        let rules = [
            ("Bash:git push", RuleAction::Deny),
            ("Bash:~rm *", RuleAction::Deny),
            ("Bash:git *", RuleAction::Allow),
            ("Bash:ls *", RuleAction::Allow),
            ("Read", RuleAction::Allow),
            ("Bash", RuleAction::Ask),
            ("*", RuleAction::Ask),
        ]
        .map(|(pattern, action)| Rule::new(RuleSpec::new(pattern, action), Origin::Flag).unwrap());
        let index = CommandIndex::of(&rules);
        assert_eq!(index.about(&["git", "x"]), [0, 2, 5, 6]);
        assert_eq!(index.about(&["cat"]), [5, 6]);
        for words in [&["git", "rm", "rm"][..], &["git", "rm x"]] {
            assert_eq!(index.about(words), [0, 1, 2, 5, 6]);
        }
    }
}
