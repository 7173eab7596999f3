//! Looking for words in everything that was ever said.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use caliban_model::{Block, Message, Role, ToolContent};

use crate::error::Error;
use crate::name::SessionName;
use crate::paths::Paths;
use crate::store::Store;

/// Bytes of one file that are looked through.
const LARGEST: u64 = 64 << 20;
/// Bytes that are looked through at a time.
const CHUNK: usize = 64 << 10;
/// Characters around what was found.
const AROUND: usize = 30;
/// Sessions that are named; more are too many to look at.
const MOST: usize = 200;

/// Where words were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub name: SessionName,
    /// What stands around them, in one line.
    pub excerpt: String,
}

impl Store {
    /// The sessions in which this was said, the most recently updated first, until there are
    /// enough or whoever asks has heard enough. Large and small letters of English are the same.
    pub fn search(
        &self,
        text: &str,
        mut goes_on: impl FnMut() -> ControlFlow<()>,
    ) -> Result<Vec<Hit>, Error> {
        let text = text.trim();
        let mut hits = Vec::new();
        if text.is_empty() {
            return Ok(hits);
        }
        // As it stands in the files: within JSON.
        let quoted = serde_json::to_string(text).unwrap_or_default();
        let needle = quoted.trim_matches('"').to_ascii_lowercase().into_bytes();
        let plain = text.to_ascii_lowercase().into_bytes();
        for summary in self.list()?.summaries {
            if hits.len() == MOST || goes_on().is_break() {
                break;
            }
            let paths = self.paths(&summary.name);
            if !self.may_hold(&paths, &needle, &plain) {
                continue;
            }
            // One that cannot be read is told of by the listing, and cannot be opened either.
            let Ok((state, _)) = self.load(&summary.name) else {
                continue;
            };
            let mut messages = state.messages.iter();
            if let Some(excerpt) = messages.find_map(|message| excerpt(message, &plain)) {
                hits.push(Hit {
                    name: summary.name,
                    excerpt,
                });
            }
        }
        Ok(hits)
    }

    fn may_hold(&self, paths: &Paths, quoted: &[u8], plain: &[u8]) -> bool {
        let has = |path: &Path, needle: &[u8]| {
            let reader = self.disk.read(path);
            reader.is_ok_and(|reader| contains(reader.take(LARGEST), needle).unwrap_or(false))
        };
        if has(&paths.snapshot(), quoted) || has(&paths.journal(), quoted) {
            return true;
        }
        let blobs = paths.blobs();
        let names = self.disk.list(&blobs).unwrap_or_default();
        names
            .iter()
            .any(|name| has(&blobs.join(name), plain) || has(&blobs.join(name), quoted))
    }
}

/// Whether bytes have these in them, English letters in whichever size.
fn contains(mut reader: impl Read, needle: &[u8]) -> io::Result<bool> {
    let mut held: Vec<u8> = Vec::with_capacity(CHUNK + needle.len());
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = reader.read(&mut chunk)?;
        let Some(read) = chunk.get(..count).filter(|read| !read.is_empty()) else {
            return Ok(false);
        };
        held.extend(read.iter().map(u8::to_ascii_lowercase));
        if held.windows(needle.len()).any(|window| window == needle) {
            return Ok(true);
        }
        // What may begin here and end in the next piece.
        let kept = needle.len().saturating_sub(1).min(held.len());
        held.drain(..held.len() - kept);
    }
}

/// What stands around the words in a message.
fn excerpt(message: &Message, needle: &[u8]) -> Option<String> {
    if message.role == Role::System {
        return None;
    }
    message.content.iter().find_map(|block| match block {
        Block::Text { text, .. } => around(text, needle),
        Block::ToolUse { input, .. } => around(&input.to_string(), needle),
        Block::ToolResult { content, .. } => content.iter().find_map(|part| match part {
            ToolContent::Text { text } => around(text, needle),
            ToolContent::Image(_) => None,
        }),
        Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::Image(_)
        | Block::Opaque { .. } => None,
    })
}

fn around(text: &str, needle: &[u8]) -> Option<String> {
    // Only English letters change, one byte for one byte, so that places are the same.
    let lower = text.to_ascii_lowercase();
    let at = lower.find(std::str::from_utf8(needle).ok()?)?;
    let before = text.get(..at)?.chars().rev().take(AROUND);
    let before: String = before.collect::<Vec<_>>().into_iter().rev().collect();
    let after: String = text
        .get(at..)?
        .chars()
        .take(needle.len() + AROUND)
        .collect();
    let whole = format!("{before}{after}");
    let words: Vec<&str> = whole.split_whitespace().collect();
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_are_found_wherever_the_pieces_end(
            before in "[a-c]{0,200}", needle in "[A-C]{1,5}", after in "[a-c]{0,200}", size in 1_usize..50,
        ) {
            struct Slow<'a>(&'a [u8], usize);
            impl Read for Slow<'_> {
                fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                    let count = self.1.min(self.0.len()).min(into.len());
                    let (read, rest) = self.0.split_at(count);
                    into[..count].copy_from_slice(read);
                    self.0 = rest;
                    Ok(count)
                }
            }
            let wanted = needle.to_ascii_lowercase();
            let text = format!("{before}{needle}{after}");
            prop_assert!(contains(Slow(text.as_bytes(), size), wanted.as_bytes()).unwrap());
            let without = before.replace(&wanted, "");
            let expected = without.contains(&wanted);
            prop_assert_eq!(contains(Slow(without.as_bytes(), size), wanted.as_bytes()).unwrap(), expected);
        }

        #[test]
        fn what_is_around_is_one_line(text in "\\PC{0,80}(\n\\PC{0,80}){0,3}", needle in "\\PC{1,5}") {
            if let Some(line) = around(&text, needle.to_ascii_lowercase().as_bytes()) {
                prop_assert!(!line.contains('\n'));
            }
        }
    }
}
