//! Conversations where clients of this dialect look for them: one file for each session, one row
//! for each message.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use caliban_model::{Block, Image, ImageSource, Message, Origin, Role, ToolContent};
use caliban_protocol::claude::{VERSION, input_ours, message_theirs, ours};
use serde_json::{Value, json};
use uuid::Uuid;

use super::branch::branch;
use super::wire::Wire;
use crate::console::note;

/// Names of directories are cut here.
const LONGEST_NAME: usize = 200;
/// The most of a file that is read, and of one of its rows.
const LARGEST_FILE: u64 = 256 * 1024 * 1024;
const LONGEST_ROW: u64 = 32 * 1024 * 1024;

/// Where the conversations of a workspace are.
#[derive(Debug, Clone)]
pub(crate) struct Project(PathBuf);

impl Project {
    /// `config` is the directory of this dialect's files.
    pub(crate) fn new(config: &Path, cwd: &Path) -> Self {
        Self(
            config
                .join("projects")
                .join(directory_name(&cwd.to_string_lossy())),
        )
    }

    pub(crate) fn file(&self, session: Uuid) -> PathBuf {
        self.0.join(format!("{session}.jsonl"))
    }

    /// The session that a client gave this title, the latest of them.
    pub(crate) fn titled(&self, title: &str) -> Option<Uuid> {
        let mut sessions = self.sessions();
        sessions.sort_unstable();
        let is_meant = |id: &Uuid| self.title(*id).as_deref() == Some(title);
        sessions.into_iter().rev().map(|(_, id)| id).find(is_meant)
    }

    /// The title that was given last.
    fn title(&self, session: Uuid) -> Option<String> {
        rows(&self.file(session))
            .filter_map(|row| text(&row, "customTitle"))
            .last()
    }

    /// The session that was written last.
    pub(crate) fn latest(&self) -> Option<Uuid> {
        self.sessions().into_iter().max().map(|(_, id)| id)
    }

    /// When each session was written last.
    fn sessions(&self) -> Vec<(SystemTime, Uuid)> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let path = entry.path();
                let id = path.file_stem()?.to_str()?.parse().ok()?;
                let is_rows = path
                    .extension()
                    .is_some_and(|extension| extension == "jsonl");
                let modified = entry.metadata().and_then(|meta| meta.modified()).ok()?;
                is_rows.then_some((modified, id))
            })
            .collect()
    }
}

/// Letters and digits stay; a long name is told apart by a checksum.
fn directory_name(path: &str) -> String {
    let plain: String = path
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        })
        .collect();
    if plain.len() <= LONGEST_NAME {
        return plain;
    }
    format!("{}-{}", &plain[..LONGEST_NAME], checksum(path))
}

/// The checksum that clients compute: 32 bits over UTF-16, in base 36.
fn checksum(text: &str) -> String {
    let sum = text.encode_utf16().fold(0_i32, |sum, unit| {
        sum.wrapping_mul(31).wrapping_add(i32::from(unit))
    });
    let mut rest = sum.unsigned_abs();
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(rest % 36, 36).unwrap_or('0'));
        rest /= 36;
        if rest == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// Writes a session down for those clients. Losing it loses nothing of the session itself.
#[derive(Debug)]
pub(crate) struct Transcript {
    file: File,
    /// Where each row is shown to a client that keeps sessions itself.
    mirror: Option<Mirror>,
    session_id: String,
    cwd: String,
    parent: Option<String>,
    has_complained: bool,
}

#[derive(Debug)]
struct Mirror {
    wire: Wire,
    path: String,
}

impl Transcript {
    /// Goes on where the file ends. A new file begins with what was said before.
    pub(crate) fn open(
        path: &Path,
        session_id: &str,
        cwd: &Path,
        earlier: &[Arc<Message>],
        mirror: Option<Wire>,
    ) -> std::io::Result<Self> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        // Rows of other kinds, such as titles, are no part of the chain.
        let parent = rows(path).filter_map(|row| text(&row, "uuid")).last();
        let is_new = !path.exists();
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut transcript = Self {
            file: options.open(path)?,
            mirror: mirror.map(|wire| Mirror {
                wire,
                path: path.display().to_string(),
            }),
            session_id: session_id.to_owned(),
            cwd: cwd.to_string_lossy().into_owned(),
            parent,
            has_complained: false,
        };
        if is_new {
            let said = earlier
                .iter()
                .filter(|message| message.role != Role::System);
            for message in said {
                let value = message_theirs(message);
                transcript.append(&json!({
                    "type": value["role"],
                    "message": value,
                    "uuid": Uuid::new_v4().to_string(),
                }));
            }
        }
        Ok(transcript)
    }

    /// What comes next follows the row with this id, where one is given.
    pub(crate) fn following(mut self, uuid: Option<&str>) -> Self {
        self.parent = uuid.map(str::to_owned).or(self.parent);
        self
    }

    /// Adds the message of a frame.
    pub(crate) fn append(&mut self, frame: &Value) {
        let uuid = text(frame, "uuid");
        let row = json!({
            "parentUuid": self.parent,
            "isSidechain": false,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": VERSION,
            "gitBranch": "",
            "type": frame["type"],
            "message": frame["message"],
            "uuid": uuid,
            "timestamp": jiff::Timestamp::now().to_string(),
        });
        if let Some(Mirror { wire, path }) = &self.mirror {
            wire.frame(json!({
                "type": "transcript_mirror",
                "filePath": path,
                "entries": [row],
                "session_id": self.session_id,
                "uuid": Uuid::new_v4().to_string(),
            }));
        }
        self.parent = uuid.or(self.parent.take());
        let line = caliban_protocol::line(&row);
        if let Err(error) = self.file.write_all(line.as_bytes())
            && !self.has_complained
        {
            self.has_complained = true;
            note(&format!(
                "warning: the transcript cannot be written: {error}"
            ));
        }
    }
}

