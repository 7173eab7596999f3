//! What a lexer must know of a language.

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// Names after the opening of a code block, the usual one first.
    pub(crate) names: &'static [&'static str],
    pub(crate) extensions: &'static [&'static str],
    /// Whole names of files.
    pub(crate) files: &'static [&'static str],
    pub(crate) shape: Shape,
    /// What begins a comment that ends with its line.
    pub(crate) line_comments: &'static [&'static str],
    /// What begins and ends a comment that does not.
    pub(crate) block_comments: &'static [(&'static str, &'static str)],
    pub(crate) nesting: Nesting,
    /// The first that fits counts.
    pub(crate) quotes: &'static [Quote],
    pub(crate) ticks: Ticks,
    /// Sorted.
    pub(crate) keywords: &'static [&'static str],
    /// Sorted.
    pub(crate) types: &'static [&'static str],
    pub(crate) case: Case,
    pub(crate) capitals: Capitals,
    pub(crate) calls: Calls,
    /// What may stand in a word beside letters, digits and `_`.
    pub(crate) in_words: &'static str,
    /// What a key is followed by.
    pub(crate) key_before: Option<u8>,
}

/// How a text is taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Code,
    Markup,
    Diff,
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nesting {
    Flat,
    Nested,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quote {
    pub(crate) open: &'static str,
    pub(crate) close: &'static str,
    /// Whether a backslash takes the next character with it.
    pub(crate) escapes: Escapes,
    pub(crate) lines: Lines,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escapes {
    Backslash,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    One,
    Many,
}

/// What `'` is, beside the quotes of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ticks {
    AsQuotes,
    /// One character between two, and something else otherwise.
    Characters,
}

/// Whether words are the same in capitals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Matters,
    Ignored,
}

/// What a word with a capital is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capitals {
    Types,
    Nothing,
}

/// What a word before a parenthesis is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    Functions,
    Nothing,
}

/// A quote within one line.
pub(super) const fn quote(mark: &'static str) -> Quote {
    Quote {
        open: mark,
        close: mark,
        escapes: Escapes::Backslash,
        lines: Lines::One,
    }
}

/// A quote over lines.
pub(super) const fn long(open: &'static str, close: &'static str) -> Quote {
    Quote {
        open,
        close,
        escapes: Escapes::Backslash,
        lines: Lines::Many,
    }
}

/// A quote over lines in which everything stands for itself.
pub(super) const fn raw(open: &'static str, close: &'static str) -> Quote {
    Quote {
        open,
        close,
        escapes: Escapes::None,
        lines: Lines::Many,
    }
}

/// What languages have in common that look like C.
pub(super) const BASE: Spec = Spec {
    names: &[],
    extensions: &[],
    files: &[],
    shape: Shape::Code,
    line_comments: &["//"],
    block_comments: &[("/*", "*/")],
    nesting: Nesting::Flat,
    quotes: &[quote("\""), quote("'")],
    ticks: Ticks::AsQuotes,
    keywords: &[],
    types: &[],
    case: Case::Matters,
    capitals: Capitals::Types,
    calls: Calls::Functions,
    in_words: "",
    key_before: None,
};
