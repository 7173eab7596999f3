//! Who may answer: filters, order, names and budgets.

use std::collections::BTreeMap;
use std::sync::Arc;

use caliban_model::{Purpose, RateCard};
use caliban_router::{
    BudgetRule, Facts, Need, Order, Origins, Plan, Reason, Resolution, Route, Seat, Strictness,
    Table, TableSettings, Verdict, View, VirtualClock, Why, resolve,
};
use rstest::rstest;
use rust_decimal::dec;

use crate::support::{Fake, GPT, SONNET, ms, route};

fn of(id: &str, provider: &'static str, model: &str, purpose: Purpose) -> Route {
    let fake = Fake::new(provider, &VirtualClock::default());
    Route {
        purpose,
        ..route(id, &fake, model)
    }
}

fn main(id: &str, provider: &'static str, model: &str) -> Route {
    of(id, provider, model, Purpose::MainLoop)
}

fn declared() -> TableSettings {
    TableSettings {
        origins: Origins::Declared,
        ..TableSettings::default()
    }
}

fn decide(table: &Table, facts: &Facts, view: &View) -> Resolution {
    resolve(table, facts, view, RateCard::builtin())
}

fn ids(resolution: &Resolution) -> Vec<&str> {
    resolution.candidates().map(|it| &*it.id).collect()
}

fn plain(purpose: Purpose) -> Facts {
    Facts::plain(purpose, SONNET)
}

#[rstest]
#[case(Purpose::MainLoop, &["main", "spare"])]
#[case(Purpose::Summarization, &["summary"])]
#[case(Purpose::FastClassifier, &["summary"])]
#[case(Purpose::SubAgent, &["main", "spare"])]
#[case(Purpose::Other, &["main", "spare"])]
#[case(Purpose::Embedding, &[])]
fn a_purpose_without_routes_borrows_those_of_another(
    #[case] purpose: Purpose,
    #[case] expected: &[&str],
) {
    let table = Table::new(
        vec![
            main("main", "anthropic", SONNET),
            of("summary", "ollama", "llama3.1", Purpose::Summarization),
            main("spare", "openai", GPT),
        ],
        declared(),
    );
    let resolution = decide(&table, &plain(purpose), &View::default());
    assert_eq!(ids(&resolution), expected);
    assert_eq!(resolution.considered.len(), 3, "everybody is considered");
}

#[rstest]
#[case::absent(None, &["a", "b", "c"])]
#[case::named(Some(vec!["c"]), &["a", "c"])]
#[case::of_another_purpose(Some(vec!["x", "b"]), &["a", "x", "b"])]
#[case::itself_and_twice(Some(vec!["a", "b", "b"]), &["a", "b"])]
#[case::none(Some(vec![]), &["a"])]
fn the_head_says_who_comes_after_it(
    #[case] fallback: Option<Vec<&str>>,
    #[case] expected: &[&str],
) {
    let mut head = main("a", "anthropic", SONNET);
    head.fallback = fallback.map(|list| list.into_iter().map(Arc::from).collect());
    let routes = vec![
        head,
        main("b", "openai", GPT),
        main("c", "google", "gemini-3.8-flash"),
        of("x", "ollama", "llama3.1", Purpose::FastClassifier),
    ];
    let table = Table::new(routes, declared());
    let resolution = decide(&table, &plain(Purpose::MainLoop), &View::default());
    assert_eq!(ids(&resolution), expected);
}

#[test]
fn who_cannot_see_is_not_shown_pictures_and_who_nobody_knows_must_say_so() {
    let mut said = main("said", "openai", "my-own-model");
    said.declared.vision = Some(true);
    let routes = vec![
        main("blind", "ollama", "llama3.1"),
        main("unknown", "openai", "my-model"),
        said,
        main("known", "anthropic", SONNET),
    ];
    let table = Table::new(routes, declared());
    let mut facts = plain(Purpose::MainLoop);
    facts.model = "llama3.1".into();
    facts.needs.insert(Need::Vision);
    let resolution = decide(&table, &facts, &View::default());
    assert_eq!(ids(&resolution), ["said", "known"]);
    assert_eq!(
        resolution.verdict("blind"),
        Some(&Verdict::Dropped(Reason::Lacks(Need::Vision)))
    );
    assert_eq!(
        resolution.verdict("unknown"),
        Some(&Verdict::Dropped(Reason::Undeclared(Need::Vision)))
    );
}

#[rstest]
#[case::strict(Origins::Declared, Strictness::Strict, Need::Vision, false)]
#[case::lenient(Origins::Declared, Strictness::Lenient, Need::Vision, true)]
#[case::chosen(Origins::Implied, Strictness::Strict, Need::Vision, true)]
#[case::can_be_left_out(Origins::Declared, Strictness::Strict, Need::Thinking, true)]
fn a_request_that_fits_nobody_fails_unless_that_was_asked_for(
    #[case] origins: Origins,
    #[case] strictness: Strictness,
    #[case] need: Need,
    #[case] is_sent: bool,
) {
    let settings = TableSettings {
        origins,
        strictness,
        ..TableSettings::default()
    };
    let table = Table::new(vec![main("only", "ollama", "llama3.1")], settings);
    let mut facts = Facts::plain(Purpose::MainLoop, "llama3.1");
    facts.needs.insert(need);
    let resolution = decide(&table, &facts, &View::default());
    assert_eq!(ids(&resolution).len(), usize::from(is_sent));
    if !is_sent {
        assert!(
            matches!(&resolution.plan, Plan::Nobody(reason) if reason.contains("`only`: lacks vision")),
            "{:?}",
            resolution.plan
        );
    }
}

