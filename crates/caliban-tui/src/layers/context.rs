//! What fills the model's window, as a grid.

use caliban_slash::{ContextKind, ContextReport};
use caliban_terminal::{Key, KeyCode};
use caliban_text::{Palette, Strength, sanitise};
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use crate::canvas::Canvas;
use crate::layers::list::{closes, panel, tell_keys};
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

const KEYS: &str = "c condenses it  ↑↓ scroll  q closes";

/// Cells of the grid in a row, and rows: each is a hundredth of the window.
const GRID: (u16, u16) = (10, 10);
/// What the words beside it need.
const WORDS: u16 = 36;

/// The overlay.
#[derive(Debug)]
pub(crate) struct ContextPanel {
    report: ContextReport,
    /// The first row that is shown of what stands below the grid.
    top: usize,
}

impl ContextPanel {
    pub(crate) fn new(report: ContextReport) -> Self {
        Self { report, top: 0 }
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        if closes(key) {
            return Reaction::Close;
        }
        match key.code {
            KeyCode::Char('c') => {
                return Reaction::CloseAnd(Wish::AskToCompact);
            }
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.top += 1,
            _ => {}
        }
        Reaction::Stay
    }

    /// What each cell of the grid stands for; nothing for what is free.
    fn cells(&self) -> Vec<Option<ContextKind>> {
        let all = u64::from(GRID.0) * u64::from(GRID.1);
        let window = self.report.window.max(1);
        let mut cells = Vec::new();
        for part in &self.report.parts {
            let share = part.tokens.saturating_mul(all) / window;
            // What is there is seen, however small it is.
            let count = usize::try_from(share.clamp(1, all)).unwrap_or(1);
            cells.extend(std::iter::repeat_n(Some(part.kind), count));
        }
        let all = usize::try_from(all).unwrap_or(usize::MAX);
        cells.resize(all, None);
        cells
    }

    /// What stands below the grid.
    fn words(&self) -> Vec<String> {
        let report = &self.report;
        let share = |tokens: u64| tokens.saturating_mul(100) / report.window.max(1);
        let mut words: Vec<String> = report
            .parts
            .iter()
            .map(|part| {
                format!(
                    "{} {:<13}{:>8} tokens {:>3} %",
                    part.kind.letter(),
                    part.kind.title(),
                    part.tokens,
                    share(part.tokens)
                )
            })
            .collect();
        words.push(format!(
            "/compact frees at most {} tokens",
            report.compaction_frees
        ));
        words.push(match report.compacts_at {
            Some(at) => format!("it is condensed by itself from {at} tokens on"),
            None => "it is never condensed by itself".to_owned(),
        });
        if let Some(limit) = report.mcp_limit {
            let count = report.mcp_tools.len();
            words.push(format!("MCP active: {count}/{limit}"));
        }
        if !report.largest.is_empty() {
            words.push("largest parts".to_owned());
        }
        words.extend(report.largest.iter().map(|block| {
            format!(
                "{} {:>8} tokens  {}",
                block.kind.letter(),
                block.tokens,
                block.what
            )
        }));
        words
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let ContextReport {
            used,
            window,
            percent,
            ..
        } = self.report;
        let title = format!("Context: about {used} of {window} tokens, {percent} %");
        let Some(places) = panel(canvas, area, &title, KEYS, theme) else {
            return;
        };
        let palette = &theme.palette;
        let body = places.body;
        // Beside each other where there is room, else the words alone.
        let grid_width = GRID.0 * 2 + 2;
        let has_room = body.width >= grid_width + WORDS && body.height >= GRID.1;
        let words_area = if has_room {
            self.draw_grid(canvas, body, theme);
            Rect {
                x: body.x + grid_width,
                width: body.width - grid_width,
                ..body
            }
        } else {
            body
        };
        let words = self.words();
        let last = words.len().saturating_sub(usize::from(words_area.height));
        self.top = self.top.min(last);
        let rows = (words_area.y..words_area.bottom()).zip(words.iter().skip(self.top));
        for (y, text) in rows {
            let text = sanitise(text, Strength::Name);
            canvas.text(words_area.x, y, words_area.right(), &text, palette.text);
        }
        tell_keys(canvas, &places, KEYS, theme);
    }

    fn draw_grid(&self, canvas: &mut Canvas, body: Rect, theme: &Theme) {
        let palette = &theme.palette;
        for (cell, y) in self.cells().chunks(usize::from(GRID.0)).zip(body.y..) {
            let mut x = body.x;
            for kind in cell {
                let (letter, style) = match kind {
                    Some(kind) => (kind.letter(), style(*kind, palette)),
                    None => ('·', palette.dim),
                };
                x = canvas.text(x, y, body.right(), &format!("{letter} "), style);
            }
        }
    }
}

fn style(kind: ContextKind, palette: &Palette) -> Style {
    match kind {
        ContextKind::SystemPrompt | ContextKind::Tools => palette.dim,
        ContextKind::Prompts => palette.accent,
        ContextKind::Answers | ContextKind::Thoughts => palette.text,
        ContextKind::Calls | ContextKind::Results => palette.warning,
        ContextKind::Images | ContextKind::Other => palette.strong,
    }
}
