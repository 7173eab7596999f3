//! `cargo xtask pictures`: a short session with the built program in a terminal, drawn for the guide.

mod grid;
mod page;
mod session;
mod svg;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::shell::{built_program, root, say};

/// Whether the pictures are written or only compared with those that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Write,
    Compare,
}

pub(crate) fn draw(purpose: Purpose) -> Result<()> {
    let pictures = session::play(&built_program()?)?;
    let names: BTreeSet<String> = pictures
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    ensure!(
        names == session::NAMES.map(str::to_owned).into(),
        "the list of pictures in xtask is not the list of those that are drawn: {names:?}"
    );
    for (name, text) in pictures {
        let path = folder().join(name);
        match purpose {
            Purpose::Write => {
                std::fs::create_dir_all(folder())?;
                std::fs::write(&path, text).with_context(|| path.display().to_string())?;
                say(&format!("wrote {}", path.display()));
            }
            Purpose::Compare => ensure!(
                std::fs::read_to_string(&path).is_ok_and(|there| there == text),
                "{} looks otherwise now: run `cargo xtask pictures`",
                path.display()
            ),
        }
    }
    Ok(())
}

/// Photographs the page of `caliban serve web`.
pub(crate) fn photograph() -> Result<()> {
    let program = built_program()?;
    std::fs::create_dir_all(folder())?;
    page::photograph(&program, &folder())
}

/// Every picture is there, is shown somewhere, and nothing else is.
pub(crate) fn check() -> Result<()> {
    let wanted: BTreeSet<String> = listed().into_iter().collect();
    let mut there = BTreeSet::new();
    for entry in std::fs::read_dir(folder()).context("docs/pictures")? {
        there.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    let mut problems: Vec<String> = wanted
        .symmetric_difference(&there)
        .map(|name| format!("docs/pictures/{name} is missing, or nothing draws it"))
        .collect();
    let mut pages = vec![root().join("README.md")];
    for entry in std::fs::read_dir(root().join("docs"))? {
        pages.push(entry?.path());
    }
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    let text = pages.iter().map(std::fs::read_to_string);
    let text: String = text.collect::<Result<_, _>>()?;
    let unseen = wanted
        .iter()
        .filter(|name| !text.contains(&format!("pictures/{name})")));
    problems.extend(unseen.map(|name| format!("no page shows docs/pictures/{name}")));
    if problems.is_empty() {
        return Ok(());
    }
    bail!("the pictures have loose ends:\n  {}", problems.join("\n  "))
}

fn folder() -> PathBuf {
    root().join("docs/pictures")
}

fn listed() -> Vec<String> {
    let names = session::NAMES.iter().chain(&page::NAMES);
    names.map(|name| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_guide_has_its_pictures_and_shows_them() {
        super::check().unwrap();
    }
}
