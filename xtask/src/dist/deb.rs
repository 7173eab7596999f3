//! A package for Debian and what descends from it.

use std::fmt::Write as _;

use anyhow::Result;

use super::Artefact;
use super::payload::{Payload, Shell};
use super::platform::Platform;
use super::tarball::{Content, Directories, Entry, gzipped, gzipped_tar};

/// Nothing where Debian does not run.
pub(super) fn package(payload: &Payload, platform: &Platform) -> Result<Option<Artefact>> {
    let Some(architecture) = platform.deb else {
        return Ok(None);
    };
    let manual = gzipped(&payload.manual)?;
    let changes = gzipped(&payload.changes)?;
    let third_parties = gzipped(&payload.third_parties)?;
    let completion = |shell| Content::Text(payload.completion(shell));
    let files = [
        ("bin/caliban", Content::Program(&payload.program)),
        ("bin/caliband", Content::Link("caliban")),
        (
            "share/bash-completion/completions/caliban",
            completion(Shell::Bash),
        ),
        (
            "share/fish/vendor_completions.d/caliban.fish",
            completion(Shell::Fish),
        ),
        (
            "share/zsh/vendor-completions/_caliban",
            completion(Shell::Zsh),
        ),
        ("share/man/man1/caliban.1.gz", Content::Text(&manual)),
        ("share/doc/caliban/changelog.gz", Content::Text(&changes)),
        (
            "share/doc/caliban/copyright",
            Content::Text(&payload.licence),
        ),
        (
            "share/doc/caliban/THIRD-PARTY.txt.gz",
            Content::Text(&third_parties),
        ),
        (
            "share/doc/caliban/caliban.cdx.json",
            Content::Text(&payload.bill),
        ),
    ];
    let entries: Vec<_> = files
        .into_iter()
        .map(|(path, content)| Entry::new(format!("./usr/{path}"), content))
        .collect();
    let size: usize = entries.iter().map(size).sum();
    let control = control(payload, platform, architecture, size)?;
    let control = vec![Entry::new("./control", Content::Text(control.as_bytes()))];
    let control = gzipped_tar(control, payload.time, Directories::Named)?;
    let data = gzipped_tar(entries, payload.time, Directories::Named)?;
    let mut bytes = b"!<arch>\n".to_vec();
    member(&mut bytes, "debian-binary", b"2.0\n", payload.time);
    member(&mut bytes, "control.tar.gz", &control, payload.time);
    member(&mut bytes, "data.tar.gz", &data, payload.time);
    Ok(Some(Artefact {
        name: format!("caliban_{}_{architecture}.deb", payload.version),
        bytes,
    }))
}

fn size(entry: &Entry<'_>) -> usize {
    match entry.content {
        Content::Program(bytes) | Content::Text(bytes) => bytes.len(),
        Content::Link(_) => 0,
    }
}

fn control(
    payload: &Payload,
    platform: &Platform,
    architecture: &str,
    size: usize,
) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "Package: caliban")?;
    writeln!(text, "Version: {}", payload.version)?;
    writeln!(text, "Architecture: {architecture}")?;
    writeln!(text, "Maintainer: The caliban authors <caliban@localhost>")?;
    writeln!(text, "Section: devel")?;
    writeln!(text, "Priority: optional")?;
    writeln!(text, "Installed-Size: {}", size.div_ceil(1024))?;
    if let Some(glibc) = platform.glibc {
        writeln!(
            text,
            "Depends: libc6 (>= {}.{}), libgcc-s1",
            glibc.0, glibc.1
        )?;
    }
    writeln!(text, "Recommends: bubblewrap, git")?;
    writeln!(
        text,
        "Description: provider-agnostic AI agent harness\n \
         Drives a language model through prompts, tool calls and results, with permissions,\n \
         sessions, memory and extensions around that loop: in scripts, in applications and in a\n \
         terminal."
    )?;
    Ok(text)
}

/// Appends a file to an `ar` archive, whose members begin at even places.
fn member(archive: &mut Vec<u8>, name: &str, bytes: &[u8], time: u64) {
    let header = format!(
        "{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n",
        0,
        0,
        "100644",
        bytes.len()
    );
    archive.extend_from_slice(header.as_bytes());
    archive.extend_from_slice(bytes);
    if bytes.len() % 2 == 1 {
        archive.push(b'\n');
    }
}
