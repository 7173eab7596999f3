//! Headers that a program of the operator's prints, asked again before they grow old.

use std::collections::BTreeMap;
use std::time::Duration;

use caliban_process::{Beyond, Bound, Bounds, Guard, Invocation};
use tokio::time::{Instant, timeout};

use crate::config::HeadersHelper;
use crate::hearer::Means;

/// The most that such a program may say, and how long it may take.
const PRINTED: usize = 64 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);

/// What was printed last.
#[derive(Debug)]
pub(crate) struct Headers {
    helper: Option<HeadersHelper>,
    asked: Option<Instant>,
    pub(crate) current: BTreeMap<String, String>,
}

impl Headers {
    pub(crate) fn new(helper: Option<HeadersHelper>) -> Self {
        Self {
            helper,
            asked: None,
            current: BTreeMap::new(),
        }
    }

    /// Asks again where it is time. Where the program fails the old headers stay, and why is told.
    pub(crate) async fn refresh(&mut self, means: &Means) -> Result<(), String> {
        let Some(helper) = &self.helper else {
            return Ok(());
        };
        let now = Instant::now();
        if self
            .asked
            .is_some_and(|asked| now.duration_since(asked) < helper.refresh)
        {
            return Ok(());
        }
        self.asked = Some(now);
        let printed = printed(&helper.command, means).await.map_err(|reason| {
            format!(
                "the program for telemetry headers (`{}`) {reason}",
                helper.command
            )
        })?;
        self.current = lines(&printed);
        Ok(())
    }
}

async fn printed(command: &str, means: &Means) -> Result<String, String> {
    let invocation = Invocation {
        program: "sh".into(),
        args: vec!["-c".into(), command.into()],
        directory: means.directory.clone(),
        environment: means.environment.clone(),
    };
    let bound = |bytes| Bound {
        bytes,
        beyond: Beyond::Forget,
    };
    let bounds = Bounds {
        stdout: bound(PRINTED),
        stderr: bound(0),
    };
    let guard: &Guard = &means.guard;
    match timeout(PATIENCE, invocation.capture(guard, &[], bounds)).await {
        Err(_) => Err("took too long".to_owned()),
        Ok(Err(error)) => Err(format!("cannot be run: {error}")),
        Ok(Ok(captured)) if captured.status.success() => {
            Ok(String::from_utf8_lossy(&captured.stdout).into_owned())
        }
        Ok(Ok(captured)) => Err(format!("failed ({})", captured.status)),
    }
}

/// One `name=value` a line, or an object of JSON.
fn lines(text: &str) -> BTreeMap<String, String> {
    if let Ok(object) = serde_json::from_str::<BTreeMap<String, String>>(text) {
        return object;
    }
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let pairs = pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    pairs.filter(|(name, _)| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a=b\nc = d=e \n\nnoise\n=f")]
    #[case(r#"{"a": "b", "c": "d=e"}"#)]
    fn headers_are_lines_or_an_object(#[case] text: &str) {
        let expected = [("a", "b"), ("c", "d=e")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(lines(text), expected.into());
    }
}
