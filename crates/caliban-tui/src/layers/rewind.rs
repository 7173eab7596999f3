//! Taking prompts back: first the point, then what goes back, with everything that would change.

use caliban_session::{Others, Restore, Rewind};
use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Strength, ansi_words, sanitise};
use ratatui_core::layout::Rect;

use crate::canvas::Canvas;
use crate::host::{PointRow, RewindPreview, Standing};
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

/// What can go back, in the order it is offered; nothing is the last.
const CHOICES: [(Option<Restore>, &str); 6] = [
    (Some(Restore::Both), "Restore files and conversation"),
    (Some(Restore::Code), "Restore the files only"),
    (Some(Restore::Conversation), "Restore the conversation only"),
    (Some(Restore::SummarizeFrom), "Summarize from here"),
    (Some(Restore::SummarizeUpTo), "Summarize up to here"),
    (None, "Cancel"),
];
/// Where nothing is chosen.
const CANCEL: usize = CHOICES.len() - 1;

/// The overlay.
#[derive(Debug)]
pub(crate) struct RewindPanel {
    points: Vec<PointRow>,
    chosen: usize,
    deciding: Option<Deciding>,
}

/// A point was chosen.
#[derive(Debug)]
struct Deciding {
    choice: usize,
    others: Others,
    /// Rows of the preview that are scrolled away.
    top: usize,
    shown: Shown,
}

/// What is known of the consequences.
#[derive(Debug)]
enum Shown {
    Looking,
    Known(RewindPreview),
    Unknown(String),
}

impl RewindPanel {
    pub(crate) fn new(points: Vec<PointRow>) -> Self {
        Self {
            points,
            chosen: 0,
            deciding: None,
        }
    }

    /// What a rewind would do has been found out.
    pub(crate) fn previewed(&mut self, rewind: Rewind, preview: Result<RewindPreview, String>) {
        let to = self.points.get(self.chosen).map(|point| point.to);
        let Some(deciding) = &mut self.deciding else {
            return;
        };
        if to != Some(rewind.to) || deciding.others != rewind.others {
            return;
        }
        let has_conflicts = preview.as_ref().is_ok_and(|preview| preview.conflicts > 0);
        // What would not be whole is nobody's default.
        if preview.is_err() || has_conflicts {
            deciding.choice = CANCEL;
        }
        deciding.shown = match preview {
            Ok(preview) => Shown::Known(preview),
            Err(error) => Shown::Unknown(error),
        };
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(Modifiers::CTRL) {
            return Reaction::Close;
        }
        match self.deciding.take() {
            None => self.press_in_list(key),
            Some(deciding) => self.press_in_decision(deciding, key),
        }
    }

