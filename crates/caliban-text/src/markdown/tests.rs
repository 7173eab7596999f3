use proptest::prelude::*;
use ratatui_core::style::Modifier;
use rstest::rstest;

use super::*;
use crate::row::RowEnd;
use crate::{copied, sanitise};

fn rows_of(text: &str, width: u16) -> Arc<[Row]> {
    Markdown::whole(text).rows(width, &Palette::dark())
}

fn shown(text: &str, width: u16) -> Vec<String> {
    rows_of(text, width)
        .iter()
        .map(|row| row.text().trim_end().to_owned())
        .collect()
}

#[rstest]
#[case::nothing("", &[])]
#[case::blank("\n\n", &[])]
#[case::paragraphs("one\ntwo\n\nthree", &["one", "two", "", "three"])]
#[case::headings("# A\n\ntext\n## B", &["A", "", "text", "B"])]
#[case::underlined("A\n===\ntext", &["A", "text"])]
#[case::list("- a\n- b\n  more\n\n  para\n- c", &["- a", "- b", "  more", "", "  para", "- c"])]
#[case::nested("1. a\n   - b\n     - c\n2. d", &["1. a", "   - b", "     - c", "2. d"])]
#[case::numbers("1. a\n1. b\n\n1. c", &["1. a", "2. b", "", "3. c"])]
#[case::another_list("1. a\n- b\n7. c", &["1. a", "- b", "7. c"])]
#[case::tasks("- [x] a\n- [ ] b", &["- [x] a", "- [ ] b"])]
#[case::empty_item("-\n- b", &["-", "- b"])]
#[case::quote("> a\n>\n> b", &["▎ a", "▎", "▎ b"])]
#[case::quote_in_quote("> a\n> > b", &["▎ a", "▎", "▎ ▎ b"])]
#[case::list_in_quote("> - a b\n> - c", &["▎ - a b", "▎ - c"])]
#[case::fence("```rust\nlet a;\n\n  b\n```\nafter", &["  rust", "  let a;", "", "    b", "", "after"])]
#[case::fence_without_end("```\na", &["  a"])]
#[case::fence_in_list("- a\n  ```sh\n  ls\n  ```\n- b", &["- a", "    sh", "    ls", "- b"])]
#[case::longer_fence("````\n```\n````", &["  ```"])]
#[case::indented("    a\n      b\n\nc", &["  a", "    b", "", "c"])]
#[case::rule("a\n\n---\n\nb", &["a", "", "────────────────────────────────────────", "", "b"])]
#[case::html("<b>x</b>\n\n<div>\ny\n</div>", &["<b>x</b>", "", "<div>", "y", "</div>"])]
#[case::footnote("a[^1]\n\n[^1]: note", &["a[^1]", "", "[^1]: note"])]
#[case::entities("a &lt;b&gt; &amp;", &["a <b> &"])]
#[case::hostile_entities("a&#27;[31mb&#x202e;c", &["a[31mbc"])]
fn blocks_become_rows(#[case] text: &str, #[case] rows: &[&str]) {
    assert_eq!(shown(text, 40), rows);
}

#[rstest]
#[case("[a](https://x.y)", "a (https://x.y)", &[(0, 15)])]
#[case("<https://x.y>", "https://x.y", &[(0, 11)])]
#[case("see https://x.y/z.", "see https://x.y/z.", &[(4, 17)])]
#[case("[a](javascript:x)", "a (javascript:x)", &[])]
#[case("![pic](file:///p.png)", "pic (file:///p.png)", &[(0, 19)])]
#[case("<a@b.cd>", "a@b.cd", &[(0, 6)])]
#[case("`https://x.y`", "https://x.y", &[])]
fn links_say_where_they_lead(
    #[case] text: &str,
    #[case] row: &str,
    #[case] columns: &[(u16, u16)],
) {
    let rows = rows_of(text, 80);
    assert_eq!(rows[0].text(), row);
    let mut found: Vec<(u16, u16)> = Vec::new();
    for link in &rows[0].links {
        match found.last_mut() {
            Some(last) if last.1 == link.columns.start => last.1 = link.columns.end,
            _ => found.push((link.columns.start, link.columns.end)),
        }
    }
    assert_eq!(found, columns);
}

#[test]
fn a_wrapped_link_is_one_link() {
    let rows = rows_of(
        "go to [the long label](https://example.com/a/b/c) or https://b.c",
        14,
    );
    let ids: Vec<(u32, &str)> = rows
        .iter()
        .flat_map(|row| &row.links)
        .map(|link| (link.id, &*link.target))
        .collect();
    let long: Vec<_> = ids
        .iter()
        .filter(|(_, target)| target.ends_with('c') && target.contains("example"))
        .collect();
    assert!(
        long.len() > 2 && long.iter().all(|(id, _)| *id == long[0].0),
        "{ids:?}"
    );
    assert!(
        ids.iter()
            .any(|(id, target)| *target == "https://b.c" && *id != long[0].0)
    );
}

