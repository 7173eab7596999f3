//! `caliban demo`: a recorded conversation replayed in an empty workspace. Needs no key, no
//! network and nothing on disk.

use std::path::Path;
use std::sync::Arc;

use caliban_model::{CancellationToken, Message, Request};
use caliban_providers::cassette::Replay;

use crate::console::{Console, note};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::print::print;
use crate::provider::{masking, replayed};

const CASSETTE: &str = include_str!("../demo/cassette.jsonl");
const PROMPT: &str = "What is caliban, in three sentences?";

pub(crate) async fn demo(
    environment: &Environment<'_>,
    cancel: CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let workspace = tempfile::Builder::new()
        .prefix("caliban-demo-")
        .tempdir()
        .map_err(|error| Failure::Runtime(format!("no temporary workspace: {error}")))?;
    let masking = masking(workspace.path(), environment);
    let replay = Replay::parse(CASSETTE, Path::new("the built-in demo"), masking)?;
    let chosen = replayed(replay, None);
    note(&format!(
        "This is a recorded conversation with {}, replayed without a network:\n\n  caliban -p \"{PROMPT}\"\n",
        chosen.model
    ));
    let request = Request::new(chosen.model, vec![Arc::new(Message::user(PROMPT))])
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    print(&*chosen.provider, request, cancel, console).await?;
    note(
        "\nTo talk to a model yourself, set `ANTHROPIC_API_KEY` (or another provider's key) and run `caliban -p \"…\"`.",
    );
    Ok(())
}
