//! What to say when a text to replace was not found: where something close to it is.

use super::similarity::most_alike;
use super::snippet::Outline;

/// Lines of a file compared at most.
const COMPARED_LINES: usize = 50_000;
/// Similar lines shown.
const SHOWN_LINES: usize = 3;
/// How alike a line must be to be shown, in percent.
const ALIKE: usize = 50;

/// The remedy for `old` not being in `text`; both have LF line breaks.
pub(super) fn closest(text: &str, old: &str) -> String {
    if text.is_empty() {
        return "The file is empty.".to_owned();
    }
    let unnumbered = without_line_numbers(old);
    if unnumbered.is_some_and(|old| text.contains(old.trim_end_matches('\n'))) {
        return "It contains the line numbers that Read shows; leave them and the tab out."
            .to_owned();
    }
    let outline = Outline::of(text);
    if let Some(group) = same_but_for_space(text, old) {
        let shown = outline.show(&[group]);
        return format!(
            "These lines differ from it in whitespace only; use them exactly:\n{shown}"
        );
    }
    let Some(telling) = old.lines().map(str::trim).max_by_key(|line| line.len()) else {
        return "Read the file again.".to_owned();
    };
    let lines = text.lines().take(COMPARED_LINES).enumerate();
    let similar = most_alike(telling, lines, |(_, line)| line.trim(), ALIKE, SHOWN_LINES);
    if similar.is_empty() {
        return "Nothing similar is in the file; read it again.".to_owned();
    }
    let mut groups: Vec<_> = similar.iter().map(|(at, _)| (at + 1, at + 1)).collect();
    groups.sort_unstable();
    format!("The most similar lines are:\n{}", outline.show(&groups))
}

/// The lines that equal those of `old` once surrounding and repeated whitespace is ignored.
fn same_but_for_space(text: &str, old: &str) -> Option<(usize, usize)> {
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = old.trim().lines().map(squeeze).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<String> = text.lines().take(COMPARED_LINES).map(squeeze).collect();
    let (first, rest) = wanted.split_first()?;
    let (last, middle) = match rest.split_last() {
        Some((last, middle)) => (Some(last), middle),
        None => (None, rest),
    };
    // The first and last line of `old` may be parts of lines.
    let fits = |window: &[String]| match (window, last) {
        ([only], None) => only.contains(first.as_str()),
        ([start, inner @ .., end], Some(last)) => {
            start.ends_with(first.as_str()) && inner == middle && end.starts_with(last.as_str())
        }
        _ => false,
    };
    let at = lines.windows(wanted.len()).position(fits)?;
    Some((at + 1, at + wanted.len()))
}

/// The text without numbers and tabs at the start of every line, if they all have them.
fn without_line_numbers(old: &str) -> Option<String> {
    let lines: Option<Vec<&str>> = old
        .lines()
        .map(|line| {
            let (number, rest) = line.split_once('\t')?;
            number.trim().parse::<u64>().is_ok().then_some(rest)
        })
        .collect();
    lines
        .map(|lines| lines.join("\n"))
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn main() {\n    let total = 1;\n\tprint(total);\n}\n";

    #[test]
    fn whitespace_is_blamed_where_it_is_to_blame() {
        let hint = closest(TEXT, "let  total = 1;\n    print(total);");
        assert!(hint.starts_with("These lines differ from it in whitespace only"));
        assert!(hint.contains("     2\t    let total = 1;\n     3\t\tprint(total);\n"));
        assert!(closest(TEXT, "  print(total);").contains("     3\t"));
    }

    #[test]
    fn similar_lines_are_shown() {
        let hint = closest(TEXT, "let totals = 1;");
        assert!(hint.starts_with("The most similar lines are:\n"), "{hint}");
        assert!(hint.contains("     2\t    let total = 1;"), "{hint}");
        assert_eq!(
            closest(TEXT, "§§§§"),
            "Nothing similar is in the file; read it again."
        );
        assert_eq!(closest("", "x"), "The file is empty.");
        assert_eq!(
            closest("a\n", "\n\n\n"),
            "Nothing similar is in the file; read it again."
        );
    }

    #[test]
    fn copied_line_numbers_are_recognised() {
        let hint = closest(
            TEXT,
            "     2\t    let total = 1;\n     3\t\tprint(total);\n",
        );
        assert!(hint.contains("line numbers"), "{hint}");
    }
}
