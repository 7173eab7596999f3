//! Which language a text is in.

use std::path::Path;

mod spec;
mod table;

pub(crate) use spec::{Calls, Capitals, Case, Escapes, Lines, Nesting, Quote, Shape, Spec, Ticks};

/// A language that can be highlighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Language(&'static Spec);

impl Language {
    /// The language of a name, as written after the opening of a code block.
    pub fn named(name: &str) -> Option<Self> {
        Self::find(|spec| {
            spec.names
                .iter()
                .any(|known| known.eq_ignore_ascii_case(name))
        })
    }

    /// The language of a file, by its name alone.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = Path::new(path);
        let name = path.file_name()?.to_str()?;
        let by_name = Self::find(|spec| {
            spec.files
                .iter()
                .any(|known| known.eq_ignore_ascii_case(name))
        });
        by_name.or_else(|| {
            let extension = path.extension()?.to_str()?;
            Self::find(|spec| {
                spec.extensions
                    .iter()
                    .any(|known| known.eq_ignore_ascii_case(extension))
            })
        })
    }

    pub fn name(self) -> &'static str {
        self.0.names.first().copied().unwrap_or_default()
    }

    pub(crate) fn spec(self) -> &'static Spec {
        self.0
    }

    fn find(is_it: impl Fn(&Spec) -> bool) -> Option<Self> {
        table::LANGUAGES.iter().find(|spec| is_it(spec)).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("rust", "src/a.rs")]
    #[case("tsx", "a/b.TSX")]
    #[case("dockerfile", "x/Dockerfile")]
    #[case("makefile", "Makefile")]
    #[case("c++", "a.hpp")]
    #[case("bash", "/home/x/.bashrc")]
    #[case("markdown", "README.md")]
    fn names_and_paths_agree(#[case] name: &str, #[case] path: &str) {
        let language = Language::named(name);
        assert!(language.is_some());
        assert_eq!(language, Language::of_path(path));
    }

    #[rstest]
    #[case("")]
    #[case("/")]
    #[case("rust")]
    #[case("a.unknown")]
    fn other_paths_have_none(#[case] path: &str) {
        assert_eq!(Language::of_path(path), None);
    }

    #[test]
    fn names_are_unique_and_words_sorted() {
        let mut seen = BTreeSet::new();
        for spec in table::LANGUAGES {
            for name in spec.names {
                assert!(seen.insert(*name), "{name} twice");
            }
            for words in [spec.keywords, spec.types] {
                assert!(words.is_sorted(), "{}: {words:?}", spec.names[0]);
            }
        }
        let wanted = "rust c cpp c# java kotlin swift go python ruby php javascript typescript tsx json yaml \
            toml xml html css scss sql bash fish powershell lua perl haskell ocaml elixir scala r \
            dockerfile makefile diff markdown";
        for name in wanted.split_whitespace() {
            assert!(Language::named(name).is_some(), "{name}");
        }
    }
}
