use rstest::rstest;
use serde_json::json;

use super::*;
use crate::answer::OnError;
use std::time::Duration;

#[derive(Debug)]
struct Starts(String);

impl CallPattern for Starts {
    fn matches(&self, call: &ToolCall) -> bool {
        call.first_arg
            .as_ref()
            .is_some_and(|arg| arg.starts_with(&self.0))
    }
}

fn compile(text: &str) -> Result<Box<dyn CallPattern>, String> {
    match text.strip_suffix(" *") {
        Some(start) => Ok(Box::new(Starts(start.to_owned()))),
        None => Err("it has no star".to_owned()),
    }
}

fn variable(name: &str) -> Option<String> {
    (name == "TOKEN").then(|| "t0ken".to_owned())
}

fn layer(scope: Scope, hooks: Value) -> HookLayer {
    HookLayer {
        hooks: serde_json::from_value(hooks).unwrap(),
        ..HookLayer::empty(scope)
    }
}

fn parse(layers: &[HookLayer], switch: HookSwitch) -> Result<HookConfig, HookConfigError> {
    let with = ParseWith {
        switch,
        pattern: &compile,
        variable: &variable,
    };
    HookConfig::parse(layers, &with)
}

fn user(hooks: Value) -> Result<HookConfig, HookConfigError> {
    parse(&[layer(Scope::User, hooks)], HookSwitch::On)
}

fn message(entry: &Value) -> String {
    user(json!({"PreToolUse": [entry]}))
        .unwrap_err()
        .to_string()
}

#[test]
fn three_shapes_mean_the_same() {
    let handler = json!({"type": "command", "command": "guard", "timeout": 5});
    let shapes = [
        json!({"matcher": "Bash", "handlers": [handler]}),
        json!({"matcher": "Bash", "hooks": [handler]}),
        json!({"matcher": "Bash", "type": "command", "command": "guard", "timeout": "5s"}),
    ];
    for shape in shapes {
        let config = user(json!({"PreToolUse": [shape]})).unwrap();
        let [handler] = config.handlers(EventName::PreToolUse) else {
            panic!("{config:?}");
        };
        assert_eq!(handler.timeout, Duration::from_secs(5));
        assert_eq!(handler.on_error, OnError::Allow);
        let shown: Vec<Configured<'_>> = config.configured().collect();
        let expected = Configured {
            event: EventName::PreToolUse,
            scope: Scope::User,
            matcher: "Bash",
            kind: "command",
            handler: "guard",
            is_async: false,
        };
        assert_eq!(shown, [expected]);
        assert_eq!(config.notices(), [] as [&str; 0]);
    }
}

#[test]
fn what_is_said_of_nothing_is_the_default() {
    let config = user(json!({"Stop": [{"type": "command", "command": "x"}]})).unwrap();
    let [handler] = config.handlers(EventName::Stop) else {
        panic!("{config:?}");
    };
    assert_eq!(handler.timeout, Duration::from_mins(1));
    assert!(handler.filter.matcher.is_all());
    assert!(!config.is_empty() && user(json!({})).unwrap().is_empty());
}

#[test]
fn an_unknown_event_is_an_error_with_the_nearest_name() {
    let error = user(json!({"PreToolUsage": []})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`hooks.PreToolUsage` in the user settings: there is no such event; did you mean `PreToolUse`?"
    );
    assert!(user(json!({"Banana": []})).is_err());
}

#[test]
fn reserved_events_are_accepted_with_a_notice() {
    let config = user(json!({"Setup": [{"anything": 1}], "TeammateIdle": []})).unwrap();
    assert!(config.is_empty());
    assert_eq!(config.notices().len(), 2);
    assert!(config.notices()[0].contains("`hooks.Setup`"));
}

