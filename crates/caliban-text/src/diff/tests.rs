use proptest::prelude::*;
use ratatui_core::style::Color;
use rstest::rstest;

use super::*;
use crate::copied;

fn texts(rows: &[Row]) -> Vec<String> {
    rows.iter()
        .map(|row| row.text().trim_end().to_owned())
        .collect()
}

fn numbered(count: usize) -> String {
    let lines: Vec<String> = (1..=count)
        .map(|number| {
            format!(
                "line {number}
"
            )
        })
        .collect();
    lines.concat()
}

#[test]
fn changes_stand_between_what_is_around_them() {
    let old = numbered(12);
    let new = old.replace("line 6\n", "line six\n");
    let rows = diff_rows(&old, &new, "a.txt", 40, &Palette::dark(), 2);
    let expected = [
        "  ⋯ 3 unchanged lines",
        "4  line 4",
        "5  line 5",
        "6 -line 6",
        "6 +line six",
        "7  line 7",
        "8  line 8",
        "  ⋯ 4 unchanged lines",
    ];
    assert_eq!(texts(&rows), expected);
    assert!(copied(&rows).starts_with(" line 4\n line 5\n-line 6\n+line six\n"));
}

#[test]
fn changed_words_are_marked_and_code_is_coloured() {
    let palette = Palette::dark();
    let rows = diff_rows("let a = 1;\n", "let a = 2;\n", "x.rs", 40, &palette, 3);
    let added = &rows[1];
    let one = |text: &str| {
        added
            .spans
            .iter()
            .find(|span| span.content == text)
            .unwrap()
            .style
    };
    assert_eq!(one("2").bg, palette.added_mark.bg);
    assert_eq!(one("let").bg, palette.added.bg);
    assert_eq!(one("let").fg, palette.keyword.fg);
    assert_eq!(added.width(), 40, "the colour goes on to the edge");
    let plain = diff_rows("a\n", "b\n", "x", 40, &Palette::colourless(), 3);
    assert!(
        plain
            .iter()
            .flat_map(|row| &row.spans)
            .all(|span| span.style.bg.is_none_or(|bg| bg == Color::Reset))
    );
}

#[test]
fn what_is_open_above_a_hunk_is_known() {
    let old = format!("/*\n{}*/\nend\n", numbered(20));
    let new = old.replace("line 19\n", "line x\n");
    let palette = Palette::dark();
    let rows = diff_rows(&old, &new, "a.rs", 60, &palette, 1);
    let added = rows
        .iter()
        .find(|row| row.text().contains("line x"))
        .unwrap();
    assert!(
        added
            .spans
            .iter()
            .any(|span| span.style.fg == palette.comment.fg && span.content.contains("line"))
    );
}

#[test]
fn long_lines_hang() {
    let new = format!("{}\n", "x".repeat(60));
    let rows = diff_rows("", &new, "a", 30, &Palette::light(), 3);
    assert_eq!(texts(&rows)[0], format!("1 +{}", "x".repeat(27)));
    assert_eq!(texts(&rows)[1], format!("   {}", "x".repeat(27)));
    assert_eq!(copied(&rows), format!("+{}", "x".repeat(60)));
}

#[rstest]
#[case("", "", (0, 0))]
#[case("a\n", "a\n", (0, 0))]
#[case("a\nb\n", "a\nc\nd\n", (2, 1))]
#[case("a", "a\n", (1, 1))]
fn lines_are_counted(#[case] old: &str, #[case] new: &str, #[case] counted: (usize, usize)) {
    assert_eq!(diff_counts(old, new), counted);
    let view = DiffView::between(old, new, "", 3);
    assert_eq!((view.added, view.removed), counted);
}

#[test]
fn a_missing_newline_is_said() {
    let rows = diff_rows("a\n", "a", "x", 40, &Palette::dark(), 3);
    assert_eq!(texts(&rows), ["1 -a", "1 +a", "  \\ no newline at the end"]);
}

#[test]
fn what_is_too_much_is_counted() {
    let rows = diff_rows(&numbered(6_000), "", "x", 60, &Palette::dark(), 3);
    assert_eq!(texts(&rows), ["+0 −6000 lines, too many to show"]);
    let (old, new) = (numbered(30_000), numbered(30_000).replace("line", "row"));
    assert_eq!(diff_counts(&old, &new), (30_000, 30_000));
    assert_eq!(
        DiffView::between(&old, &new, "x.rs", 3).detail,
        Detail::Counts
    );
}

#[test]
fn nothing_in_a_difference_is_hidden() {
    let rows = diff_rows(
        "",
        "a\u{202e}b\x1b[31mc\r\nd\n",
        "x",
        60,
        &Palette::dark(),
        3,
    );
    assert_eq!(texts(&rows), ["1 +a⟨RLO⟩b␛[31mc␍", "2 +d"]);
    let rows = diff_rows("a\r\n", "a\r\nb\r\n", "x", 60, &Palette::dark(), 3);
    assert_eq!(texts(&rows), ["1  a", "2 +b"]);
}

