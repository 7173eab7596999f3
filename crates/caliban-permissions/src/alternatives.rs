//! `{a,b}` in patterns: every alternative written out, so that each of them is judged by itself.

/// The alternatives of a pattern, of which there is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnyOf<T>(Vec<T>);

/// How many alternatives a pattern may have.
pub(crate) const MAX_ALTERNATIVES: usize = 256;

/// The pattern has more alternatives than are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has more than {MAX_ALTERNATIVES} alternatives")]
pub(crate) struct TooMany;

impl AnyOf<String> {
    /// Writes out the groups of a pattern, nested ones included. Braces without a comma between
    /// them stand for themselves, as `{}` of `find` does, and so do those behind a backslash.
    pub(crate) fn spelled_out(pattern: &str) -> Result<Self, TooMany> {
        let mut done = Vec::new();
        // Alternatives with groups still in them, and where to look for the next one.
        let mut open = vec![(pattern.to_owned(), 0)];
        while let Some((text, from)) = open.pop() {
            let Some(group) = Group::find(&text, from) else {
                done.push(text);
                if done.len() > MAX_ALTERNATIVES {
                    return Err(TooMany);
                }
                continue;
            };
            let (before, after) = (&text[..group.start], &text[group.end + 1..]);
            for part in group.parts(&text).into_iter().rev() {
                open.push((format!("{before}{part}{after}"), group.start));
            }
            if open.len() > MAX_ALTERNATIVES {
                return Err(TooMany);
            }
        }
        Ok(Self(done))
    }
}

impl<T> AnyOf<T> {
    pub(crate) fn map<U>(self, each: impl FnMut(T) -> U) -> AnyOf<U> {
        AnyOf(self.0.into_iter().map(each).collect())
    }

    pub(crate) fn try_map<U, E>(self, each: impl FnMut(T) -> Result<U, E>) -> Result<AnyOf<U>, E> {
        let all: Result<Vec<U>, E> = self.0.into_iter().map(each).collect();
        all.map(AnyOf)
    }

    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    pub fn any(&self, holds: impl FnMut(&T) -> bool) -> bool {
        self.0.iter().any(holds)
    }
}

impl<'a, T> IntoIterator for &'a AnyOf<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A group that has alternatives.
struct Group {
    /// Where its brace opens.
    start: usize,
    commas: Vec<usize>,
    /// Where its brace closes.
    end: usize,
}

impl Group {
    /// The first one that opens here or later.
    fn find(text: &str, from: usize) -> Option<Self> {
        groups(text)
            .into_iter()
            .filter(|group| group.start >= from && !group.commas.is_empty())
            .min_by_key(|group| group.start)
    }

    fn parts<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let begins = std::iter::once(self.start).chain(self.commas.iter().copied());
        let ends = self.commas.iter().copied().chain([self.end]);
        begins
            .zip(ends)
            .map(|(begin, end)| &text[begin + 1..end])
            .collect()
    }
}

/// Every pair of braces that is closed, with the commas right in it.
fn groups(text: &str) -> Vec<Group> {
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut closed = Vec::new();
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match letter {
            '\\' => escaped = true,
            '{' => open.push((at, Vec::new())),
            ',' => {
                if let Some((_, commas)) = open.last_mut() {
                    commas.push(at);
                }
            }
            '}' => closed.extend(open.pop().map(|(start, commas)| Group {
                start,
                commas,
                end: at,
            })),
            _ => {}
        }
    }
    closed
}

/// Where commas are that separate no alternatives.
pub(crate) fn ungrouped_commas(text: &str) -> Vec<usize> {
    let mut groups = groups(text);
    groups.sort_by_key(|group| group.start);
    let mut groups = groups.into_iter().peekable();
    let mut grouped_until = 0;
    let commas = text.match_indices(',').map(|(at, _)| at);
    commas
        .filter(|comma| {
            while let Some(group) = groups.next_if(|group| group.start < *comma) {
                grouped_until = grouped_until.max(group.end);
            }
            *comma >= grouped_until
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("git *", &["git *"])]
    #[case("{rm,dd} *", &["rm *", "dd *"])]
    #[case("a{b,}c", &["abc", "ac"])]
    #[case("{a,b}{c,d}", &["ac", "ad", "bc", "bd"])]
    #[case("{a,b{c,d}}e", &["ae", "bce", "bde"])]
    #[case("find * -exec ls {} +", &["find * -exec ls {} +"])]
    #[case("{x{a,b}}", &["{xa}", "{xb}"])]
    #[case("{a {b,c}", &["{a b", "{a c"])]
    #[case("{git status,git log}", &["git status", "git log"])]
    #[case(r"\{a,b}", &[r"\{a,b}"])]
    #[case(r"{a\,b,c}", &[r"a\,b", "c"])]
    #[case("{a,b", &["{a,b"])]
    #[case("a,b}", &["a,b}"])]
    fn groups_are_written_out(#[case] pattern: &str, #[case] expected: &[&str]) {
        let spelled: Vec<String> = AnyOf::spelled_out(pattern).unwrap().0;
        assert_eq!(spelled, expected, "{pattern}");
    }

    #[test]
    fn commas_between_groups_are_told_apart() {
        assert_eq!(ungrouped_commas("a={b,c},d={e,{f,g}},h"), [7, 19]);
        assert_eq!(ungrouped_commas("{a,b"), [2]);
    }

    #[test]
    fn what_has_no_end_is_refused_at_once() {
        assert_eq!(AnyOf::spelled_out(&"{a,b}".repeat(9)), Err(TooMany));
        let deep = "{a,".repeat(20_000);
        assert!(AnyOf::spelled_out(&deep).is_ok());
    }
}
