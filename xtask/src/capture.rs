//! `cargo xtask capture`: the demo in a real terminal, drawn as `docs/demo.svg` for the README.

use std::fmt::Write;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{cargo, output, root, run, say, target};

const COLUMNS: usize = 96;
const FONT: f64 = 13.0;
const LINE: f64 = 18.0;
const MARGIN: f64 = 16.0;
/// The width of a character of a monospaced font, as a part of its height.
const ADVANCE: f64 = 0.602;

pub(crate) fn write() -> Result<()> {
    run(cargo().args(["build", "--release", "--quiet", "--package", "caliban"]))?;
    let program = target().join("release/caliban");
    // A terminal of its own: the program behaves as it does for a person.
    let demo = format!("stty cols {COLUMNS}; '{}' demo", program.display());
    let typescript = output(Command::new("script").args(["-qec", &demo, "/dev/null"]))?;
    let mut lines = vec![("$ caliban demo".to_owned(), Kind::Typed)];
    for line in typescript.lines() {
        let line = without_directory(line.trim_end());
        let kind = Kind::of(&line);
        let parts = wrapped(&line);
        lines.extend(parts.into_iter().map(|part| (part, kind)));
    }
    let path = root().join("docs/demo.svg");
    std::fs::write(&path, svg(&lines)).with_context(|| path.display().to_string())?;
    say(&format!("wrote {}", path.display()));
    Ok(())
}

/// How a line is shown.
#[derive(Clone, Copy)]
enum Kind {
    Typed,
    Call,
    Said,
}

impl Kind {
    fn of(line: &str) -> Self {
        let is_call = line.starts_with("Running ") || line.starts_with("Bash: ");
        if is_call { Self::Call } else { Self::Said }
    }

    fn colour(self) -> &'static str {
        match self {
            Self::Typed => "#7ee787",
            Self::Call => "#79c0ff",
            Self::Said => "#e6edf3",
        }
    }
}

/// The directory has another name each time.
fn without_directory(line: &str) -> String {
    match line.split_once("/caliban-demo-") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
            let before = before.rsplit_once(' ').map_or("", |(before, _)| before);
            format!("{before} a temporary directory{rest}")
        }
        None => line.to_owned(),
    }
}

fn wrapped(line: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + word.trim_end().chars().count() > COLUMNS {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
    }
    lines
}

#[expect(clippy::cast_precision_loss, reason = "a few lines and columns")]
fn svg(lines: &[(String, Kind)]) -> String {
    let width = COLUMNS as f64 * FONT * ADVANCE + 2.0 * MARGIN;
    let height = lines.len() as f64 * LINE + 2.0 * MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" \
         font-size=\"{FONT}\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (index, (line, kind)) in lines.iter().enumerate() {
        let y = MARGIN + (index as f64 + 0.75) * LINE;
        let line = line
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "<text x=\"{MARGIN}\" y=\"{y:.1}\" fill=\"{}\" xml:space=\"preserve\">{}</text>",
            kind.colour(),
            line.trim_end()
        );
    }
    text.push_str("</svg>\n");
    text
}
