//! Asks for a provider's key, as a client has us do in its terminal.

use std::io::{BufRead, IsTerminal};

use caliban_harness::{KeptIn, Process, RunOptions, configure, provider, save_key};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::console::note;
use crate::exit::Failure;

/// Reads a key from standard input and keeps it.
pub(crate) fn login(options: &RunOptions, process: Process) -> Result<(), Failure> {
    let configuration = configure(options, process)?;
    let model = &options.model;
    let kind = provider::kind(model.provider, model.model.as_deref(), &configuration)?;
    let Some(variable) = kind.key_variables().first() else {
        note(&format!("{kind} needs no key"));
        return Ok(());
    };
    note(&format!(
        "The key of {kind}, as `{variable}` would hold it; it is not shown:"
    ));
    let key = {
        let _hidden = Hidden::begin();
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.map_err(|error| Failure::Runtime(format!("standard input cannot be read: {error}")))?;
        line
    };
    let kept = save_key(kind, key.trim(), &configuration).map_err(Failure::Usage)?;
    let place = match kept {
        KeptIn::SecretStore => "the desktop's secret store".to_owned(),
        KeptIn::File(path) => format!("`{}`", path.display()),
    };
    note(&format!("The key of {kind} is in {place}."));
    Ok(())
}

/// While it lives, a terminal does not show what is typed.
struct Hidden(Option<Termios>);

impl Hidden {
    fn begin() -> Self {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return Self(None);
        }
        let Ok(before) = tcgetattr(&stdin) else {
            return Self(None);
        };
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // A terminal that cannot hide it shows it.
        let _ = tcsetattr(&stdin, OptionalActions::Flush, &hidden);
        Self(Some(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
