//! From an `init` to a session: what the client asks for takes the place of a run's flags.

use caliban_agent::SharedOperator;
use caliban_harness::{Partners, Session};
use caliban_model::ProviderKind;
use caliban_permissions::KNOWN;
use caliban_protocol::heddle::{ApprovalMode, Config, native_name};
use caliban_sessions::Store;
use caliban_settings::PermissionMode;
use caliban_settings::variables::{Environment, names};

use crate::args::Cli;
use crate::configuration::{self, Configuration};
use crate::console::note;
use crate::debug_log::DebugLog;
use crate::exit::Failure;
use crate::history::{self, Found};
use crate::provider;
use crate::session::{self, Continued};

/// What stands on the command line where a client says nothing, or may not say otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flags {
    provider: Option<ProviderKind>,
    mode: Option<PermissionMode>,
    max_turns: u32,
}

impl Flags {
    pub(crate) fn of(cli: &Cli) -> Self {
        Self {
            provider: cli.run.provider.provider,
            mode: cli.run.permissions.permission_mode,
            max_turns: cli.run.limits.max_turns,
        }
    }
}

/// A session that can begin.
pub(crate) struct Opened {
    pub(crate) session: Session,
    pub(crate) debug: Option<DebugLog>,
}

/// Builds the session that a client asks for.
pub(crate) fn open(
    cli: &mut Cli,
    flags: Flags,
    config: &Config,
    environment: Environment<'_>,
    operator: SharedOperator,
) -> Result<Opened, Failure> {
    let listed = listed(&config.tools)?;
    apply(cli, flags, config, &listed, &environment)?;
    let workspace = configuration::workspace(cli.run.tools.workspace.as_deref())?;
    let configuration = Configuration::load(&cli.settings, workspace, environment)?;
    let found = Found::new(&cli.session, uuid::Uuid::new_v4(), &configuration)?;
    let session_id = found.session_id.to_string();
    let args = &cli.run;
    let chosen = provider::choose(&args.provider, &args.model, &args.cassette, &configuration)?;
    let is_new = found.earlier().is_none();
    let mode = found.earlier().and_then(|state| state.mode.clone());
    let (history, mut notices) =
        found.history(chosen.provider.id(), &chosen.model, &configuration)?;
    let partners = Partners {
        operator,
        ..Partners::default()
    };
    let continued = Continued { mode, history };
    let (session, further) = session::build(
        cli,
        &chosen,
        session_id.clone(),
        continued,
        partners,
        &configuration,
    )?;
    notices.extend(further);
    let offered = session.agent().tools.current();
    let missing = config.tools.iter().map(String::as_str);
    let missing = missing.filter(|name| offered.get(native_name(name)).is_none());
    if let Err(failure) = refuse(missing) {
        drop(session);
        if is_new {
            forget(&history::store(&cli.session, &configuration), &session_id);
        }
        return Err(failure);
    }
    let init = session::init(&session, &chosen, notices, cli, &configuration);
    for warning in &init.warnings {
        note(&format!("warning: {warning}"));
    }
    if !cli.session.no_save {
        let store = history::store(&cli.session, &configuration);
        history::prune_sometimes(&store, &configuration);
    }
    let debug = DebugLog::wanted(&cli.run, &configuration)?;
    Ok(Opened { session, debug })
}

/// Removes a session that did not begin.
fn forget(store: &Store, session_id: &str) {
    // One that was not saved leaves nothing to remove.
    let _ = store.find(session_id).and_then(|name| store.remove(&name));
}

/// The listed tools in our names. What no session can have is refused before there is one.
fn listed(tools: &[String]) -> Result<Vec<String>, Failure> {
    let is_known = |name: &str| {
        KNOWN.iter().any(|tool| tool.name == name)
            || (name.starts_with("mcp__")
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)))
    };
    let unknown = tools.iter().map(String::as_str);
    refuse(unknown.filter(|name| !is_known(native_name(name))))?;
    Ok(tools
        .iter()
        .map(|name| native_name(name).to_owned())
        .collect())
}