#[test]
fn styles_are_those_of_the_palette() {
    let palette = Palette::dark();
    let rows = rows_of("**a** *b* ~~c~~ `d` TODO(human): e", 80);
    let style = |text: &str| {
        rows[0]
            .spans
            .iter()
            .find(|span| span.content == text)
            .unwrap()
            .style
    };
    assert!(style("a").has_modifier(Modifier::BOLD));
    assert!(style("b").has_modifier(Modifier::ITALIC));
    assert!(style("c").has_modifier(Modifier::CROSSED_OUT));
    assert_eq!(style("d").fg, palette.code.fg);
    assert_eq!(style("TODO(human)").fg, palette.warning.fg);
}

const TABLE: &str =
    "| name | count | note |\n|:--|--:|:-:|\n| a | 1 | x |\n| long name | 22 | `code` |\n";

#[test]
fn tables_are_aligned() {
    let expected = [
        "name       count  note",
        "──────────────────────",
        "a              1   x",
        "long name     22  code",
    ];
    assert_eq!(shown(TABLE, 40), expected);
    assert_eq!(
        copied(&rows_of(TABLE, 40)).lines().count(),
        3,
        "the line below the header is decoration"
    );
}

#[test]
fn tables_shrink_and_then_become_lists() {
    let text = "| a | b |\n|--|--|\n| one two three four | five six seven eight |\n";
    let rows = shown(text, 24);
    assert!(rows.iter().all(|row| crate::width(row) <= 24), "{rows:?}");
    assert_eq!(rows[0], "a            b");
    assert_eq!(rows[2], "one two      five six");
    assert_eq!(
        shown(text, 10),
        [
            "a: one two",
            "  three",
            "  four",
            "b: five",
            "  six",
            "  seven",
            "  eight"
        ]
    );
}

#[test]
fn code_is_cut_and_not_wrapped() {
    let rows = rows_of("```\naaa bbb ccc\n```", 8);
    assert_eq!(
        rows.iter().map(Row::text).collect::<Vec<_>>(),
        ["  aaa bb", "  b ccc"]
    );
    assert_eq!(rows[0].end, RowEnd::Soft);
    assert_eq!(copied(&rows), "aaa bbb ccc");
}

#[test]
fn long_code_is_laid_out_in_parts_and_keeps_its_colours() {
    let palette = Palette::dark();
    let text = format!("```rust\n/*\n{}*/ let\n```\nafter", "x\n".repeat(500));
    let mut markdown = Markdown::whole(&text);
    assert!(markdown.parts(40, &palette).len() > 5);
    let rows = markdown.rows(40, &palette);
    assert_eq!(rows.len(), 1 + 502 + 2);
    assert!(
        rows[2..500]
            .iter()
            .all(|row| row.spans.last().unwrap().style.fg == palette.comment.fg)
    );
    assert_eq!(rows[502].spans.last().unwrap().style.fg, palette.keyword.fg);
}

#[test]
fn copying_gives_text_back() {
    let text = "- one two three four five\n\n> quoted words that wrap\n\n```sh\nls -l\n```";
    assert_eq!(
        copied(&rows_of(text, 14)),
        "- one two three four five\n\nquoted words that wrap\n\nls -l"
    );
}

#[test]
fn finished_blocks_are_not_laid_out_again() {
    let palette = Palette::dark();
    let mut markdown = Markdown::new();
    markdown.push("one\n\ntwo\n\nthree");
    let before = markdown.parts(40, &palette);
    markdown.push(" more\n\nfour");
    let after = markdown.parts(40, &palette);
    assert!(Arc::ptr_eq(&before[0], &after[0]) && Arc::ptr_eq(&before[1], &after[1]));
    assert!(!Arc::ptr_eq(&before[2], &after[2]));
    let narrow = markdown.parts(20, &palette);
    assert!(!Arc::ptr_eq(&before[0], &narrow[0]));
    assert!(Arc::ptr_eq(
        &markdown.rows(20, &palette),
        &markdown.rows(20, &palette)
    ));
    assert!(!Arc::ptr_eq(
        &markdown.rows(20, &palette),
        &markdown.rows(20, &Palette::light())
    ));
}

