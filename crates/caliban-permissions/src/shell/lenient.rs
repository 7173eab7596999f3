//! Everything a line might run, found generously: fit to prove a denial, and nothing else.

use std::collections::{HashMap, HashSet};

use super::blind::{self, Quotes};
use super::loose::{self, Part};
use super::programs::{self, Program};
use super::scan::{self, Segment};
use super::words::Argument;
use super::{MAX_LENGTH, Refusal, Script, hazards, strict, variables};

/// How many candidates a line may have, and how many words in all of them.
const MAX_CANDIDATES: usize = 4096;
const MAX_CANDIDATE_WORDS: usize = 65_536;
/// How much text may be read, counting again what is read again without its quotes.
const MAX_TEXT: usize = 1024 * 1024;
/// How often text may be taken out of quotes.
const MAX_UNQUOTING: usize = 16;
/// How many values of a variable are tried.
const MAX_VALUES: usize = 8;

/// What a line might run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lenient {
    pub candidates: Vec<Candidate>,
    pub complete: Completeness,
}

/// Whether all of the line was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    Complete,
    /// A limit was reached. A line like this must be taken to run whatever is denied.
    Cut,
}

/// A command that the line might run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The program and its arguments; unknown parts are the text of the source.
    pub words: Vec<String>,
    pub from: Origin,
}

/// How a candidate was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It stands where a command stands.
    Command,
    /// It stands where a program may take it for a command: among its operands, or in the text
    /// of one.
    Operand,
    /// It would be a command if the quotes did not mean what they seem to.
    Guess,
}

/// Everything the line might run, generously: may only be used to prove a denial.
pub fn lenient(line: &str) -> Lenient {
    lenient_beside(line, &strict(line))
}

/// The same where it is known already what is proven about the line.
pub(crate) fn lenient_beside(line: &str, proof: &Result<Script, Refusal>) -> Lenient {
    let mut finder = Finder::default();
    let mut end = line.len().min(MAX_LENGTH);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    finder.cut = end < line.len();
    let line = &line[..end];
    // What is proven needs no guesses about its quotes.
    if proof.is_err() {
        finder.quotes = Trust::Doubted;
    }
    finder.text(line, 0, Origin::Command);
    Lenient {
        candidates: finder.candidates,
        complete: if finder.cut {
            Completeness::Cut
        } else {
            Completeness::Complete
        },
    }
}

/// Words as they are written, without their quotes.
fn spelled(words: &[Vec<Part>]) -> Vec<String> {
    words.iter().map(|word| loose::source(word)).collect()
}

/// Whether the quotes of the line mean what they seem to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Trust {
    #[default]
    Proven,
    Doubted,
}

#[derive(Default)]
struct Finder {
    candidates: Vec<Candidate>,
    seen: HashSet<Vec<String>>,
    words: usize,
    text: usize,
    cut: bool,
    quotes: Trust,
    values: HashMap<String, Vec<String>>,
}

impl Finder {
    fn text(&mut self, text: &str, unquoted: usize, from: Origin) {
        self.text += text.len();
        if self.text > MAX_TEXT || unquoted > MAX_UNQUOTING {
            self.cut = true;
            return;
        }
        let scan = scan::scan(text);
        self.cut |= scan.cut;
        let spelled: Vec<Vec<String>> = scan
            .segments
            .iter()
            .map(|segment| spelled(&segment.words))
            .collect();
        for words in &spelled {
            self.note_values(words);
        }
        for (segment, words) in scan.segments.iter().zip(&spelled) {
            self.segment(segment, words, unquoted, from);
        }
        for script in &scan.scripts {
            self.text(script, unquoted + 1, from);
        }
        if self.quotes == Trust::Doubted {
            self.guesses(text, unquoted);
        }
    }

    /// Remembers what variables may hold.
    fn note_values(&mut self, words: &[String]) {
        if let [keyword, name, _in, values @ ..] = words
            && matches!(keyword.as_str(), "for" | "select")
        {
            for value in values {
                self.note_value(name, value);
            }
        }
        for word in words {
            if let Some((name, value)) = word.split_once('=')
                && variables::is_name(name)
            {
                self.note_value(name, value);
            }
        }
    }

    fn note_value(&mut self, name: &str, value: &str) {
        if value.contains(['$', '`']) {
            return;
        }
        let values = self.values.entry(name.to_owned()).or_default();
        if values.len() < MAX_VALUES && !values.iter().any(|known| known == value) {
            values.push(value.to_owned());
        }
    }

