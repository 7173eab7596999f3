//! The values that a line itself gives to its variables, for names of files that are spelled by
//! them. Nothing is proved by it: it only finds what else a name may be.

use std::collections::HashMap;

/// How many values of a variable, and how many readings of a word, are looked at.
pub(crate) const MAX_READINGS: usize = 256;
/// The longest reading: no file has a longer path.
const MAX_LENGTH: usize = 4096;
/// How deep `${a:-${b:-…}}` may nest.
const MAX_DEPTH: usize = 8;

/// What variables may hold.
#[derive(Debug)]
pub(crate) struct Values {
    by_name: HashMap<String, Vec<String>>,
    /// All words of the line, which is what it may read or pass on.
    words: Vec<String>,
}

/// What a word may stand for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Readings {
    All(Vec<String>),
    /// There are more than are looked at.
    Cut(Vec<String>),
}

impl Values {
    /// Reads the assignments and loops among the words of a line, which come without quotes.
    pub(crate) fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        // The home is the home unless the line says otherwise.
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let mut values = Self {
            by_name: HashMap::from([("HOME".to_owned(), vec!["~".to_owned()])]),
            // One more than is looked at, so that it is seen.
            words: words
                .iter()
                .filter(|word| !word.contains('$'))
                .take(MAX_READINGS + 1)
                .map(|word| (*word).to_owned())
                .collect(),
        };
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            if word == "for"
                && let Some(name) = words.next_if(|word| is_name(word))
                && words.next_if_eq(&"in").is_some()
            {
                while let Some(value) = words.next_if(|word| *word != "do") {
                    values.assign(name, value);
                }
            } else if matches!(word, "read" | "mapfile" | "readarray") {
                let is_operand = |word: &&str| word.starts_with('-') || is_name(word);
                while let Some(name) = words.next_if(is_operand) {
                    let given = values.words.clone();
                    values.by_name.insert(name.to_owned(), given);
                }
            } else if let Some((name, value)) = word.split_once('=') {
                match name.strip_suffix('+') {
                    Some(name) if is_name(name) => values.extend(name, value),
                    None if is_name(name) => values.assign(name, value),
                    Some(_) | None => {}
                }
            }
        }
        values
    }

    /// What a word may stand for. A variable that the line says nothing about stays as it is
    /// spelled.
    pub(crate) fn readings(&self, word: &str) -> Readings {
        self.readings_within(word, MAX_DEPTH)
    }

    fn readings_within(&self, word: &str, depth: usize) -> Readings {
        let mut readings = vec![String::new()];
        let mut cut = false;
        let mut rest = word;
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            let (spelled, parameter) = parameter(from);
            let mut values: Vec<String> = Vec::new();
            if let Some((name, default)) = parameter {
                match name {
                    Variable::Named(name) => {
                        values.extend(self.by_name.get(name).into_iter().flatten().cloned());
                    }
                    Variable::Given => values.extend(self.words.iter().cloned()),
                }
                match (default, depth.checked_sub(1)) {
                    (Some(default), Some(depth)) => {
                        let readings = self.readings_within(default, depth);
                        cut |= matches!(readings, Readings::Cut(_));
                        values.extend(readings.into_words());
                    }
                    (Some(_), None) => cut = true,
                    (None, _) => {}
                }
            }
            if values.is_empty() {
                values.push(spelled.to_owned());
            }
            let all = (readings.len() * values.len()).min(MAX_READINGS);
            cut |= readings.len() * values.len() > MAX_READINGS;
            readings = readings
                .iter()
                .flat_map(|reading| {
                    let longer = move |value| format!("{reading}{before}{value}");
                    values.iter().map(longer)
                })
                .take(MAX_READINGS)
                .filter(|reading| reading.len() <= MAX_LENGTH)
                .collect();
            cut |= readings.len() < all;
            rest = &from[spelled.len()..];
        }
        for reading in &mut readings {
            reading.push_str(rest);
        }
        let all = readings.len();
        readings.retain(|reading| reading.len() <= MAX_LENGTH);
        cut |= readings.len() < all;
        if cut {
            Readings::Cut(readings)
        } else {
            Readings::All(readings)
        }
    }

    fn assign(&mut self, name: &str, value: &str) {
        let new = self.readings(value).into_words();
        let values = self.by_name.entry(name.to_owned()).or_default();
        for value in new {
            // One more than is looked at, so that it is seen.
            if values.len() <= MAX_READINGS && !values.contains(&value) {
                values.push(value);
            }
        }
    }

    fn extend(&mut self, name: &str, more: &str) {
        let old = self.by_name.get(name).cloned().unwrap_or_default();
        if old.is_empty() {
            self.assign(name, more);
        }
        for value in old {
            self.assign(name, &format!("{value}{more}"));
        }
    }
}

impl Readings {
    pub(crate) fn into_words(self) -> Vec<String> {
        match self {
            Self::All(words) | Self::Cut(words) => words,
        }
    }
}

/// Which variable is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variable<'a> {
    Named(&'a str),
    /// What was read or passed without a name, or an element of several.
    Given,
}

