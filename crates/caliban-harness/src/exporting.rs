//! `/export`: the conversation as a file.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use caliban_session::Engine;
use caliban_sessions::Transcript;
use caliban_settings::calendar;
use caliban_slash::ExportFormat;
use serde_json::json;

use crate::obedience::Unobeyed;
use crate::session::Session;

/// How many exports of a day get a name by themselves.
const EXPORTS_OF_A_DAY: u32 = 100;

impl Session {
    pub(crate) fn export(
        &self,
        path: Option<PathBuf>,
        format: ExportFormat,
    ) -> Result<String, Unobeyed> {
        let facts = self.facts();
        let messages = self.conversation.messages();
        let (text, extension) = match format {
            ExportFormat::Markdown => {
                let transcript = Transcript {
                    title: "Session",
                    about: format!("{} · {}/{}", facts.session_id, facts.provider, facts.model),
                    messages,
                };
                (transcript.markdown(), "md")
            }
            ExportFormat::Json => {
                let document = json!({
                    "session_id": facts.session_id,
                    "provider": facts.provider,
                    "model": facts.model,
                    "cwd": facts.cwd,
                    "messages": messages,
                });
                (format!("{document:#}\n"), "json")
            }
        };
        let workspace = &self.agent.workspace;
        let written = if let Some(path) = path {
            let resolved = workspace.resolve(&path.to_string_lossy());
            let path = resolved.map_err(|error| error.to_string())?.given;
            write_new(path, &text)
        } else {
            let today = calendar::today().to_string();
            let name = |count: u32| match count {
                1 => format!("caliban-session-{today}.{extension}"),
                count => format!("caliban-session-{today}-{count}.{extension}"),
            };
            let paths = (1..EXPORTS_OF_A_DAY).map(|count| workspace.root().join(name(count)));
            write_first(paths, &text)
        };
        let path = written.map_err(unwritten)?;
        Ok(format!("The conversation is in `{}`.", path.display()))
    }
}

/// A name that is taken is for the operator to choose again; everything else is the disk's.
fn unwritten((path, error): (PathBuf, io::Error)) -> Unobeyed {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists => Unobeyed::Misused(format!(
            "`{path}` is there already and is not replaced; name another file"
        )),
        _ => Unobeyed::Failed(format!("`{path}` cannot be written: {error}")),
    }
}

/// A file that was written, or could not be.
type Written = Result<PathBuf, (PathBuf, io::Error)>;

/// What was there is not ours to replace, and a link of the name is not followed.
fn write_new(path: PathBuf, text: &str) -> Written {
    let written = File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => Ok(path),
        Err(error) => Err((path, error)),
    }
}

/// Writes to the first of these that is not there.
fn write_first(paths: impl Iterator<Item = PathBuf>, text: &str) -> Written {
    let mut last = Err((PathBuf::new(), io::ErrorKind::AlreadyExists.into()));
    for path in paths {
        last = write_new(path, text);
        match &last {
            Err((_, error)) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Ok(_) | Err(_) => break,
        }
    }
    last
}
