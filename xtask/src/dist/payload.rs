//! What is in every package: the program, and the papers that go with it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::bill::Crates;
use super::tarball::{Content, Entry};
use crate::shell::{output, root};

pub(super) struct Payload {
    pub(super) version: String,
    /// When the packed commit was made, in seconds.
    pub(super) time: u64,
    pub(super) program: Vec<u8>,
    pub(super) completions: Vec<(Shell, Vec<u8>)>,
    pub(super) manual: Vec<u8>,
    pub(super) licence: Vec<u8>,
    pub(super) readme: Vec<u8>,
    pub(super) changes: Vec<u8>,
    /// Whose work is in the program, under which licences.
    pub(super) third_parties: Vec<u8>,
    /// The bill of materials, as `CycloneDX` has it.
    pub(super) bill: Vec<u8>,
}

/// A shell that completes our command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shell {
    Bash,
    Elvish,
    Fish,
    Power,
    Zsh,
}

impl Shell {
    const ALL: [Self; 5] = [Self::Bash, Self::Elvish, Self::Fish, Self::Power, Self::Zsh];

    fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Elvish => "elvish",
            Self::Fish => "fish",
            Self::Power => "powershell",
            Self::Zsh => "zsh",
        }
    }

    /// What its script is usually called.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Bash => "caliban.bash",
            Self::Elvish => "caliban.elv",
            Self::Fish => "caliban.fish",
            Self::Power => "_caliban.ps1",
            Self::Zsh => "_caliban",
        }
    }
}

impl Payload {
    pub(super) fn gather(binary: &Path) -> Result<Self> {
        let time = time()?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let crates = Crates::of_the_program()?;
        let say = |words: &[&str]| -> Result<Vec<u8>> {
            Ok(output(Command::new(binary).args(words))?.into_bytes())
        };
        let read = |name: &str| fs::read(root().join(name)).with_context(|| name.to_owned());
        Ok(Self {
            program: fs::read(binary).with_context(|| binary.display().to_string())?,
            completions: Shell::ALL
                .into_iter()
                .map(|shell| Ok((shell, say(&["completions", shell.name()])?)))
                .collect::<Result<_>>()?,
            manual: say(&["man"])?,
            licence: read("LICENSE")?,
            readme: read("README.md")?,
            changes: read("CHANGELOG.md")?,
            third_parties: crates.licences()?.into_bytes(),
            bill: crates.bill(&version, time)?,
            version,
            time,
        })
    }

    /// What one reads about the program.
    pub(super) fn papers(&self) -> Vec<Entry<'_>> {
        vec![
            Entry::new("LICENSE", Content::Text(&self.licence)),
            Entry::new("README.md", Content::Text(&self.readme)),
            Entry::new("CHANGELOG.md", Content::Text(&self.changes)),
            Entry::new("THIRD-PARTY.txt", Content::Text(&self.third_parties)),
        ]
    }

    pub(super) fn completion(&self, shell: Shell) -> &[u8] {
        let found = self.completions.iter().find(|(of, _)| *of == shell);
        found.map_or(&[], |(_, script)| script)
    }
}

/// When the commit was made; `SOURCE_DATE_EPOCH` says otherwise where there is no repository.
fn time() -> Result<u64> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        return given
            .parse()
            .with_context(|| format!("SOURCE_DATE_EPOCH is no number of seconds: `{given}`"));
    }
    let mut git = Command::new("git");
    git.current_dir(root()).args(["log", "-1", "--format=%ct"]);
    let printed = output(&mut git).context("outside a repository, set SOURCE_DATE_EPOCH")?;
    Ok(printed.trim().parse()?)
}
