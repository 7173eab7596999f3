//! From an `init` to a session: what the client asks for takes the place of a run's flags.

use std::num::NonZeroU32;

use caliban_harness::options::EarlierSystem;
use caliban_harness::{
    Configuration, Launched, Prepared, RunOptions, Surroundings, SystemPrompt, configure,
};
use caliban_model::{BuiltInTool, ProviderKind};
use caliban_protocol::heddle::{ApprovalMode, Config, native_name};
use caliban_settings::PermissionMode;
use caliban_settings::variables::{Environment, names};

use crate::console::note;
use crate::exit::Failure;

/// The same call with the same result this often in a row is what that world calls a doom loop.
const LOOP: u32 = 8;

/// Begins the session that a client asks for, where the command line says nothing else.
pub(crate) async fn open(
    flags: &RunOptions,
    config: &Config,
    surroundings: Surroundings,
) -> Result<Launched, Failure> {
    let Surroundings { process, dialect } = surroundings;
    let mut options = options(flags, config, &process.environment)?;
    let configuration = configure(&options, process)?;
    if options.model.provider.is_none() && !names_provider(&configuration) {
        options.model.provider = Some(owner(&config.model)?);
    }
    let launched = Prepared::new(options, dialect, configuration)?
        .begin()
        .await?;
    let offered = &launched.facts.tools;
    let is_missing = |name: &&str| !offered.iter().any(|offered| offered == native_name(name));
    let missing = config.tools.iter().map(String::as_str).filter(is_missing);
    refuse(missing)?;
    for warning in &launched.facts.warnings {
        note(&format!("warning: {warning}"));
    }
    Ok(launched)
}

/// Whether the operator's settings say who is asked.
fn names_provider(configuration: &Configuration) -> bool {
    let model = configuration.settings().model.as_ref();
    model.is_some_and(|model| model.provider().is_some())
}

/// Whose models have such names. One that nobody is known to have fails here and not at the first
/// message.
fn owner(model: &str) -> Result<ProviderKind, Failure> {
    // What stands before a slash would be the provider.
    let known = ProviderKind::of_model(model).filter(|_| !model.contains('/'));
    known.ok_or_else(|| {
        Failure::Usage(format!(
            "there is no model `{model}` with a provider that is known: write `provider/model` with \
             anthropic, openai, google or ollama, or name the provider with `--provider`, `{}` or \
             the settings",
            names::CALIBAN_PROVIDER
        ))
    })
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
    options.session.earlier_system = EarlierSystem::Replaceable;
    let wanted = match flags.model.provider {
        Some(kind) => Some(kind),
        None => environment
            .text(names::CALIBAN_PROVIDER)
            .map(|name| name.parse())
            .transpose()?,
    };
    let (provider, model) = resolve(&config.model, wanted);
    if model.trim().is_empty() {
        let message = format!("`config.model` names no model: `{}`", config.model);
        return Err(Failure::Usage(message));
    }
    options.model.provider = provider;
    options.model.model = Some(model.to_owned());
    // What the operator allows is the most.
    let bounds = [config.max_iterations, flags.limits.max_turns];
    options.limits.max_turns = bounds.into_iter().flatten().min();
    options.limits.repetitions = options.limits.repetitions.or(NonZeroU32::new(LOOP));
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
