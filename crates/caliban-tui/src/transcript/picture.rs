//! An image of the conversation: what it is in words, and drawn where the terminal can.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use caliban_model::{Block, Image, Message, ToolContent};
use caliban_terminal::Raster;
use caliban_text::{Row, Strength, sanitise};

use crate::transcript::cell::Lay;

/// The most cells that one takes.
const COLUMNS: u16 = 60;
const ROWS: u16 = 16;
/// Columns to the left of it.
pub(crate) const INDENT: u16 = 2;

/// An image, by the message that carries it.
#[derive(Debug)]
pub(crate) struct Picture {
    /// Its number in this process.
    pub(crate) id: u32,
    message: Arc<Message>,
    block: usize,
    /// Which part of a result it is; nothing where the block itself is the image.
    part: Option<usize>,
    /// The name of the file, where one is known.
    name: Option<Arc<str>>,
    drawn: RefCell<Drawn>,
}

/// How far the drawing of it is.
#[derive(Debug, Clone, Default)]
enum Drawn {
    #[default]
    Not,
    Asked,
    For((u16, u16), Arc<Raster>),
    /// It stays words.
    Never,
}

/// The number of the next picture: terminals know pictures by numbers.
static NEXT: AtomicU32 = AtomicU32::new(1);

impl Picture {
    pub(crate) fn new(message: &Arc<Message>, block: usize, part: Option<usize>) -> Self {
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            message: Arc::clone(message),
            block,
            part,
            name: name_in(message, block),
            drawn: RefCell::default(),
        }
    }

    #[must_use]
    pub(crate) fn named(mut self, name: Option<Arc<str>>) -> Self {
        self.name = name.or(self.name);
        self
    }

    /// All images of a message, by block and part.
    pub(crate) fn all_of(message: &Arc<Message>) -> Vec<(usize, Option<usize>)> {
        let blocks = message.content.iter().enumerate();
        let found = blocks.flat_map(|(place, block)| match block {
            Block::Image(_) => vec![(place, None)],
            Block::ToolResult { content, .. } => content
                .iter()
                .enumerate()
                .filter(|(_, part)| matches!(part, ToolContent::Image(_)))
                .map(|(part, _)| (place, Some(part)))
                .collect(),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolUse { .. }
            | Block::Opaque { .. } => Vec::new(),
        });
        found.collect()
    }

    pub(crate) fn image(&self) -> Option<&Image> {
        match (self.message.content.get(self.block)?, self.part) {
            (Block::Image(image), _) => Some(image),
            (Block::ToolResult { content, .. }, Some(part)) => match content.get(part)? {
                ToolContent::Image(image) => Some(image),
                ToolContent::Text { .. } => None,
            },
            _ => None,
        }
    }

    /// The cells it takes on the screen; nothing where it is words alone.
    pub(crate) fn cells(&self, lay: &Lay<'_>) -> Option<(u16, u16)> {
        let (across, down) = lay.dots?;
        if matches!(*self.drawn.borrow(), Drawn::Never) {
            return None;
        }
        let (width, height) = self.image()?.dims?;
        let (most_columns, most_rows) = (COLUMNS.min(lay.width.checked_sub(INDENT * 2)?), ROWS);
        let most_dots = |cells: u16, dots: u16| u64::from(cells) * u64::from(dots);
        let (wide, tall) = (most_dots(most_columns, across), most_dots(most_rows, down));
        let (width, height) = (u64::from(width.max(1)), u64::from(height.max(1)));
        // As large as it is, or as fits, in its own proportions.
        let (width, height) = if width <= wide && height <= tall {
            (width, height)
        } else if width * tall >= height * wide {
            (wide, (height * wide / width).max(1))
        } else {
            ((width * tall / height).max(1), tall)
        };
        let cells = |length: u64, dots: u16| length.div_ceil(u64::from(dots.max(1)));
        let columns = u16::try_from(cells(width, across)).ok()?;
        let rows = u16::try_from(cells(height, down)).ok()?;
        (columns > 0 && rows > 0).then_some((columns, rows))
    }

    /// What it looks like for these cells, if that is known.
    pub(crate) fn raster(&self, cells: (u16, u16)) -> Option<Arc<Raster>> {
        match &*self.drawn.borrow() {
            Drawn::For(known, raster) if *known == cells => Some(Arc::clone(raster)),
            Drawn::For(..) | Drawn::Not | Drawn::Asked | Drawn::Never => None,
        }
    }

    /// Whether it has to be asked for what it looks like in these cells; from here on it was.
    pub(crate) fn ask(&self, cells: (u16, u16)) -> bool {
        let mut drawn = self.drawn.borrow_mut();
        let is_wanted = match &*drawn {
            Drawn::Not => true,
            Drawn::For(known, _) => *known != cells,
            Drawn::Asked | Drawn::Never => false,
        };
        if is_wanted {
            *drawn = Drawn::Asked;
        }
        is_wanted
    }

    pub(crate) fn answer(&self, cells: (u16, u16), drawn: Result<Raster, String>) {
        *self.drawn.borrow_mut() = match drawn {
            Ok(raster) => Drawn::For(cells, Arc::new(raster)),
            Err(_) => Drawn::Never,
        };
    }

    /// Lets go of what it looks like while nobody sees it.
    pub(crate) fn forget(&self) {
        let mut drawn = self.drawn.borrow_mut();
        if let Drawn::For(..) = &*drawn {
            *drawn = Drawn::Not;
        }
    }

    /// What stands for it.
    pub(crate) fn words(&self) -> String {
        let image = self.image();
        image.map_or_else(String::new, |image| described(image, self.name.as_deref()))
    }

    /// Words, and room for the picture below them.
    pub(crate) fn rows(&self, lay: &Lay<'_>) -> Vec<Row> {
        let about = sanitise(&self.words(), Strength::Name).into_owned();
        let mut rows = vec![Row::plain(about, lay.theme.palette.dim)];
        let room = self.cells(lay).map_or(0, |(_, rows)| usize::from(rows));
        rows.resize(1 + room, Row::default());
        rows
    }
}

