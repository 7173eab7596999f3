//! The plain-text face: the answer on standard output, everything else on standard error.

use caliban_agent::{Event, Outcome, RunTotals};
use caliban_model::{Retry, Shown};
use caliban_session::What;

use crate::console::{Console, note};
use crate::exit::Failure;

/// Whether tool calls are announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announcements {
    On,
    Off,
}

/// Shows a run. On a terminal the model's words are shown as they come; into a pipe only the
/// final answer is written, so that a reader never sees one that was taken back.
pub(crate) struct TextFace<'a> {
    console: &'a mut Console,
    announcements: Announcements,
    warned: Vec<String>,
}

impl<'a> TextFace<'a> {
    pub(crate) fn new(console: &'a mut Console, announcements: Announcements) -> Self {
        Self {
            console,
            announcements,
            warned: Vec::new(),
        }
    }

    pub(crate) fn show(&mut self, what: &What) -> Result<(), Failure> {
        match what {
            // What a program would read in the first frame: only what a person must know.
            What::Opened(facts) => {
                facts
                    .warnings
                    .iter()
                    .for_each(|warning| self.warn_once(warning));
                Ok(())
            }
            What::Run(event) => self.step(event),
            What::Ended {
                outcome, totals, ..
            } => self.end(outcome, totals),
            What::Queued { .. }
            | What::Began { .. }
            | What::TakenBack { .. }
            | What::Interrupted { .. }
            | What::Repeated { .. }
            | What::Refused(_)
            | What::Asked(_)
            | What::Answered(_)
            | What::ModeChanged { .. }
            | What::ModelChanged { .. }
            | What::ReasoningChanged { .. }
            | What::RuleChanged(_)
            | What::Idle
            | What::Closing
            | What::Closed { .. } => Ok(()),
        }
    }

    fn end(&mut self, outcome: &Outcome, totals: &RunTotals) -> Result<(), Failure> {
        let was_shown = self.console.is_terminal();
        let unshown = match outcome {
            Outcome::Obeyed { text, .. } => Some(text.as_str()),
            Outcome::Success { text } if !was_shown => Some(text.as_str()),
            // What there is of an answer is worth having even if it was cut.
            Outcome::MaxTokens if !was_shown => totals.last_text.as_deref(),
            _ => None,
        };
        self.console.write(unshown.unwrap_or_default())?;
        self.console.end_line()
    }

    fn step(&mut self, event: &Event) -> Result<(), Failure> {
        match event {
            Event::TextDelta { text } if self.console.is_terminal() => self.console.write(text)?,
            Event::ToolReady { .. } => self.console.end_line()?,
            Event::ToolStarted {
                name, first_arg, ..
            } => {
                if self.announcements == Announcements::On {
                    note(&announcement(name, first_arg.as_deref()));
                }
            }
            Event::ToolFinished { name, output, .. } if output.is_error() => {
                note(&format!("{name}: {}", both_ends(&output.text())));
            }
            Event::Retrying(retry) => {
                if retry.shown == Shown::Superseded {
                    self.console.end_line()?;
                }
                note(&describe(retry));
            }
            Event::Warning(warning) => self.warn_once(&warning.message),
            Event::Notice { message, .. } => self.warn_once(message),
            Event::CompactionFinished {
                before_tokens,
                after_tokens,
            } if after_tokens < before_tokens => note(&format!(
                "the conversation was condensed from about {before_tokens} to {after_tokens} tokens"
            )),
            // What a sub-agent does is announced too; its words are its parent's to read.
            Event::Nested { event, .. } => {
                if let Event::ToolStarted {
                    name, first_arg, ..
                } = &**event
                    && self.announcements == Announcements::On
                {
                    note(&format!("  {}", announcement(name, first_arg.as_deref())));
                }
            }
            Event::Finished { .. }
            | Event::Interrupted { .. }
            | Event::Steered { .. }
            | Event::PromptAccepted { .. }
            | Event::TurnStarted { .. }
            | Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::Answer(_)
            | Event::SentOn { .. }
            | Event::HistoryReplaced { .. }
            | Event::PermissionAsked { .. }
            | Event::PermissionAnswered { .. }
            | Event::ToolProgress { .. }
            | Event::ToolFinished { .. }
            | Event::AssistantMessage { .. }
            | Event::ToolResults { .. }
            | Event::TurnEnded { .. }
            | Event::HookFired { .. }
            | Event::HookPassed { .. }
            | Event::CompactionStarted { .. }
            | Event::CompactionFinished { .. } => {}
        }
        Ok(())
    }

    fn warn_once(&mut self, message: &str) {
        if !self.warned.iter().any(|known| known == message) {
            note(&format!("warning: {message}"));
            self.warned.push(message.to_owned());
        }
    }
}

/// The most of an argument that an announcement shows.
const SHOWN_ARGUMENT: usize = 100;
/// The most lines of a failed call's result that are shown of each end, and of each line.
const SHOWN_LINES: usize = 10;
const SHOWN_LINE: usize = 240;

fn announcement(name: &str, argument: Option<&str>) -> String {
    match argument {
        Some(argument) => format!("Running {name}: {}", first_line(argument, SHOWN_ARGUMENT)),
        None => format!("Running {name}"),
    }
}

/// What a failed call said: the beginning and the end, where the reason mostly is.
fn both_ends(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| first_line(line, SHOWN_LINE))
        .collect();
    match lines.len().checked_sub(2 * SHOWN_LINES) {
        None | Some(0) => lines.join("\n"),
        Some(left_out) => format!(
            "{}\n[… {left_out} lines left out]\n{}",
            lines[..SHOWN_LINES].join("\n"),
            lines[SHOWN_LINES + left_out..].join("\n")
        ),
    }
}

/// One line without control characters: the text is the model's or a program's.
fn first_line(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line
        .chars()
        .filter(|char| !char.is_control())
        .take(most)
        .collect();
    if line.chars().count() > most || text.lines().nth(1).is_some() {
        shown.push('…');
    }
    shown
}

fn describe(retry: &Retry) -> String {
    let status = retry
        .status
        .map_or_else(String::new, |status| format!("HTTP {status}, "));
    let void = match retry.shown {
        Shown::Nothing => "",
        Shown::Superseded => "; the answer so far is void and begins anew",
    };
    format!(
        "retry {} of {} in {:.1} s ({status}{}): {}{void}",
        retry.attempt,
        retry.max_retries,
        retry.delay.as_secs_f64(),
        retry.category.as_str(),
        retry.message,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_failure_both_ends_are_shown() {
        assert_eq!(
            both_ends("one\n\x1b[31mtwo\n[exit 1]"),
            "one\n[31mtwo\n[exit 1]"
        );
        let lines: Vec<String> = (1..=100).map(|line| line.to_string()).collect();
        let shown = both_ends(&lines.join("\n"));
        assert!(shown.starts_with("1\n2\n") && shown.ends_with("\n99\n100"));
        assert!(shown.contains("10\n[… 80 lines left out]\n91\n"), "{shown}");
    }
}
