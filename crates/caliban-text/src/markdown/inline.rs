//! Text within a block: styles, links, marks.

use std::sync::Arc;

use ratatui_core::style::Style;

use crate::palette::Palette;
use crate::sanitise::{Strength, sanitise};
use crate::wrap::{Link, Piece};

/// What asks a human to do something.
const HUMAN: &str = "TODO(human)";
/// Bytes that an address may have to lead anywhere.
const ADDRESS: usize = 2_048;

/// Lines of styled text that are being written.
#[derive(Debug)]
pub(super) struct Inline<'a> {
    palette: &'a Palette,
    lines: Vec<Vec<Piece>>,
    /// The styles that are on, each with those below it.
    styles: Vec<Style>,
    link: Option<Open>,
}

/// A link whose label is being written.
#[derive(Debug)]
struct Open {
    address: String,
    link: Option<Link>,
    label: String,
}

impl<'a> Inline<'a> {
    pub(super) fn new(palette: &'a Palette) -> Self {
        Self {
            palette,
            lines: vec![Vec::new()],
            styles: vec![palette.text],
            link: None,
        }
    }

    /// Whether nothing was written.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(Vec::is_empty)
    }

    /// What was written, line by line.
    pub(super) fn take(&mut self) -> Vec<Vec<Piece>> {
        std::mem::replace(&mut self.lines, vec![Vec::new()])
    }

    pub(super) fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(self.palette.text)
    }

    pub(super) fn enter(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    pub(super) fn leave(&mut self) {
        if self.styles.len() > 1 {
            self.styles.pop();
        }
    }

    pub(super) fn break_line(&mut self) {
        self.lines.push(Vec::new());
    }

    /// Text in the style that is on. References to characters may have brought in anything.
    pub(super) fn text(&mut self, text: &str, id: u32) {
        let text = sanitise(text, Strength::Prose).replace('\n', " ");
        if let Some(open) = &mut self.link {
            open.label.push_str(&text);
            self.put(&text, self.style());
            return;
        }
        let mut left = text.as_str();
        while let Some((at, found)) = special(left) {
            let (before, rest) = left.split_at(at);
            self.put(before, self.style());
            let (now, after) = rest.split_at(found.length());
            match found {
                Found::Human => self.put(now, self.style().patch(self.palette.warning)),
                Found::Address(_) => {
                    let from_end = u32::try_from(rest.len()).unwrap_or(u32::MAX);
                    let link = link_to(now, id.wrapping_add(from_end));
                    let style = self.style().patch(self.palette.link);
                    self.push(Piece {
                        text: now.to_owned(),
                        style,
                        link,
                    });
                }
            }
            left = after;
        }
        self.put(left, self.style());
    }

    /// Text in a style of its own.
    pub(super) fn styled(&mut self, text: &str, style: Style) {
        let text = sanitise(text, Strength::Prose).replace('\n', " ");
        if let Some(open) = &mut self.link {
            open.label.push_str(&text);
        }
        self.put(&text, self.style().patch(style));
    }

    fn put(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        let link = self.link.as_ref().and_then(|open| open.link.clone());
        self.push(Piece {
            text: text.to_owned(),
            style,
            link,
        });
    }

    fn push(&mut self, piece: Piece) {
        let Some(line) = self.lines.last_mut() else {
            self.lines.push(vec![piece]);
            return;
        };
        match line.last_mut() {
            Some(last) if last.style == piece.style && last.link == piece.link => {
                last.text.push_str(&piece.text);
            }
            Some(_) | None => line.push(piece),
        }
    }

    pub(super) fn open_link(&mut self, address: &str, id: u32) {
        let address = sanitise(address, Strength::Name).replace(['\n', '\t'], " ");
        self.link = Some(Open {
            link: link_to(&address, id),
            address,
            label: String::new(),
        });
        self.enter(self.palette.link);
    }

    /// Ends a link: where its label is not its address, that is said too.
    pub(super) fn close_link(&mut self) {
        self.leave();
        let Some(open) = &self.link else {
            return;
        };
        let said =
            open.label == open.address || open.address.strip_prefix("mailto:") == Some(&open.label);
        if !said && !open.address.is_empty() {
            let blank = if open.label.is_empty() { "" } else { " " };
            let text = format!("{blank}({})", open.address);
            self.put(&text, self.style().patch(self.palette.dim));
        }
        self.link = None;
    }
}

/// A link, if it leads where links may lead.
fn link_to(address: &str, id: u32) -> Option<Link> {
    let allowed = ["http://", "https://", "mailto:", "file://"];
    let fits = |scheme: &str| {
        address
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let plain =
        address.len() <= ADDRESS && !address.chars().any(|c| c.is_whitespace() || c.is_control());
    (plain && allowed.into_iter().any(fits)).then(|| Link {
        target: Arc::from(address),
        id,
    })
}

enum Found {
    Human,
    Address(usize),
}

impl Found {
    fn length(&self) -> usize {
        match self {
            Self::Human => HUMAN.len(),
            Self::Address(length) => *length,
        }
    }
}

/// The first thing in a text that is more than text.
fn special(text: &str) -> Option<(usize, Found)> {
    // One pass over the places where either could begin.
    text.match_indices(['T', 'h']).find_map(|(at, _)| {
        let rest = &text[at..];
        if rest.starts_with(HUMAN) {
            return Some((at, Found::Human));
        }
        let scheme = ["https://", "http://"]
            .into_iter()
            .find(|scheme| rest.starts_with(scheme))?;
        let alone = !text[..at].ends_with(|c: char| c.is_alphanumeric());
        let length = address_length(rest);
        (alone && length > scheme.len()).then_some((at, Found::Address(length)))
    })
}

/// How much of a text that begins with an address is part of it: not the point at the end of the
/// sentence, nor a bracket that was opened before.
fn address_length(text: &str) -> usize {
    let is_end = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '<' | '>' | '"' | '`' | '«' | '»' | '“' | '”')
    };
    let mut address = &text[..text.find(is_end).unwrap_or(text.len()).min(text.len())];
    loop {
        let shorter = address.trim_end_matches(['.', ',', ':', ';', '!', '?', '\'', '*', '_']);
        let shorter = match shorter.strip_suffix(')') {
            Some(bare) if !bare.contains('(') => bare,
            Some(_) | None => shorter,
        };
        if shorter.len() == address.len() {
            return address.len();
        }
        address = shorter;
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://a.b/c. Then", 13)]
    #[case("https://a.b/(x))", 16)]
    #[case("https://a.b)", 11)]
    #[case("https://a.b).", 11)]
    #[case("https://a.b/日本 x", 18)]
    fn addresses_end(#[case] text: &str, #[case] length: usize) {
        assert_eq!(address_length(text), length);
    }

    #[rstest]
    #[case("https://a", true)]
    #[case("HTTP://a", true)]
    #[case("mailto:a@b", true)]
    #[case("file:///a", true)]
    #[case("javascript:alert(1)", false)]
    #[case("data:text/html,x", false)]
    #[case("https://a\u{7}b", false)]
    #[case("a/b.rs", false)]
    fn links_lead_to_some_places_only(#[case] address: &str, #[case] leads: bool) {
        assert_eq!(link_to(address, 0).is_some(), leads);
    }
}
