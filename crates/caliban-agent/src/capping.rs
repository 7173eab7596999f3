//! Cuts a tool's result to what the model should read at once, and keeps the rest for it to page
//! through.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use caliban_model::{Block, Message, ToolContent};

use crate::settings::Capping;
use crate::tool::ToolOutput;

/// The most one spill file holds.
const MAX_SPILL_FILE: usize = 64 * 1024 * 1024;
/// The most characters of the note in the middle of a result that was cut, its path included.
const NOTE_CHARS: usize = 5_000;
/// The most spill files that are kept; the oldest go first.
const MAX_SPILL_FILES: usize = 200;
/// The most characters of a call's id in a file's name.
const MAX_NAME: usize = 100;
/// How long the files of a finished session are kept.
const KEPT: Duration = Duration::from_hours(30 * 24);
/// The most sessions looked at for old files at a time.
const MAX_SESSIONS: usize = 1_000;

/// Shortens every text of a result that is longer than the limit: head and tail stay, the whole
/// goes to a file, named after the call, that the note in the middle names.
pub(crate) fn cap(mut output: ToolOutput, capping: &Capping, call_id: &str) -> ToolOutput {
    let Some(limit) = capping.limit else {
        return output;
    };
    for part in &mut output.content {
        if let ToolContent::Text { text } = part
            && text.len() > limit.get()
            && text.chars().count() > limit.get()
        {
            *text = shorten(text, limit.get(), &capping.spill_directories, call_id);
        }
    }
    output
}

impl Capping {
    /// Shortens the results of an earlier session that another limit, or none, let through.
    #[must_use]
    pub fn apply(&self, mut messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
        let Some(limit) = self.limit else {
            return messages;
        };
        // What was cut before is longer than the limit by its note.
        let most = limit.get().saturating_add(NOTE_CHARS);
        let is_long = |part: &ToolContent| match part {
            ToolContent::Text { text } => text.len() > most && text.chars().count() > most,
            ToolContent::Image(_) => false,
        };
        let has_long = |block: &Block| match block {
            Block::ToolResult { content, .. } => content.iter().any(is_long),
            _ => false,
        };
        for message in &mut messages {
            if !message.content.iter().any(has_long) {
                continue;
            }
            for block in &mut Arc::make_mut(message).content {
                let Block::ToolResult {
                    tool_use_id,
                    content,
                    ..
                } = block
                else {
                    continue;
                };
                for part in content.iter_mut().filter(|part| is_long(part)) {
                    if let ToolContent::Text { text } = part {
                        let places = &self.spill_directories;
                        *text = shorten(text, limit.get(), places, tool_use_id);
                    }
                }
            }
        }
        messages
    }
}

fn shorten(text: &str, limit: usize, spill: &[PathBuf], call_id: &str) -> String {
    let total = text.chars().count();
    // Ends of commands say why they failed, beginnings of files what they are.
    let head_chars = limit * 3 / 5;
    let tail_chars = limit - head_chars;
    let head_end = byte_of_char(text, head_chars);
    let tail_start = byte_of_char(text, total - tail_chars);
    let (head, tail) = (
        at_line_end(&text[..head_end]),
        at_line_start(&text[tail_start..]),
    );
    let omitted = total - head.chars().count() - tail.chars().count();
    let place = match write_somewhere(text, spill, call_id) {
        Some(Ok(path)) => format!(
            "the whole result is in `{}`: page through it with Read (offset, limit) or search it with Grep",
            path.display()
        ),
        Some(Err(error)) => format!("the whole result could not be kept: {error}"),
        None => "ask for less at a time to see the rest".to_owned(),
    };
    format!("{head}\n\n[… {omitted} of {total} characters left out; {place} …]\n\n{tail}")
}

fn byte_of_char(text: &str, position: usize) -> usize {
    text.char_indices()
        .nth(position)
        .map_or(text.len(), |(byte, _)| byte)
}

/// Cut back to the last whole line, unless that would lose too much of it.
fn at_line_end(head: &str) -> &str {
    match head.rfind('\n') {
        Some(end) if end > head.len() / 2 => &head[..end],
        Some(_) | None => head,
    }
}

fn at_line_start(tail: &str) -> &str {
    match tail.find('\n') {
        Some(end) if end < tail.len() / 2 => &tail[end + 1..],
        Some(_) | None => tail,
    }
}

/// Writes to the first place that can be written; where none can, the last says why.
fn write_somewhere(
    text: &str,
    places: &[PathBuf],
    call_id: &str,
) -> Option<std::io::Result<PathBuf>> {
    let (first, others) = places.split_first()?;
    let written = write_spill(text, first, call_id);
    Some(others.iter().fold(written, |written, place| {
        written.or_else(|_| write_spill(text, place, call_id))
    }))
}