impl<'a> Variable<'a> {
    fn new(name: &'a str) -> Option<Self> {
        match name {
            "REPLY" | "@" | "*" => Some(Self::Given),
            name if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(Self::Given)
            }
            name => is_name(name).then_some(Self::Named(name)),
        }
    }
}

/// A `$…` at the beginning: how it is spelled, and its variable with what stands for it where it
/// is not set.
fn parameter(text: &str) -> (&str, Option<(Variable<'_>, Option<&str>)>) {
    let name_end = |from: usize| {
        text[from..]
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .map_or(text.len(), |length| from + length)
    };
    let is_all = |from: usize| text[from..].starts_with(['@', '*']);
    if !text.starts_with("${") {
        let end = if is_all(1) { 2 } else { name_end(1) };
        return (
            &text[..end],
            Variable::new(&text[1..end]).map(|it| (it, None)),
        );
    }
    let end = if is_all(2) { 3 } else { name_end(2) };
    let Some(close) = closing(text) else {
        return (text, None);
    };
    let how = &text[end..close];
    let default = [":-", ":=", "-", "="]
        .iter()
        .find_map(|sign| how.strip_prefix(sign));
    let variable = match Variable::new(&text[2..end]) {
        // What an array holds stands somewhere in the line.
        Some(_) if how.starts_with('[') => Some(Variable::Given),
        variable => variable,
    };
    (&text[..=close], variable.map(|it| (it, default)))
}

/// Where the brace of a `${…` is closed.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    text.char_indices().find_map(|(at, letter)| {
        match letter {
            '{' => open += 1,
            '}' => open = open.saturating_sub(1),
            _ => {}
        }
        (letter == '}' && open == 0).then_some(at)
    })
}

fn is_name(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    text.starts_with(is_letter)
        && text
            .chars()
            .all(|letter| is_letter(letter) || letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn readings(line: &str, word: &str) -> Vec<String> {
        Values::of(line.split(' ')).readings(word).into_words()
    }

    #[rstest]
    #[case("d=~", "$d/.bashrc", &["~/.bashrc"])]
    #[case("d=$HOME", "${d}/x", &["~/x"])]
    #[case("a=.bash b=${a}rc", "~/$b", &["~/.bashrc"])]
    #[case("export n=git", ".$n/config", &[".git/config"])]
    #[case("d=a d=b", "$d", &["a", "b"])]
    #[case("d=a d+=b", "$d", &["a", "ab"])]
    #[case("for f in a b do echo", "x/$f", &["x/a", "x/b"])]
    #[case("", "${d:-~}/.bashrc", &["~/.bashrc"])]
    #[case("", "${HOME%/}/.bashrc", &["~/.bashrc"])]
    #[case("", "${d:-${e:-$HOME}}/.bashrc", &["~/.bashrc"])]
    #[case("f= a/b", "${f[0]}", &["f=", "a/b"])]
    #[case("read f a/b", "$f", &["read", "f", "a/b"])]
    #[case("a/b read -r f", "$f", &["a/b", "read", "-r", "f"])]
    #[case("set a/b", "$1", &["set", "a/b"])]
    #[case("set a/b", "x/$@", &["x/set", "x/a/b"])]
    #[case("read a/b", "$REPLY", &["read", "a/b"])]
    #[case("", "$d/.git/$1", &["$d/.git/$1"])]
    #[case("", "a$", &["a$"])]
    #[case("", "${d", &["${d"])]
    #[case("HOME=/x", "$HOME", &["~", "/x"])]
    fn a_word_stands_for_what_the_line_says(
        #[case] line: &str,
        #[case] word: &str,
        #[case] expected: &[&str],
    ) {
        assert_eq!(readings(line, word), expected);
    }

    #[test]
    fn too_many_readings_are_told() {
        let assigning = |count: usize| -> Vec<String> {
            (0..count).map(|number| format!("x={number}")).collect()
        };
        let few = assigning(20);
        let values = Values::of(few.iter().map(String::as_str));
        assert!(matches!(values.readings("$x"), Readings::All(words) if words.len() == 20));
        let cut = values.readings("$x$x");
        assert!(matches!(cut, Readings::Cut(words) if words.len() == MAX_READINGS));
        let many = assigning(1000);
        let many = Values::of(many.iter().map(String::as_str));
        assert!(matches!(many.readings("$x"), Readings::Cut(_)));
    }

    #[test]
    fn values_that_grow_without_end_are_told() {
        let line: Vec<String> = (1..40)
            .map(|number| format!("x{number}=$x{0}$x{0}$x{0}", number - 1))
            .collect();
        let line = ["x0=abcdefgh"]
            .into_iter()
            .chain(line.iter().map(String::as_str));
        let values = Values::of(line);
        assert!(matches!(values.readings("$x5"), Readings::All(words) if words[0].len() == 1944));
        assert!(matches!(values.readings("$x5$x5$x5"), Readings::Cut(_)));
        let deep = "${x:-".repeat(10_000) + &"}".repeat(10_000);
        assert!(matches!(values.readings(&deep), Readings::Cut(_)));
    }
}
