//! Background jobs, and what they write.

use std::sync::Arc;

use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Strength, ansi, sanitise};
use ratatui_core::layout::Rect;

use crate::canvas::Canvas;
use crate::host::{Desk, JobState};
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

/// The panel.
#[derive(Debug)]
pub(crate) struct JobsPanel {
    desk: Arc<dyn Desk>,
    chosen: usize,
}

impl JobsPanel {
    pub(crate) fn new(desk: Arc<dyn Desk>) -> Self {
        Self { desk, chosen: 0 }
    }

    /// Whether something may be written at any moment.
    pub(crate) fn is_live(&self) -> bool {
        self.desk
            .jobs()
            .iter()
            .any(|job| matches!(job.state, JobState::Running { .. }))
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        let jobs = self.desk.jobs();
        let last = jobs.len().saturating_sub(1);
        let chosen = jobs.get(self.chosen).map(|job| job.id.clone());
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Reaction::Close,
            KeyCode::Char('b' | 'c') if key.modifiers.contains(Modifiers::CTRL) => {
                return Reaction::Close;
            }
            KeyCode::Up | KeyCode::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.chosen = (self.chosen + 1).min(last),
            KeyCode::Tab => return Reaction::CloseAnd(Wish::ShowAgents),
            KeyCode::Char('x') => {
                if let Some(job) = chosen {
                    return Reaction::Do(Wish::EndJob(job));
                }
            }
            KeyCode::Enter => {
                if let Some(job) = chosen {
                    return Reaction::Do(Wish::ShowJob(job));
                }
            }
            _ => {}
        }
        Reaction::Stay
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let inside = canvas.frame(area, "Background jobs", theme);
        let palette = &theme.palette;
        let jobs = self.desk.jobs();
        self.chosen = self.chosen.min(jobs.len().saturating_sub(1));
        if jobs.is_empty() {
            canvas.text(inside.x, inside.y, inside.right(), "none", palette.dim);
        }
        let listed = inside.height / 3;
        let first = self.chosen.saturating_sub(usize::from(listed.max(1)) - 1);
        let mut y = inside.y;
        for (place, job) in jobs
            .iter()
            .enumerate()
            .skip(first)
            .take(usize::from(listed))
        {
            let sign = if place == self.chosen {
                theme.signs.selected
            } else {
                " "
            };
            let (state, style) = match job.state {
                JobState::Running { since } => {
                    (format!("running {} s", since.as_secs()), palette.accent)
                }
                JobState::Ended { code: Some(0) } => ("done".to_owned(), palette.success),
                JobState::Ended { code: Some(code) } => (format!("exit {code}"), palette.error),
                JobState::Ended { code: None } => ("ended".to_owned(), palette.warning),
            };
            let command = sanitise(&job.command, Strength::Name);
            let command = theme.cut(&command, usize::from(inside.width).saturating_sub(30));
            let text = format!("{sign} {}  {command}  {state}", job.id);
            canvas.text(inside.x, y, inside.right(), &text, style);
            y += 1;
        }
        if let Some(job) = jobs.get(self.chosen) {
            let body = Rect {
                y: y + 1,
                height: inside.bottom().saturating_sub(y + 2),
                ..inside
            };
            let rows = ansi(&self.desk.job_output(&job.id), body.width, palette.dim);
            let skipped = rows.len().saturating_sub(usize::from(body.height));
            canvas.rows(body, &rows[skipped..]);
        }
        let hint = "Enter reads all  x ends it  Tab agents  q closes";
        canvas.text(
            inside.x,
            inside.bottom().saturating_sub(1),
            inside.right(),
            hint,
            palette.dim,
        );
    }
}
