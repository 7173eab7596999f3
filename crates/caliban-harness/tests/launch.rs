//! From options to a session that works, over a scripted model and without any program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use caliban_agent::Outcome;
use caliban_harness::options::{
    ModelOptions, PermissionOptions, RunOptions, ServerOptions, SessionChoice, SessionOptions,
    SettingsOptions,
};
use caliban_harness::{LaunchError, Launched};
use caliban_model::{Block, ProviderKind};

use caliban_session::Prompt;
use caliban_settings::{PermissionMode, RuleAction, RuleSpec, TrustDecision};
use caliban_testkit::Reply;
use serde_json::json;

use support::{Face, World, summing_server};

/// Whether the model may make a file by a command.
async fn may_run(world: &World, options: RunOptions) -> bool {
    let file = world.workspace().join("ran");
    world
        .server
        .push(Reply::tool("Bash", json!({"command": "touch ran"})));
    world.server.push(Reply::text("done"));
    let mut face = world.face(options).await;
    let outcome = face.ask("run it").await;
    assert!(matches!(outcome, Outcome::Success { .. }), "{outcome:?}");
    face.close().await;
    std::fs::remove_file(file).is_ok()
}

/// How many turns a session may take, and how many tokens it asks for in each. The model calls a
/// tool for ever.
async fn limits(world: &World, launched: Launched) -> (u32, u64) {
    let outcome = Face::of(launched).ask("look").await;
    let Outcome::MaxTurns { limit } = outcome else {
        panic!("{outcome:?}");
    };
    let request = world.last_request();
    let names = ["max_tokens", "max_completion_tokens"];
    let tokens = names.iter().find_map(|name| request[name].as_u64());
    (limit, tokens.unwrap())
}

#[tokio::test]
async fn an_option_beats_a_variable_beats_a_setting_beats_the_default() {
    let look = |turn| Reply::tool("Glob", json!({"pattern": format!("{turn}.txt")}));
    let mut world = World::new((0..100).map(look)).await;
    let plain = world.launch(RunOptions::default()).await.unwrap();
    assert_eq!(plain.facts.provider, "anthropic");
    assert_eq!(limits(&world, plain).await, (50, 8192));
    world.user_settings("model = 'gpt-5.5'\nmax_turns = 7\nmax_tokens = 70\n");
    let configured = world.launch(RunOptions::default()).await.unwrap();
    assert_eq!(configured.facts.provider, "openai");
    assert_eq!(configured.facts.model, "gpt-5.5");
    assert_eq!(configured.facts.setting_sources, ["user"]);
    assert_eq!(limits(&world, configured).await, (7, 70));
    world.set("CALIBAN_PROVIDER", "google");
    let by_variable = world.launch(RunOptions::default()).await.unwrap();
    assert_eq!(by_variable.facts.provider, "google");
    let mut options = RunOptions {
        model: ModelOptions {
            provider: Some(ProviderKind::Anthropic),
            max_tokens: Some(9.try_into().unwrap()),
            ..ModelOptions::default()
        },
        ..RunOptions::default()
    };
    options.limits.max_turns = Some(3.try_into().unwrap());
    let asked = world.launch(options).await.unwrap();
    assert_eq!(asked.facts.provider, "anthropic");
    assert_eq!(limits(&world, asked).await, (3, 9));
}

#[tokio::test]
async fn a_workspace_allows_nothing_before_it_is_trusted() {
    let world = World::new([]).await;
    world.write(
        "workspace/.caliban/settings.toml",
        "permissions.allow = ['Bash']\n",
    );
    assert!(!may_run(&world, RunOptions::default()).await);
    let stranger = world.launch(RunOptions::default()).await.unwrap();
    assert!(!stranger.facts.trusted);
    let told = stranger.facts.warnings.join("\n");
    assert!(told.contains("caliban trust"), "{told}");
    let trusting = RunOptions {
        settings: SettingsOptions {
            trust: TrustDecision::Granted,
            ..SettingsOptions::default()
        },
        ..RunOptions::default()
    };
    assert!(may_run(&world, trusting.clone()).await);
    assert!(world.launch(trusting).await.unwrap().facts.trusted);
}

#[tokio::test]
async fn rules_of_the_run_count_first_and_approved_tools_last() {
    let world = World::new([]).await;
    let with = |permissions| RunOptions {
        permissions,
        ..RunOptions::default()
    };
    let ruled = |action| {
        with(PermissionOptions {
            rules: vec![RuleSpec::new("Bash", action)],
            ..PermissionOptions::default()
        })
    };
    let approved = || {
        with(PermissionOptions {
            approved: vec!["Bash".to_owned()],
            ..PermissionOptions::default()
        })
    };
    assert!(!may_run(&world, RunOptions::default()).await);
    assert!(may_run(&world, ruled(RuleAction::Allow)).await);
    assert!(may_run(&world, approved()).await);
    world.user_settings("permissions.deny = ['Bash']\n");
    assert!(!may_run(&world, approved()).await);
    let wrong = world
        .launch(with(PermissionOptions {
            rules: vec![RuleSpec::new("Bash(", RuleAction::Deny)],
            ..PermissionOptions::default()
        }))
        .await;
    assert!(matches!(wrong, Err(LaunchError::Usage(_))), "{wrong:?}");
}