/// While a text arrives, rows of lines that are complete stay where they are.
#[rstest]
#[case::code("intro\n\n```rust\nfn a() {}\nlet b;\n```\nafter\n")]
#[case::list_after_text("text\n- a\n- b\n\n1. c\n")]
#[case::table("x\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nend\n")]
#[case::rule("a\n\n---\n\nb\n")]
fn arriving_text_is_calm(#[case] text: &str) {
    let palette = Palette::dark();
    let mut markdown = Markdown::new();
    let mut before: Vec<String> = Vec::new();
    for c in text.chars() {
        markdown.push(c.encode_utf8(&mut [0; 4]));
        let rows: Vec<String> = markdown.rows(40, &palette).iter().map(Row::text).collect();
        // A table is one from its first row on.
        assert!(!rows.iter().any(|row| row.contains('|')), "{rows:?}");
        // All but the last row, which may be growing.
        let settled = before.len().saturating_sub(1);
        assert!(rows.len() >= settled, "{before:?} -> {rows:?}");
        assert_eq!(&rows[..settled], &before[..settled]);
        before = rows;
    }
}

const EVERYTHING: &str = "# Title\nIntro *em* **st** [l](https://a.b)\nsoft\n\n1. a\n1. b\n\n   loose\n2. c\n   - d\n\n> q\nlazy\n\n\
    ```rust\nfn x() { /* \n```\n~~~\nq\n\n| a | b |\n|---|---|\n| 1 | \u{1b}[31m2 |\r\n\nH\n---\n    code\n\n<div>\nx\n</div>\n\n- [ ] t\n\
    * * *\n👩\u{200d}👩 e\u{301}\u{202e}\u{2067}x\nend \u{1b}]0;t\u{7}https://c.d.";

#[test]
fn every_split_gives_the_same() {
    let palette = Palette::dark();
    let whole = rows_of(EVERYTHING, 30);
    for (at, _) in EVERYTHING.char_indices() {
        let mut markdown = Markdown::new();
        markdown.push(&EVERYTHING[..at]);
        let _ = markdown.rows(30, &palette);
        markdown.push(&EVERYTHING[at..]);
        markdown.finish();
        assert_eq!(markdown.rows(30, &palette), whole, "split at {at}");
        assert_eq!(markdown.source(), sanitise(EVERYTHING, Strength::Prose));
    }
}

#[test]
fn long_texts_take_their_share_of_time() {
    let palette = Palette::dark();
    for unit in [
        "word ", "x", "> ", "- a\n", "```\n", "[", "*a ", "| a ", "<", "\n", "    ", "`", "![](",
        "1. ",
    ] {
        let text = unit.repeat(100_000 / unit.len());
        let began = std::time::Instant::now();
        let mut markdown = Markdown::new();
        for chunk in text.as_bytes().chunks(2_000) {
            markdown.push(std::str::from_utf8(chunk).unwrap());
            let _ = markdown.parts(80, &palette);
        }
        markdown.finish();
        let _ = markdown.rows(80, &palette);
        assert!(
            began.elapsed() < std::time::Duration::from_secs(30),
            "{unit:?}: {:?}",
            began.elapsed()
        );
    }
}

fn bits() -> impl Strategy<Value = String> {
    let bits = prop::sample::select(vec![
        "\n",
        "\n\n",
        "- ",
        "* ",
        "1. ",
        "2) ",
        "# ",
        "> ",
        "```",
        "~~~\n",
        "```rs\n",
        "    ",
        "  ",
        "---",
        "===",
        "| ",
        "|-|-|\n",
        "a",
        "word ",
        "**",
        "*",
        "`",
        "[x](https://a.b)",
        "<b>",
        "日本",
        "\t",
        "\r\n",
        "\u{1b}[1m",
        "&#27;",
        "TODO(human)",
        "https://q.r/s",
        "\\",
    ]);
    prop::collection::vec(bits, 0..40).prop_map(|bits| bits.concat())
}

proptest! {
    #[test]
    fn pieces_give_the_same_rows(text in bits(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5), width in 1_u16..50) {
        let palette = Palette::light();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        cuts.push(text.len());
        cuts.sort_unstable();
        let mut markdown = Markdown::new();
        let mut at = 0;
        for cut in cuts {
            markdown.push(&text[at..cut]);
            let _ = markdown.rows(width, &palette);
            at = cut;
        }
        markdown.finish();
        let mut whole = Markdown::whole(&text);
        prop_assert_eq!(markdown.rows(width, &palette), whole.rows(width, &palette));
    }

    #[test]
    fn rows_are_harmless_and_fit(text in bits(), width in 0_u16..60) {
        for row in rows_of(&text, width).iter() {
            prop_assert!(!row.text().chars().any(char::is_control), "{row:?}");
            prop_assert!(row.width() <= usize::from(width.max(2)), "{row:?}");
            prop_assert!(row.links.iter().all(|link| usize::from(link.columns.end) <= row.width()));
        }
    }

    #[test]
    fn any_text_has_rows(text in any::<String>(), width in any::<u16>()) {
        let _ = rows_of(&text, width);
    }
}
