//! The names of sessions: given, changed, and followed by what is kept under them.

use caliban_sessions::{Durability, Error, Record, SessionName, Store};
use uuid::Uuid;

use crate::checkpoints::checkpoint_store;
use crate::configuration::Configuration;
use crate::recorder::Recorder;
use crate::session::Session;

/// The longest title.
const TITLE: usize = 200;
/// The longest name that is made of a title.
const NAME: usize = 64;
pub(crate) const UNSAVED: &str = "this session is not saved";

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn told(error: Error) -> String {
    error.to_string()
}

/// What somebody calls a session: a title, and the name that a file can have of it, if any.
struct Called {
    title: String,
    name: Option<SessionName>,
}

impl Called {
    fn read(text: &str) -> Self {
        let visible = text.trim().chars().filter(|c| !c.is_control());
        let title: String = visible.take(TITLE).collect();
        let mut name = String::new();
        for char in title.chars() {
            let is_kept = char.is_ascii_alphanumeric() || char == '_' || char == '-';
            match (is_kept, name.ends_with('-')) {
                (true, _) => name.push(char),
                (false, false) => name.push('-'),
                (false, true) => {}
            }
        }
        let short: String = name.trim_matches('-').chars().take(NAME).collect();
        Self {
            title,
            name: SessionName::new(short.trim_end_matches('-')).ok(),
        }
    }

    /// The title, where it says more than the name.
    fn further_title(&self) -> Option<String> {
        let is_said = self
            .name
            .as_ref()
            .is_some_and(|it| it.as_str() == self.title);
        (!is_said).then(|| self.title.clone())
    }
}

/// Renames a session that nobody is writing, with its checkpoints; returns what opens it.
pub fn rename_session(
    store: &Store,
    configuration: &Configuration,
    from: &SessionName,
    text: &str,
) -> Result<SessionName, String> {
    let called = Called::read(text);
    let to = called
        .name
        .clone()
        .ok_or_else(|| format!("`{text}` has no letter or digit that a file can be called by"))?;
    let mut writer = store.open(from).map_err(told)?.writer;
    store.rename_open(&mut writer, &to).map_err(told)?;
    if let Some(text) = called.further_title() {
        let record = Record::Title { text };
        writer.append(record, Durability::Written).map_err(told)?;
    }
    writer.close().map_err(told)?;
    move_checkpoints(configuration, from.as_str(), to.as_str());
    Ok(to)
}

/// Copies a session as it is now, with its checkpoints; returns what opens the copy.
pub fn copy_session(
    store: &Store,
    configuration: &Configuration,
    source: &SessionName,
    name: Option<&str>,
) -> Result<SessionName, String> {
    let id = Uuid::new_v4();
    let (name, title) = match name {
        Some(text) => {
            let name = SessionName::new(text).map_err(|error| error.to_string())?;
            (name, text.to_owned())
        }
        None => (SessionName::from_id(id), format!("Copy of {source}")),
    };
    let mut copy = store.fork(source, &name, id).map_err(told)?.writer;
    // What nothing is recorded in does not stay.
    let record = Record::Title { text: title };
    copy.append(record, Durability::Written).map_err(told)?;
    copy.close().map_err(told)?;
    let checkpoints = checkpoint_store(configuration).ok().flatten();
    if let Some(checkpoints) = checkpoints {
        // A copy without them is a copy all the same.
        let _ = checkpoints.fork(source.as_str(), name.as_str());
    }
    Ok(name)
}

/// Calls the checkpoints of a session what the session is called, in whichever workspace they
/// were made. Those that cannot be moved stay, and harm nobody.
pub(crate) fn move_checkpoints(configuration: &Configuration, from: &str, to: &str) {
    let projects = std::fs::read_dir(configuration.locations.checkpoints_root());
    for project in projects.into_iter().flatten().flatten() {
        let directory = project.path().join("checkpoints");
        let (from, to) = (directory.join(from), directory.join(to));
        if from.is_dir() && !to.exists() {
            let _ = std::fs::rename(from, to);
        }
    }
}

impl Session {
    pub(crate) fn saved(&self) -> Result<&Recorder, String> {
        self.recorder.as_ref().ok_or_else(|| UNSAVED.to_owned())
    }

    fn session_store(&self) -> Result<(Store, Configuration), String> {
        let watch = self.watch.as_ref();
        let watch = watch.ok_or("the place of sessions is not known here")?;
        let configuration = watch.configuration();
        let store = crate::history::session_store(&watch.options().session, &configuration);
        Ok((store, configuration))
    }

    /// Gives the session another title, and the name that a file can have of it.
    pub(crate) async fn rename(&self, text: &str) -> Result<String, String> {
        let recorder = self.saved()?.clone();
        let called = Called::read(text);
        recorder.begin_if_new(&self.agent, self.conversation.messages());
        let Called { title, name } = called;
        let Some(name) = name else {
            recorder.entitle(&title)?;
            let name = recorder.name().ok_or(UNSAVED)?;
            return Ok(format!(
                "The session is called `{title}`; no file can be, so `--resume {name}` opens it as before."
            ));
        };
        let (store, _) = self.session_store()?;
        let renaming = move || {
            recorder.rename(&store, &name)?;
            recorder.entitle(&title)?;
            Ok::<_, String>((title, name))
        };
        let renamed = tokio::task::spawn_blocking(renaming).await;
        let (title, name) = renamed.map_err(|_| "the session was not renamed")??;
        Ok(format!(
            "The session is called `{title}`; its file is `{name}.json` and `--resume {name}` opens it."
        ))
    }

    /// The copy is a session of its own from here on.
    pub(crate) async fn fork(&self, name: Option<String>) -> Result<String, String> {
        let source = self.saved()?.name().ok_or(UNSAVED)?;
        if self.conversation.messages().len() == self.system_messages().count() {
            return Err("there is nothing to copy yet".to_owned());
        }
        let (store, configuration) = self.session_store()?;
        let copying = move || {
            let source = SessionName::new(&source).map_err(|error| error.to_string())?;
            copy_session(&store, &configuration, &source, name.as_deref())
        };
        let copied = tokio::task::spawn_blocking(copying).await;
        let name = copied.map_err(|_| "the copy was not finished")??;
        Ok(format!(
            "The session was copied as it is now; `--resume {name}` opens the copy."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_what_it_can_be() {
        for (text, name) in [
            ("shop", Some("shop")),
            (" A better  name! ", Some("A-better-name")),
            ("a/../b", Some("a-b")),
            ("Größe_1", Some("Gr-e_1")),
            ("名前", None),
            ("--", None),
        ] {
            let called = Called::read(text);
            assert_eq!(called.name.as_ref().map(SessionName::as_str), name);
            assert_eq!(called.title, text.trim());
        }
    }

    #[test]
    fn a_long_title_has_a_name_of_the_right_length() {
        let called = Called::read(&"word ".repeat(100));
        assert_eq!(called.name.map(|it| it.as_str().len()), Some(NAME));
    }
}
