//! `caliban demo`: a recorded conversation replayed in a temporary workspace, with the tools
//! running for real. Needs no key and no network.

use std::path::Path;

use caliban_model::{CancellationToken, Message};
use caliban_providers::cassette::Replay;
use caliban_settings::variables::Environment;

use crate::console::{Console, note};
use crate::exit::Failure;
use crate::face::Face;
use crate::print::{Denials, Print, Prompts};
use crate::provider::{masking, replayed};
use crate::session;
use crate::text_face::{Announcements, TextFace};

const CASSETTE: &str = include_str!("../demo/cassette.jsonl");
const PROMPT: &str = include_str!("../demo/prompt.txt");
const FILES: [(&str, &str); 2] = [
    ("price.sh", include_str!("../demo/workspace/price.sh")),
    ("test.sh", include_str!("../demo/workspace/test.sh")),
];

pub(crate) async fn demo(
    environment: &Environment<'_>,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Runtime(format!("no demo workspace: {error}"));
    let folder = tempfile::Builder::new()
        .prefix("caliban-demo-")
        .tempdir()
        .map_err(failed)?;
    let workspace = folder.path().canonicalize().map_err(failed)?;
    for (name, content) in FILES {
        std::fs::write(workspace.join(name), content).map_err(failed)?;
    }
    let masking = masking(&workspace, environment);
    let replay = Replay::parse(CASSETTE, Path::new("the built-in demo"), masking)?;
    let chosen = replayed(replay, None);
    let prompt = PROMPT.trim();
    note(&format!(
        "A recorded conversation with {}, replayed without a network in {}.\nThe tools run for real.\n\n  caliban --auto-allow -p \"{prompt}\"\n",
        chosen.model,
        workspace.display()
    ));
    let session = session::demo(chosen, workspace, folder.path(), environment)?;
    let init = session::plain_init(&session);
    let mut face = Face::Text(TextFace::new(console, Announcements::On));
    let print = Print {
        session,
        cancel,
        watch: None,
        face: &mut face,
        denials: Denials::Tolerated,
        debug: None,
    };
    let prompts = Prompts::one(Message::user(prompt));
    print.run(prompts, &init).await?;
    note(
        "\nTo work with a model yourself, set `ANTHROPIC_API_KEY` (or another provider's key) and run `caliban -p \"…\"`.",
    );
    Ok(())
}