/// What a file says up to the message with this id, or to its end. Nothing if there is no such
/// file or message.
pub(crate) fn read(path: &Path, up_to: Option<&str>) -> Option<Vec<Arc<Message>>> {
    let mut messages: Vec<Message> = Vec::new();
    let mut last_id = None;
    for row in branch(rows(path).map(without_ballast).collect(), up_to)? {
        let Some(message) = message(&row) else {
            continue;
        };
        let id = row["message"]
            .get("id")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let continues = match (messages.last(), message.role) {
            (Some(before), Role::Assistant) => {
                before.role == Role::Assistant && id.is_some() && id == last_id
            }
            (Some(before), Role::User) => {
                before.role == Role::User && is_results(before) && is_results(&message)
            }
            _ => false,
        };
        match messages.last_mut() {
            Some(before) if continues => before.content.extend(message.content),
            _ => messages.push(message),
        }
        last_id = id;
    }
    if messages.is_empty() {
        return None;
    }
    Some(completed(messages).into_iter().map(Arc::new).collect())
}

/// Every call gets a result right behind it, and no result stands alone.
fn completed(messages: Vec<Message>) -> Vec<Message> {
    let mut result: Vec<Message> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for mut message in messages {
        if message.role == Role::User {
            message.content.retain(|block| match block {
                Block::ToolResult { tool_use_id, .. } => open.contains(tool_use_id),
                _ => true,
            });
            open.retain(|id| !has_result(&message, id));
        }
        let missing: Vec<Block> = open.drain(..).map(|id| unknown(&id)).collect();
        if !missing.is_empty() {
            if message.role == Role::User {
                message.content.splice(0..0, missing);
            } else {
                result.push(Message::new(Role::User, missing));
            }
        }
        open.extend(message.tool_uses().map(|(id, _, _)| id.to_owned()));
        if !message.content.is_empty() {
            result.push(message);
        }
    }
    if !open.is_empty() {
        let missing = open.iter().map(|id| unknown(id)).collect();
        result.push(Message::new(Role::User, missing));
    }
    result
}

fn has_result(message: &Message, id: &str) -> bool {
    message
        .content
        .iter()
        .any(|block| matches!(block, Block::ToolResult { tool_use_id, .. } if tool_use_id == id))
}

fn unknown(id: &str) -> Block {
    Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: vec![ToolContent::Text {
            text: "The call was interrupted; what it did is not known.".to_owned(),
        }],
        is_error: true,
    }
}

fn is_results(message: &Message) -> bool {
    let is_result = |block: &Block| matches!(block, Block::ToolResult { .. });
    !message.content.is_empty() && message.content.iter().all(is_result)
}

/// The rows of a file that can be read.
fn rows(path: &Path) -> impl Iterator<Item = Value> {
    let reader = File::open(path)
        .ok()
        .map(|file| BufReader::new(file.take(LARGEST_FILE)));
    let mut reader = reader;
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let reader = reader.as_mut()?;
        let read = reader
            .by_ref()
            .take(LONGEST_ROW)
            .read_until(b'\n', &mut line);
        match read {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line),
        }
    })
    .filter_map(|line| serde_json::from_slice(&line).ok())
}

/// Of a row that is no message, only where it stands is of interest.
fn without_ballast(row: Value) -> Value {
    match row["type"].as_str() {
        Some("user" | "assistant") => row,
        _ => json!({"uuid": row["uuid"], "parentUuid": row["parentUuid"]}),
    }
}

