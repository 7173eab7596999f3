//! Every key in every pair of scopes: who wins, what is joined, and who is said to have said it.

use caliban_settings::{LoadRequest, LoadedSettings, Scope, TrustDecision, load, settings_schema};
use rstest::rstest;
use serde::Deserialize;
use serde_json::{Value, json};

/// How a key is expected to merge.
#[derive(Clone, Copy, PartialEq, Deserialize)]
enum Merge {
    Highest,
    Joined,
    ByKey,
}
use Merge::{ByKey, Highest, Joined};

use crate::support::World;

/// Every key with how it merges and two values, the lower scope's and the higher one's.
fn keys() -> Vec<(&'static str, Merge, Value, Value)> {
    include_str!("merging.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn at(key: &str, value: Value) -> Value {
    key.rsplit('.')
        .fold(value, |value, name| json!({ name: value }))
}

fn look<'a>(value: &'a Value, key: &str) -> &'a Value {
    key.split('.').fold(value, |value, name| &value[name])
}

fn joined(low: &Value, high: &Value) -> Value {
    let mut list = low.as_array().unwrap().clone();
    for item in high.as_array().unwrap() {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
    Value::Array(list)
}

fn by_key(low: &Value, high: &Value) -> Value {
    let mut table = low.as_object().unwrap().clone();
    table.extend(high.as_object().unwrap().clone());
    Value::Object(table)
}

fn load_two(low: (Scope, &Value), high: (Scope, &Value)) -> LoadedSettings {
    let world = World::new();
    let mut request = LoadRequest {
        trust: TrustDecision::Granted,
        ..LoadRequest::new(world.locations.clone(), &world.workspace)
    };
    for (scope, value) in [low, high] {
        if scope == Scope::Cli {
            request.overlay = Some(value.to_string());
        } else {
            world.write_json(scope, value);
        }
    }
    load(&request).unwrap_or_else(|error| panic!("{error}"))
}

#[rstest]
fn every_key_in_every_pair_of_scopes(
    #[values(Scope::Managed, Scope::User, Scope::Project, Scope::Local)] low: Scope,
    #[values(Scope::User, Scope::Project, Scope::Local, Scope::Cli)] high: Scope,
) {
    if low >= high {
        return;
    }
    for (key, merge, below, above) in keys() {
        let (lower, higher) = (at(key, below.clone()), at(key, above.clone()));
        let loaded = load_two((low, &lower), (high, &higher));
        let expected = match merge {
            Highest => above.clone(),
            Joined => joined(&below, &above),
            ByKey => by_key(&below, &above),
        };
        let settings = serde_json::to_value(&loaded.settings).unwrap();
        assert_eq!(*look(&settings, key), expected, "{key}: {low} below {high}");
        let contributors = loaded.provenance.contributors(key);
        assert_eq!(
            contributors.last(),
            Some(&high),
            "{key}: {low} below {high}"
        );
        if merge == Joined {
            assert_eq!(contributors, [low, high], "{key}");
        }
    }
}

#[rstest]
fn a_key_set_once_is_never_reset_by_a_scope_that_does_not_mention_it(
    #[values(Scope::Managed, Scope::User, Scope::Project, Scope::Local)] scope: Scope,
) {
    for (key, _, value, _) in keys() {
        let lower = at(key, value.clone());
        let loaded = load_two((scope, &lower), (Scope::Cli, &json!({})));
        let settings = serde_json::to_value(&loaded.settings).unwrap();
        assert_eq!(*look(&settings, key), value, "{key} in {scope}");
        assert_eq!(loaded.provenance.of(key), Some(scope), "{key} in {scope}");
    }
}

#[test]
fn the_table_covers_every_key_of_the_schema() {
    let covered: Vec<&str> = keys()
        .into_iter()
        .map(|(key, ..)| key.split('.').next().unwrap())
        .chain(["$schema", "parent_settings_behavior", "trusted_directories"])
        // A workspace does not say it.
        .chain(["strict_plugin_only_customization"])
        .collect();
    let schema = settings_schema();
    for key in schema["properties"].as_object().unwrap().keys() {
        assert!(covered.contains(&key.as_str()), "{key}");
    }
}

#[test]
fn a_blocking_managed_scope_is_above_all() {
    for (key, merge, low, high) in keys() {
        let world = World::new();
        let mut managed = at(key, high.clone());
        managed["parent_settings_behavior"] = json!("block");
        world.write_json(Scope::Managed, &managed);
        let other = at(key, low.clone());
        for scope in [Scope::User, Scope::Project, Scope::Local] {
            world.write_json(scope, &other);
        }
        let request = LoadRequest {
            overlay: Some(other.to_string()),
            ..world.request(TrustDecision::Granted)
        };
        let loaded = load(&request).unwrap();
        assert!(loaded.is_locked());
        let settings = serde_json::to_value(&loaded.settings).unwrap();
        let effective = look(&settings, key);
        // Prohibitions of others stay: a lock does not free anybody.
        let restricts = key.starts_with("permissions.") || key.contains(".deny_");
        match merge {
            ByKey => assert_eq!(*effective, by_key(&low, &high), "{key}"),
            Joined if restricts && key != "permissions.allow" => {
                for item in high.as_array().unwrap() {
                    assert!(effective.as_array().unwrap().contains(item), "{key}");
                }
            }
            Joined | Highest => {
                assert_eq!(*effective, high, "{key}");
                assert_eq!(
                    loaded.provenance.contributors(key),
                    [Scope::Managed],
                    "{key}"
                );
                assert!(
                    loaded.ignored.iter().any(|ignored| ignored.key == key),
                    "{key}"
                );
            }
        }
    }
}

#[test]
fn only_the_managed_scope_can_block() {
    let world = World::new();
    world.write(Scope::Managed, "model = 'm'\n");
    world.write(
        Scope::User,
        "model = 'u'\nparent_settings_behavior = 'block'\n",
    );
    let loaded = world.load(TrustDecision::Recorded);
    assert_eq!(loaded.settings.model.as_ref().unwrap().name(), "u");
    assert!(!loaded.is_locked());
    assert_eq!(
        loaded.warnings,
        ["`parent_settings_behavior` does not count in the user scope"]
    );
}

#[rstest]
fn enforcement_of_the_user_or_operator_holds(
    #[values(Scope::Managed, Scope::User)] own: Scope,
    #[values(Scope::User, Scope::Project, Scope::Local, Scope::Cli)] later: Scope,
) {
    if own >= later {
        return;
    }
    let set = |value: bool| json!({"permissions": {"enforce": value}});
    let loaded = load_two((own, &set(true)), (later, &set(false)));
    assert_eq!(loaded.settings.permissions.enforce, Some(true));
    assert_eq!(loaded.provenance.of("permissions.enforce"), Some(own));
}

#[test]
fn rules_stay_with_their_scopes() {
    let world = World::new();
    world.write(Scope::Managed, "[permissions]\nallow = ['M']\n");
    world.write(Scope::User, "[permissions]\nallow = ['U']\ndeny = ['V']\n");
    world.write(
        Scope::Project,
        "[[permissions.rules]]\npattern = 'P'\naction = 'deny'\n",
    );
    let loaded = world.load(TrustDecision::Recorded);
    let order: Vec<_> = loaded
        .rules()
        .into_iter()
        .map(|layer| {
            let patterns = layer.rules.into_iter().map(|rule| rule.pattern);
            (layer.scope, patterns.collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(
        order,
        [
            (Scope::Project, vec!["P".to_owned()]),
            (Scope::User, vec!["V".to_owned(), "U".to_owned()]),
            (Scope::Managed, vec!["M".to_owned()]),
        ],
        "a project's ordered rules do not switch off the user's lists"
    );
}

#[test]
fn a_blocking_scopes_rules_come_first_and_the_others_may_only_forbid() {
    let world = World::new();
    world.write(
        Scope::Managed,
        "parent_settings_behavior = 'block'\n[permissions]\nallow = ['M']\n",
    );
    world.write(Scope::User, "[permissions]\nallow = ['U']\ndeny = ['V']\n");
    let loaded = world.load(TrustDecision::Recorded);
    let order: Vec<_> = loaded
        .rules()
        .into_iter()
        .flat_map(|layer| layer.rules)
        .map(|rule| rule.pattern)
        .collect();
    assert_eq!(order, ["M", "V"]);
}

#[test]
fn hooks_know_their_scope() {
    let world = World::new();
    world.write(Scope::User, "[[hooks.Stop]]\nmatcher = 'u'\n");
    world.write(Scope::Local, "[[hooks.Stop]]\nmatcher = 'l'\n");
    let loaded = world.load(TrustDecision::Granted);
    let hooks: Vec<_> = loaded
        .hooks("Stop")
        .into_iter()
        .map(|(scope, handler)| (scope, handler["matcher"].as_str().unwrap()))
        .collect();
    assert_eq!(hooks, [(Scope::User, "u"), (Scope::Local, "l")]);
}
