//! HTML to markdown, for pages that may be hostile: parsing and conversion take time, memory and
//! stack that a page can drive up, so what goes in is thinned and bounded first.

use std::rc::Rc;

use htmd::{HtmlToMarkdown, Node};

/// How much of a page is converted, counted without scripts and the like.
const MAX_HTML_BYTES: usize = 2 * 1024 * 1024;

/// How many tags are converted. Parsing costs up to the square of this when nothing is closed,
/// which makes some seconds of the worst page.
const MAX_TAGS: usize = 40_000;

/// How deep elements may stand; what is deeper is moved up. Conversion recurses, and quotes
/// and lists repeat their indentation on every line.
const MAX_DEPTH: usize = 128;

/// Room for [`MAX_DEPTH`] levels of recursion in any build.
const STACK_BYTES: usize = 32 * 1024 * 1024;

/// Elements whose content is not for reading.
const DROPPED: [&str; 10] = [
    "script", "style", "noscript", "svg", "template", "iframe", "noembed", "noframes", "textarea",
    "xmp",
];

/// Elements that a parser opens again in every following block when they are not closed, once
/// for each different set of attributes. Without attributes there is a limit to that.
const FORMATTING: [&str; 13] = [
    "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];

/// A converted page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Markdown {
    pub(super) text: String,
    pub(super) coverage: Coverage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coverage {
    Whole,
    /// The page was too large; its start was converted.
    Beginning,
}

/// Converts a page; `None` if the converter broke on it.
pub(super) async fn markdown(html: String) -> Option<Markdown> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let convert = move || {
        // The receiver is gone when the call was cancelled.
        let _ = sender.send(convert(&html));
    };
    std::thread::Builder::new()
        .name("html".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(convert)
        .ok()?;
    receiver.await.ok().flatten()
}

fn convert(html: &str) -> Option<Markdown> {
    let (html, coverage) = thin(html);
    let converter = HtmlToMarkdown::builder()
        .skip_tags(DROPPED.to_vec())
        .build();
    let tree = converter.html_to_tree(&html).ok()?;
    flatten(&tree);
    Some(Markdown {
        text: converter.tree_to_markdown(&tree),
        coverage,
    })
}

/// The page without comments, without what is not for reading, without the attributes of
/// formatting elements, and cut to the limits.
fn thin(html: &str) -> (String, Coverage) {
    let mut thinned = String::new();
    let mut rest = html;
    let mut tags = 0;
    while let Some(position) = rest.find('<') {
        thinned.push_str(&rest[..position]);
        rest = &rest[position..];
        if tags == MAX_TAGS || thinned.len() > MAX_HTML_BYTES {
            return (shorten(thinned), Coverage::Beginning);
        }
        tags += 1;
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let name = tag_name(rest);
        if DROPPED.contains(&name.as_str()) {
            let tag = &rest[..tag_end(rest)];
            rest = &rest[tag.len()..];
            if !tag.ends_with("/>") {
                rest = after_close(rest, &name);
            }
            tags -= 1;
        } else if FORMATTING.contains(&name.as_str()) {
            thinned.push('<');
            thinned.push_str(&name);
            thinned.push('>');
            rest = &rest[tag_end(rest)..];
        } else {
            let end = tag_end(rest);
            thinned.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    thinned.push_str(rest);
    if thinned.len() > MAX_HTML_BYTES {
        return (shorten(thinned), Coverage::Beginning);
    }
    (thinned, Coverage::Whole)
}

fn shorten(mut html: String) -> String {
    html.truncate(html.floor_char_boundary(MAX_HTML_BYTES));
    html
}

/// The lower-case name of the opening tag at the start; empty for anything else.
fn tag_name(text: &str) -> String {
    text[1..]
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .take(16)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// Where the tag at the start ends: behind its `>`, not counting one in a quoted value, or
/// before the next `<`. At least one byte, so that reading goes on.
fn tag_end(text: &str) -> usize {
    let mut quote = None;
    let mut after_equals = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (None, b'>') => return index + 1,
            (None, b'<') => return index,
            (None, b'"' | b'\'') if after_equals => quote = Some(byte),
            (Some(_) | None, _) => {}
        }
        after_equals = byte == b'=' || (after_equals && byte.is_ascii_whitespace());
    }
    text.len()
}

/// What follows the closing tag of this name; nothing if there is none.
fn after_close<'html>(text: &'html str, name: &str) -> &'html str {
    let mut from = 0;
    while let Some(found) = text[from..].find("</") {
        let start = from + found;
        let named = text.get(start + 2..start + 2 + name.len());
        if named.is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return &text[start + tag_end(&text[start..])..];
        }
        from = start + 2;
    }
    ""
}

