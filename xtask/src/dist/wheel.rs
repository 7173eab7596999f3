//! A Python wheel that carries the program, for `uvx` and `pipx`.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::Artefact;
use super::payload::Payload;
use super::platform::Platform;

pub(super) fn package(payload: &Payload, platform: &Platform) -> Result<Artefact> {
    let version = &payload.version;
    let tag = format!("py3-none-{}", platform.wheel);
    let metadata = format!(
        "Metadata-Version: 2.4\nName: caliban\nVersion: {version}\nSummary: A provider-agnostic AI agent harness \
         for scripts, applications and the terminal.\nLicense-Expression: AGPL-3.0-only\nLicense-File: LICENSE\n\
         License-File: THIRD-PARTY.txt\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{}",
        String::from_utf8_lossy(&payload.readme)
    );
    let wheel =
        format!("Wheel-Version: 1.0\nGenerator: caliban\nRoot-Is-Purelib: false\nTag: {tag}\n");
    let info = format!("caliban-{version}.dist-info");
    let files: [(String, &[u8], u32); 6] = [
        (
            format!("caliban-{version}.data/scripts/caliban"),
            &payload.program,
            0o755,
        ),
        (format!("{info}/METADATA"), metadata.as_bytes(), 0o644),
        (format!("{info}/WHEEL"), wheel.as_bytes(), 0o644),
        (format!("{info}/licenses/LICENSE"), &payload.licence, 0o644),
        (
            format!("{info}/licenses/THIRD-PARTY.txt"),
            &payload.third_parties,
            0o644,
        ),
        (
            format!("{info}/sboms/caliban.cdx.json"),
            &payload.bill,
            0o644,
        ),
    ];
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let mut record = String::new();
    for (path, bytes, mode) in files {
        archive.start_file(&*path, options(mode))?;
        archive.write_all(bytes)?;
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        writeln!(record, "{path},sha256={digest},{}", bytes.len())?;
    }
    let path = format!("{info}/RECORD");
    writeln!(record, "{path},,")?;
    archive.start_file(path, options(0o644))?;
    archive.write_all(record.as_bytes())?;
    Ok(Artefact {
        name: format!("caliban-{version}-{tag}.whl"),
        bytes: archive.finish()?.into_inner(),
    })
}

fn options(mode: u32) -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(mode)
}
