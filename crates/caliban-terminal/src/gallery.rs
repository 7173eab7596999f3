//! Pictures on the screen: sent once where the terminal keeps them, drawn where they belong, and
//! taken away when they do not any more. They lie on cells that are blank; whoever draws over
//! these, or clears them, has to say so.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ratatui_core::layout::Position;

use crate::capabilities::Graphics;
use crate::sixel::sixel;

/// A picture beyond this is not worth the wait.
const IMAGE_LIMIT: usize = 8 * 1024 * 1024;
/// The kitty protocol takes so much of a picture at once.
const IMAGE_CHUNK: usize = 4096;
/// Pictures that the terminal keeps; of more, those that were sent first are let go.
const KEPT: usize = 32;

/// A picture as it is drawn: dots from the top left, four bytes each, and the same as PNG.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raster {
    pub width: u32,
    pub height: u32,
    pub rgba: Vec<u8>,
    pub png: Vec<u8>,
}

/// A picture and where it is seen.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The same for the same picture.
    pub id: u32,
    pub raster: Arc<Raster>,
    /// The first cell of it that is on the screen.
    pub at: Position,
    /// The cells that all of it takes.
    pub columns: u16,
    pub rows: u16,
    /// Which of its rows are on the screen.
    pub seen: Range<u16>,
}

impl Placement {
    fn is_as(&self, other: &Self) -> bool {
        self.id == other.id
            && self.at == other.at
            && (self.columns, self.rows) == (other.columns, other.rows)
            && self.seen == other.seen
    }

    /// The rows of the screen that it is on.
    fn screen_rows(&self) -> Range<u16> {
        let height = self.seen.end.saturating_sub(self.seen.start);
        self.at.y..self.at.y.saturating_add(height)
    }

    /// The dots of it that are seen, as rows of them.
    fn dots(&self) -> Range<u32> {
        let of = |row: u16| self.raster.height * u32::from(row) / u32::from(self.rows.max(1));
        of(self.seen.start)..of(self.seen.end).min(self.raster.height)
    }
}

/// The pictures that are on a screen.
#[derive(Debug)]
pub struct Gallery {
    graphics: Graphics,
    shown: Vec<Placement>,
    /// What the terminal was sent and keeps, the oldest first.
    sent: VecDeque<u32>,
}

impl Gallery {
    pub fn new(graphics: Graphics) -> Self {
        Self {
            graphics,
            shown: Vec::new(),
            sent: VecDeque::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Rows whose cells have to be drawn anew, because a picture on them goes away and would stay
    /// where nothing else is drawn.
    pub fn vacated(&self, next: &[Placement]) -> Vec<Range<u16>> {
        let stays = |shown: &&Placement| !next.iter().any(|next| next.is_as(shown));
        let gone = self.shown.iter().filter(stays);
        gone.map(Placement::screen_rows).collect()
    }

    /// What shows these pictures and no others, to be written behind the frame they belong to.
    pub fn show(&mut self, next: &[Placement]) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.graphics == Graphics::Kitty {
            let is_wanted = |shown: &Placement| next.iter().any(|next| next.id == shown.id);
            for gone in self.shown.iter().filter(|shown| !is_wanted(shown)) {
                let id = gone.id;
                bytes.extend_from_slice(format!("\x1b_Ga=d,d=i,i={id},q=2\x1b\\").as_bytes());
            }
        }
        for placement in next {
            if !self.shown.iter().any(|shown| shown.is_as(placement)) {
                self.draw(placement, &mut bytes);
            }
        }
        self.shown = next.to_vec();
        bytes
    }

    /// The screen was cleared or drawn over: what is seen has to be drawn again.
    pub fn invalidate(&mut self) {
        self.shown.clear();
    }

    /// What takes everything away before the screen is left.
    pub fn leave(&mut self) -> &'static [u8] {
        self.shown.clear();
        let had = !std::mem::take(&mut self.sent).is_empty();
        if had { b"\x1b_Ga=d,d=A,q=2\x1b\\" } else { b"" }
    }

    fn draw(&mut self, placement: &Placement, bytes: &mut Vec<u8>) {
        let raster = &placement.raster;
        if raster.png.len() > IMAGE_LIMIT || raster.png.is_empty() || placement.seen.is_empty() {
            return;
        }
        let Placement {
            id, columns, rows, ..
        } = placement;
        let drawn = match self.graphics {
            Graphics::None => return,
            Graphics::Kitty => {
                self.send(*id, &raster.png, bytes);
                let (dots, width) = (placement.dots(), raster.width);
                let (top, height) = (dots.start, dots.end.saturating_sub(dots.start));
                let seen = placement.seen.end - placement.seen.start;
                // One place for each picture: it moves there from where it was.
                let keys = format!("a=p,i={id},p=1,q=2,C=1,c={columns},r={seen}");
                format!("\x1b_G{keys},y={top},w={width},h={height}\x1b\\").into_bytes()
            }
            // It cannot be told to show a part.
            Graphics::Iterm if placement.seen != (0..*rows) => return,
            Graphics::Iterm => {
                let (size, encoded) = (raster.png.len(), STANDARD.encode(&raster.png));
                let keys = "inline=1;preserveAspectRatio=1;doNotMoveCursor=1";
                format!(
                    "\x1b]1337;File={keys};size={size};width={columns};height={rows}:{encoded}\x07"
                )
                .into_bytes()
            }
            Graphics::Sixel => {
                let line = usize::try_from(raster.width).unwrap_or_default() * 4;
                let of = |dots: u32| usize::try_from(dots).unwrap_or_default() * line;
                let dots = placement.dots();
                let part = raster.rgba.get(of(dots.start)..of(dots.end));
                sixel(part.unwrap_or_default(), raster.width)
            }
        };
        let Position { x, y } = placement.at;
        let place = format!("\x1b7\x1b[{};{}H", u32::from(y) + 1, u32::from(x) + 1);
        bytes.extend_from_slice(place.as_bytes());
        bytes.extend_from_slice(&drawn);
        bytes.extend_from_slice(b"\x1b8");
    }

