//! Print mode: one prompt in, the answer on standard output.

use caliban_model::{
    Block, CancellationToken, Provider, Request, Retry, Shown, StopReason, StreamEvent,
};
use futures::StreamExt;

use crate::console::{Console, note};
use crate::exit::Failure;

/// Asks and prints. On a terminal the answer is shown as it comes; into a pipe it is written
/// when it is complete, so that a reader never sees an answer that was taken back.
pub(crate) async fn print(
    provider: &dyn Provider,
    request: Request,
    cancel: CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut answer = Vec::new();
    let mut events = provider.stream(request, cancel);
    while let Some(event) = events.next().await {
        match event? {
            StreamEvent::TextDelta { text, .. } if console.is_terminal() => console.write(&text)?,
            StreamEvent::BlockEnded {
                block: Block::Text { text, .. },
                ..
            } => answer.push(text),
            StreamEvent::Retrying(retry) => {
                if retry.shown == Shown::Superseded {
                    answer.clear();
                    console.end_line()?;
                }
                note(&describe(&retry));
            }
            StreamEvent::Warning(warning) => note(&format!("warning: {}", warning.message)),
            StreamEvent::Stopped { reason, detail } => {
                if !console.is_terminal() {
                    console.write(&answer.concat())?;
                }
                console.end_line()?;
                return finish(&reason, detail.as_deref());
            }
            StreamEvent::Started { .. }
            | StreamEvent::TextDelta { .. }
            | StreamEvent::ThinkingDelta { .. }
            | StreamEvent::ToolStarted { .. }
            | StreamEvent::ToolInputDelta { .. }
            | StreamEvent::BlockEnded { .. }
            | StreamEvent::Usage { .. } => {}
        }
    }
    Err(Failure::Runtime("the answer ended early".to_owned()))
}

fn finish(reason: &StopReason, detail: Option<&str>) -> Result<(), Failure> {
    let because = detail.map_or_else(String::new, |detail| format!(": {detail}"));
    match reason {
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::Pause
        | StopReason::Other(_) => Ok(()),
        StopReason::MaxTokens => Err(Failure::Runtime(
            "the answer was cut at the token limit; raise `--max-tokens`".to_owned(),
        )),
        StopReason::ContextExceeded => Err(Failure::Runtime(
            "the model's context window is full; shorten the prompt".to_owned(),
        )),
        StopReason::Refusal => Err(Failure::Runtime(format!(
            "the model refused to answer{because}"
        ))),
        StopReason::ContentFilter => Err(Failure::Runtime(format!(
            "the provider's content filter stopped the answer{because}"
        ))),
    }
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