fn refuse<'a>(missing: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let missing: Vec<String> = missing.map(|name| format!("`{name}`")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "there is no tool {}",
        missing.join(", ")
    )))
}

fn apply(
    cli: &mut Cli,
    flags: Flags,
    config: &Config,
    listed: &[String],
    environment: &Environment<'_>,
) -> Result<(), Failure> {
    let run = &mut cli.run;
    run.system = Some(config.system_prompt.clone());
    (run.system_file, run.no_system) = (None, false);
    let wanted = match flags.provider {
        Some(kind) => Some(kind),
        None => environment
            .text(names::CALIBAN_PROVIDER)
            .map(|name| name.parse())
            .transpose()?,
    };
    let (provider, model) = resolve(&config.model, wanted);
    run.provider.provider = provider;
    run.model.model = Some(model.to_owned());
    run.limits.max_turns = config
        .max_iterations
        .map_or(flags.max_turns, std::num::NonZeroU32::get);
    run.tools.offered = Some(listed.to_vec());
    (run.permissions.permission_mode, cli.rules.approved) = match config.approval_mode {
        None => (flags.mode, listed.to_vec()),
        Some(ApprovalMode::Suggest) => (flags.mode, Vec::new()),
        Some(ApprovalMode::Plan) => (Some(PermissionMode::Plan), listed.to_vec()),
    };
    Ok(())
}

/// Who is meant by `provider/model`. A provider that the operator named is asked in any case: if
/// it is another, the whole identifier is a name of its own, as gateways have them.
fn resolve(model: &str, wanted: Option<ProviderKind>) -> (Option<ProviderKind>, &str) {
    let prefixed = model.split_once('/').and_then(|(prefix, rest)| {
        let kind: ProviderKind = prefix.parse().ok()?;
        Some((kind, rest))
    });
    match (prefixed, wanted) {
        (Some((kind, rest)), None) => (Some(kind), rest),
        (Some((kind, rest)), Some(wanted)) if kind == wanted => (Some(kind), rest),
        (_, wanted) => (wanted, model),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        "anthropic/claude-sonnet-4",
        None,
        Some("anthropic"),
        "claude-sonnet-4"
    )]
    #[case("openai/gpt-5.5", None, Some("openai"), "gpt-5.5")]
    #[case(
        "anthropic/claude-sonnet-4",
        Some("anthropic"),
        Some("anthropic"),
        "claude-sonnet-4"
    )]
    #[case(
        "anthropic/claude-sonnet-4",
        Some("openai"),
        Some("openai"),
        "anthropic/claude-sonnet-4"
    )]
    #[case("meta/llama-4", Some("openai"), Some("openai"), "meta/llama-4")]
    #[case("meta/llama-4", None, None, "meta/llama-4")]
    #[case("claude-sonnet-4-6", None, None, "claude-sonnet-4-6")]
    fn a_prefix_names_the_provider_unless_the_operator_did(
        #[case] model: &str,
        #[case] wanted: Option<&str>,
        #[case] provider: Option<&str>,
        #[case] name: &str,
    ) {
        let kind = |text: Option<&str>| text.map(|text| text.parse::<ProviderKind>().unwrap());
        assert_eq!(resolve(model, kind(wanted)), (kind(provider), name));
    }

    #[test]
    fn tools_that_no_session_has_are_named() {
        let list = |names: &[&str]| {
            listed(
                &names
                    .iter()
                    .map(|&name| name.to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            list(&["read_file", "Bash", "mcp__a__b"]).unwrap(),
            ["Read", "Bash", "mcp__a__b"]
        );
        let refused = list(&["bash", "teleport", "Bash:rm *"]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "there is no tool `teleport`, `Bash:rm *`"
        );
    }
}
