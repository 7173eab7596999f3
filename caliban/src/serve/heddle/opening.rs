//! From an `init` to a session: what the client asks for takes the place of a run's flags.

use caliban_harness::{
    Launched, Prepared, RunOptions, Surroundings, SystemPrompt, configure, session_store,
};
use caliban_model::{BuiltInTool, ProviderKind};
use caliban_protocol::heddle::{ApprovalMode, Config, native_name};
use caliban_sessions::Store;
use caliban_settings::PermissionMode;
use caliban_settings::variables::{Environment, names};

use crate::console::note;
use crate::exit::Failure;

/// Begins the session that a client asks for, where the command line says nothing else.
pub(crate) async fn open(
    flags: &RunOptions,
    config: &Config,
    surroundings: Surroundings,
) -> Result<Launched, Failure> {
    let Surroundings { process, dialect } = surroundings;
    let options = options(flags, config, &process.environment)?;
    let configuration = configure(&options, process)?;
    let store = session_store(&options.session, &configuration);
    let prepared = Prepared::new(options, dialect, configuration)?;
    let is_new = prepared.history.earlier.is_none();
    let session_id = prepared.session_id.to_string();
    let launched = prepared.begin().await?;
    let offered = &launched.facts.tools;
    let is_missing = |name: &&str| !offered.iter().any(|offered| offered == native_name(name));
    let missing = config.tools.iter().map(String::as_str).filter(is_missing);
    if let Err(failure) = refuse(missing) {
        drop(launched);
        if is_new {
            forget(&store, &session_id);
        }
        return Err(failure);
    }
    for warning in &launched.facts.warnings {
        note(&format!("warning: {warning}"));
    }
    Ok(launched)
}

/// Removes a session that did not begin.
fn forget(store: &Store, session_id: &str) {
    // One that was not saved leaves nothing to remove.
    let _ = store.find(session_id).and_then(|name| store.remove(&name));
}

/// The listed tools in our names. What no session can have is refused before there is one.
fn listed(tools: &[String]) -> Result<Vec<String>, Failure> {
    let is_known = |name: &str| {
        BuiltInTool::named(name).is_some()
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

/// The options of the session: the client's word, and that of the command line where a client
/// says nothing or may not say otherwise.
fn options(
    flags: &RunOptions,
    config: &Config,
    environment: &Environment,
) -> Result<RunOptions, Failure> {
    let listed = listed(&config.tools)?;
    let mut options = flags.clone();
    options.system = SystemPrompt::Text(config.system_prompt.clone());
    let wanted = match flags.model.provider {
        Some(kind) => Some(kind),
        None => environment
            .text(names::CALIBAN_PROVIDER)
            .map(|name| name.parse())
            .transpose()?,
    };
    let (provider, model) = resolve(&config.model, wanted);
    options.model.provider = provider;
    options.model.model = Some(model.to_owned());
    options.limits.max_turns = config.max_iterations.or(flags.limits.max_turns);
    options.tools.selection.only = Some(listed.clone());
    match config.approval_mode {
        None => options.permissions.approved = listed,
        Some(ApprovalMode::Suggest) => {}
        Some(ApprovalMode::Plan) => {
            options.permissions.mode = Some(PermissionMode::Plan);
            options.permissions.approved = listed;
        }
    }
    Ok(options)
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
