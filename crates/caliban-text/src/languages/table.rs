//! Every language there is. What is not said is as in [`BASE`].

use super::spec::{BASE, Calls, Capitals, Case, Nesting, Shape, Spec, Ticks, long, quote, raw};

#[rustfmt::skip]
pub(super) const LANGUAGES: &[Spec] = &[
    Spec {
        names: &["rust", "rs"],
        extensions: &["rs"],
        nesting: Nesting::Nested,
        quotes: &[raw("r##\"", "\"##"), raw("r#\"", "\"#"), raw("br#\"", "\"#"), raw("r\"", "\""), long("\"", "\"")],
        ticks: Ticks::Characters,
        keywords: &[
            "Self", "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else",
            "enum", "extern", "false", "fn", "for", "if", "impl", "in", "let", "loop", "match",
            "mod", "move", "mut", "pub", "ref", "return", "self", "static", "struct", "super",
            "trait", "true", "type", "union", "unsafe", "use", "where", "while"
        ],
        types: &[
            "bool", "char", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize", "str",
            "u128", "u16", "u32", "u64", "u8", "usize"
        ],
        ..BASE
    },
    Spec {
        names: &["c", "h"],
        extensions: &["c", "h"],
        keywords: &[
            "NULL", "auto", "break", "case", "const", "continue", "default", "do", "else", "enum",
            "extern", "false", "for", "goto", "if", "inline", "register", "restrict", "return",
            "sizeof", "static", "struct", "switch", "true", "typedef", "union", "volatile",
            "while"
        ],
        types: &[
            "bool", "char", "double", "float", "int", "int16_t", "int32_t", "int64_t", "int8_t",
            "long", "short", "signed", "size_t", "ssize_t", "uint16_t", "uint32_t", "uint64_t",
            "uint8_t", "unsigned", "void"
        ],
        capitals: Capitals::Nothing,
        ..BASE
    },
    Spec {
        names: &["cpp", "c++", "cc", "cxx", "hpp"],
        extensions: &["cpp", "cc", "cxx", "hpp", "hh", "hxx", "ipp"],
        keywords: &[
            "NULL", "alignas", "alignof", "and", "auto", "break", "case", "catch", "class",
            "co_await", "co_return", "co_yield", "concept", "const", "const_cast", "consteval",
            "constexpr", "constinit", "continue", "decltype", "default", "delete", "do",
            "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "final",
            "for", "friend", "goto", "if", "inline", "mutable", "namespace", "new", "noexcept",
            "not", "nullptr", "operator", "or", "override", "private", "protected", "public",
            "register", "reinterpret_cast", "requires", "restrict", "return", "sizeof", "static",
            "static_assert", "static_cast", "struct", "switch", "template", "this",
            "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "union",
            "using", "virtual", "volatile", "while"
        ],
        types: &[
            "bool", "char", "char16_t", "char32_t", "char8_t", "double", "float", "int",
            "int16_t", "int32_t", "int64_t", "int8_t", "long", "short", "signed", "size_t",
            "ssize_t", "uint16_t", "uint32_t", "uint64_t", "uint8_t", "unsigned", "void",
            "wchar_t"
        ],
        ..BASE
    },
    Spec {
        names: &["csharp", "c#", "cs"],
        extensions: &["cs", "csx"],
        quotes: &[raw("\"\"\"", "\"\"\""), raw("@\"", "\""), quote("\""), quote("'")],
        keywords: &[
            "abstract", "as", "async", "await", "base", "break", "case", "catch", "checked",
            "class", "const", "continue", "default", "delegate", "do", "else", "enum", "event",
            "explicit", "extern", "false", "finally", "fixed", "for", "foreach", "get", "goto",
            "if", "implicit", "in", "init", "interface", "internal", "is", "lock", "namespace",
            "new", "null", "operator", "out", "override", "params", "partial", "private",
            "protected", "public", "readonly", "record", "ref", "required", "return", "sealed",
            "set", "sizeof", "stackalloc", "static", "struct", "switch", "this", "throw", "true",
            "try", "typeof", "unchecked", "unsafe", "using", "var", "virtual", "volatile", "when",
            "where", "while", "with", "yield"
        ],
        types: &[
            "bool", "byte", "char", "decimal", "double", "dynamic", "float", "int", "long",
            "nint", "nuint", "object", "sbyte", "short", "string", "uint", "ulong", "ushort",
            "void"
        ],
        ..BASE
    },
    Spec {
        names: &["java"],
        extensions: &["java"],
        quotes: &[long("\"\"\"", "\"\"\""), quote("\""), quote("'")],
        keywords: &[
            "abstract", "assert", "break", "case", "catch", "class", "const", "continue",
            "default", "do", "else", "enum", "extends", "false", "final", "finally", "for",
            "goto", "if", "implements", "import", "instanceof", "interface", "native", "new",
            "non", "null", "package", "permits", "private", "protected", "public", "record",
            "return", "sealed", "static", "strictfp", "super", "switch", "synchronized", "this",
            "throw", "throws", "transient", "true", "try", "var", "volatile", "when", "while",
            "yield"
        ],
        types: &["boolean", "byte", "char", "double", "float", "int", "long", "short", "void"],
        ..BASE
    },
    Spec {
        names: &["kotlin", "kt", "kts"],
        extensions: &["kt", "kts"],
        nesting: Nesting::Nested,
        quotes: &[raw("\"\"\"", "\"\"\""), quote("\""), quote("'")],
        keywords: &[
            "abstract", "actual", "annotation", "as", "break", "by", "catch", "class",
            "companion", "const", "constructor", "continue", "crossinline", "data", "do", "else",
            "enum", "expect", "external", "false", "final", "finally", "for", "fun", "get", "if",
            "import", "in", "infix", "init", "inline", "inner", "interface", "internal", "is",
            "lateinit", "noinline", "null", "object", "open", "operator", "out", "override",
            "package", "private", "protected", "public", "reified", "return", "sealed", "set",
            "super", "suspend", "tailrec", "this", "throw", "true", "try", "typealias", "val",
            "var", "vararg", "when", "where", "while"
        ],
        ..BASE
    },
    Spec {
        names: &["swift"],
        extensions: &["swift"],
        nesting: Nesting::Nested,
        quotes: &[long("\"\"\"", "\"\"\""), quote("\"")],
        keywords: &[
            "Self", "actor", "any", "as", "associatedtype", "async", "await", "break", "case",
            "catch", "class", "continue", "convenience", "default", "defer", "deinit", "do",
            "dynamic", "else", "enum", "extension", "fallthrough", "false", "fileprivate",
            "final", "for", "func", "get", "guard", "if", "import", "in", "indirect", "init",
            "inout", "internal", "is", "isolated", "lazy", "let", "mutating", "nil",
            "nonisolated", "open", "operator", "optional", "override", "private", "protocol",
            "public", "repeat", "required", "rethrows", "return", "self", "set", "some", "static",
            "struct", "subscript", "super", "switch", "throw", "throws", "true", "try",
            "typealias", "unowned", "var", "weak", "where", "while"
        ],
        ..BASE
    },
    Spec {
        names: &["go", "golang"],
        extensions: &["go"],
        quotes: &[quote("\""), quote("'"), raw("`", "`")],
        keywords: &[
            "break", "case", "chan", "const", "continue", "default", "defer", "else",
            "fallthrough", "false", "for", "func", "go", "goto", "if", "import", "interface",
            "iota", "map", "nil", "package", "range", "return", "select", "struct", "switch",
            "true", "type", "var"
        ],
        types: &[
            "any", "bool", "byte", "comparable", "complex128", "complex64", "error", "float32",
            "float64", "int", "int16", "int32", "int64", "int8", "rune", "string", "uint",
            "uint16", "uint32", "uint64", "uint8", "uintptr"
        ],
        ..BASE
    },
    Spec {
        names: &["python", "py", "py3"],
        extensions: &["py", "pyi", "pyw"],
        line_comments: &["#"],
        block_comments: &[],
        quotes: &[long("\"\"\"", "\"\"\""), long("'''", "'''"), quote("\""), quote("'")],
        keywords: &[
            "False", "None", "True", "and", "as", "assert", "async", "await", "break", "case",
            "class", "continue", "def", "del", "elif", "else", "except", "finally", "for", "from",
            "global", "if", "import", "in", "is", "lambda", "match", "nonlocal", "not", "or",
            "pass", "raise", "return", "self", "try", "while", "with", "yield"
        ],
        types: &[
            "bool", "bytes", "dict", "float", "frozenset", "int", "list", "object", "set", "str",
            "tuple"
        ],
        ..BASE
    },
    Spec {
        names: &["ruby", "rb"],
        extensions: &["rb", "rake", "gemspec"],
        files: &["Gemfile", "Rakefile"],
        line_comments: &["#"],
        block_comments: &[("=begin", "=end")],
        quotes: &[long("\"", "\""), long("'", "'"), long("`", "`")],
        keywords: &[
            "BEGIN", "END", "alias", "and", "begin", "break", "case", "class", "def", "defined",
            "do", "else", "elsif", "end", "ensure", "extend", "false", "for", "if", "in",
            "include", "module", "next", "nil", "not", "or", "private", "protected", "public",
            "raise", "redo", "require", "require_relative", "rescue", "retry", "return", "self",
            "super", "then", "true", "undef", "unless", "until", "when", "while", "yield"
        ],
        in_words: "?!",
        ..BASE
    },
    Spec {
        names: &["php"],
        extensions: &["php", "phtml"],
        line_comments: &["//", "#"],
        quotes: &[long("\"", "\""), long("'", "'")],
        keywords: &[
            "abstract", "and", "array", "as", "break", "callable", "case", "catch", "class",
            "clone", "const", "continue", "declare", "default", "do", "echo", "else", "elseif",
            "empty", "enum", "extends", "false", "final", "finally", "fn", "for", "foreach",
            "function", "global", "goto", "if", "implements", "include", "include_once",
            "instanceof", "insteadof", "interface", "isset", "list", "match", "namespace", "new",
            "null", "or", "print", "private", "protected", "public", "readonly", "require",
            "require_once", "return", "static", "switch", "this", "throw", "trait", "true", "try",
            "unset", "use", "var", "while", "xor", "yield"
        ],
        types: &["bool", "float", "int", "iterable", "mixed", "never", "object", "string", "void"],
        in_words: "$",
        ..BASE
    },
    Spec {
        names: &["javascript", "js", "jsx", "mjs", "cjs", "node"],
        extensions: &["js", "mjs", "cjs", "jsx"],
        quotes: &[quote("\""), quote("'"), long("`", "`")],
        keywords: &[
            "as", "async", "await", "break", "case", "catch", "class", "const", "continue",
            "debugger", "default", "delete", "do", "else", "export", "extends", "false",
            "finally", "for", "from", "function", "get", "if", "import", "in", "instanceof",
            "let", "new", "null", "of", "return", "set", "static", "super", "switch", "this",
            "throw", "true", "try", "typeof", "undefined", "var", "void", "while", "with", "yield"
        ],
        in_words: "$",
        ..BASE
    },
    TYPESCRIPT,
    Spec {
        names: &["tsx"],
        extensions: &["tsx"],
        ..TYPESCRIPT
    },
    Spec {
        names: &["json", "jsonc", "json5"],
        extensions: &["json", "jsonc", "json5", "jsonl", "ipynb"],
        keywords: &["false", "null", "true"],
        capitals: Capitals::Nothing,
        calls: Calls::Nothing,
        key_before: Some(b':'),
        ..BASE
    },
    Spec {
        names: &["yaml", "yml"],
        extensions: &["yaml", "yml"],
        line_comments: &["#"],
        block_comments: &[],
        keywords: &["false", "no", "null", "off", "on", "true", "yes"],
        capitals: Capitals::Nothing,
        calls: Calls::Nothing,
        in_words: "-.",
        key_before: Some(b':'),
        ..BASE
    },
    Spec {
        names: &["toml", "ini"],
        extensions: &["toml", "ini", "cfg", "conf", "editorconfig"],
        files: &["Cargo.lock", ".editorconfig", ".gitconfig"],
        line_comments: &["#", ";"],
        block_comments: &[],
        quotes: &[long("\"\"\"", "\"\"\""), raw("'''", "'''"), quote("\""), quote("'")],
        keywords: &["false", "true"],
        capitals: Capitals::Nothing,
        calls: Calls::Nothing,
        in_words: "-.",
        key_before: Some(b'='),
        ..BASE
    },
    Spec {
        names: &["xml", "svg", "plist"],
        extensions: &["xml", "svg", "xsd", "xsl", "xslt", "plist", "csproj"],
        shape: Shape::Markup,
        line_comments: &[],
        block_comments: &[("<!--", "-->")],
        quotes: &[raw("\"", "\""), raw("'", "'")],
        in_words: "-:.",
        ..BASE
    },
    Spec {
        names: &["html", "htm", "vue", "svelte"],
        extensions: &["html", "htm", "xhtml", "vue", "svelte"],
        shape: Shape::Markup,
        line_comments: &[],
        block_comments: &[("<!--", "-->")],
        quotes: &[raw("\"", "\""), raw("'", "'")],
        in_words: "-:.",
        ..BASE
    },
    Spec {
        names: &["css"],
        extensions: &["css"],
        line_comments: &[],
        keywords: &[
            "@charset", "@container", "@font-face", "@import", "@keyframes", "@layer", "@media",
            "@namespace", "@page", "@property", "@supports"
        ],
        capitals: Capitals::Nothing,
        in_words: "-@$%",
        key_before: Some(b':'),
        ..BASE
    },
    Spec {
        names: &["scss", "sass", "less"],
        extensions: &["scss", "sass", "less"],
        keywords: &[
            "@charset", "@container", "@each", "@else", "@extend", "@font-face", "@for",
            "@forward", "@function", "@if", "@import", "@include", "@keyframes", "@layer",
            "@media", "@mixin", "@namespace", "@page", "@property", "@return", "@supports",
            "@use", "@while"
        ],
        capitals: Capitals::Nothing,
        in_words: "-@$%",
        key_before: Some(b':'),
        ..BASE
    },
    Spec {
        names: &["sql", "mysql", "postgres", "postgresql", "sqlite", "plsql"],
        extensions: &["sql"],
        line_comments: &["--"],
        quotes: &[raw("'", "'"), quote("\""), quote("`")],
        keywords: &[
            "add", "all", "alter", "and", "any", "as", "asc", "begin", "between", "by", "cascade",
            "case", "check", "column", "commit", "constraint", "create", "cross", "current_date",
            "current_timestamp", "database", "default", "delete", "desc", "distinct", "drop",
            "else", "end", "except", "exists", "explain", "false", "fetch", "filter", "foreign",
            "from", "full", "function", "grant", "group", "having", "if", "ilike", "in", "index",
            "inner", "insert", "intersect", "into", "is", "join", "key", "lateral", "left",
            "like", "limit", "materialized", "natural", "not", "null", "offset", "on", "or",
            "order", "outer", "over", "partition", "primary", "procedure", "recursive",
            "references", "replace", "returning", "revoke", "right", "rollback", "row", "rows",
            "select", "set", "table", "temporary", "then", "transaction", "trigger", "true",
            "truncate", "union", "unique", "update", "using", "values", "view", "when", "where",
            "window", "with"
        ],
        types: &[
            "bigint", "blob", "boolean", "bytea", "char", "date", "decimal", "double", "float",
            "int", "integer", "interval", "json", "jsonb", "numeric", "real", "serial",
            "smallint", "text", "time", "timestamp", "timestamptz", "uuid", "varchar"
        ],
        case: Case::Ignored,
        capitals: Capitals::Nothing,
        ..BASE
    },
    Spec {
        names: &["bash", "sh", "shell", "zsh", "ksh", "console", "shell-session"],
        extensions: &["sh", "bash", "zsh", "ksh", "env"],
        files: &[".bashrc", ".bash_profile", ".profile", ".zshrc", ".envrc", "PKGBUILD"],
        line_comments: &["#"],
        block_comments: &[],
        quotes: &[long("\"", "\""), raw("'", "'"), long("`", "`")],
        keywords: &[
            "alias", "break", "case", "cd", "continue", "declare", "do", "done", "echo", "elif",
            "else", "esac", "eval", "exec", "exit", "export", "false", "fi", "for", "function",
            "if", "in", "local", "printf", "read", "readonly", "return", "select", "set", "shift",
            "source", "test", "then", "time", "trap", "true", "type", "unset", "until", "while"
        ],
        capitals: Capitals::Nothing,
        calls: Calls::Nothing,
        in_words: "-",
        ..BASE
    },
    Spec {
        names: &["fish"],
        extensions: &["fish"],
        line_comments: &["#"],
        block_comments: &[],
        quotes: &[long("\"", "\""), long("'", "'")],
        keywords: &[
            "and", "begin", "break", "case", "cd", "command", "continue", "echo", "else", "end",
            "eval", "exec", "exit", "export", "false", "for", "function", "functions", "if", "in",
            "not", "or", "return", "set", "source", "switch", "test", "true", "while"
        ],
        capitals: Capitals::Nothing,
        calls: Calls::Nothing,
        in_words: "-",
        ..BASE
    },
    Spec {
        names: &["powershell", "pwsh", "ps1"],
        extensions: &["ps1", "psm1", "psd1"],
        line_comments: &["#"],
        block_comments: &[("<#", "#>")],
        quotes: &[raw("@\"", "\"@"), raw("@'", "'@"), raw("\"", "\""), raw("'", "'")],
        keywords: &[
            "begin", "break", "catch", "class", "continue", "data", "do", "dynamicparam", "else",
            "elseif", "end", "enum", "exit", "filter", "finally", "for", "foreach", "from",
            "function", "hidden", "if", "in", "param", "process", "return", "static", "switch",
            "throw", "trap", "try", "until", "using", "while"
        ],
        case: Case::Ignored,
        in_words: "-$",
        ..BASE
    },
    Spec {
        names: &["lua"],
        extensions: &["lua"],
        line_comments: &["--"],
        block_comments: &[("--[[", "]]")],
        quotes: &[raw("[[", "]]"), quote("\""), quote("'")],
        keywords: &[
            "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto",
            "if", "in", "local", "nil", "not", "or", "repeat", "return", "self", "then", "true",
            "until", "while"
        ],
        ..BASE
    },
    Spec {
        names: &["perl", "pl"],
        extensions: &["pl", "pm", "t"],
        line_comments: &["#"],
        block_comments: &[("=pod", "=cut"), ("=head1", "=cut")],
        quotes: &[long("\"", "\""), long("'", "'")],
        keywords: &[
            "and", "bless", "cmp", "continue", "die", "do", "else", "elsif", "eq", "eval", "for",
            "foreach", "ge", "gt", "if", "last", "le", "local", "lt", "my", "ne", "next", "no",
            "not", "or", "our", "package", "print", "redo", "ref", "require", "return", "say",
            "sub", "undef", "unless", "until", "use", "while", "xor"
        ],
        in_words: "$@%",
        ..BASE
    },
    Spec {
        names: &["haskell", "hs"],
        extensions: &["hs", "lhs"],
        line_comments: &["--"],
        block_comments: &[("{-", "-}")],
        nesting: Nesting::Nested,
        quotes: &[quote("\"")],
        ticks: Ticks::Characters,
        keywords: &[
            "as", "case", "class", "data", "default", "deriving", "do", "else", "family",
            "forall", "foreign", "hiding", "if", "import", "in", "infix", "infixl", "infixr",
            "instance", "let", "mdo", "module", "newtype", "of", "proc", "qualified", "rec",
            "then", "type", "where"
        ],
        calls: Calls::Nothing,
        in_words: "'",
        ..BASE
    },
    Spec {
        names: &["ocaml", "ml"],
        extensions: &["ml", "mli"],
        line_comments: &[],
        block_comments: &[("(*", "*)")],
        nesting: Nesting::Nested,
        quotes: &[raw("{|", "|}"), long("\"", "\"")],
        ticks: Ticks::Characters,
        keywords: &[
            "and", "as", "assert", "begin", "class", "constraint", "do", "done", "downto", "else",
            "end", "exception", "external", "false", "for", "fun", "function", "functor", "if",
            "in", "include", "inherit", "initializer", "lazy", "let", "match", "method", "module",
            "mutable", "new", "nonrec", "object", "of", "open", "or", "private", "rec", "sig",
            "struct", "then", "to", "true", "try", "type", "val", "virtual", "when", "while",
            "with"
        ],
        types: &[
            "array", "bool", "bytes", "char", "exn", "float", "int", "list", "option", "ref",
            "string", "unit"
        ],
        calls: Calls::Nothing,
        in_words: "'",
        ..BASE
    },
    Spec {
        names: &["elixir", "ex", "exs"],
        extensions: &["ex", "exs"],
        line_comments: &["#"],
        block_comments: &[],
        quotes: &[long("\"\"\"", "\"\"\""), quote("\""), quote("'")],
        keywords: &[
            "after", "alias", "and", "case", "catch", "cond", "def", "defdelegate",
            "defexception", "defguard", "defimpl", "defmacro", "defmodule", "defp", "defprotocol",
            "defstruct", "do", "else", "end", "false", "fn", "for", "if", "import", "in", "nil",
            "not", "or", "quote", "raise", "receive", "require", "rescue", "true", "try",
            "unless", "unquote", "use", "when", "with"
        ],
        in_words: "?!",
        ..BASE
    },
    Spec {
        names: &["scala", "sc"],
        extensions: &["scala", "sc", "sbt"],
        nesting: Nesting::Nested,
        quotes: &[raw("\"\"\"", "\"\"\""), quote("\"")],
        ticks: Ticks::Characters,
        keywords: &[
            "abstract", "case", "catch", "class", "def", "derives", "do", "else", "end", "enum",
            "export", "extends", "extension", "false", "final", "finally", "for", "forSome",
            "given", "if", "implicit", "import", "inline", "lazy", "match", "new", "null",
            "object", "opaque", "override", "package", "private", "protected", "return", "sealed",
            "super", "then", "this", "throw", "trait", "transparent", "true", "try", "type",
            "using", "val", "var", "while", "with", "yield"
        ],
        ..BASE
    },
    Spec {
        names: &["r"],
        extensions: &["r", "rmd"],
        files: &[".Rprofile"],
        line_comments: &["#"],
        block_comments: &[],
        quotes: &[long("\"", "\""), long("'", "'")],
        keywords: &[
            "FALSE", "Inf", "NA", "NULL", "NaN", "TRUE", "break", "else", "for", "function", "if",
            "in", "library", "next", "repeat", "require", "return", "while"
        ],
        capitals: Capitals::Nothing,
        in_words: ".",
        ..BASE
    },
    Spec {
        names: &["dockerfile", "docker", "containerfile"],
        extensions: &["dockerfile"],
        files: &["Dockerfile", "Containerfile"],
        line_comments: &["#"],
        block_comments: &[],
        keywords: &[
            "add", "arg", "as", "cmd", "copy", "entrypoint", "env", "expose", "from",
            "healthcheck", "label", "maintainer", "onbuild", "run", "shell", "stopsignal", "user",
            "volume", "workdir"
        ],
        case: Case::Ignored,
        capitals: Capitals::Nothing,
        calls: Calls::Nothing,
        in_words: "-",
        ..BASE
    },
    Spec {
        names: &["makefile", "make", "mk", "just"],
        extensions: &["mk", "mak", "just"],
        files: &["Makefile", "GNUmakefile", "justfile"],
        line_comments: &["#"],
        block_comments: &[],
        keywords: &[
            "define", "else", "endef", "endif", "export", "ifdef", "ifeq", "ifndef", "ifneq",
            "include", "override", "unexport", "vpath"
        ],
        capitals: Capitals::Nothing,
        calls: Calls::Nothing,
        in_words: "-.",
        key_before: Some(b':'),
        ..BASE
    },
    Spec {
        names: &["diff", "patch"],
        extensions: &["diff", "patch"],
        shape: Shape::Diff,
        ..BASE
    },
    Spec {
        names: &["markdown", "md"],
        extensions: &["md", "markdown", "mdx"],
        shape: Shape::Markdown,
        ..BASE
    },
];

/// With markup in it, it is another language by name alone.
#[rustfmt::skip]
const TYPESCRIPT: Spec = Spec {
    names: &["typescript", "ts", "mts", "cts"],
    extensions: &["ts", "mts", "cts"],
    quotes: &[quote("\""), quote("'"), long("`", "`")],
    keywords: &[
        "abstract", "as", "asserts", "async", "await", "break", "case", "catch", "class",
        "const", "continue", "debugger", "declare", "default", "delete", "do", "else", "enum",
        "export", "extends", "false", "finally", "for", "from", "function", "get", "if",
        "implements", "import", "in", "infer", "instanceof", "interface", "is", "keyof",
        "let", "namespace", "new", "null", "of", "override", "private", "protected", "public",
        "readonly", "return", "satisfies", "set", "static", "super", "switch", "this",
        "throw", "true", "try", "type", "typeof", "undefined", "var", "void", "while", "with",
        "yield"
    ],
    types: &[
        "any", "bigint", "boolean", "never", "number", "object", "string", "symbol", "unknown"
    ],
    in_words: "$",
    ..BASE
};
