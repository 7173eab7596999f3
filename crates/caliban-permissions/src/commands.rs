//! How patterns match the commands of a shell line: strictly when they allow, generously when
//! they object.

use crate::pattern::{CommandPattern, Reach};
use crate::shell::{self, Command, Hazard, HazardKind, Word, Wrapping};

/// A command as a pattern sees it: its words, and the same as one text.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub(crate) words: Vec<&'a str>,
    pub(crate) joined: String,
    /// The same with what is known only at run time made unlike anything a pattern can spell.
    veiled: Option<String>,
}

/// Stands for a word that is not known; only a wildcard that covers all of it matches.
const VEIL: &str = "\u{f8ff}\u{f8ff}\u{f8ff}\u{f8ff}\u{f8ff}\u{f8ff}\u{f8ff}\u{f8ff}";

impl<'a> Text<'a> {
    pub(crate) fn new(words: impl IntoIterator<Item = &'a str>) -> Self {
        let words: Vec<&str> = words.into_iter().collect();
        Self {
            joined: words.join(" "),
            words,
            veiled: None,
        }
    }

    pub(crate) fn of(command: &'a Command) -> Self {
        let text = Self::new(command.words.iter().map(|word| word.text.as_str()));
        if command.words.iter().all(Word::is_literal) {
            return text;
        }
        let veiled: Vec<&str> = command
            .words
            .iter()
            .map(|word| {
                if word.is_literal() {
                    word.text.as_str()
                } else {
                    VEIL
                }
            })
            .collect();
        Self {
            veiled: Some(veiled.join(" ")),
            ..text
        }
    }

    /// What an allow rule must match: a rule without wildcards may spell the source, any other
    /// must cover what is not known.
    fn provable(&self, pattern: &CommandPattern) -> &str {
        match &self.veiled {
            Some(veiled) if !pattern.glob.is_literal() => veiled,
            Some(_) | None => &self.joined,
        }
    }

    /// Where each word begins in the joined text.
    fn beginnings(&self) -> impl Iterator<Item = usize> {
        self.words.iter().scan(0, |next, word| {
            let begin = *next;
            *next += word.len() + 1;
            Some(begin)
        })
    }
}

impl CommandPattern {
    /// Whether it proves this command allowed: it matches from the first word on, and spells
    /// every word that would make the program do something else than usual.
    pub(crate) fn allows(&self, command: &Command, text: &Text<'_>) -> bool {
        let matches = match self.reach {
            Reach::Whole => self.glob.matches(text.provable(self)),
            Reach::Prefix => self.matches_beginning(text.provable(self)),
            Reach::Anywhere => return self.allows_through_wrappers(command, text),
        };
        matches && self.spells_hazards(command)
    }

    /// `~` finds a command behind its wrappers, never in the arguments of another program.
    fn allows_through_wrappers(&self, command: &Command, text: &Text<'_>) -> bool {
        match command.wrapping {
            Wrapping::Plain => {
                self.glob.matches(text.provable(self)) && self.spells_hazards(command)
            }
            Wrapping::Transparent | Wrapping::Wrapper => {
                !command.inner.is_empty()
                    && command
                        .inner
                        .iter()
                        .all(|inner| self.allows_through_wrappers(inner, &Text::of(inner)))
            }
        }
    }

    /// Whether it objects to a command that these words may be.
    pub(crate) fn objects(&self, text: &Text<'_>) -> bool {
        match self.reach {
            Reach::Whole => self.glob.matches(&text.joined),
            Reach::Prefix => self.matches_beginning(&text.joined),
            Reach::Anywhere => text
                .beginnings()
                .any(|from| self.matches_beginning(&text.joined[from..])),
        }
    }

    /// Whether an allow rule comes before a denial of a command that these words may be. Nothing
    /// is proved by it, but what it would not allow if it were proved must not be hidden by it.
    pub(crate) fn precedes(&self, text: &Text<'_>) -> bool {
        let matches = match self.reach {
            Reach::Whole => self.glob.matches(&text.joined),
            Reach::Prefix => self.matches_beginning(&text.joined),
            Reach::Anywhere => {
                // Not a wrapper itself, as when it is proved.
                let (skipped, reach) = match text.words.first() {
                    Some(first) if shell::may_wrap(first) => (1, usize::MAX),
                    _ => (0, 1),
                };
                text.beginnings()
                    .skip(skipped)
                    .take(reach)
                    .any(|from| self.glob.matches(&text.joined[from..]))
            }
        };
        let covers = |hazard: Hazard| {
            let word = text.words.get(hazard.word);
            word.is_some_and(|word| self.covers(hazard.what, word))
        };
        matches && shell::hazards_among(&text.words).into_iter().all(covers)
    }

    /// Whether it objects to a line as it is written. `curl * | sh` is nowhere else to be seen, so
    /// it is looked for anywhere.
    pub(crate) fn objects_to_line(&self, line: &Text<'_>) -> bool {
        self.objects(line)
            || self.spells_operator()
                && line
                    .beginnings()
                    .any(|from| self.matches_beginning(&line.joined[from..]))
    }

    /// Whether it is about more than one command, or about a redirection.
    pub(crate) fn spells_operator(&self) -> bool {
        self.glob.spells_any(&['|', '&', ';', '<', '>'])
    }

    /// Whether the pattern spells a word: in full, or an option up to its value.
    pub(crate) fn spells(&self, word: &str) -> bool {
        self.glob.is_literal() && self.reach != Reach::Prefix
            || self.glob.spelled_words().iter().any(|spelled| {
                *spelled == word
                    || (spelled.starts_with('-') && spelled.len() > 1 && word.starts_with(spelled))
            })
    }

    fn spells_hazards(&self, command: &Command) -> bool {
        command.hazards.iter().all(|hazard| {
            let word = command.words.get(hazard.word);
            word.is_some_and(|word| self.covers(hazard.what, &word.text))
        })
    }

    /// Whether the pattern means a word that is a hazard.
    fn covers(&self, what: HazardKind, word: &str) -> bool {
        match what {
            // It is about every call of the interpreter.
            HazardKind::RunsCode if self.glob.spelled_words().len() == 1 => true,
            HazardKind::RunsCode
            | HazardKind::RunsProgram
            | HazardKind::LoadsCode
            | HazardKind::WritesFile
            | HazardKind::SendsFile
            | HazardKind::Unknown => self.spells(word),
        }
    }

    /// What follows does not matter, as long as it is another word.
    fn matches_beginning(&self, text: &str) -> bool {
        self.glob.matches(text) || self.longer.matches(text)
    }
}