    fn segment(&mut self, segment: &Segment, words: &[String], unquoted: usize, from: Origin) {
        if !self.begins_quietly(words) || self.quotes == Trust::Doubted {
            for body in &segment.bodies {
                self.text(body, unquoted + 1, Origin::Operand);
            }
        }
        self.words_of_segment(&segment.words, words, unquoted, from);
        if words.iter().any(|word| word.contains('{')) {
            let expanded: Vec<Vec<Part>> = segment
                .words
                .iter()
                .flat_map(|word| loose::expand_braces(word))
                .collect();
            self.words_of_segment(&expanded, &spelled(&expanded), unquoted, from);
        }
    }

    fn words_of_segment(
        &mut self,
        words: &[Vec<Part>],
        spelled: &[String],
        unquoted: usize,
        from: Origin,
    ) {
        self.command(spelled, unquoted, from);
        let has_expansion = words
            .iter()
            .flatten()
            .any(|part| matches!(part, Part::Expansion { .. }));
        if has_expansion {
            for choice in 0..=MAX_VALUES {
                let Some(words) = self.rendered(words, choice) else {
                    break;
                };
                self.command(&words, unquoted, from);
            }
        }
    }

    /// The words with expansions replaced: by nothing, which hides a name in pieces, or by a
    /// value that the line assigns; none if there is no such value.
    fn rendered(&self, segment: &[Vec<Part>], choice: usize) -> Option<Vec<String>> {
        let mut words = Vec::new();
        let mut has_value = choice == 0;
        for word in segment {
            let mut text = String::new();
            for part in word {
                match part {
                    Part::Text(part) | Part::Quoted(part) => text.push_str(part),
                    Part::Expansion { name, .. } => {
                        let values = name.as_ref().and_then(|name| self.values.get(name));
                        if let Some(values) = values.filter(|_| choice > 0) {
                            has_value |= choice <= values.len();
                            let value = values.get(choice - 1).or(values.last());
                            text.push_str(value.map(String::as_str).unwrap_or_default());
                        }
                    }
                }
            }
            words.extend(text.split_whitespace().map(str::to_owned));
        }
        has_value.then_some(words)
    }

    /// A command of these words, and what it might run in turn.
    fn command(&mut self, words: &[String], unquoted: usize, from: Origin) {
        let mut words = words;
        self.push(words, from);
        while let [first, rest @ ..] = words
            && is_prefix(first)
            && !rest.is_empty()
        {
            words = rest;
            self.push(words, from);
        }
        let Some(first) = words.first() else {
            return;
        };
        if self.is_quiet(first) {
            self.hazards(words, unquoted);
        } else {
            self.operands(words, 1, unquoted);
        }
    }

    /// Notes a candidate, and the same one by its program's bare name.
    fn push(&mut self, words: &[String], from: Origin) {
        let Some(first) = words.first() else {
            return;
        };
        if self.is_full(words.len()) {
            return;
        }
        self.push_one(words, from);
        let name = Program::new(first).name;
        if name != first {
            let mut words = words.to_vec();
            name.clone_into(&mut words[0]);
            self.push_one(&words, from);
        }
    }

    /// Notes the command from a word on with one operand more, if a program before it adds some.
    fn push_fed(&mut self, words: &[String], at: usize, from: Origin) {
        let is_fed = |word: &String| programs::feeds_operands(Program::new(word).name);
        if words[..at].iter().any(is_fed) {
            let mut words = words[at..].to_vec();
            words.push("{}".to_owned());
            self.push(&words, from);
        }
    }

    fn push_one(&mut self, words: &[String], from: Origin) {
        if self.is_full(words.len()) || self.seen.contains(words) {
            return;
        }
        self.seen.insert(words.to_vec());
        self.words += words.len();
        let words = words.to_vec();
        self.candidates.push(Candidate { words, from });
    }

    /// Whether this many words more would be too many.
    fn is_full(&mut self, words: usize) -> bool {
        let full = self.candidates.len() >= MAX_CANDIDATES
            || self.words + words > MAX_CANDIDATE_WORDS
            || self.text > MAX_TEXT;
        self.cut |= full;
        full
    }

