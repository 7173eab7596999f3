//! `caliban demo`: a recorded conversation replayed in a temporary workspace, with the tools
//! running for real. Needs no key and no network.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_agent::{Confinement, Settings};
use caliban_harness::LaunchError;
use caliban_harness::provider::{Chosen, masking, replayed};
use caliban_harness::{
    BuiltIn, Child, Choices, History, Launched, Partners, Permissions, Problem, Process, Selection,
    SubAgents, SystemPrompt, Tools, child_environment,
};
use caliban_model::{Message, RateCard};
use caliban_providers::cassette::Replay;
use caliban_tools::{SearchConfig, WebPolicy};

use crate::console::{Console, note};
use crate::exit::Failure;
use crate::face::Face;
use crate::print::{Attends, Denials, Print, Prompts};
use crate::signals::Interrupts;
use crate::text_face::{Announcements, TextFace};

const CASSETTE: &str = include_str!("../demo/cassette.jsonl");
const PROMPT: &str = include_str!("../demo/prompt.txt");
const FILES: [(&str, &str); 2] = [
    ("price.sh", include_str!("../demo/workspace/price.sh")),
    ("test.sh", include_str!("../demo/workspace/test.sh")),
];

pub(crate) async fn demo(
    process: &Process,
    interrupts: &Interrupts,
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
    let masking = masking(&workspace, process);
    let replay = Replay::parse(CASSETTE, Path::new("the built-in demo"), masking)?;
    let chosen = replayed(replay, None);
    let prompt = PROMPT.trim();
    note(&format!(
        "A recorded conversation with {}, replayed without a network in {}.\nThe tools run for real.\n\n  caliban --auto-allow -p \"{prompt}\"\n",
        chosen.model,
        workspace.display()
    ));
    let choices = choices(chosen, workspace, folder.path(), process)?;
    let (handle, events) = Launched::of(choices)?.begin();
    let mut face = Face::Text(TextFace::new(console, Announcements::On));
    let print = Print {
        handle,
        events,
        interrupts,
        face: &mut face,
        denials: Denials::Tolerated,
        attends: Attends::No,
    };
    let prompts = Prompts::One(Box::new(Message::user(prompt)));
    print.run(prompts).await?;
    note(
        "\nTo work with a model yourself, set `ANTHROPIC_API_KEY` (or another provider's key) and run `caliban -p \"…\"`.",
    );
    Ok(())
}

/// A session that leaves nothing behind outside `state`.
fn choices(
    chosen: Chosen,
    workspace: PathBuf,
    state: &Path,
    process: &Process,
) -> Result<Choices, Failure> {
    let search = SearchConfig::from_variables(|name| process.environment.text(name));
    let tools = BuiltIn {
        environment: child_environment(Child::Stranger, process.variables.iter().cloned(), &[], []),
        guard: process.guard.clone(),
        jobs_directory: state.join("jobs"),
        search: search
            .map_err(Problem::from_error)
            .map_err(LaunchError::Configuration)?,
        web: WebPolicy::default(),
        sub_agents: SubAgents::Offered,
        agent_kinds: Vec::new(),
        default_agent: None,
        grounds: None,
    };
    Ok(Choices {
        settings: Settings::new(chosen.model),
        provider: chosen.provider,
        rates: Arc::new(RateCard::builtin().clone()),
        session_id: uuid::Uuid::new_v4().to_string(),
        images: caliban_images::Limits::DEFAULT,
        workspace,
        additional_directories: Vec::new(),
        confinement: Confinement::Restricted,
        home: None,
        system: SystemPrompt::Default,
        permissions: Permissions::unattended(),
        tools: Tools::BuiltIn(Box::new(tools)),
        sandbox: None,
        selection: Selection::default(),
        extras: None,
        partners: Partners::default(),
        history: History::default(),
    })
}