#[rstest]
#[case(json!("x"), "must be a table")]
#[case(json!({}), "has no handlers")]
#[case(json!({"handlers": [], "hooks": []}), "two names")]
#[case(json!({"handler": []}), "did you mean `handlers`?")]
#[case(json!({"handlers": [], "when": "x"}), "unknown key `when`")]
#[case(json!({"handlers": {}}), "`handlers` must be a list")]
#[case(json!({"matcher": 1, "handlers": []}), "`matcher` must be a text")]
#[case(json!({"matcher": "(", "handlers": []}), "regular expression")]
#[case(json!({"if": "rm", "handlers": []}), "it has no star")]
#[case(json!({"handlers": ["x"]}), "entry 1, handler 1: it must be a table")]
#[case(json!({"handlers": [{"command": "x"}]}), "`type` is missing")]
#[case(json!({"type": "shell", "command": "x"}), "must be command, http")]
#[case(json!({"type": "command"}), "`command` is missing")]
#[case(json!({"type": "command", "command": " "}), "`command` is missing")]
#[case(json!({"type": "command", "command": "x", "args": "y"}), "a list of texts")]
#[case(json!({"type": "command", "command": "x", "comand": "y"}), "did you mean `command`?")]
#[case(json!({"type": "command", "command": "x", "url": "y"}), "unknown key `url`")]
#[case(json!({"type": "command", "command": "x", "timeout": "soon"}), "`timeout` is not a duration")]
#[case(json!({"type": "command", "command": "x", "timeout": 4000}), "at most one hour")]
#[case(json!({"type": "command", "command": "x", "async": "yes"}), "true or false")]
#[case(json!({"type": "command", "command": "x", "on_error": "panic"}), "\"deny\", \"ask\" or \"allow\"")]
#[case(json!({"type": "command", "command": "x", "async": true, "on_error": "deny"}), "handlers that decide")]
#[case(json!({"type": "http", "url": "nowhere"}), "not a usable URL")]
#[case(json!({"type": "http", "url": "ftp://a/"}), "https://")]
#[case(json!({"type": "http", "url": "http://u:p@a/"}), "user name or password")]
#[case(json!({"type": "http", "url": "http://a/", "headers": {"a": 1}}), "a table of texts")]
#[case(json!({"type": "http", "url": "http://a/", "headers": {"a b": "x"}}), "header `a b`")]
#[case(json!({"type": "mcp", "mcp": "s"}), "`tool` is missing")]
#[case(json!({"type": "prompt"}), "`prompt` is missing")]
#[case(json!({"type": "agent", "prompt": "p", "async": false}), "never waited for")]
fn mistakes_are_errors(#[case] entry: Value, #[case] expected: &str) {
    let message = message(&entry);
    assert!(
        message.contains("`hooks.PreToolUse` in the user settings, entry 1"),
        "{message}"
    );
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_mistake_is_placed() {
    let good = json!({"type": "command", "command": "x"});
    let entries = json!([{"handlers": [good]}, {"hooks": [good, {"type": "x"}]}]);
    let error = user(json!({"PreToolUse": entries}))
        .unwrap_err()
        .to_string();
    assert!(error.contains("entry 2, handler 2"), "{error}");
}

#[test]
fn strange_text_cannot_drive_a_terminal() {
    let message = message(&json!({"handlers": [], "\u{1b}[2J": 1}));
    assert!(!message.contains('\u{1b}'), "{message}");
}

#[test]
fn what_only_gates_have_is_refused_elsewhere() {
    let entry = json!([{"type": "command", "command": "x", "on_error": "deny"}]);
    assert!(user(json!({"PostToolUse": entry})).is_err());
    assert!(user(json!({"UserPromptSubmit": entry})).is_ok());
    let entry = json!([{"if": "rm *", "handlers": []}]);
    assert!(user(json!({"Stop": entry})).is_err());
    assert!(user(json!({"PostToolUse": entry})).is_ok());
}

#[test]
fn idle_settings_are_noticed() {
    let config = user(json!({
        "Stop": [{"matcher": "Bash", "type": "command", "command": "x"}],
        "PreToolUse": [{"handlers": []}],
    }))
    .unwrap();
    assert_eq!(config.notices().len(), 2);
    assert!(
        config
            .notices()
            .iter()
            .any(|text| text.contains("nothing to match"))
    );
    assert!(
        config
            .notices()
            .iter()
            .any(|text| text.contains("does nothing"))
    );
}

#[test]
fn agents_are_never_waited_for() {
    let config = user(json!({"Stop": [{"type": "agent", "prompt": "review"}]})).unwrap();
    assert!(config.configured().all(|handler| handler.is_async));
}

#[test]
fn urls_and_variables_need_to_be_listed() {
    let entry = |headers: Value| json!({"PreToolUse": [{"type": "http", "url": "https://a.org/x", "headers": headers}]});
    let with_lists = |urls: &[&str], variables: &[&str], headers: Value| {
        let texts = |list: &[&str]| Some(list.iter().map(|text| (*text).to_owned()).collect());
        let layer = HookLayer {
            allowed_urls: texts(urls),
            allowed_variables: texts(variables),
            ..layer(Scope::Project, entry(headers))
        };
        parse(&[layer], HookSwitch::On).unwrap()
    };
    let refused = |config: &HookConfig| {
        let [handler] = config.handlers(EventName::PreToolUse) else {
            panic!("{config:?}");
        };
        match &handler.action {
            crate::action::Action::Refused { reason, .. } => Some(reason.clone()),
            _ => None,
        }
    };
    let token = json!({"Authorization": "Bearer ${TOKEN}"});
    let listed = with_lists(&["https://a.org/*"], &["TOKEN"], token.clone());
    assert_eq!(refused(&listed), None);
    assert!(!format!("{listed:?}").contains("t0ken"));
    for (urls, variables, headers, expected) in [
        (
            &[][..],
            &["TOKEN"][..],
            token.clone(),
            "allowed_http_hook_urls",
        ),
        (&["*"], &[], token, "http_hook_allowed_env_vars"),
        (&["*"], &["UNSET"], json!({"a": "${UNSET}"}), "is not set"),
    ] {
        let config = with_lists(urls, variables, headers);
        let reason = refused(&config).unwrap();
        assert!(reason.contains(expected), "{reason}");
        assert!(config.notices()[0].contains(expected));
    }
}

#[test]
fn a_bad_url_pattern_is_an_error() {
    let layer = HookLayer {
        allowed_urls: Some(vec!["hooks.example.com".to_owned()]),
        ..HookLayer::empty(Scope::User)
    };
    let error = parse(&[layer], HookSwitch::On).unwrap_err().to_string();
    assert!(
        error.contains("`hooks.example.com`") && error.contains("https://"),
        "{error}"
    );
}

/// Which scopes' handlers are left.
fn left(layers: &[HookLayer], switch: HookSwitch) -> Vec<Scope> {
    let config = parse(layers, switch).unwrap();
    config.configured().map(|handler| handler.scope).collect()
}

#[test]
fn switches() {
    let hook = json!({"Stop": [{"type": "command", "command": "x"}]});
    let layers = |change: fn(&mut [HookLayer])| {
        let scopes = [Scope::Managed, Scope::User, Scope::Project];
        let mut layers = scopes.map(|scope| layer(scope, hook.clone()));
        change(&mut layers);
        layers
    };
    let all = [Scope::Managed, Scope::User, Scope::Project];
    let managed = [Scope::Managed];
    assert_eq!(left(&layers(|_| {}), HookSwitch::On), all);
    assert_eq!(left(&layers(|_| {}), HookSwitch::Off), managed);
    let disabled_by_user = layers(|layers| layers[1].disable_all = Some(true));
    assert_eq!(left(&disabled_by_user, HookSwitch::On), managed);
    let disabled_by_managed = layers(|layers| {
        layers[0].disable_all = Some(true);
        layers[1].disable_all = Some(false);
    });
    assert_eq!(left(&disabled_by_managed, HookSwitch::On), []);
    let only_managed = layers(|layers| {
        layers[0].managed_only = Some(true);
        layers[2].managed_only = Some(false);
    });
    assert_eq!(left(&only_managed, HookSwitch::On), managed);
    let reopened = layers(|layers| {
        layers[1].disable_all = Some(true);
        layers[2].disable_all = Some(false);
    });
    assert_eq!(left(&reopened, HookSwitch::On), all);
}

#[test]
fn what_is_switched_off_may_be_broken() {
    let broken = [layer(Scope::User, json!({"Nonsense": []}))];
    assert!(parse(&broken, HookSwitch::On).is_err());
    assert!(parse(&broken, HookSwitch::Off).unwrap().is_empty());
}
