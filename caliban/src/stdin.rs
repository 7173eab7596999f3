//! Standard input as a stream of decoded lines, read on a thread of its own so that an interrupt
//! is heard while a prompt is worked on.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read};

use caliban_protocol::{Command, command};
use tokio::sync::mpsc;

use crate::exit::Failure;

const MEBIBYTE: u64 = 1024 * 1024;
/// The longest line of commands that is read, in MiB.
const LONGEST_COMMAND: u64 = 10;
/// Lines that wait; a program that is further ahead waits itself.
const QUEUE: usize = 64;

/// What standard input says next. After a failure comes nothing more.
pub(crate) type Input = Result<Command, Failure>;

/// Begins to read commands. The channel ends where the input does.
pub(crate) fn commands(input: impl Read + Send + 'static) -> mpsc::Receiver<Input> {
    decoded(input, LONGEST_COMMAND, command)
}

/// Begins to read lines of at most this many MiB. The channel ends where the input does, and after
/// the first line that cannot be read; a line that says nothing is passed over.
pub(crate) fn decoded<T: Send + 'static, E: Display>(
    input: impl Read + Send + 'static,
    longest: u64,
    decode: impl Fn(&str, u64) -> Result<Option<T>, E> + Send + 'static,
) -> mpsc::Receiver<Result<T, Failure>> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    std::thread::spawn(move || {
        let mut lines = BufReader::new(input);
        let mut number = 0;
        loop {
            number += 1;
            let next = match line(&mut lines, longest) {
                Ok(None) => return,
                Ok(Some(line)) => match decode(&line, number) {
                    Ok(None) => continue,
                    Ok(Some(said)) => Ok(said),
                    Err(error) => Err(Failure::Usage(error.to_string())),
                },
                Err(failure) => Err(failure),
            };
            let is_last = next.is_err();
            // Nobody listens any more once the run is over.
            if sender.blocking_send(next).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

fn line(input: &mut impl BufRead, longest: u64) -> Result<Option<String>, Failure> {
    let mut bytes = Vec::new();
    input
        .take(longest * MEBIBYTE + 1)
        .read_until(b'\n', &mut bytes)
        .map_err(|error| Failure::NoInput(format!("standard input cannot be read: {error}")))?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() as u64 > longest * MEBIBYTE {
        return Err(Failure::Config(format!(
            "an input line is longer than {longest} MiB; put the text in a file and name the file"
        )));
    }
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| Failure::Usage("an input line is not valid UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &'static [u8]) -> Vec<Input> {
        let mut receiver = commands(input);
        std::iter::from_fn(|| receiver.blocking_recv()).collect()
    }

    #[test]
    fn blank_and_crlf_lines_are_tolerated_and_a_wrong_line_ends_it() {
        let all = read(b"\r\n{\"type\":\"user\",\"content\":\"a\"}\r\n\n{\"type\":\"control\",\"subtype\":\"interrupt\"}");
        assert!(matches!(
            all[..],
            [Ok(Command::User(_)), Ok(Command::Interrupt)]
        ));
        let wrong = read(b"nonsense\n{\"type\":\"user\",\"content\":\"a\"}\n");
        assert!(matches!(wrong[..], [Err(Failure::Usage(_))]));
        assert!(matches!(read(b"\xff\n")[..], [Err(Failure::Usage(_))]));
        assert!(read(b"").is_empty());
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut receiver = commands(std::io::repeat(b'x'));
        assert!(matches!(
            receiver.blocking_recv(),
            Some(Err(Failure::Config(_)))
        ));
    }
}
