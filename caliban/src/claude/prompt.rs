//! The prompt of a run that answers and exits: what was typed, what is piped in, or both.

use std::io::{IsTerminal, Read};
use std::sync::mpsc;
use std::time::Duration;

use caliban_harness::{Attached, Attachments};
use caliban_model::{Block, Message};

use crate::console::note;
use crate::exit::Failure;

/// The most that is read from standard input.
const MAX_STDIN: u64 = 10 * 1024 * 1024;
/// How long something piped in beside a prompt may take to begin.
const PATIENCE: Duration = Duration::from_secs(3);

/// The prompt as a message.
pub(crate) fn message(
    typed: Option<String>,
    attachments: &Attachments,
) -> Result<Message, Failure> {
    let piped = if std::io::stdin().is_terminal() {
        None
    } else {
        piped(typed.is_some())?
    };
    let text = match (&typed, &piped) {
        (Some(typed), Some(piped)) => format!("{typed}\n{piped}"),
        (Some(text), None) | (None, Some(text)) => text.clone(),
        (None, None) => String::new(),
    };
    if text.trim().is_empty() {
        return Err(Failure::Usage(
            "Error: input must be provided, as an argument or on standard input".to_owned(),
        ));
    }
    let Attached {
        mut message,
        notices,
    } = attachments.with_files(&typed.unwrap_or_default())?;
    for notice in notices {
        note(&format!("warning: {notice}"));
    }
    if let Some(first) = message.content.first_mut() {
        *first = Block::text(text);
    }
    Ok(message)
}

/// What is piped in. Beside a prompt it is waited for only a while: many programs leave the pipe
/// open and say nothing.
fn piped(has_prompt: bool) -> Result<Option<String>, Failure> {
    let (begun, has_begun) = mpsc::sync_channel(1);
    let (done, is_done) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut bytes = Vec::new();
        let mut first = [0; 8192];
        let result = input.read(&mut first).and_then(|count| {
            bytes.extend_from_slice(&first[..count]);
            // Nobody listens once the patience is over.
            let _ = begun.send(());
            input
                .take(MAX_STDIN + 1 - count as u64)
                .read_to_end(&mut bytes)
        });
        let _ = done.send(result.map(|_| bytes));
    });
    if has_prompt && has_begun.recv_timeout(PATIENCE).is_err() {
        note("warning: nothing came on standard input within 3 s; going on without it");
        return Ok(None);
    }
    let bytes = match is_done.recv() {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => {
            return Err(Failure::Usage(format!(
                "Error: standard input cannot be read: {error}"
            )));
        }
        Err(_) => return Ok(None),
    };
    if bytes.len() as u64 > MAX_STDIN {
        return Err(Failure::Usage(
            "Error: standard input is larger than 10 MiB; put it in a file and name the file"
                .to_owned(),
        ));
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok((!text.is_empty()).then_some(text))
}
