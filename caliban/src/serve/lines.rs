//! Reads requests from standard input, on a thread of its own. A line that cannot be used is
//! told; reading goes on behind it.

use std::io::{self, BufRead, BufReader, Read};

use tokio::sync::mpsc;

/// Lines that wait; a client that is further ahead waits itself.
const QUEUE: usize = 16;

/// What standard input says next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Text(String),
    /// Why it is none.
    Unusable(String),
}

/// Begins to read lines of at most `longest` bytes. The channel ends where the input does, or where
/// it cannot be read any more.
pub(crate) fn lines(input: impl Read + Send + 'static, longest: usize) -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    std::thread::spawn(move || {
        let mut input = BufReader::new(input);
        while let Ok(Some(line)) = next(&mut input, longest) {
            // Nobody listens any more once the session is over.
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn next(input: &mut impl BufRead, longest: usize) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(longest).unwrap_or(u64::MAX).saturating_add(1);
    input.by_ref().take(limit).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() > longest && !bytes.ends_with(b"\n") {
        skip_line(input)?;
        return Ok(Some(too_long(longest)));
    }
    Ok(Some(match String::from_utf8(bytes) {
        Ok(text) => Line::Text(text),
        Err(_) => Line::Unusable("the line is not valid UTF-8".to_owned()),
    }))
}

fn too_long(longest: usize) -> Line {
    const MIB: usize = 1024 * 1024;
    let longest = match longest / MIB {
        0 => format!("{longest} bytes"),
        mib => format!("{mib} MiB"),
    };
    Line::Unusable(format!("the line is longer than {longest}"))
}

/// Leaves out the rest of a line without keeping it.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let (used, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        input.consume(used);
        if ended {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut input: &[u8], longest: usize) -> Vec<Line> {
        std::iter::from_fn(|| next(&mut input, longest).unwrap()).collect()
    }

    #[test]
    fn a_line_that_cannot_be_used_does_not_hide_the_next() {
        let text = |text: &str| Line::Text(text.to_owned());
        assert_eq!(
            all(b"one\n\xff\xfe\ntoo long a line\nfour", 8),
            [
                text("one\n"),
                Line::Unusable("the line is not valid UTF-8".to_owned()),
                Line::Unusable("the line is longer than 8 bytes".to_owned()),
                text("four"),
            ]
        );
        // The limit is what a line may hold.
        assert_eq!(all(b"12345678\n", 8), [text("12345678\n")]);
        assert_eq!(all(b"123456789", 8), [too_long(8)]);
        assert_eq!(all(b"", 8), []);
        let long = Line::Unusable("the line is longer than 10 MiB".to_owned());
        assert_eq!(too_long(10 * 1024 * 1024), long);
    }
}
