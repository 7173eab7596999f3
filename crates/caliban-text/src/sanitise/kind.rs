//! What a character can do to those around it.

use std::fmt::Write as _;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something to see that stands for itself.
    Visible,
    Break,
    Tab,
    /// C0, DEL and C1, without newline and tab.
    Control,
    /// Embeds or overrides the direction of text.
    Override,
    /// Opens an isolate.
    Isolate,
    /// Closes an isolate.
    Closing,
    /// Joins emoji.
    Joiner,
    /// A variation selector.
    Selector,
    /// A tag character: part of some flags, invisible elsewhere.
    Tag,
    /// The tone of an emoji's skin.
    Tone,
    /// Stands on what is before it.
    Mark,
    /// Takes no room and has no looks.
    Invisible,
}

#[rustfmt::skip]
#[expect(clippy::match_same_arms, reason = "the order is that of how often they are met")]
pub(crate) fn kind(c: char) -> Kind {
    match c {
        '\n' | '\u{2028}' | '\u{2029}' => Kind::Break,
        '\t' => Kind::Tab,
        ' '..='~' => Kind::Visible,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Kind::Control,
        '\u{ad}' => Kind::Invisible,
        '\u{a0}'..='\u{2ff}' => Kind::Visible,
        '\u{202a}'..='\u{202e}' => Kind::Override,
        '\u{2066}'..='\u{2068}' => Kind::Isolate,
        '\u{2069}' => Kind::Closing,
        '\u{200d}' => Kind::Joiner,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => Kind::Selector,
        '\u{e0020}'..='\u{e007f}' => Kind::Tag,
        '\u{1f3fb}'..='\u{1f3ff}' => Kind::Tone,
        '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200c}' | '\u{200e}' | '\u{200f}'
        | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => Kind::Invisible,
        // Most of what is not Latin is here; nothing of it combines.
        '\u{370}'..='\u{482}' | '\u{2010}'..='\u{2027}' | '\u{2190}'..='\u{2bff}'
        | '\u{3041}'..='\u{3096}' | '\u{309b}'..='\u{a66e}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{1f300}'..='\u{1f3fa}' | '\u{1f400}'..='\u{1faff}'
        | '\u{20000}'..='\u{3ffff}' => Kind::Visible,
        _ if combines(c) => Kind::Mark,
        _ => Kind::Visible,
    }
}

/// Whether a character becomes one with what stands before it.
fn combines(c: char) -> bool {
    if c.width() == Some(0) {
        return true;
    }
    let mut pair = [b'a', 0, 0, 0, 0];
    let length = c.encode_utf8(&mut pair[1..]).len();
    std::str::from_utf8(&pair[..=length]).is_ok_and(|pair| pair.graphemes(true).nth(1).is_none())
}

/// Whether a character is one of those that selectors and joiners are for.
#[rustfmt::skip]
pub(crate) fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2194}'..='\u{21aa}' | '\u{231a}'..='\u{23ff}' | '\u{24c2}'
        | '\u{25aa}'..='\u{25fe}' | '\u{2600}'..='\u{27bf}' | '\u{2934}' | '\u{2935}'
        | '\u{2b05}'..='\u{2b55}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

/// The name of a character that cannot be seen.
pub(crate) fn named(c: char, out: &mut String) {
    let name = match c {
        '\u{ad}' => "SHY",
        '\u{61c}' => "ALM",
        '\u{200b}' => "ZWSP",
        '\u{200c}' => "ZWNJ",
        '\u{200d}' => "ZWJ",
        '\u{200e}' => "LRM",
        '\u{200f}' => "RLM",
        '\u{2028}' => "LS",
        '\u{2029}' => "PS",
        '\u{202a}' => "LRE",
        '\u{202b}' => "RLE",
        '\u{202c}' => "PDF",
        '\u{202d}' => "LRO",
        '\u{202e}' => "RLO",
        '\u{2060}' => "WJ",
        '\u{2066}' => "LRI",
        '\u{2067}' => "RLI",
        '\u{2068}' => "FSI",
        '\u{2069}' => "PDI",
        '\u{feff}' => "BOM",
        _ => {
            // Writing to a string does not fail.
            let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
            return;
        }
    };
    out.push('⟨');
    out.push_str(name);
    out.push('⟩');
}