    fn press_in_list(&mut self, key: Key) -> Reaction {
        let last = self.points.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Reaction::Close,
            KeyCode::Up | KeyCode::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.chosen = (self.chosen + 1).min(last),
            KeyCode::PageUp => self.chosen = self.chosen.saturating_sub(10),
            KeyCode::PageDown => self.chosen = (self.chosen + 10).min(last),
            KeyCode::Home => self.chosen = 0,
            KeyCode::End => self.chosen = last,
            KeyCode::Enter => return self.look(Others::Spared),
            _ => {}
        }
        Reaction::Stay
    }

    /// Asks what the chosen point would mean.
    fn look(&mut self, others: Others) -> Reaction {
        let Some(point) = self.points.get(self.chosen) else {
            return Reaction::Stay;
        };
        self.deciding = Some(Deciding {
            choice: 0,
            others,
            top: 0,
            shown: Shown::Looking,
        });
        Reaction::Do(Wish::PreviewRewind(Rewind {
            to: point.to,
            what: Restore::Both,
            others,
        }))
    }

    fn press_in_decision(&mut self, mut deciding: Deciding, key: Key) -> Reaction {
        match key.code {
            // Back to the list.
            KeyCode::Esc | KeyCode::Char('q') => return Reaction::Stay,
            KeyCode::Up | KeyCode::Char('k') => {
                deciding.choice = deciding.choice.saturating_sub(1);
            }
            KeyCode::Down | KeyCode::Char('j') => {
                deciding.choice = (deciding.choice + 1).min(CANCEL);
            }
            KeyCode::PageUp => deciding.top = deciding.top.saturating_sub(10),
            KeyCode::PageDown => deciding.top = deciding.top.saturating_add(10),
            KeyCode::Char('f') => {
                return self.look(match deciding.others {
                    Others::Spared => Others::Overwritten,
                    Others::Overwritten => Others::Spared,
                });
            }
            KeyCode::Enter => {
                // Nothing is done that was not shown.
                if let Shown::Looking = deciding.shown {
                    self.deciding = Some(deciding);
                    return Reaction::Stay;
                }
                return self.decide(&deciding);
            }
            _ => {}
        }
        self.deciding = Some(deciding);
        Reaction::Stay
    }

    fn decide(&self, deciding: &Deciding) -> Reaction {
        let what = CHOICES.get(deciding.choice).and_then(|(what, _)| *what);
        match (what, self.points.get(self.chosen)) {
            (Some(what), Some(point)) => Reaction::CloseAnd(Wish::Rewind {
                rewind: Rewind {
                    to: point.to,
                    what,
                    others: deciding.others,
                },
                next: point.next.clone(),
            }),
            (None, _) | (_, None) => Reaction::Close,
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let inside = canvas.frame(area, "Rewind: to the end of which prompt?", theme);
        if inside.height < 3 {
            return;
        }
        let hint = match &mut self.deciding {
            None => {
                self.draw_list(canvas, inside, theme);
                "Enter chooses  Esc closes"
            }
            Some(deciding) => {
                let point = self.points.get(self.chosen);
                draw_decision(canvas, inside, theme, point, deciding);
                match deciding.others {
                    Others::Spared => {
                        "Enter does it  f others' changes too  PgDn reads on  Esc back"
                    }
                    Others::Overwritten => {
                        "Enter does it  PgDn reads on  f spares others'  Esc back"
                    }
                }
            }
        };
        let bottom = inside.bottom().saturating_sub(1);
        canvas.text(inside.x, bottom, inside.right(), hint, theme.palette.dim);
    }

    fn draw_list(&self, canvas: &mut Canvas, inside: Rect, theme: &Theme) {
        let palette = &theme.palette;
        let height = usize::from(inside.height - 1);
        let first = self.chosen.saturating_sub(height.saturating_sub(1));
        let rows = inside.y..inside.bottom() - 1;
        for (y, (place, point)) in rows.zip(self.points.iter().enumerate().skip(first)) {
            let (sign, style) = match (place == self.chosen, point.standing) {
                (true, _) => (theme.signs.selected, palette.accent),
                (false, Standing::Counts) => (" ", palette.text),
                (false, Standing::TakenBack | Standing::Rewind) => (" ", palette.dim),
            };
            let at = point.at.map_or_else(String::new, |at| {
                at.to_zoned(jiff::tz::TimeZone::system())
                    .strftime("%m-%d %H:%M")
                    .to_string()
            });
            let mark = match point.standing {
                Standing::Counts | Standing::Rewind => "",
                Standing::TakenBack => "taken back  ",
            };
            let title = sanitise(&point.title, Strength::Name);
            let text = format!(
                "{sign} {:>3}  {at:<11}  {:<20}  {mark}{title}",
                point.to, point.changes
            );
            let text = theme.cut(&text, usize::from(inside.width));
            canvas.text(inside.x, y, inside.right(), &text, style);
        }
    }
}