#[test]
fn what_does_not_fit_a_window_goes_where_there_is_room_or_to_the_largest() {
    let routes = vec![
        main("small", "anthropic", "claude-haiku-4-5"),
        main("large", "anthropic", "claude-opus-4-7"),
    ];
    let table = Table::new(routes, declared());
    let mut facts = Facts::plain(Purpose::MainLoop, "claude-haiku-4-5");
    facts.input_tokens = 250_000;
    let resolution = decide(&table, &facts, &View::default());
    assert_eq!(ids(&resolution), ["large"]);
    facts.input_tokens = 50_000_000;
    let resolution = decide(&table, &facts, &View::default());
    assert_eq!(ids(&resolution), ["large"], "the engine makes it shorter");
    assert!(matches!(
        resolution.verdict("large"),
        Some(Verdict::Kept(Why::LastResort(_)))
    ));
}

#[rstest]
#[case::head(SONNET, &["a", "b"], None)]
#[case::other_route(GPT, &["b", "a"], None)]
#[case::route_id("b", &["b", "a"], None)]
#[case::inherit("inherit", &["a", "b"], None)]
#[case::tier("opus", &["a", "b"], Some("opus"))]
#[case::small("haiku", &["fast", "a", "b"], None)]
#[case::alias("quick", &["fast", "a", "b"], None)]
#[case::other_model_of_a_provider(
    "claude-opus-4-7",
    &["anthropic:claude-opus-4-7:main_loop", "a", "b"],
    None
)]
#[case::somebodys_own("mystery", &["anthropic:mystery:main_loop", "a", "b"], None)]
fn a_models_name_may_be_a_model_a_route_or_a_word(
    #[case] name: &str,
    #[case] expected: &[&str],
    #[case] alias: Option<&str>,
) {
    let routes = vec![
        main("a", "anthropic", SONNET),
        main("b", "openai", GPT),
        of("fast", "ollama", "llama3.2:3b", Purpose::FastClassifier),
    ];
    let table = Table::new(
        routes,
        TableSettings {
            aliases: BTreeMap::from([("quick".to_owned(), "fast".to_owned())]),
            ..declared()
        },
    );
    let facts = Facts::plain(Purpose::MainLoop, name);
    let resolution = decide(&table, &facts, &View::default());
    assert_eq!(ids(&resolution), expected);
    assert_eq!(resolution.alias.as_deref(), alias);
}

#[test]
fn without_credentials_a_route_is_dropped_and_a_small_model_that_is_missing_is_stood_in_for() {
    let mut vacant = of("fast", "openai", GPT, Purpose::FastClassifier);
    vacant.seat = Seat::Vacant {
        provider: "openai".into(),
        reason: "set `OPENAI_API_KEY`".into(),
    };
    let table = Table::new(vec![main("a", "anthropic", SONNET), vacant], declared());
    let facts = Facts::plain(Purpose::FastClassifier, GPT);
    let resolution = decide(&table, &facts, &View::default());
    assert_eq!(ids(&resolution), ["a"]);
    assert_eq!(resolution.purpose, Purpose::MainLoop);
}

#[test]
fn the_cheapest_or_the_fastest_may_be_asked_first() {
    let routes = || {
        vec![
            of(
                "dear",
                "anthropic",
                "claude-opus-4-7",
                Purpose::FastClassifier,
            ),
            of(
                "cheap",
                "anthropic",
                "claude-haiku-4-5",
                Purpose::FastClassifier,
            ),
            of("free", "ollama", "llama3.1", Purpose::FastClassifier),
        ]
    };
    let with = |order| TableSettings {
        orders: BTreeMap::from([(Purpose::FastClassifier, order)]),
        ..declared()
    };
    let facts = Facts::plain(Purpose::FastClassifier, "inherit");
    let table = Table::new(routes(), with(Order::Cheapest));
    assert_eq!(
        ids(&decide(&table, &facts, &View::default())),
        ["free", "cheap", "dear"]
    );
    let table = Table::new(routes(), with(Order::Fastest));
    let mut view = View::default();
    for (id, millis) in [("cheap", 100), ("dear", 900)] {
        let health = view.routes.entry(id.into()).or_default();
        health.first_content = Some(ms(millis));
    }
    assert_eq!(
        ids(&decide(&table, &facts, &view)),
        ["cheap", "dear", "free"]
    );
}

#[test]
fn a_budget_moves_to_a_cheaper_route_and_never_back_up() {
    let budgets = vec![BudgetRule {
        at: dec!(0.8),
        purpose: Purpose::MainLoop,
        route: "cheap".into(),
    }];
    let routes = vec![
        main("dear", "anthropic", "claude-opus-4-7"),
        main("other", "openai", GPT),
        of(
            "cheap",
            "anthropic",
            "claude-haiku-4-5",
            Purpose::Summarization,
        ),
        main("unpriced", "openai", "my-model"),
    ];
    let table = Table::new(
        routes,
        TableSettings {
            budgets,
            ..declared()
        },
    );
    let facts = Facts::plain(Purpose::MainLoop, "claude-opus-4-7");
    let spent = |part| View {
        spent: Some(part),
        ..View::default()
    };
    let early = decide(&table, &facts, &spent(dec!(0.79)));
    assert_eq!(ids(&early), ["dear", "other"]);
    assert_eq!(
        early.verdict("unpriced"),
        Some(&Verdict::Dropped(Reason::UnknownPrice))
    );
    let late = decide(&table, &facts, &spent(dec!(0.8)));
    assert_eq!(ids(&late), ["cheap"]);
    assert_eq!(late.verdict("cheap"), Some(&Verdict::Kept(Why::Saves)));
    assert_eq!(
        late.verdict("dear"),
        Some(&Verdict::Dropped(Reason::Dearer))
    );
}
