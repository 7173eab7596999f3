//! The tool that finds files by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_agent::{Effect, ReadGuard, ToolContext, ToolOutput, TypedTool, Workspace};
use caliban_model::CancellationToken;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::beneath::Directory;
use super::pattern::{Depth, Pattern, split};
use super::sieve::Sieve;
use super::walk::{list, shortfall};
use super::{IGNORE_HINT, cancelled, not_found, off_runtime, one_line, sentence, start};

/// How many paths are listed.
const MAX_RESULTS: usize = 1000;

/// Lists the files whose paths match a glob pattern.
#[derive(Debug, Default)]
pub struct Glob;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobInput {
    /// Such as `**/*.rs` or `src/*.{ts,tsx}`; without `/` it matches names at any depth.
    pattern: String,
    /// Directory to search; default the workspace root.
    #[serde(default, alias = "file_path")]
    path: Option<String>,
}

impl Glob {
    pub fn new() -> Self {
        Self
    }
}

impl TypedTool for Glob {
    type Input = GlobInput;

    const NAME: &'static str = "Glob";
    const DESCRIPTION: &'static str = "Finds files by name with a glob pattern. Respects ignore \
         files; hidden files only when the pattern names them. Paths are sorted, at most 1000.";
    const EFFECT: Effect = Effect::ReadOnly;

    fn first_arg(&self, input: &GlobInput) -> Option<String> {
        Some(input.pattern.clone())
    }

    fn supersession_key(&self, input: &GlobInput) -> Option<String> {
        serde_json::to_string(input).ok()
    }

    async fn run(&self, input: GlobInput, context: ToolContext) -> ToolOutput {
        let workspace = Arc::clone(&context.workspace);
        let reading = Arc::clone(&context.reading);
        off_runtime(&context, move |cancel| {
            find(&input, &workspace, &*reading, &cancel).unwrap_or_else(|failure| failure)
        })
        .await
    }
}

fn find(
    input: &GlobInput,
    workspace: &Workspace,
    reading: &dyn ReadGuard,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolOutput> {
    let Origin { from, rest, depth } = origin(input, workspace);
    let base = start(workspace, from.as_deref())?;
    let pattern = Pattern::within(&rest, depth)
        .map_err(|error| ToolOutput::invalid(format!("{}.", sentence(&error.to_string()))))?;
    let shown = one_line(&workspace.display(&base.given));
    match std::fs::metadata(&base.real) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => {
            return Err(ToolOutput::invalid(format!(
                "`{shown}` is a file; `path` must be a directory."
            )));
        }
        Err(_) => return Err(not_found(&shown)),
    }
    let unreadable = |error| ToolOutput::failed(format!("`{shown}` cannot be read: {error}."));
    let directory = Directory::open(&base.real).map_err(unreadable)?;

    let descend = pattern.clone();
    let listing = list(
        &base.real,
        pattern.hidden(),
        move |directory| descend.can_match_beneath(directory),
        |relative| pattern.matches(relative),
        || !cancel.is_cancelled(),
    );
    if cancel.is_cancelled() {
        return Ok(cancelled());
    }
    let shortfall = shortfall(listing.end, listing.unreadable);
    // The walk goes by path: a directory replaced by a link meanwhile would show names from
    // elsewhere.
    let sieve = Sieve::new(reading, &base);
    let paths = listing.paths.into_iter();
    let paths: Vec<PathBuf> = paths.filter(|relative| sieve.passes(relative)).collect();
    let mut paths = paths.into_iter();
    let held = paths.by_ref().filter(|relative| directory.holds(relative));
    let found: Vec<PathBuf> = held.take(MAX_RESULTS).collect();
    let more = paths.len();
    let notes = [shortfall.map(|note| format!("({note})")), sieve.note()];
    Ok(ToolOutput::ok(render(
        &found,
        more,
        notes.into_iter().flatten(),
        &base.given,
        workspace,
        &input.pattern,
    )))
}

/// Where the walk starts and what must match beneath.
struct Origin {
    from: Option<String>,
    rest: String,
    depth: Depth,
}

/// A pattern that spells out the workspace root is the same as a relative one; any other absolute
/// one brings its own start. A directory that a pattern names is where its names are looked for.
fn origin(input: &GlobInput, workspace: &Workspace) -> Origin {
    let root = workspace.root().display().to_string();
    if let Some(rest) = input.pattern.strip_prefix(&root)
        && let Some(rest) = rest.strip_prefix('/')
    {
        return Origin {
            from: None,
            rest: rest.to_owned(),
            depth: Depth::Top,
        };
    }
    let (from, rest) = split(&input.pattern);
    let depth = match from {
        Some(_) => Depth::Top,
        None => Depth::Any,
    };
    let from = match (from, &input.path) {
        (Some(from), Some(path)) if !from.starts_with(['/', '~']) => Some(format!("{path}/{from}")),
        (Some(from), _) => Some(from.to_owned()),
        (None, path) => path.clone(),
    };
    Origin {
        from,
        rest: rest.to_owned(),
        depth,
    }
}

fn render(
    found: &[PathBuf],
    more: usize,
    notes: impl Iterator<Item = String>,
    base: &Path,
    workspace: &Workspace,
    pattern: &str,
) -> String {
    let mut lines: Vec<String> = found
        .iter()
        .map(|relative| one_line(&workspace.display(&base.join(relative))))
        .collect();
    if lines.is_empty() {
        lines.push(format!("No files match `{pattern}`. {IGNORE_HINT}"));
    }
    if more > 0 {
        lines.push(format!(
            "({more} more not shown; use a narrower pattern or `path`.)"
        ));
    }
    lines.extend(notes);
    lines.join("\n")
}
