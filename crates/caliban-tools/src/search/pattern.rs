//! Glob patterns as models write them, translated for matching paths beneath a directory.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use super::walk::Hidden;

/// A compiled glob pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    matcher: GlobMatcher,
    /// The leading components without wildcards: nothing outside of them can match.
    prefix: Vec<String>,
    hidden: Hidden,
}

/// Where a name alone matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Any,
    /// In the directory itself.
    Top,
}

/// A pattern that is no glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a valid glob pattern: {reason}")]
pub(super) struct BadPattern {
    pattern: String,
    reason: String,
}

impl Pattern {
    /// A pattern without `/` matches names at any depth; `**` crosses directories, `*` and `?`
    /// do not; `dir/` means everything in it.
    pub(super) fn new(pattern: &str) -> Result<Self, BadPattern> {
        Self::within(pattern, Depth::Any)
    }

    /// The same, where a pattern without `/` may be the end of one that has some.
    pub(super) fn within(pattern: &str, depth: Depth) -> Result<Self, BadPattern> {
        let bad = |reason: String| BadPattern {
            pattern: pattern.to_owned(),
            reason,
        };
        let mut translated = pattern.trim_start_matches("./").to_owned();
        if translated.is_empty() {
            return Err(bad("it is empty".to_owned()));
        }
        if translated.ends_with('/') {
            translated.push_str("**");
        }
        if depth == Depth::Any && !translated.contains('/') {
            translated.insert_str(0, "**/");
        }
        let matcher = GlobBuilder::new(&translated)
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| bad(error.kind().to_string()))?
            .compile_matcher();
        let mut prefix: Vec<String> = translated
            .split('/')
            .take_while(|component| is_literal(component))
            .map(str::to_owned)
            .collect();
        // The last component is a file's name, not a directory to descend into.
        prefix.truncate(translated.matches('/').count());
        Ok(Self {
            matcher,
            prefix,
            hidden: if names_hidden(&translated) {
                Hidden::Included
            } else {
                Hidden::Skipped
            },
        })
    }

    pub(super) fn matches(&self, relative: &Path) -> bool {
        self.matcher.is_match(relative)
    }

    /// Whether a file beneath this directory can match.
    pub(super) fn can_match_beneath(&self, directory: &Path) -> bool {
        directory
            .components()
            .zip(&self.prefix)
            .all(|(component, expected)| component.as_os_str() == expected.as_str())
    }

    /// Hidden files are seen only by patterns that name them.
    pub(super) fn hidden(&self) -> Hidden {
        self.hidden
    }
}

/// Splits a pattern into the directory it starts from and the part to match beneath: leading
/// `..` and, in a pattern that starts from `/` or `~`, every leading component without wildcards.
pub(super) fn split(pattern: &str) -> (Option<&str>, &str) {
    let rooted = pattern.starts_with('/') || pattern.starts_with("~/");
    let mut end = 0;
    for component in pattern.split_inclusive('/') {
        let belongs = match component {
            "/" | "./" | "../" => true,
            _ if !component.ends_with('/') => false,
            _ => rooted && is_literal(component),
        };
        if !belongs {
            break;
        }
        end += component.len();
    }
    match &pattern[..end] {
        "" | "./" => (None, &pattern[end..]),
        base => (Some(base), &pattern[end..]),
    }
}

fn is_literal(component: &str) -> bool {
    !component.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

/// Whether some component, or an alternative of one, starts with a dot.
fn names_hidden(pattern: &str) -> bool {
    let mut before = '/';
    for c in pattern.chars() {
        if c == '.' && matches!(before, '/' | '{' | ',' | '[' | '\\') {
            return true;
        }
        before = c;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("*.rs", "a.rs", true)]
    #[case("*.rs", "deep/er/a.rs", true)]
    #[case("**/*.rs", "a.rs", true)]
    #[case("src/*.{ts,tsx}", "src/a.tsx", true)]
    #[case("src/*.{ts,tsx}", "src/deep/a.ts", false)]
    #[case("./src/*.rs", "src/a.rs", true)]
    #[case("src/**/mod.rs", "src/mod.rs", true)]
    #[case("src/", "src/a/b.c", true)]
    #[case("a?c", "x/abc", true)]
    #[case("[ab].txt", "b.txt", true)]
    #[case(r"\[ab\].txt", "[ab].txt", true)]
    #[case("README", "docs/README", true)]
    #[case("a/b", "x/a/b", false)]
    fn patterns_match_as_written(#[case] glob: &str, #[case] path: &str, #[case] expected: bool) {
        let pattern = Pattern::new(glob).unwrap();
        assert_eq!(pattern.matches(Path::new(path)), expected);
    }

    #[rstest]
    #[case("*.rs", Hidden::Skipped)]
    #[case("src/a.b", Hidden::Skipped)]
    #[case(".github/**", Hidden::Included)]
    #[case("**/.env", Hidden::Included)]
    #[case("{.a,b}/*", Hidden::Included)]
    fn hidden_files_are_seen_when_named(#[case] glob: &str, #[case] expected: Hidden) {
        assert_eq!(Pattern::new(glob).unwrap().hidden(), expected);
    }

    #[rstest]
    #[case("**/*.rs", None, "**/*.rs")]
    #[case("./a/*.rs", None, "a/*.rs")]
    #[case("../x/*.rs", Some("../"), "x/*.rs")]
    #[case("/a/b/*.rs", Some("/a/b/"), "*.rs")]
    #[case("/a/b/c.rs", Some("/a/b/"), "c.rs")]
    #[case("~/x/**", Some("~/x/"), "**")]
    fn the_start_is_split_off(
        #[case] pattern: &str,
        #[case] base: Option<&str>,
        #[case] rest: &str,
    ) {
        assert_eq!(split(pattern), (base, rest));
    }

    #[test]
    fn only_directories_on_the_way_are_entered() {
        let pattern = Pattern::new("src/search/*.rs").unwrap();
        for (directory, expected) in [
            ("", true),
            ("src", true),
            ("src/search", true),
            ("src/search/deep", true),
            ("docs", false),
            ("src/web", false),
        ] {
            let actual = pattern.can_match_beneath(Path::new(directory));
            assert_eq!(actual, expected, "{directory}");
        }
    }

    #[test]
    fn bad_patterns_say_why() {
        let error = Pattern::new("src/[a").unwrap_err().to_string();
        assert!(error.contains("unclosed character class"), "{error}");
        assert!(Pattern::new("").is_err());
    }

    proptest! {
        #[test]
        fn no_pattern_panics(pattern in "(\\PC|[*?\\[\\]{}/.,!\\\\~-]){0,40}", path in "[a-z./]{0,20}") {
            let (_, rest) = split(&pattern);
            for text in [pattern.as_str(), rest] {
                if let Ok(compiled) = Pattern::new(text) {
                    let _ = compiled.matches(Path::new(&path));
                    let _ = compiled.can_match_beneath(Path::new(&path));
                }
            }
        }

        #[test]
        fn pruning_never_hides_a_match(
            pattern in "[ab*]{1,2}(/[ab*]{1,2}){0,3}",
            path in "[ab]{1,2}(/[ab]{1,2}){0,3}",
        ) {
            let compiled = Pattern::new(&pattern).unwrap();
            let path = Path::new(&path);
            if compiled.matches(path) {
                for directory in path.ancestors().skip(1) {
                    prop_assert!(compiled.can_match_beneath(directory));
                }
            }
        }
    }
}
