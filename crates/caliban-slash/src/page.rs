//! The page about all commands, written from the table.

use std::fmt::Write as _;

use crate::entry::{Asks, Category, Does, Entry};
use crate::table::BUILT_IN;

const OPENING: &str = "\
# Slash commands

What can be typed at the prompt. This page is written by `cargo xtask docs`. Commands that work \
everywhere also work as the prompt of `caliban -p` and in stream-json input, where their answer is \
the `result`; the others say there what serves instead. Only those marked so ask a model, and cost. \
Your own commands and skills join them: see [Skills, output styles and commands](../skills.md).
";

/// Every command by category, with where it works and whether it asks a model.
pub fn reference_page() -> String {
    let mut page = OPENING.to_owned();
    for category in Category::ALL {
        let rows = BUILT_IN.iter().filter(|entry| entry.category == category);
        // Writing to a string does not fail.
        let _ = write!(
            page,
            "\n## {}\n\n| Command | Works | What it does |\n|---|---|---|\n",
            category.title()
        );
        for entry in rows {
            let _ = writeln!(page, "{}", row(entry));
        }
    }
    page
}

fn row(entry: &Entry) -> String {
    let mut does = entry.summary.to_owned();
    match entry.asks {
        Asks::Nobody => {}
        Asks::Model => does.push_str(". **Asks a model**"),
    }
    let works = match entry.does {
        Does::Act(_) => "everywhere",
        Does::NeedsScreen { instead } => {
            let _ = write!(does, ". Without a screen: {instead}");
            "on a screen"
        }
        Does::Missing { part, instead } => {
            let _ = write!(does, ". This version has no {part}: {instead}");
            "not yet"
        }
    };
    if !entry.aliases.is_empty() {
        let names: Vec<String> = entry.aliases.iter().map(|it| format!("`/{it}`")).collect();
        let _ = write!(does, ". Also {}", names.join(", "));
    }
    // A bar would end the cell.
    let usage = entry.usage().replace('|', "\\|");
    format!("| `{usage}` | {works} | {does} |")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_one_row_of_three_cells() {
        let page = reference_page();
        for entry in BUILT_IN {
            let start = format!("| `/{}", entry.name);
            let is_own = |row: &&str| {
                row.strip_prefix(&start)
                    .is_some_and(|rest| rest.starts_with(['`', ' ']))
            };
            let rows: Vec<&str> = page.lines().filter(is_own).collect();
            assert_eq!(rows.len(), 1, "{}", entry.name);
            let bars = rows[0].replace("\\|", "").matches('|').count();
            assert_eq!(bars, 4, "{}", rows[0]);
        }
    }
}