fn draw_decision(
    canvas: &mut Canvas,
    inside: Rect,
    theme: &Theme,
    point: Option<&PointRow>,
    deciding: &mut Deciding,
) {
    let palette = &theme.palette;
    let mut y = inside.y;
    if let Some(point) = point {
        let title = sanitise(&point.title, Strength::Name);
        let text = match point.to {
            0 => "Before the first prompt".to_owned(),
            to => format!("After prompt {to}: {title}"),
        };
        let text = theme.cut(&text, usize::from(inside.width));
        canvas.text(inside.x, y, inside.right(), &text, palette.strong);
        y += 1;
    }
    for (place, (_, label)) in CHOICES.iter().enumerate() {
        if y >= inside.bottom().saturating_sub(1) {
            return;
        }
        let (sign, style) = if place == deciding.choice {
            (theme.signs.selected, palette.accent)
        } else {
            (" ", palette.text)
        };
        let text = format!("{sign} {label}");
        canvas.text(inside.x, y, inside.right(), &text, style);
        y += 1;
    }
    let (summary, style, text) = match &deciding.shown {
        Shown::Looking => ("Looking at the files …".to_owned(), palette.dim, ""),
        Shown::Unknown(error) => (error.clone(), palette.error, ""),
        Shown::Known(preview) => {
            let files = match preview.changes {
                1 => "1 file would change".to_owned(),
                count => format!("{count} files would change"),
            };
            match preview.conflicts {
                0 => (files, palette.dim, preview.text.as_str()),
                count => (
                    format!("{files}; {count} were changed by others and stay"),
                    palette.warning,
                    preview.text.as_str(),
                ),
            }
        }
    };
    let summary = sanitise(&summary, Strength::Name);
    canvas.text(inside.x, y, inside.right(), &summary, style);
    let body = Rect {
        y: y + 1,
        height: inside.bottom().saturating_sub(y + 2),
        ..inside
    };
    let rows = ansi_words(text, body.width, palette.dim);
    let most = rows.len().saturating_sub(usize::from(body.height));
    deciding.top = deciding.top.min(most);
    canvas.rows(body, rows.iter().skip(deciding.top));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(to: u32) -> PointRow {
        PointRow {
            to,
            title: format!("prompt {to}"),
            at: None,
            changes: "1 changed".to_owned(),
            standing: Standing::Counts,
            next: Some("again".to_owned()),
        }
    }

    fn key(code: KeyCode) -> Key {
        Key::new(code, Modifiers::none())
    }

    fn both(to: u32, others: Others) -> Rewind {
        Rewind {
            to,
            what: Restore::Both,
            others,
        }
    }

    #[test]
    fn nothing_is_done_before_it_is_known_what_and_conflicts_make_cancel_the_default() {
        let mut panel = RewindPanel::new(vec![point(2), point(1)]);
        panel.press(key(KeyCode::Down));
        assert!(matches!(
            panel.press(key(KeyCode::Enter)),
            Reaction::Do(Wish::PreviewRewind(rewind)) if rewind == both(1, Others::Spared)
        ));
        assert!(matches!(panel.press(key(KeyCode::Enter)), Reaction::Stay));
        let conflicts = RewindPreview {
            changes: 1,
            conflicts: 1,
            text: String::new(),
        };
        // What another question was answered with does not count.
        panel.previewed(both(2, Others::Spared), Ok(RewindPreview::default()));
        assert!(matches!(panel.press(key(KeyCode::Enter)), Reaction::Stay));
        panel.previewed(both(1, Others::Spared), Ok(conflicts));
        assert!(matches!(panel.press(key(KeyCode::Enter)), Reaction::Close));
    }

    #[test]
    fn the_usual_choice_is_both_and_force_is_asked_for() {
        let mut panel = RewindPanel::new(vec![point(2)]);
        panel.press(key(KeyCode::Enter));
        panel.press(key(KeyCode::Char('f')));
        panel.previewed(both(2, Others::Overwritten), Ok(RewindPreview::default()));
        assert!(matches!(
            panel.press(key(KeyCode::Enter)),
            Reaction::CloseAnd(Wish::Rewind { rewind, next: Some(_) })
                if rewind == both(2, Others::Overwritten)
        ));
    }
}
