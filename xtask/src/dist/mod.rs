//! `cargo xtask dist`: what is handed to people who do not build it themselves.
//!
//! One gathered [`Payload`] becomes an archive, a Debian package, npm packages, a Python wheel, a bill of
//! materials and checksums. The same commit and toolchain give the same bytes: times are those of the commit,
//! entries are sorted, owners and modes are fixed, and paths of the building machine are not in the program.

mod bill;
mod deb;
mod npm;
mod payload;
mod platform;
mod tarball;
mod wheel;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use self::payload::Payload;
use self::platform::Platform;
use crate::shell::{self, KEYRING, cargo, root, say};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Where the packages are written.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Pack this program instead of building one with the `dist` profile.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// One file that is handed out.
#[derive(Debug, PartialEq, Eq)]
struct Artefact {
    name: String,
    bytes: Vec<u8>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let binary = match &options.binary {
        Some(given) => given.clone(),
        None => build()?,
    };
    let out = options
        .out
        .clone()
        .unwrap_or_else(|| shell::target().join("packages"));
    for artefact in artefacts(&Payload::gather(&binary)?)? {
        write(&out, &artefact)?;
    }
    Ok(())
}

/// Everything that is made of a payload, the checksums last.
fn artefacts(payload: &Payload) -> Result<Vec<Artefact>> {
    let platform = Platform::of(&payload.program)?;
    let mut all = vec![tarball::archive(payload)?];
    all.extend(deb::package(payload, &platform)?);
    all.extend(npm::packages(payload, &platform)?);
    all.push(wheel::package(payload, &platform)?);
    all.push(Artefact {
        name: format!("caliban-{}.cdx.json", payload.version),
        bytes: payload.bill.clone(),
    });
    let mut sums = String::new();
    for artefact in &all {
        let digest = hex(&Sha256::digest(&artefact.bytes));
        writeln!(sums, "{digest}  {}", artefact.name)?;
    }
    all.push(Artefact {
        name: "SHA256SUMS".to_owned(),
        bytes: sums.into_bytes(),
    });
    Ok(all)
}

fn write(out: &Path, artefact: &Artefact) -> Result<()> {
    let path = out.join(&artefact.name);
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    fs::write(&path, &artefact.bytes).with_context(|| path.display().to_string())?;
    say(&format!(
        "{} ({} KiB)",
        path.display(),
        artefact.bytes.len() / 1024
    ));
    Ok(())
}

/// Builds the program as it is shipped, without a trace of where it was built.
fn build() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let mut flags = format!("--remap-path-prefix={}=.", root().display());
    if let Some(home) = home {
        write!(flags, " --remap-path-prefix={}=/cargo", home.display())?;
    }
    shell::run(
        cargo()
            .args([
                "build",
                "--profile=dist",
                "--bin=caliban",
                "--locked",
                KEYRING,
            ])
            .env("RUSTFLAGS", flags),
    )?;
    Ok(shell::target().join("dist/caliban"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