    /// What an unknown program might run: from each of its operands on, and the text of each.
    fn operands(&mut self, words: &[String], start: usize, unquoted: usize) {
        for at in start..words.len() {
            if self.is_full(words.len() - at) {
                return;
            }
            let rest = &words[at..];
            self.push(rest, Origin::Operand);
            self.push_fed(words, at, Origin::Operand);
            if let Some(end) = rest.iter().position(|word| word == ";" || word == "+") {
                self.push(&rest[..end], Origin::Operand);
            }
            for text in hidden(&words[at]) {
                self.text(text, unquoted + 1, Origin::Operand);
            }
            if is_text(&words[at]) {
                self.text(&words[at], unquoted + 1, Origin::Operand);
            } else {
                // After `-c` a word is a command of its own, and the rest is not its.
                self.push(&words[at..=at], Origin::Operand);
            }
        }
        let rest = words.get(start..).unwrap_or_default();
        if rest.len() > 1 && rest.iter().any(|word| is_text(word)) {
            self.text(&rest.join(" "), unquoted + 1, Origin::Operand);
        }
    }

    /// What a program that runs none of its operands might run after all, for its options.
    fn hazards(&mut self, words: &[String], unquoted: usize) {
        let args: Vec<Argument> = words.iter().map(Argument::literal).collect();
        for hazard in hazards::of(&args) {
            if self.is_full(1) {
                return;
            }
            if !hazard.what.runs() {
                continue;
            }
            // The option and its value, which may be a word of its own.
            for word in words.iter().skip(hazard.word).take(2) {
                self.guesses(word, unquoted);
                for text in hidden(word) {
                    self.text(text, unquoted + 1, Origin::Operand);
                }
            }
            self.operands(words, hazard.word + 1, unquoted);
        }
    }

    /// Whether a program runs none of its operands.
    fn is_quiet(&self, program: &str) -> bool {
        let name = Program::new(program).name;
        // Who knows where their output goes: `echo rm x | sh`.
        let prints = matches!(name, "echo" | "printf");
        programs::is_quiet(name) && !(prints && self.quotes == Trust::Doubted)
    }

    fn begins_quietly(&self, words: &[String]) -> bool {
        words
            .iter()
            .find(|word| !is_prefix(word))
            .is_some_and(|word| self.is_quiet(word))
    }

    /// Commands of a text whose quotes are not trusted.
    fn guesses(&mut self, text: &str, unquoted: usize) {
        self.text += text.len();
        if self.text > MAX_TEXT || unquoted > MAX_UNQUOTING {
            self.cut = true;
            return;
        }
        for quotes in [Quotes::Removed, Quotes::Separating] {
            for words in blind::pieces(text, quotes) {
                self.guess(&words);
            }
        }
    }

    fn guess(&mut self, words: &[String]) {
        let mut words = words;
        self.push(words, Origin::Guess);
        // An escape to the shell, from whatever reads this.
        if let [first, rest @ ..] = words
            && let Some(program) = first.strip_prefix('!').filter(|text| !text.is_empty())
        {
            let words: Vec<String> = [program.to_owned()]
                .into_iter()
                .chain(rest.iter().cloned())
                .collect();
            self.push(&words, Origin::Guess);
        }
        while let [first, rest @ ..] = words
            && is_prefix(first)
        {
            words = rest;
            self.push(words, Origin::Guess);
        }
        if !self.begins_quietly(words) {
            for at in 1..words.len() {
                if self.is_full(words.len() - at) {
                    return;
                }
                self.push(&words[at..], Origin::Guess);
                self.push_fed(words, at, Origin::Guess);
            }
        }
    }
}

/// Whether a command may begin after this word: a keyword or an assignment.
pub(super) fn is_prefix(word: &str) -> bool {
    programs::is_keyword(word)
        || word
            .split_once('=')
            .is_some_and(|(name, _)| variables::is_name(name.trim_end_matches('+')))
}

/// What a program may find in a word: behind the `=` of a value, behind the `!` of an escape to
/// the shell, behind the letter of an option.
fn hidden(word: &str) -> impl Iterator<Item = &str> {
    let behind = word.match_indices(['=', '!']).take(MAX_VALUES);
    let behind = behind.map(|(index, _)| &word[index + 1..]);
    let glued = word
        .strip_prefix('-')
        .filter(|letters| !letters.starts_with('-'))
        .and_then(|letters| letters.char_indices().nth(1))
        .map(|(index, _)| &word[index + 1..]);
    behind.chain(glued).filter(|text| !text.is_empty())
}

/// Whether a word could be more than one when a shell reads it.
fn is_text(word: &str) -> bool {
    word.contains(|c: char| c.is_whitespace() || ";&|()<>`$'\"\\{".contains(c))
}