    /// Sends a picture that the terminal does not have yet.
    fn send(&mut self, id: u32, png: &[u8], bytes: &mut Vec<u8>) {
        if self.sent.contains(&id) {
            return;
        }
        if self.sent.len() >= KEPT
            && let Some(oldest) = self.sent.pop_front()
        {
            bytes.extend_from_slice(format!("\x1b_Ga=d,d=I,i={oldest},q=2\x1b\\").as_bytes());
        }
        self.sent.push_back(id);
        let encoded = STANDARD.encode(png);
        // It is PNG, and no answer is wanted.
        let mut keys = format!("a=t,f=100,i={id},q=2,");
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(IMAGE_CHUNK.min(rest.len()));
            let more = u8::from(!behind.is_empty());
            bytes.extend_from_slice(format!("\x1b_G{keys}m={more};{chunk}\x1b\\").as_bytes());
            "q=2,".clone_into(&mut keys);
            rest = behind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(id: u32, y: u16, seen: Range<u16>) -> Placement {
        let raster = Raster {
            width: 4,
            height: 12,
            rgba: [200, 10, 10, 255].repeat(48),
            png: vec![7; 5_000],
        };
        Placement {
            id,
            raster: Arc::new(raster),
            at: Position { x: 2, y },
            columns: 8,
            rows: 4,
            seen,
        }
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[test]
    fn kitty_is_sent_a_picture_once_and_moves_it() {
        let mut gallery = Gallery::new(Graphics::Kitty);
        let first = text(&gallery.show(&[placement(3, 5, 0..4)]));
        assert!(first.starts_with("\x1b_Ga=t,f=100,i=3,q=2,m=1;"), "{first}");
        assert!(first.contains("\x1b_Gq=2,m=0;"), "{first}");
        let place = "\x1b7\x1b[6;3H\x1b_Ga=p,i=3,p=1,q=2,C=1,c=8,r=4,y=0,w=4,h=12\x1b\\\x1b8";
        assert!(first.ends_with(place), "{first}");
        assert_eq!(gallery.show(&[placement(3, 5, 0..4)]), b"");
        let moved = text(&gallery.show(&[placement(3, 0, 1..4)]));
        let place = "\x1b7\x1b[1;3H\x1b_Ga=p,i=3,p=1,q=2,C=1,c=8,r=3,y=3,w=4,h=9\x1b\\\x1b8";
        assert_eq!(moved, place);
        assert_eq!(text(&gallery.show(&[])), "\x1b_Ga=d,d=i,i=3,q=2\x1b\\");
        assert_eq!(gallery.leave(), b"\x1b_Ga=d,d=A,q=2\x1b\\");
        assert_eq!(gallery.leave(), b"");
    }

    #[test]
    fn a_terminal_keeps_so_many_pictures() {
        let mut gallery = Gallery::new(Graphics::Kitty);
        for id in 0..40 {
            gallery.show(&[placement(id, 0, 0..4)]);
        }
        assert_eq!(gallery.sent.len(), KEPT);
        let again = text(&gallery.show(&[placement(0, 0, 0..4)]));
        assert!(again.contains("a=t,f=100,i=0"), "{again}");
        assert!(again.contains("\x1b_Ga=d,d=I,i=8,q=2\x1b\\"), "{again}");
    }

    #[test]
    fn iterm_shows_whole_pictures_alone() {
        let mut gallery = Gallery::new(Graphics::Iterm);
        let shown = text(&gallery.show(&[placement(1, 2, 0..4)]));
        assert!(shown.contains("1337;File=inline=1"), "{shown}");
        assert!(shown.contains("size=5000;width=8;height=4:"), "{shown}");
        assert_eq!(gallery.vacated(&[]).first(), Some(&(2..6)));
        assert_eq!(gallery.show(&[placement(1, 0, 2..4)]), b"");
        assert_eq!(gallery.leave(), b"");
    }

    #[test]
    fn sixel_shows_the_part_that_is_seen() {
        let mut gallery = Gallery::new(Graphics::Sixel);
        let shown = text(&gallery.show(&[placement(1, 2, 2..4)]));
        let dots = "\x1bP0;1;0q\"1;1;4;6#0;2;80;3;3#0!4~-\x1b\\";
        assert_eq!(shown, format!("\x1b7\x1b[3;3H{dots}\x1b8"));
        assert_eq!(gallery.vacated(&[placement(1, 2, 2..4)]), []);
    }

    #[test]
    fn without_a_protocol_there_is_nothing() {
        let mut gallery = Gallery::new(Graphics::None);
        assert_eq!(gallery.show(&[placement(1, 2, 0..4)]), b"");
    }
}
