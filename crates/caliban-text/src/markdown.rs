//! Markdown as it arrives. The text is cut into blocks as soon as their ends are certain; what is
//! laid out of a finished block is never laid out again, and only the open end moves.

use std::sync::Arc;

use crate::palette::Palette;
use crate::row::Row;
use crate::sanitise::{Sanitiser, Strength};

use blocks::lay_block;
use stream::{Block, Finder};

mod blocks;
mod inline;
mod lines;
mod stream;
mod table;
#[cfg(test)]
mod tests;

/// Bytes of one text that are taken in; what comes after is not shown.
const SOURCE: usize = 32 * 1_024 * 1_024;

/// A text that grows.
#[derive(Debug, Clone)]
pub struct Markdown {
    source: String,
    sanitiser: Sanitiser,
    finder: Finder,
    blocks: Vec<Block>,
    /// The rows of the first blocks, one element each.
    laid: Vec<Arc<[Row]>>,
    /// What `laid` and `all` were laid out for.
    form: Option<(u16, Palette)>,
    /// All rows together, as long as nothing was added.
    all: Option<Arc<[Row]>>,
}

impl Default for Markdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Markdown {
    pub fn new() -> Self {
        Self {
            source: String::new(),
            sanitiser: Sanitiser::new(Strength::Prose),
            finder: Finder::default(),
            blocks: Vec::new(),
            laid: Vec::new(),
            form: None,
            all: None,
        }
    }

    /// A text that is complete.
    pub fn whole(text: &str) -> Self {
        let mut markdown = Self::new();
        markdown.push(text);
        markdown.finish();
        markdown
    }

    /// Adds to the text. The pieces may be cut anywhere, within sequences too.
    pub fn push(&mut self, delta: &str) {
        if delta.is_empty() || self.source.len() >= SOURCE {
            return;
        }
        self.all = None;
        self.sanitiser.push(delta, &mut self.source);
        self.finder.read(&self.source, &mut self.blocks);
    }

    /// There will be no more text.
    pub fn finish(&mut self) {
        self.all = None;
        self.sanitiser.finish(&mut self.source);
        self.finder.read(&self.source, &mut self.blocks);
        self.finder.finish(&self.source, &mut self.blocks);
    }

    /// The text as it was received, made harmless.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The rows of the whole text.
    pub fn rows(&mut self, width: u16, palette: &Palette) -> Arc<[Row]> {
        self.take_form(width, palette);
        if let Some(all) = &self.all {
            return Arc::clone(all);
        }
        let parts = self.parts(width, palette);
        let all: Arc<[Row]> = match parts.as_slice() {
            [only] => Arc::clone(only),
            parts => parts.iter().flat_map(|rows| rows.iter().cloned()).collect(),
        };
        self.all = Some(Arc::clone(&all));
        all
    }

    /// The same rows block by block. While a text grows this costs no more than its open end: the
    /// rows of finished blocks are the same ones from call to call.
    pub fn parts(&mut self, width: u16, palette: &Palette) -> Vec<Arc<[Row]>> {
        self.take_form(width, palette);
        for block in &self.blocks[self.laid.len()..] {
            self.laid
                .push(lay_block(&self.source, block, width, palette).into());
        }
        let mut parts = self.laid.clone();
        for block in self.finder.preview(&self.source) {
            parts.push(lay_block(&self.source, &block, width, palette).into());
        }
        parts
    }

    fn take_form(&mut self, width: u16, palette: &Palette) {
        let same = self
            .form
            .as_ref()
            .is_some_and(|(known, colours)| *known == width && colours == palette);
        if !same {
            self.laid.clear();
            self.all = None;
            self.form = Some((width, palette.clone()));
        }
    }
}