pub(super) fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn message(row: &Value) -> Option<Message> {
    let role = match row.get("type")?.as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return None,
    };
    let inner = row.get("message")?;
    let content = match inner.get("content")? {
        Value::String(text) => vec![Block::text(text)],
        Value::Array(blocks) => blocks.iter().filter_map(block).collect(),
        _ => return None,
    };
    let mut message = Message::new(role, content);
    if role == Role::Assistant {
        match text(inner, "model") {
            Some(model) if model == "<synthetic>" => return None,
            Some(model) => message.origin = Some(Origin::new("anthropic", model)),
            // Whoever reads thoughts of a model that is not told cannot check them.
            None => message.content.retain(|block| {
                !matches!(
                    block,
                    Block::Thinking { .. } | Block::RedactedThinking { .. }
                )
            }),
        }
    }
    Some(message)
}

fn block(value: &Value) -> Option<Block> {
    Some(match value.get("type")?.as_str()? {
        "text" => Block::text(text(value, "text")?),
        "thinking" => Block::Thinking {
            text: text(value, "thinking")?,
            signature: text(value, "signature").filter(|signature| !signature.is_empty()),
            private: None,
        },
        "redacted_thinking" => Block::RedactedThinking {
            data: text(value, "data")?,
        },
        "tool_use" => {
            let name = ours(value.get("name")?.as_str()?).to_owned();
            Block::ToolUse {
                id: text(value, "id")?,
                input: input_ours(&name, value.get("input")?),
                name,
                private: None,
            }
        }
        "tool_result" => Block::ToolResult {
            tool_use_id: text(value, "tool_use_id")?,
            content: result(value.get("content")),
            is_error: value.get("is_error").and_then(Value::as_bool) == Some(true),
        },
        "image" => Block::Image(image(value)?),
        _ => return None,
    })
}

fn result(content: Option<&Value>) -> Vec<ToolContent> {
    match content {
        Some(Value::String(text)) => vec![ToolContent::Text { text: text.clone() }],
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| match part.get("type")?.as_str()? {
                "text" => Some(ToolContent::Text {
                    text: text(part, "text")?,
                }),
                "image" => image(part).map(ToolContent::Image),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn image(value: &Value) -> Option<Image> {
    let source = value.get("source")?;
    Some(Image {
        mime: source.get("media_type")?.as_str()?.parse().ok()?,
        source: ImageSource::Base64 {
            data: Arc::from(source.get("data")?.as_str()?),
        },
        dims: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_named_as_clients_name_them() {
        assert_eq!(directory_name("/home/me/my.project"), "-home-me-my-project");
        let long = format!("/{}", "a".repeat(250));
        let name = directory_name(&long);
        assert_eq!(name.len(), LONGEST_NAME + 1 + checksum(&long).len());
        assert_eq!(checksum(""), "0");
        assert_eq!(checksum("abc"), "22ci");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let home = tempfile::tempdir().unwrap();
        let project = Project::new(home.path(), Path::new("/p"));
        let id = Uuid::new_v4();
        let path = project.file(id);
        let mut transcript =
            Transcript::open(&path, &id.to_string(), Path::new("/p"), &[], None).unwrap();
        let frames = [
            json!({"type": "user", "uuid": "u1", "message": {"role": "user", "content": "hi"}}),
            json!({"type": "assistant", "uuid": "a1", "message": {"id": "m", "model": "x", "role": "assistant", "content": [{"type": "text", "text": "one"}]}}),
            json!({"type": "assistant", "uuid": "a2", "message": {"id": "m", "model": "x", "role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": "p"}}]}}),
            json!({"type": "user", "uuid": "u2", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}}),
            json!({"type": "assistant", "uuid": "a3", "message": {"id": "n", "model": "x", "role": "assistant", "content": [{"type": "text", "text": "two"}]}}),
        ];
        for frame in &frames {
            transcript.append(frame);
        }
        let all = read(&path, None).unwrap();
        assert_eq!(all.len(), 4);
        assert_eq!(all[1].content.len(), 2);
        assert_eq!(all[1].tool_uses().next().unwrap().1, "AgentTool");
        // Cut behind a call, the call gets a result.
        let cut = read(&path, Some("a2")).unwrap();
        assert!(has_result(cut.last().unwrap(), "t"));
        assert!(read(&path, Some("nobody")).is_none());
        assert_eq!(project.latest(), Some(id));
        // A client gives it a title; the chain goes on behind that.
        let title = json!({"type": "custom-title", "customTitle": "Mine", "sessionId": id});
        transcript
            .file
            .write_all(caliban_protocol::line(&title).as_bytes())
            .unwrap();
        assert_eq!(
            (project.titled("Mine"), project.titled("Yours")),
            (Some(id), None)
        );
        let reopened = Transcript::open(&path, &id.to_string(), Path::new("/p"), &[], None);
        assert_eq!(reopened.unwrap().parent.as_deref(), Some("a3"));
        let chain: Vec<_> = rows(&path)
            .filter_map(|row| row.get("parentUuid").cloned())
            .collect();
        assert_eq!(
            chain,
            [
                json!(null),
                json!("u1"),
                json!("a1"),
                json!("a2"),
                json!("u2")
            ]
        );
    }
}
