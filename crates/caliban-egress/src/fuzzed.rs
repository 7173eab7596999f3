//! What a client says, read by each of the readers, and what must hold of it whatever it is. The
//! fuzzer looks for bytes that break it; those it learned from are kept in `corpus` and read again by
//! the tests.

use crate::body::{Body, Framing, Progress};
use crate::entry::{Entry, List};
use crate::hello;
use crate::host::{Host, Target};
use crate::http;
use crate::socks;

/// Reads what was said by the reader that the first byte chooses. Panics where it breaks a promise.
pub fn read(input: &[u8]) {
    let Some((reader, said)) = input.split_first() else {
        return;
    };
    match reader {
        b'h' => http::keeps_its_promises(said),
        b'b' => body(said),
        b't' => target(said),
        b'e' => entry(said),
        b's' => socks::keeps_its_promises(said),
        b'c' => hello::keeps_its_promises(said),
        _ => {}
    }
}

/// The first byte says in which pieces the rest arrives; they make no difference.
fn body(said: &[u8]) {
    let Some((cut, said)) = said.split_first() else {
        return;
    };
    let whole = Body::new(Framing::Chunked).advance(said);
    if let Ok(Progress::Ends(end)) = whole {
        assert!(end <= said.len());
    }
    let mut body = Body::new(Framing::Chunked);
    let mut passed = 0;
    let mut last = Ok(Progress::More);
    for piece in said.chunks(usize::from(*cut).max(1)) {
        last = body.advance(piece);
        match last {
            Ok(Progress::More) => passed += piece.len(),
            Ok(Progress::Ends(end)) => {
                last = Ok(Progress::Ends(passed + end));
                break;
            }
            Err(_) => break,
        }
    }
    assert_eq!(last, whole);
}

/// What is read is read the same when it is shown and read again.
fn target(said: &[u8]) {
    if let Ok(host) = Host::parse(said) {
        assert_eq!(Host::parse(host.to_string().as_bytes()), Ok(host.clone()));
        if let Host::Name(name) = &host {
            let is_plain = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte)
            };
            assert!(name.as_str().bytes().all(is_plain));
            // No resolver takes it for an address.
            let last = name.as_str().rsplit('.').next().unwrap_or_default();
            assert!(!last.is_empty() && !last.bytes().all(|byte| byte.is_ascii_digit()));
            let digits = last.strip_prefix("0x");
            assert!(!digits.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit())));
        }
    }
    if let Ok(target) = Target::parse(said) {
        assert_ne!(target.port, 0);
        assert_eq!(Target::parse(target.to_string().as_bytes()), Ok(target));
    }
}

/// An entry of a list is shown as it is read, and one that covers a target names it.
fn entry(said: &[u8]) {
    let Ok(text) = std::str::from_utf8(said) else {
        return;
    };
    for list in [List::Allowed, List::Denied] {
        if let Ok(entry) = Entry::parse(text, list) {
            let shown = entry.to_string();
            // What denies may be broader than what allows.
            let list = if Entry::parse(text, List::Allowed).is_ok() {
                list
            } else {
                List::Denied
            };
            assert_eq!(Entry::parse(&shown, list), Ok(entry), "{shown}");
        }
    }
    if let Ok(target) = Target::parse(said) {
        assert!(Entry::covering(&target).names(&target));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    /// What the fuzzer learned from, and what it found.
    #[test]
    fn the_corpus_breaks_no_promise() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
        let mut read = 0;
        for file in fs::read_dir(corpus).unwrap() {
            super::read(&fs::read(file.unwrap().path()).unwrap());
            read += 1;
        }
        assert!(read >= 100, "{read} files in {corpus}");
    }
}