/// What a prompt calls one of its images. An image has no name of its own: where the prompt names as
/// many as there are, they are these, in their order.
fn name_in(message: &Message, block: usize) -> Option<Arc<str>> {
    let is_image = |block: &&Block| matches!(block, Block::Image(_));
    let before = message.content.get(..block)?.iter().filter(is_image);
    let text = message.content.iter().find_map(|block| match block {
        Block::Text { text, .. } => Some(text),
        _ => None,
    })?;
    let mut names: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices('@') {
        let begins = text[..at].chars().next_back();
        let rest = &text[at + 1..];
        let name = if let Some(quoted) = rest.strip_prefix('"') {
            quoted.split('"').next().unwrap_or_default()
        } else {
            let word = rest.split(char::is_whitespace).next().unwrap_or_default();
            word.trim_end_matches(|it: char| ",.;:!?)]}'\"`".contains(it))
        };
        let is_new = !names.contains(&name);
        let begins_a_word = begins.is_none_or(|it| it.is_whitespace() || "([{'\"`".contains(it));
        if begins_a_word && is_new && is_picture(name) {
            names.push(name);
        }
    }
    let are_all_named = names.len() == message.content.iter().filter(is_image).count();
    let name = names.get(before.count()).filter(|_| are_all_named)?;
    let name = Path::new(name).file_name()?.to_str()?;
    matches!(message.content.get(block)?, Block::Image(_)).then(|| Arc::from(name))
}

fn is_picture(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|it| it.to_str());
    let known = ["png", "jpg", "jpeg", "gif", "webp"];
    extension.is_some_and(|it| known.iter().any(|known| it.eq_ignore_ascii_case(known)))
}

/// What stands for an image where none can be drawn: `[image: 800x600 image/png chart.png]`.
pub(crate) fn description(image: &Image) -> String {
    described(image, None)
}

fn described(image: &Image, name: Option<&str>) -> String {
    let size = image
        .dims
        .map(|(width, height)| format!("{width}x{height}"));
    let parts = [size, Some(image.mime.as_str().to_owned())];
    let name = name.map(ToOwned::to_owned);
    let parts: Vec<String> = parts.into_iter().chain([name]).flatten().collect();
    format!("[image: {}]", parts.join(" "))
}
