//! How a question about a call looks.

use caliban_agent::Details;
use caliban_text::{Markdown, Row, wrap};
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use ratatui_core::text::Span;

use crate::asking::{self, Tone};
use crate::canvas::Canvas;
use crate::layers::legend;
use crate::layers::permission::{ANSWERS, Around, PermissionForm};
use crate::questions::Attention;
use crate::transcript::change_rows;

impl PermissionForm {
    /// How many rows it wants at a width.
    pub(crate) fn height(&self, width: u16, around: &Around<'_>) -> u16 {
        /// The frame, and a row between the call and the answers.
        const AROUND: u16 = 3;
        if let Some(form) = &self.rule {
            return form.height();
        }
        let inside = width.saturating_sub(4);
        let rows = self.rows(inside, around).len();
        let rows = u16::try_from(rows).unwrap_or(u16::MAX);
        rows.saturating_add(AROUND + legend::foot(&ANSWERS, inside))
    }

    fn rows(&self, width: u16, around: &Around<'_>) -> Vec<Row> {
        let palette = &around.theme.palette;
        let mut rows = Vec::new();
        let mut say = |text: String, style: Style| {
            let hanging = [Span::raw("  ")];
            rows.extend(wrap(vec![Span::styled(text, style)], width, &hanging));
        };
        for line in asking::lines(&self.inquiry, around.agent) {
            let style = match line.tone {
                Tone::Call => palette.strong,
                Tone::Plain => palette.text,
                Tone::Quiet => palette.dim,
                Tone::Good => palette.success,
                Tone::Warning => palette.warning,
                Tone::Bad => palette.error,
            };
            say(line.text, style);
        }
        if self.shows_why {
            let remedy = &self.inquiry.question.remedy;
            say(format!("without being asked: {remedy}"), palette.dim);
        }
        if let Some(plan) = asking::plan(&self.inquiry) {
            let laid = Markdown::whole(plan).rows(width, palette);
            rows.extend(laid.iter().cloned());
        }
        if let Some(Details::Edited { path, texts }) = &self.inquiry.preview {
            match texts {
                Some((old, new)) => {
                    let diffs = around.diffs;
                    rows.extend(change_rows(old, new, path, width, palette, diffs));
                }
                None => rows.push(Row::plain("the change is too large to show", palette.dim)),
            }
        }
        rows
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, around: &Around<'_>) {
        let palette = &around.theme.palette;
        let title = match around.waiting {
            0 | 1 => "Permission required".to_owned(),
            several => format!("Permission required (1 of {several})"),
        };
        let inside = canvas.frame(area, &title, around.theme);
        if inside.height < 3 {
            return;
        }
        let body = Rect {
            height: inside
                .height
                .saturating_sub(legend::foot(&ANSWERS, inside.width)),
            ..inside
        };
        if let Some(form) = &self.rule {
            return form.draw(canvas, inside, around);
        }
        let rows = self.rows(body.width, around);
        let height = usize::from(body.height);
        self.top = self.top.min(rows.len().saturating_sub(height));
        canvas.rows(body, &rows[self.top..]);
        if rows.len() > self.top + height {
            let hidden = rows.len() - self.top - height;
            let text = format!(" {hidden} more rows: PageDown, or d for all ");
            let y = body.bottom().saturating_sub(1);
            let x = body
                .right()
                .saturating_sub(u16::try_from(text.len()).unwrap_or(0));
            canvas.text(x.max(body.x), y, body.right(), &text, palette.dim);
        }
        match around.attention {
            Attention::None | Attention::Deaf => {}
            Attention::Waits => {
                let text = format!(
                    "question waiting{}Tab turns to it",
                    around.theme.signs.separator
                );
                canvas.text(
                    inside.x,
                    inside.bottom() - 1,
                    inside.right(),
                    &text,
                    palette.warning,
                );
            }
            Attention::Listens => {
                let hint = if self.has_parts {
                    "e edit  h hunks  d all  ? why  Esc denies  Tab later"
                } else {
                    "e edit  d all of it  ? why  Esc denies  Tab later"
                };
                legend::draw(canvas, inside, &ANSWERS, self.selected, hint, around.theme);
            }
        }
    }
}