/// Moves everything deeper than [`MAX_DEPTH`] up to that depth, in document order.
fn flatten(tree: &Rc<Node>) {
    let mut level = vec![Rc::clone(tree)];
    for _ in 0..MAX_DEPTH {
        level = level
            .iter()
            .flat_map(|node| node.children.borrow().clone())
            .collect();
    }
    for top in level {
        let mut pending = top.children.take();
        pending.reverse();
        let mut flat = Vec::new();
        while let Some(node) = pending.pop() {
            pending.extend(node.children.take().into_iter().rev());
            node.parent.set(Some(Rc::downgrade(&top)));
            flat.push(node);
        }
        top.children.replace(flat);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(html: &str) -> String {
        markdown(html.to_owned()).await.unwrap().text
    }

    #[tokio::test]
    async fn pages_become_markdown() {
        let html = "<!doctype html><html><head><title>T</title><style>p{}</style>\
                    <script>if (a<b && c) {}</script></head><body><!-- no --><h1>One</h1>\
                    <p>Two <b class=x>three</b> <a href=\"/four\">five</a>.</p><svg><path/></svg>\
                    <ul><li>six<li>seven</ul><pre><code>let x = 1 &lt; 2;</code></pre>\
                    <noscript>eight</noscript><textarea>nine</textarea></body></html>";
        let text = text(html).await;
        assert!(text.contains("# One"), "{text}");
        assert!(text.contains("Two **three** [five](/four)."), "{text}");
        assert!(text.contains("six\n"), "{text}");
        assert!(text.contains("let x = 1 < 2;"), "{text}");
        for absent in ["p{}", "a<b", "eight", "nine", "<!--", "no -->"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
    }

    #[test]
    fn thinning_keeps_what_is_to_be_read() {
        for (html, expected) in [
            ("a<SCRIPT>x</Script >b", "ab"),
            ("a<script>never closed", "a"),
            ("a<svg/>b<svg><g/></svg>c", "abc"),
            ("<B id='>' x>t</B>", "<b>t</B>"),
            ("<a title=\"<b x>\">t</a>", "<a title=\"<b x>\">t</a>"),
            ("<p don't>it's", "<p don't>it's"),
            ("1 < 2 <b", "1 < 2 <b>"),
            ("<i x<p>", "<i><p>"),
            ("<!-- <p> -->x<!-- y", "x"),
            ("<", "<"),
        ] {
            assert_eq!(thin(html), (expected.to_owned(), Coverage::Whole), "{html}");
        }
    }

    #[tokio::test]
    async fn no_nesting_overflows_the_stack() {
        for tag in ["<div>", "<b>", "<span>", "<blockquote>", "<table><td>"] {
            let html = format!("{}core", tag.repeat(5000));
            let converted = markdown(html).await.unwrap();
            assert!(converted.text.contains("core"), "{tag}");
        }
    }

    #[tokio::test]
    async fn unclosed_formatting_does_not_multiply() {
        let unclosed: Vec<String> = (0..2000).map(|n| format!("<font a={n}>")).collect();
        let html = unclosed.concat() + &"<p>x".repeat(2000);
        let converted = markdown(html).await.unwrap();
        assert_eq!(converted.text.matches('x').count(), 2000);
    }

    #[tokio::test]
    async fn large_pages_are_cut() {
        let converted = markdown("<p>x</p>".repeat(MAX_TAGS)).await.unwrap();
        assert_eq!(converted.coverage, Coverage::Beginning);
        assert_eq!(converted.text.matches('x').count(), MAX_TAGS / 2);
        let converted = markdown("é".repeat(MAX_HTML_BYTES)).await.unwrap();
        assert_eq!(converted.coverage, Coverage::Beginning);
        assert_eq!(converted.text.len(), MAX_HTML_BYTES);
    }

    proptest::proptest! {
        #[test]
        fn thinning_survives_anything(html in "([<>/!='\" -]|script|svg|b|\\PC){0,60}") {
            let (thinned, _) = thin(&html);
            proptest::prop_assert!(thinned.len() <= html.len() + html.matches('<').count());
        }
    }
}
