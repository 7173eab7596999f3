//! What lists show of a session, and notes as they are changed in an editor.

use std::path::Path;

use caliban_tui::{ListRow, ListsDesk};

use crate::interactive::desk::ProgramDesk;

impl ListsDesk for ProgramDesk {
    fn hooks(&self) -> Vec<ListRow> {
        let row = |(report, fired): (caliban_hooks::HandlerReport, String)| ListRow {
            group: report.event.to_owned(),
            name: format!("{} {}", report.event, report.handler),
            about: fired.clone(),
            value: format!(
                "kind: {}\nmatcher: {}\nscope: {}\n\n{fired}",
                report.kind, report.matcher, report.scope
            ),
        };
        self.session.hooks().into_iter().map(row).collect()
    }

    fn skills(&self) -> Vec<ListRow> {
        let skills = self.session.skills().into_iter();
        skills
            .map(|(name, about, origin)| {
                let (about, value) = if self.session.is_typed(&name) {
                    (about, format!("/{name} "))
                } else {
                    // What is typed so is something else.
                    (
                        format!("{about} (`/{name}` is another command)"),
                        String::new(),
                    )
                };
                ListRow {
                    group: origin,
                    value,
                    name,
                    about,
                }
            })
            .collect()
    }

    fn profiles(&self) -> Vec<ListRow> {
        let profiles = self.session.profiles().into_iter();
        profiles
            .map(|profile| ListRow {
                group: profile.origin,
                name: profile.name,
                about: if profile.details.is_empty() {
                    profile.about
                } else {
                    format!("{} ({})", profile.about, profile.details)
                },
                value: profile.path.display().to_string(),
            })
            .collect()
    }

    fn styles(&self) -> Vec<ListRow> {
        let (current, styles) = self.session.styles();
        let row = |(name, about, origin): (String, String, String)| {
            let is_current = current.as_ref() == Some(&name);
            let mark = if is_current { "current  " } else { "" };
            ListRow {
                group: origin,
                about: format!("{mark}{about}"),
                value: name.clone(),
                name,
            }
        };
        styles.into_iter().map(row).collect()
    }

    fn memory(&self) -> Vec<ListRow> {
        let files = self.session.instructions().into_iter();
        let files = files.map(|(kind, path, tokens)| ListRow {
            group: "instructions".to_owned(),
            name: path.display().to_string(),
            about: format!("{kind}, about {tokens} tokens"),
            value: path.display().to_string(),
        });
        let notes = self.session.notes().into_iter();
        let notes = notes.map(|(name, about)| ListRow {
            group: "notes".to_owned(),
            value: name.clone(),
            name,
            about,
        });
        files.chain(notes).collect()
    }

    fn memory_text(&self, value: &str) -> Result<String, String> {
        if self.is_instructions(value) || self.is_profile(value) {
            return std::fs::read_to_string(value).map_err(|error| format!("`{value}`: {error}"));
        }
        self.session.note_text(value)
    }

    fn save_memory(&self, value: &str, text: &str) -> Result<String, String> {
        if self.is_instructions(value) || self.is_profile(value) {
            replace(Path::new(value), text).map_err(|error| format!("`{value}`: {error}"))?;
            return Ok(format!("`{value}` is written; the next session reads it"));
        }
        self.session.save_note(value, text)?;
        Ok(format!("the note `{value}` is written"))
    }

    fn forget_memory(&self, value: &str) -> Result<String, String> {
        if self.is_instructions(value) {
            return Err("files of instructions are deleted by hand".to_owned());
        }
        self.session.forget_note(value)?;
        Ok(format!("the note `{value}` is gone"))
    }
}

impl ProgramDesk {
    /// Whether this is the file of an agent profile.
    fn is_profile(&self, value: &str) -> bool {
        let profiles = self.session.profiles();
        let mut files = profiles.iter().map(|profile| &profile.path);
        files.any(|path| path.display().to_string() == value)
    }

    /// Whether this is a file that the model is told before everything else.
    fn is_instructions(&self, value: &str) -> bool {
        let files = self.session.instructions();
        files
            .iter()
            .any(|(_, path, _)| path.display().to_string() == value)
    }
}

/// Puts a text in the place of a file, which is the old one or the new one whatever happens.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let path = path.canonicalize()?;
    let permissions = path.metadata()?.permissions();
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".caliban-")
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}
