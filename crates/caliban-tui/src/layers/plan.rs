//! The question that ends plan mode: the plan, and whether it is carried out.

use caliban_agent::Inquiry;
use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Markdown, Row, Strength, sanitise};
use ratatui_core::layout::Rect;

use crate::asking;
use crate::canvas::Canvas;
use crate::layers::field::{Field, Shows, Written};
use crate::layers::legend::{self, Labelled, Way};
use crate::layers::permission::Around;
use crate::questions::Attention;

/// The tool whose calls ask this.
pub(crate) const TOOL: &str = "ExitPlanMode";

const ANSWERS: [Labelled; 3] = [
    ('y', "Carry it out"),
    ('a', "Carry it out, accept edits"),
    ('n', "Keep planning"),
];

/// What was decided about the plan.
#[derive(Debug, PartialEq)]
pub(crate) enum PlanVerdict {
    NotYet,
    CarryOut,
    /// Carry it out and ask about no edit of a file.
    CarryOutAcceptingEdits,
    /// Go on planning, with what is to be different.
    KeepPlanning(Option<String>),
    /// Look at all of it.
    Details,
    /// Back to the draft; the question waits.
    Later,
}

/// The form.
#[derive(Debug)]
pub(crate) struct PlanForm {
    pub(crate) inquiry: Inquiry,
    /// Nothing is chosen at first, so that Enter alone begins nothing.
    selected: Option<usize>,
    /// What is to be different, while it is written.
    message: Option<Field>,
    top: usize,
}

impl PlanForm {
    pub(crate) fn new(inquiry: &Inquiry) -> Self {
        Self {
            inquiry: inquiry.clone(),
            selected: None,
            message: None,
            top: 0,
        }
    }

    pub(crate) fn press(&mut self, key: Key) -> PlanVerdict {
        if let Some(field) = &mut self.message {
            return match field.press(key) {
                Written::Going => PlanVerdict::NotYet,
                Written::Dropped => {
                    self.message = None;
                    PlanVerdict::NotYet
                }
                Written::Given(text) => {
                    let text = text.trim().to_owned();
                    PlanVerdict::KeepPlanning((!text.is_empty()).then_some(text))
                }
            };
        }
        if key.modifiers.contains(Modifiers::CTRL) || key.modifiers.contains(Modifiers::ALT) {
            return PlanVerdict::NotYet;
        }
        match key.code {
            KeyCode::Char('y') => return PlanVerdict::CarryOut,
            KeyCode::Char('a') => return PlanVerdict::CarryOutAcceptingEdits,
            KeyCode::Char('n') => self.ask_for_message(),
            KeyCode::Char('d') => return PlanVerdict::Details,
            KeyCode::Esc => return PlanVerdict::KeepPlanning(None),
            KeyCode::Tab => return PlanVerdict::Later,
            KeyCode::Right | KeyCode::Down => {
                self.selected = Some(legend::step(&ANSWERS, self.selected, Way::On));
            }
            KeyCode::Left | KeyCode::Up => {
                self.selected = Some(legend::step(&ANSWERS, self.selected, Way::Back));
            }
            KeyCode::PageUp => self.top = self.top.saturating_sub(5),
            KeyCode::PageDown => self.top += 5,
            KeyCode::Enter => match self.selected {
                None => {}
                Some(0) => return PlanVerdict::CarryOut,
                Some(1) => return PlanVerdict::CarryOutAcceptingEdits,
                Some(_) => self.ask_for_message(),
            },
            _ => {}
        }
        PlanVerdict::NotYet
    }

    fn ask_for_message(&mut self) {
        self.message = Some(Field::new("What is to be different", "", Shows::Text));
    }

    /// How many rows it wants at a width.
    pub(crate) fn height(&self, width: u16, around: &Around<'_>) -> u16 {
        /// The frame, and a row between the plan and the answers.
        const AROUND: u16 = 3;
        let inside = width.saturating_sub(4);
        let rows = u16::try_from(self.rows(inside, around).len()).unwrap_or(u16::MAX);
        rows.saturating_add(AROUND + legend::foot(&ANSWERS, inside))
    }

    fn rows(&self, width: u16, around: &Around<'_>) -> Vec<Row> {
        let palette = &around.theme.palette;
        let mut rows = Vec::new();
        if let Some(agent) = around.agent {
            let text = format!("asked by the agent: {agent}");
            let text = sanitise(&text, Strength::Name).into_owned();
            rows.push(Row::plain(text, palette.dim));
        }
        match asking::plan(&self.inquiry) {
            Some(plan) => rows.extend(Markdown::whole(plan).rows(width, palette).iter().cloned()),
            None => rows.push(Row::plain("It gave no plan.", palette.warning)),
        }
        rows
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, around: &Around<'_>) {
        let palette = &around.theme.palette;
        let title = match around.waiting {
            0 | 1 => "The plan is ready".to_owned(),
            several => format!("The plan is ready (1 of {several})"),
        };
        let inside = canvas.frame(area, &title, around.theme);
        if inside.height < 3 {
            return;
        }
        let foot = legend::foot(&ANSWERS, inside.width);
        let body = Rect {
            height: inside.height.saturating_sub(foot),
            ..inside
        };
        let rows = self.rows(body.width, around);
        let height = usize::from(body.height);
        self.top = self.top.min(rows.len().saturating_sub(height));
        canvas.rows(body, &rows[self.top..]);
        let hidden = rows.len().saturating_sub(self.top + height);
        if hidden > 0 {
            let text = format!(" {hidden} more rows: PageDown, or d for all ");
            let y = body.bottom().saturating_sub(1);
            canvas.text(body.x, y, body.right(), &text, palette.dim);
        }
        let last = Rect {
            y: inside.bottom() - 1,
            height: 1,
            ..inside
        };
        match (around.attention, &self.message) {
            (Attention::None | Attention::Deaf, _) => {}
            (Attention::Waits, _) => {
                let text = format!("question waiting{}Tab", around.theme.signs.separator);
                canvas.text(last.x, last.y, last.right(), &text, palette.warning);
            }
            (Attention::Listens, Some(field)) => field.draw(canvas, last, around.theme),
            (Attention::Listens, None) => {
                let hint = "d all of it  Esc keeps planning  Tab later";
                legend::draw(canvas, inside, &ANSWERS, self.selected, hint, around.theme);
            }
        }
    }
}