/// Writes to a file nobody else can read or plant. The call's id comes from the model, so only
/// harmless characters of it are used; an id used twice gets a second file.
fn write_spill(text: &str, directory: &Path, call_id: &str) -> std::io::Result<PathBuf> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    if !directory.exists()
        && let Some(sessions) = directory.parent()
    {
        prune_sessions(sessions);
    }
    builder.create(directory)?;
    prune(directory);
    let name: String = call_id
        .chars()
        .filter(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-'))
        .take(MAX_NAME)
        .collect();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut path = directory.join(format!("{name}.txt"));
    let mut file = options.open(&path);
    if file
        .as_ref()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists)
    {
        path = directory.join(format!("{name}-{}.txt", uuid::Uuid::now_v7()));
        file = options.open(&path);
    }
    let end = text.floor_char_boundary(MAX_SPILL_FILE);
    file?.write_all(&text.as_bytes()[..end])?;
    Ok(path)
}

/// Removes what sessions of long ago left; called when a session writes its first file.
fn prune_sessions(sessions: &Path) {
    let Ok(entries) = std::fs::read_dir(sessions) else {
        return;
    };
    for entry in entries.flatten().take(MAX_SESSIONS) {
        let is_old = entry
            .metadata()
            .and_then(|meta| meta.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > KEPT));
        // Only directories that we made ourselves are named like a session.
        let is_session = entry
            .file_name()
            .to_str()
            .is_some_and(|name| uuid::Uuid::parse_str(name).is_ok());
        if is_old && is_session {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Keeps the newest files; failing to remove one is no reason to lose a result.
fn prune(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    let excess = (files.len() + 1).saturating_sub(MAX_SPILL_FILES);
    for (_, file) in files.into_iter().take(excess) {
        let _ = std::fs::remove_file(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::num::NonZeroUsize;

    fn capping(limit: usize, spill: Option<&Path>) -> Capping {
        Capping {
            limit: NonZeroUsize::new(limit),
            spill_directories: spill.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    #[test]
    fn short_results_and_no_limit_change_nothing() {
        let output = ToolOutput::ok("é".repeat(10));
        assert_eq!(cap(output.clone(), &capping(10, None), "c"), output);
        assert_eq!(cap(output.clone(), &capping(0, None), "c"), output);
    }

    #[test]
    fn a_long_result_keeps_both_ends_and_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let spill = folder.path().join("spill");
        let lines: Vec<String> = (0..1000).map(|line| format!("line {line}")).collect();
        let text = lines.join("\n") + "\n";
        let capped = cap(
            ToolOutput::ok(text.clone()),
            &capping(500, Some(&spill)),
            "../toolu_1",
        )
        .text();
        assert!(capped.starts_with("line 0\n") && capped.ends_with("line 999\n"));
        assert!(capped.chars().count() < 900, "{capped}");
        let path = capped.split('`').nth(1).unwrap();
        assert_eq!(Path::new(path), spill.join("toolu_1.txt"));
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(Path::new(path)), 0o600);
            assert_eq!(mode(&spill), 0o700);
        }
    }

    #[test]
    fn where_one_place_cannot_be_written_the_next_is() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let places = ["file/spill", "other"].map(|name| folder.path().join(name));
        let capping = Capping {
            spill_directories: places.to_vec(),
            ..capping(10, None)
        };
        let capped = cap(ToolOutput::ok("x".repeat(100)), &capping, "id").text();
        assert!(
            capped.contains(&places[1].display().to_string()),
            "{capped}"
        );
    }

    #[test]
    fn earlier_results_are_cut_once() {
        let capping = capping(500, None);
        let result = |text: String| {
            let block = Block::ToolResult {
                tool_use_id: "c".to_owned(),
                content: vec![ToolContent::Text { text }],
                is_error: false,
            };
            Arc::new(Message::new(caliban_model::Role::User, vec![block]))
        };
        let messages = vec![result("x".repeat(40_000)), result("short".to_owned())];
        let cut = capping.apply(messages.clone());
        assert!(format!("{:?}", cut[0]).len() < 2_000);
        assert!(Arc::ptr_eq(&cut[1], &messages[1]));
        assert_eq!(capping.apply(cut.clone()), cut);
        let no_limit = Capping {
            limit: None,
            ..capping
        };
        assert_eq!(no_limit.apply(messages.clone()), messages);
    }

    #[test]
    fn sessions_of_long_ago_are_cleared_away() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join(uuid::Uuid::nil().to_string());
        let other = folder.path().join("not-a-session");
        for place in [&old, &other] {
            std::fs::create_dir(place).unwrap();
            let long_ago = SystemTime::now() - KEPT * 2;
            let times = std::fs::FileTimes::new().set_modified(long_ago);
            std::fs::File::open(place)
                .unwrap()
                .set_times(times)
                .unwrap();
        }
        write_spill(
            "x",
            &folder.path().join(uuid::Uuid::max().to_string()),
            "id",
        )
        .unwrap();
        assert!(!old.exists() && other.exists());
    }

    #[test]
    fn the_number_of_spill_files_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..MAX_SPILL_FILES + 20 {
            write_spill("x", folder.path(), "same").unwrap();
        }
        let count = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(count, MAX_SPILL_FILES);
    }

    proptest! {
        #[test]
        fn any_text_is_cut_to_about_the_limit(text: String, limit in 1usize..60) {
            let capped = cap(ToolOutput::ok(text.clone()), &capping(limit, None), "c").text();
            if text.chars().count() <= limit {
                prop_assert_eq!(capped, text);
            } else {
                prop_assert!(capped.chars().count() <= limit + 150);
            }
        }
    }
}