#[tokio::test]
async fn a_prompt_takes_files_of_the_workspace_along() {
    let world = World::new([]).await;
    world.write("workspace/notes.txt", "remember the milk");
    world.write("outside.txt", "not for models");
    let mut options = RunOptions::default();
    options.limits.max_attach_bytes = Some(17);
    let mut launched = world.launch(options).await.unwrap();
    let prompt = Prompt::typed("1", "see @notes.txt and @../outside.txt");
    let attached = launched.attach(prompt).await.unwrap();
    let warnings = &launched.facts.warnings;
    let about = |warning: &&String| warning.contains("outside.txt");
    assert_eq!(warnings.iter().filter(about).count(), 1, "{warnings:?}");
    let [_, Block::Text { text, .. }] = &attached.content[..] else {
        panic!("{attached:?}");
    };
    assert!(text.contains("remember the milk"), "{text}");
    world.write("workspace/notes.txt", "remember the milk!");
    let prompt = Prompt::typed("2", "see @notes.txt");
    let error = launched.attach(prompt).await.unwrap_err();
    assert!(error.to_string().contains("18 bytes"), "{error}");
    let outcome = Face::of(launched).ask("see @notes.txt").await;
    assert!(
        matches!(&outcome, Outcome::Unusable { message } if message.contains("18 bytes")),
        "{outcome:?}"
    );
}

fn session(choice: SessionChoice) -> RunOptions {
    RunOptions {
        session: SessionOptions {
            choice,
            ..SessionOptions::default()
        },
        ..RunOptions::default()
    }
}

#[tokio::test]
async fn a_session_goes_on_where_it_was_left_and_asks_again() {
    let world = World::new([Reply::text("the answer"), Reply::text("again")]).await;
    let mut options = session(SessionChoice::Named("work".to_owned()));
    options.model.model = Some("claude-opus-4-6".to_owned());
    options.permissions.mode = Some(PermissionMode::DontAsk);
    let mut first = world.face(options).await;
    first.ask("the question").await;
    let again = || session(SessionChoice::Resume("work".to_owned()));
    let busy = world.launch(again()).await;
    assert!(matches!(busy, Err(LaunchError::Busy(_))), "{busy:?}");
    first.close().await;
    let second = world.launch(again()).await.unwrap();
    assert_eq!(second.facts.model, "claude-opus-4-6");
    assert_eq!(second.facts.permission_mode, "default");
    let told = second.facts.warnings.join("\n");
    assert!(told.contains("asks nobody"), "{told}");
    let mut second = Face::of(second);
    second.ask("go on").await;
    let asked = world.last_request();
    assert!(asked["messages"].to_string().contains("the answer"));
    second.close().await;
    let missing = world
        .launch(session(SessionChoice::Resume("play".to_owned())))
        .await;
    assert!(
        matches!(missing, Err(LaunchError::NoInput(_))),
        "{missing:?}"
    );
}

#[tokio::test]
async fn servers_of_the_options_take_part() {
    let world = World::new([
        Reply::tool("mcp__sums__add", json!({"a": 20, "b": 22})),
        Reply::text("done"),
    ])
    .await;
    let options = RunOptions {
        servers: ServerOptions {
            configs: vec![summing_server()],
            ..ServerOptions::default()
        },
        permissions: PermissionOptions {
            rules: vec![RuleSpec::new("mcp__sums__add", RuleAction::Allow)],
            ..PermissionOptions::default()
        },
        ..RunOptions::default()
    };
    let launched = world.launch(options).await.unwrap();
    let server = &launched.facts.servers[0];
    assert_eq!((&*server.name, &*server.status), ("sums", "connected"));
    let mut face = Face::of(launched);
    face.ask("add").await;
    let asked = world.last_request();
    assert!(asked["messages"].to_string().contains("42"), "{asked}");
    face.close().await;
}

#[tokio::test]
async fn options_that_came_as_text_begin_a_session_and_two_live_side_by_side() {
    let world = World::new([Reply::text("one"), Reply::text("two")]).await;
    let options = r#"{"model": {"model": "claude-haiku-4-5"}, "tools": {"built_in": "off"}}"#;
    let options: RunOptions = serde_json::from_str(options).unwrap();
    let first = world.launch(options.clone()).await.unwrap();
    let second = world.launch(options).await.unwrap();
    assert_ne!(first.facts.session_id, second.facts.session_id);
    assert_eq!(first.facts.model, "claude-haiku-4-5");
    assert!(first.facts.tools.is_empty());
    let (mut first, mut second) = (Face::of(first), Face::of(second));
    let (one, two) = tokio::join!(first.ask("a"), second.ask("b"));
    assert!(matches!(one, Outcome::Success { .. }), "{one:?}");
    assert!(matches!(two, Outcome::Success { .. }), "{two:?}");
}

#[tokio::test]
async fn a_missing_key_is_a_matter_of_configuration_that_keeps_its_cause() {
    let mut world = World::new([]).await;
    world.variables.remove("ANTHROPIC_API_KEY");
    // Only the vendor is known to ask for one.
    world.variables.remove("ANTHROPIC_BASE_URL");
    let error = world.launch(RunOptions::default()).await.unwrap_err();
    assert!(matches!(error, LaunchError::Configuration(_)), "{error:?}");
    let cause = std::error::Error::source(&error).unwrap();
    assert!(
        cause
            .downcast_ref::<caliban_providers::ConfigError>()
            .is_some()
    );
}
