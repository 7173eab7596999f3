//! What an agent said and did, from its files; with more as it comes.

use std::fs;
use std::io;

use caliban_fleet::{AgentDirectory, Answers, Attachment, Input, Past, Wanted};
use caliban_harness::session_store;
use caliban_model::CancellationToken;
use caliban_sessions::{Error, SessionName, Store, Transcript};
use serde_json::Value;

use super::Fleet;
use super::frames::Reader;
use super::worker::{name, store};
use crate::args::LogsArgs;
use crate::console::{Console, note};
use crate::exit::Failure;

impl Fleet<'_> {
    pub(super) async fn logs(
        &self,
        args: &LogsArgs,
        cancel: &CancellationToken,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let (id, directory) = self.find(&args.id)?;
        if args.worker {
            return console.write(&last(&read(&directory.log())?, args.tail));
        }
        if args.json {
            let (store, name) = self.kept(&directory)?;
            let file = store.directory().join(format!("{name}.json"));
            let text = read(&file)?;
            if text.is_empty() {
                note(&format!(
                    "{id} has no file yet; it is written after its first prompt"
                ));
            }
            return console.write(&text);
        }
        let view = directory.view(&id);
        if args.follow && view.state.is_alive() {
            let wanted = Wanted {
                input: Input::None,
                after: None,
                past: Past::Told,
                answers: Answers::AsTheyCome,
            };
            let attachment = self.reach(&id, wanted).await?;
            return follow(attachment, cancel, console).await;
        }
        let (text, warnings) = self.conversation(&args.id)?;
        for warning in warnings {
            note(&format!("warning: {warning}"));
        }
        console.write(&last(&text, args.tail))?;
        if text.is_empty() {
            note(&format!(
                "{id} ({}) has no conversation yet",
                view.state.as_str()
            ));
        }
        Ok(())
    }

    /// Where the conversation of an agent is, and what it is called there.
    fn kept(&self, directory: &AgentDirectory) -> Result<(Store, SessionName), Failure> {
        let session = directory.report().ok().and_then(|it| it.session_id);
        match (directory.spec(), session) {
            (Ok(spec), Some(session)) if spec.is_served() => {
                let store = session_store(&self.options.session, self.configuration);
                // One that has said nothing yet is not there.
                let name = match store.find(&session) {
                    Ok(name) => name,
                    Err(_) => SessionName::new(&session).map_err(Error::from)?,
                };
                Ok((store, name))
            }
            _ => Ok((store(directory.path()), name()?)),
        }
    }

    /// What an agent said and did so far, and what is wrong with its files.
    pub(crate) fn conversation(&self, agent: &str) -> Result<(String, Vec<String>), Failure> {
        let (id, directory) = self.find(agent)?;
        let (store, name) = self.kept(&directory)?;
        let read = if directory.view(&id).state.is_alive() {
            store.look(&name)
        } else {
            store.load(&name)
        };
        match read {
            Ok((state, warnings)) => {
                let warnings = warnings.iter().map(ToString::to_string).collect();
                Ok((Transcript::of(&state).markdown(), warnings))
            }
            // It had no time to say anything.
            Err(Error::NotFound { .. }) => Ok((String::new(), Vec::new())),
            Err(error) => Err(error.into()),
        }
    }
}

async fn follow(
    mut attachment: Attachment,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut reader = Reader::default();
    loop {
        let line = cancel.run_until_cancelled(attachment.lines.recv()).await;
        let Some(Some(line)) = line else {
            return Ok(());
        };
        let frame: Value = serde_json::from_str(&line).unwrap_or_default();
        console.write(&reader.read(&frame))?;
    }
}

fn read(path: &std::path::Path) -> Result<String, Failure> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Failure::Runtime(format!("`{}`: {error}", path.display()))),
    }
}

/// The last so many lines.
fn last(text: &str, lines: Option<usize>) -> String {
    let Some(lines) = lines else {
        return text.to_owned();
    };
    let count = text.lines().count();
    let kept = text.lines().skip(count.saturating_sub(lines));
    kept.fold(String::new(), |shown, line| shown + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::last;

    #[test]
    fn the_last_lines_are_the_last() {
        assert_eq!(last("a\nb\nc\n", Some(2)), "b\nc\n");
        assert_eq!(last("a\n", Some(5)), "a\n");
        assert_eq!(last("a", None), "a");
    }
}