const PATCH: &str = "diff --git a/x.rs b/x.rs\nindex 1..2 100644\n--- a/x.rs\n+++ b/x.rs\n@@ -3,4 +3,3 @@ fn main() {\n a\n-let b = 1;\n+let b = 2;\n c\n--- d\n\\ No newline at end of file\n";

#[test]
fn patches_look_the_same() {
    let palette = Palette::dark();
    let rows = unified_rows(PATCH, "src/x.rs", 40, &palette);
    let expected = [
        "  ⋯ 2 unchanged lines",
        "  fn main() {",
        "3  a",
        "4 -let b = 1;",
        "4 +let b = 2;",
        "5  c",
        "6 --- d",
        "  \\ no newline at the end",
    ];
    assert_eq!(texts(&rows), expected);
    let two = rows[4]
        .spans
        .iter()
        .find(|span| span.content == "2")
        .unwrap();
    assert_eq!(two.style.bg, palette.added_mark.bg);
}

#[test]
fn patches_of_several_files_name_them() {
    let patch = format!("{PATCH}{}", PATCH.replace("x.rs", "y.py"));
    let view = DiffView::of_patch(&patch, "src/x.rs");
    assert_eq!(view.hunks[0].heading.as_deref(), Some("fn main() {"));
    assert_eq!(view.hunks[1].heading.as_deref(), Some("y.py: fn main() {"));
    assert_eq!((view.added, view.removed), (2, 4));
}

/// Puts the rows of a difference with everything shown back onto the old text.
fn applied(rows: &[Row]) -> String {
    let lines = copied(rows);
    let kept = lines.split('\n').filter(|line| !line.starts_with('-'));
    let bare: Vec<String> = kept
        .map(|line| {
            format!(
                "{}
",
                line.get(1..).unwrap_or_default()
            )
        })
        .collect();
    bare.concat()
}

proptest! {
    #[test]
    fn rows_lead_from_old_to_new(
        old in "([a-d]{0,3}( [a-d]{1,2})?\n){0,30}",
        new in "([a-d]{0,3}( [a-d]{1,2})?\n){0,30}",
        width in 8_u16..60,
    ) {
        prop_assume!(old != new);
        let rows = diff_rows(&old, &new, "a.rs", width, &Palette::dark(), 1_000);
        prop_assert_eq!(applied(&rows), new.clone());
        let patch = similar::TextDiff::from_lines(&old, &new).unified_diff().context_radius(1_000).to_string();
        let rows = unified_rows(&patch, "a.rs", width, &Palette::dark());
        prop_assert_eq!(applied(&rows), new);
    }

    #[test]
    fn no_patch_breaks_it(
        patch in "(@@ -[0-9]{1,20},[0-9]{1,3} \\+[0-9]{1,2}(,[0-9])? @@[a ]?\n|[-+ \\\\]?[a-zé]{0,3}\n|\\+\\+\\+ b/[a-z]\n){0,20}",
        width in 0_u16..40,
    ) {
        for row in unified_rows(&patch, "a.py", width, &Palette::light()) {
            prop_assert!(row.width() <= usize::from(width.max(2)), "{row:?}");
        }
    }

    #[test]
    fn any_two_texts_can_be_compared(old in any::<String>(), new in any::<String>(), context in any::<usize>()) {
        let _ = diff_rows(&old, &new, "a.rs", 30, &Palette::light(), context);
    }
}

#[test]
fn both_sides_stand_beside_each_other() {
    let old = "one\ntwo\nthree\nfour\n";
    let new = "one\nzwei\nand more\nthree\n";
    let rows = DiffView::between(old, new, "a.txt", 1).split_rows(60, &Palette::dark());
    let expected = [
        "1  one                         1  one",
        "2 -two                         2 +zwei",
        "                               3 +and more",
        "3  three                       4  three",
        "4 -four",
    ];
    let seen = texts(&rows);
    assert_eq!(seen, expected);
}

proptest! {
    /// Every line of both texts is there, on its side, however it is wrapped.
    #[test]
    fn nothing_is_lost_beside_each_other(
        old in prop::collection::vec("[a-z ]{0,30}", 0..12),
        new in prop::collection::vec("[a-z ]{0,30}", 0..12),
        width in 30_u16..200,
    ) {
        let text = |lines: &[String]| lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>();
        let view = DiffView::between(&text(&old), &text(&new), "a.txt", 100);
        let rows = view.split_rows(width, &Palette::dark());
        prop_assert!(rows.iter().all(|row| row.width() <= usize::from(width)));
        let half = usize::from((width - 2) / 2);
        let side = |from: usize, to: usize| -> String {
            let cells = rows.iter().map(|row| {
                let text: Vec<char> = row.text().chars().collect();
                let end = to.min(text.len());
                text.get(from..end).unwrap_or_default().iter().collect::<String>()
            });
            cells.collect::<String>().chars().filter(char::is_ascii_lowercase).collect()
        };
        let letters = |lines: &[String]| -> String {
            lines.concat().chars().filter(char::is_ascii_lowercase).collect()
        };
        if old != new {
            prop_assert_eq!(side(0, half), letters(&old));
            prop_assert_eq!(side(half + 2, usize::MAX), letters(&new));
        }
    }
}
