//! The tool that searches the content of files.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_agent::{
    Effect, ReadGuard, ResolvedPath, ToolContext, ToolOutput, TypedTool, Workspace,
};
use caliban_model::CancellationToken;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::types::{Types, TypesBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::beneath::Directory;
use super::hits::{Content, Hits, Line, Wanted};
use super::pattern::Pattern;
use super::scan::{Query, Report, Searched, Span, explain, scan, scan_file};
use super::sieve::Sieve;
use super::walk::{Hidden, Walk, shortfall};
use super::{IGNORE_HINT, cancelled, not_found, off_runtime, one_line, refused, sentence, start};

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 500;

/// The most lines of context on each side; with the limit this bounds what is held.
const MAX_CONTEXT: usize = 20;

/// How large a compiled pattern may become.
const MAX_REGEX_BYTES: usize = 10 * 1024 * 1024;

/// Searches files with a regular expression.
#[derive(Debug, Default)]
pub struct Grep;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepInput {
    /// Rust regex.
    pattern: String,
    /// File or directory; default the workspace root.
    #[serde(default, alias = "file_path")]
    path: Option<String>,
    /// Only files matching this glob; `!` in front excludes them.
    #[serde(default)]
    glob: Option<String>,
    /// Only files of this ripgrep type, such as rust or py.
    #[serde(default, rename = "type")]
    file_type: Option<String>,
    #[serde(default)]
    output_mode: OutputMode,
    #[serde(default, alias = "-i", alias = "case_insensitive")]
    ignore_case: bool,
    /// Let matches cross lines; `.` then matches newlines.
    #[serde(default)]
    multiline: bool,
    /// Lines around each match, at most 20.
    #[serde(default, alias = "-C")]
    context: Option<usize>,
    /// Results shown: default 100, at most 500.
    #[serde(default, alias = "max_results", alias = "head_limit")]
    limit: Option<usize>,
    /// Lines behind and before each match; the larger number counts for both sides.
    #[serde(default, rename = "-A", skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    after: Option<usize>,
    #[serde(default, rename = "-B", skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    before: Option<usize>,
    /// Lines are numbered in any case.
    #[serde(default, rename = "-n", skip_serializing)]
    #[schemars(skip)]
    _numbered: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    #[default]
    Content,
    FilesWithMatches,
    Count,
}

impl Grep {
    pub fn new() -> Self {
        Self
    }
}

impl TypedTool for Grep {
    type Input = GrepInput;

    const NAME: &'static str = "Grep";
    const DESCRIPTION: &'static str = "Searches file contents with a regular expression. Respects \
         ignore files, skips hidden and binary files.";
    const EFFECT: Effect = Effect::ReadOnly;

    fn first_arg(&self, input: &GrepInput) -> Option<String> {
        Some(input.pattern.clone())
    }

    fn supersession_key(&self, input: &GrepInput) -> Option<String> {
        serde_json::to_string(input).ok()
    }

    async fn run(&self, input: GrepInput, context: ToolContext) -> ToolOutput {
        let workspace = Arc::clone(&context.workspace);
        let reading = Arc::clone(&context.reading);
        off_runtime(&context, move |cancel| {
            run(&input, &workspace, &*reading, &cancel).unwrap_or_else(|failure| failure)
        })
        .await
    }
}

fn run(
    input: &GrepInput,
    workspace: &Workspace,
    reading: &dyn ReadGuard,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolOutput> {
    let query = query(input)?;
    let filter = Filter::new(input)?;
    let base = start(workspace, input.path.as_deref())?;
    let shown = one_line(&workspace.display(&base.given));
    let meta = std::fs::symlink_metadata(&base.real).map_err(|_| not_found(&shown))?;
    let unreadable = |error| ToolOutput::failed(format!("`{shown}` cannot be read: {error}."));
    if !meta.is_dir() {
        let closed = |closed| refused(&shown, &closed);
        reading.by_name(&base.given, &base.real).map_err(closed)?;
        reading.by_identity(&meta).map_err(closed)?;
        return named_file(&query, input.output_mode, &base, &shown, cancel);
    }
    let directory = Directory::open(&base.real).map_err(unreadable)?;
    let hidden = filter.hidden();
    let walk = Walk::new(&base.real, hidden, |_| true);
    let sieve = Sieve::new(reading, &base);
    let select = |relative: &Path| {
        filter.accepts(relative, &base.given, workspace) && sieve.passes(relative)
    };
    let opened = |meta: &Metadata| sieve.passes_opened(meta);
    let report = scan(&query, &directory, walk, select, opened, cancel);
    if cancel.is_cancelled() {
        return Err(cancelled());
    }
    let display = |relative: &Path| one_line(&workspace.display(&base.given.join(relative)));
    let mut text = summarise(&report, &query, input.output_mode, display);
    if let Some(note) = sieve.note() {
        text.push('\n');
        text.push_str(&note);
    }
    Ok(ToolOutput::ok(text))
}

/// A file asked for by name is searched whatever ignore files and filters say.
fn named_file(
    query: &Query,
    mode: OutputMode,
    base: &ResolvedPath,
    shown: &str,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolOutput> {
    let failed =
        |reason: &str| ToolOutput::failed(format!("`{shown}` was not searched: {reason}."));
    let (Some(parent), Some(name)) = (base.real.parent(), base.real.file_name()) else {
        return Err(failed("it has no name"));
    };
    let searched = Directory::open(parent)
        .and_then(|directory| scan_file(query, &directory, Path::new(name), cancel));
    if cancel.is_cancelled() {
        return Err(cancelled());
    }
    match searched {
        Ok(Searched::LeftAlone) => Err(failed("it is not a regular file")),
        Ok(Searched::Read(hits)) => match hits.kind {
            Content::Binary => Err(failed("it is a binary file")),
            Content::Text => {
                let report = Report {
                    searched: 1,
                    files: (hits.matched > 0)
                        .then(|| (PathBuf::new(), hits))
                        .into_iter()
                        .collect(),
                    ..Report::default()
                };
                let display = |_: &Path| shown.to_owned();
                Ok(ToolOutput::ok(summarise(&report, query, mode, display)))
            }
        },
        Err(error) => Err(failed(&explain(&error, query.span))),
    }
}

fn query(input: &GrepInput) -> Result<Query, ToolOutput> {
    if input.pattern.is_empty() {
        return Err(ToolOutput::invalid("The pattern is empty."));
    }
    let span = if input.multiline {
        Span::Lines
    } else {
        Span::Line
    };
    let limit = input.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let wanted = match input.output_mode {
        OutputMode::Content => Wanted::Lines(limit),
        OutputMode::FilesWithMatches => Wanted::Presence,
        OutputMode::Count => Wanted::Count,
    };
    let context = match input.output_mode {
        OutputMode::Content => {
            let around = input.context.or(input.after.max(input.before));
            around.unwrap_or(0).min(MAX_CONTEXT)
        }
        OutputMode::FilesWithMatches | OutputMode::Count => 0,
    };
    Ok(Query {
        matcher: matcher(input, span)?,
        span,
        context,
        wanted,
        limit,
    })
}

fn matcher(input: &GrepInput, span: Span) -> Result<RegexMatcher, ToolOutput> {
    let (terminator, dot_crosses) = match span {
        Span::Line => (Some(b'\n'), false),
        Span::Lines => (None, true),
    };
    RegexMatcherBuilder::new()
        .case_insensitive(input.ignore_case)
        .multi_line(true)
        // `$` also matches before `\r\n`; the terminator is set after, because this sets one.
        .crlf(true)
        .line_terminator(terminator)
        .dot_matches_new_line(dot_crosses)
        .size_limit(MAX_REGEX_BYTES)
        .build(&input.pattern)
        .map_err(|error| {
            let mut text = format!("The pattern is not a valid regular expression: {error}");
            if span == Span::Line && text.contains("is not allowed in a regex") {
                text.push_str("\nSet `multiline` to match across lines.");
            }
            ToolOutput::invalid(text)
        })
}

/// Which files of a directory are searched.
struct Filter {
    glob: Option<(Sense, Pattern)>,
    types: Option<Types>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sense {
    Only,
    Except,
}

impl Filter {
    fn new(input: &GrepInput) -> Result<Self, ToolOutput> {
        let glob = input.glob.as_deref().map(|glob| {
            let (sense, glob) = match glob.strip_prefix('!') {
                Some(rest) => (Sense::Except, rest),
                None => (Sense::Only, glob),
            };
            Pattern::new(glob)
                .map(|pattern| (sense, pattern))
                .map_err(|error| ToolOutput::invalid(format!("{}.", sentence(&error.to_string()))))
        });
        let types = input.file_type.as_deref().map(|name| {
            TypesBuilder::new()
                .add_defaults()
                .select(name)
                .build()
                .map_err(|_| {
                    ToolOutput::invalid(format!(
                        "There is no file type `{name}`; use `glob`, such as `*.{name}`."
                    ))
                })
        });
        Ok(Self {
            glob: glob.transpose()?,
            types: types.transpose()?,
        })
    }

    fn hidden(&self) -> Hidden {
        match &self.glob {
            Some((Sense::Only, pattern)) => pattern.hidden(),
            Some((Sense::Except, _)) | None => Hidden::Skipped,
        }
    }

    /// A glob may be written relative to the searched directory or to the workspace.
    fn accepts(&self, relative: &Path, base: &Path, workspace: &Workspace) -> bool {
        let of_type = self
            .types
            .as_ref()
            .is_none_or(|types| types.matched(relative, false).is_whitelist());
        of_type
            && self.glob.as_ref().is_none_or(|(sense, pattern)| {
                let matches = pattern.matches(relative)
                    || base
                        .join(relative)
                        .strip_prefix(workspace.root())
                        .is_ok_and(|path| pattern.matches(path));
                matches == (*sense == Sense::Only)
            })
    }
}

fn summarise(
    report: &Report,
    query: &Query,
    mode: OutputMode,
    display: impl Fn(&Path) -> String,
) -> String {
    let mut text = Text::default();
    let complete = match mode {
        OutputMode::Content => text.content(report, query, &display),
        OutputMode::FilesWithMatches => text.files(report, query.limit, |path, _| display(path)),
        OutputMode::Count => text.files(report, query.limit, |path, hits| {
            format!("{}:{}", display(path), hits.matched)
        }),
    };
    if report.files.is_empty() {
        text.line(format!("No matches (files searched: {}).", report.searched));
        if report.searched == 0 {
            text.line(format!("No file was searched. {IGNORE_HINT}"));
        }
    }
    match complete {
        Complete::Yes => {}
        Complete::No => text.line(format!(
            "(There is more: only the first {} results are shown. Narrow the search or raise \
             `limit`, at most {MAX_LIMIT}.)",
            query.limit
        )),
    }
    if report.binary > 0 && report.files.is_empty() {
        text.line(format!("(Binary files skipped: {}.)", report.binary));
    }
    for (path, reason) in &report.skipped {
        text.line(format!("({} was not searched: {reason}.)", display(path)));
    }
    if report.skipped_more > 0 {
        text.line(format!(
            "(More files not searched: {}.)",
            report.skipped_more
        ));
    }
    if let Some(note) = report
        .walk
        .and_then(|(end, unreadable)| shortfall(end, unreadable))
    {
        text.line(format!("({note})"));
    }
    text.0.join("\n")
}

/// Whether everything that was found is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Complete {
    Yes,
    No,
}

#[derive(Debug, Default)]
struct Text(Vec<String>);

impl Text {
    fn line(&mut self, line: String) {
        self.0.push(line);
    }

    fn files(
        &mut self,
        report: &Report,
        limit: usize,
        line: impl Fn(&Path, &Hits) -> String,
    ) -> Complete {
        for (path, hits) in report.files.iter().take(limit) {
            self.line(line(path, hits));
        }
        if report.files.len() > limit {
            Complete::No
        } else {
            Complete::Yes
        }
    }

    /// Shows lines up to the limit, and behind the last match still its own context.
    fn content(
        &mut self,
        report: &Report,
        query: &Query,
        display: &impl Fn(&Path) -> String,
    ) -> Complete {
        let mut room = query.limit;
        for (index, (path, hits)) in report.files.iter().enumerate() {
            if room == 0 {
                return Complete::No;
            }
            let path = display(path);
            if index > 0 && query.context > 0 {
                self.line("--".to_owned());
            }
            for line in &hits.lines {
                match line {
                    Line::Match(..) | Line::Before(..) | Line::Gap if room == 0 => {
                        return Complete::No;
                    }
                    Line::Match(number, text) => {
                        room -= 1;
                        self.line(format!("{path}:{number}:{text}"));
                    }
                    Line::Before(number, text) | Line::After(number, text) => {
                        self.line(format!("{path}-{number}-{text}"));
                    }
                    Line::Gap => self.line("--".to_owned()),
                }
            }
        }
        Complete::Yes
    }
}
