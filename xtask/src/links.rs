//! The check of the guide: every page is in its table of contents, and every link leads somewhere.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell::root;

/// How deep the guide's directories are looked into.
const MAX_DEPTH: usize = 3;

pub(crate) fn check() -> Result<()> {
    let guide = root().join("docs");
    let mut pages = Vec::new();
    collect(&guide, 0, &mut pages)?;
    let mut problems = Vec::new();
    let contents = std::fs::read_to_string(guide.join("SUMMARY.md"))?;
    for page in &pages {
        let name = page.strip_prefix(&guide)?.display().to_string();
        let is_record = name.starts_with("adr/") || name == "SUMMARY.md";
        if !is_record && !contents.contains(&format!("({name})")) {
            problems.push(format!("docs/{name} is not in docs/SUMMARY.md"));
        }
    }
    pages.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)));
    for page in &pages {
        let text = std::fs::read_to_string(page).with_context(|| page.display().to_string())?;
        let directory = page.parent().unwrap_or(page);
        for target in targets(&text) {
            let file = target.split('#').next().unwrap_or_default();
            if !file.is_empty() && !directory.join(file).exists() {
                let page = page.strip_prefix(root()).unwrap_or(page);
                problems.push(format!("{} links to `{target}`", page.display()));
            }
        }
    }
    if !problems.is_empty() {
        bail!("the guide has loose ends:\n  {}", problems.join("\n  "));
    }
    Ok(())
}

fn collect(directory: &Path, depth: usize, pages: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() && depth < MAX_DEPTH {
            collect(&path, depth + 1, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(())
}

/// The targets of links to other files, those in code left out.
fn targets(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, after)) = after.split_once(')') else {
                break;
            };
            if !target.contains("://") && !target.starts_with('#') {
                found.push(target);
            }
            rest = after;
        }
    }
    found
}
