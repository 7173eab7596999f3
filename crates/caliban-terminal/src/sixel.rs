//! Dots as sixels: a palette of the colours that matter most, and rows of six.

use std::fmt::Write as _;

/// Colours of one picture. Terminals have at least so many registers.
const COLOURS: usize = 128;
/// Dots of which more than half shines through are not drawn.
const OPAQUE: u8 = 128;
/// Rows of dots that are written at once.
const BAND: usize = 6;
/// Colours are told apart by the first five bits of each part.
const SHADES: usize = 1 << 15;
/// Runs that are shorter are written out.
const RUN: usize = 4;

/// The sequence that draws dots, four bytes each, `width` of them on a row.
pub(crate) fn sixel(rgba: &[u8], width: u32) -> Vec<u8> {
    let columns = usize::try_from(width).unwrap_or(0).max(1);
    let shades: Vec<Option<u16>> = rgba.chunks_exact(4).map(shade).collect();
    let palette = Palette::of(&shades);
    let height = shades.len() / columns;
    let mut out = format!("\x1bP0;1;0q\"1;1;{width};{height}");
    for (place, colour) in palette.colours.iter().enumerate() {
        let [red, green, blue] = colour.map(|part| u32::from(part) * 100 / 255);
        let _ = write!(out, "#{place};2;{red};{green};{blue}");
    }
    for band in shades.chunks(columns * BAND) {
        write_band(band, columns, &palette, &mut out);
    }
    out.push_str("\x1b\\");
    out.into_bytes()
}

fn shade(dot: &[u8]) -> Option<u16> {
    let [red, green, blue, alpha] = dot else {
        return None;
    };
    let five = |part: &u8| u16::from(part >> 3);
    (*alpha >= OPAQUE).then(|| five(red) << 10 | five(green) << 5 | five(blue))
}

/// The parts of a shade, each of eight bits.
fn parts(shade: u16) -> [u8; 3] {
    [shade >> 10, shade >> 5, shade].map(|part| {
        let five = u8::try_from(part & 31).unwrap_or_default();
        five << 3 | five >> 2
    })
}

/// The colours of a picture, and which of them stands for each shade.
struct Palette {
    colours: Vec<[u8; 3]>,
    of_shade: Vec<u8>,
}

impl Palette {
    /// Cuts the shades in two where most of them differ most, until there are enough colours.
    fn of(shades: &[Option<u16>]) -> Self {
        let mut counts = vec![0_u32; SHADES];
        for shade in shades.iter().flatten() {
            if let Some(count) = counts.get_mut(usize::from(*shade)) {
                *count += 1;
            }
        }
        let used = (0_u16..).zip(&counts).filter(|(_, count)| **count > 0);
        let used: Vec<(u16, u32)> = used.map(|(shade, count)| (shade, *count)).collect();
        let mut groups = vec![used];
        while groups.len() < COLOURS {
            let widest = (0..groups.len()).max_by_key(|place| weight(&groups[*place]));
            let Some(widest) = widest.filter(|place| weight(&groups[*place]) > 0) else {
                break;
            };
            let (one, other) = halves(groups.swap_remove(widest));
            groups.extend([one, other]);
        }
        groups.retain(|group| !group.is_empty());
        let mut of_shade = vec![0; SHADES];
        for (colour, group) in (0_u8..).zip(&groups) {
            for (shade, _) in group {
                of_shade[usize::from(*shade)] = colour;
            }
        }
        Self {
            colours: groups.iter().map(|group| mean(group)).collect(),
            of_shade,
        }
    }
}

/// How far the shades of a group are apart in each part.
fn spread(group: &[(u16, u32)]) -> [u8; 3] {
    let ends = group
        .iter()
        .fold(([255; 3], [0; 3]), |(low, high), (shade, _)| {
            let dot = parts(*shade);
            let low: [u8; 3] = std::array::from_fn(|part| dot[part].min(low[part]));
            let high: [u8; 3] = std::array::from_fn(|part| dot[part].max(high[part]));
            (low, high)
        });
    std::array::from_fn(|part| ends.1[part].saturating_sub(ends.0[part]))
}

/// How much there is to gain by cutting a group.
fn weight(group: &[(u16, u32)]) -> u64 {
    let dots: u64 = group.iter().map(|(_, count)| u64::from(*count)).sum();
    let widest = spread(group).into_iter().max().unwrap_or_default();
    dots * u64::from(widest)
}

type Group = Vec<(u16, u32)>;

/// A group of at least two shades as two, with about as many dots each.
fn halves(mut group: Group) -> (Group, Group) {
    let spread = spread(&group);
    let part = (0..3).max_by_key(|part| spread[*part]).unwrap_or_default();
    group.sort_by_key(|(shade, _)| parts(*shade)[part]);
    let dots: u64 = group.iter().map(|(_, count)| u64::from(*count)).sum();
    let mut before = 0;
    let middle = group.iter().position(|(_, count)| {
        before += u64::from(*count);
        before * 2 >= dots
    });
    let cut = middle.unwrap_or_default() + 1;
    let other = group.split_off(cut.min(group.len() - 1));
    (group, other)
}

fn mean(group: &[(u16, u32)]) -> [u8; 3] {
    let dots: u64 = group.iter().map(|(_, count)| u64::from(*count)).sum();
    std::array::from_fn(|part| {
        let sum: u64 = group
            .iter()
            .map(|(shade, count)| u64::from(parts(*shade)[part]) * u64::from(*count))
            .sum();
        u8::try_from(sum / dots.max(1)).unwrap_or(u8::MAX)
    })
}

/// Up to six rows of dots, colour by colour.
fn write_band(band: &[Option<u16>], columns: usize, palette: &Palette, out: &mut String) {
    let colour = |shade: u16| palette.of_shade[usize::from(shade)];
    let mut bits = vec![Vec::new(); palette.colours.len()];
    for (row, dots) in band.chunks(columns).enumerate() {
        for (column, shade) in dots.iter().enumerate() {
            if let Some(shade) = shade {
                let bits: &mut Vec<u8> = &mut bits[usize::from(colour(*shade))];
                bits.resize(columns, 0);
                bits[column] |= 1 << row;
            }
        }
    }
    let used = bits.iter().enumerate().filter(|(_, bits)| !bits.is_empty());
    for (place, (colour, bits)) in used.enumerate() {
        if place > 0 {
            out.push('$');
        }
        let _ = write!(out, "#{colour}");
        for run in bits.chunk_by(|one, other| one == other) {
            let sign = char::from(b'?' + run[0]);
            if run.len() < RUN {
                out.extend(std::iter::repeat_n(sign, run.len()));
            } else {
                let _ = write!(out, "!{}{sign}", run.len());
            }
        }
    }
    out.push('-');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The dots that a sequence draws, read back.
    fn drawn(bytes: &[u8], width: usize, height: usize) -> Vec<Option<usize>> {
        let text = str::from_utf8(bytes).unwrap();
        let body = text.strip_prefix("\x1bP0;1;0q").unwrap();
        let body = body.strip_suffix("\x1b\\").unwrap();
        let mut dots = vec![None; width * height];
        let (mut x, mut band, mut colour, mut count) = (0, 0, 0, 1);
        let mut signs = body.chars().peekable();
        let number = |signs: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let mut value = 0;
            while let Some(digit) = signs.peek().and_then(|sign| sign.to_digit(10)) {
                value = value * 10 + digit as usize;
                signs.next();
            }
            value
        };
        while let Some(sign) = signs.next() {
            match sign {
                '"' | ';' => {
                    number(&mut signs);
                }
                '#' => colour = number(&mut signs),
                '!' => count = number(&mut signs),
                '$' => x = 0,
                '-' => (x, band) = (0, band + 1),
                '?'..='~' => {
                    let bits = sign as u8 - b'?';
                    for _ in 0..std::mem::replace(&mut count, 1) {
                        for row in (0..6).filter(|row| bits >> row & 1 == 1) {
                            dots[(band * 6 + row) * width + x] = Some(colour);
                        }
                        x += 1;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        dots
    }

    proptest! {
        /// Every dot is drawn once where it is, those that are alike alike, and no other.
        #[test]
        fn what_is_drawn_is_what_was_given(
            width in 1_usize..12,
            dots in prop::collection::vec((0_u8..4, any::<bool>()), 1..120),
        ) {
            let height = dots.len() / width;
            let dots = &dots[..height * width];
            let rgba: Vec<u8> = dots
                .iter()
                .flat_map(|(tone, is_seen)| [tone * 80, 255 - tone * 80, 7, u8::from(*is_seen) * 255])
                .collect();
            let bytes = sixel(&rgba, u32::try_from(width).unwrap());
            let seen = drawn(&bytes, width, height);
            for ((tone, is_seen), colour) in dots.iter().zip(&seen) {
                prop_assert_eq!(*is_seen, colour.is_some());
                for ((other, other_seen), other_colour) in dots.iter().zip(&seen) {
                    if *is_seen && *other_seen {
                        prop_assert_eq!(tone == other, colour == other_colour);
                    }
                }
            }
        }
    }

    #[test]
    fn colours_are_bounded() {
        let rgba: Vec<u8> = (0..64_u8)
            .flat_map(|x| (0..64_u8).map(move |y| [x * 4, y * 4, x.wrapping_mul(y), 255]))
            .flatten()
            .collect();
        let text = String::from_utf8(sixel(&rgba, 64)).unwrap();
        let is_colour = |part: &&str| part.split(';').count() == 5;
        assert_eq!(text.split('#').filter(is_colour).count(), COLOURS);
    }
}
