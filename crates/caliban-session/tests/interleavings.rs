//! Whatever is sent in whatever order: every prompt has exactly one end, every question exactly
//! one answer, and the stream has no gaps.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{Answer, Event, Interrupt, Remember};
use caliban_session::{
    Bounds, Command, Delivery, EventBatch, Place, Prompt, Refused, SessionEvent, SessionHandle,
    Shutdown, What,
};
use caliban_settings::PermissionMode;
use proptest::prelude::*;

use support::{Script, Step, Studio, allow};

/// One thing that somebody does.
#[derive(Debug, Clone)]
enum Deed {
    Prompt(Vec<Step>, Delivery),
    /// Sends the prompt of this number again.
    Again(usize),
    TakeBack(usize),
    Compact,
    Interrupt,
    SetMode,
    Attend,
    StopAttending,
    /// Answers every question that was heard of, in this way.
    Answer(bool),
    AnswerNobody,
    Listen(usize),
    /// A second hearer comes, and this one goes where there is one.
    Second,
    LetThrough,
    PassTime,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Say),
        1 => Just(Step::SayMuch),
        3 => Just(Step::Ask),
        2 => Just(Step::AskNested),
        2 => Just(Step::AskAside),
        1 => Just(Step::Hang),
        1 => Just(Step::Gate),
        2 => Just(Step::TakeMail),
        2 => Just(Step::Yield),
    ]
}

/// Most scripts end well; a few break everything.
fn script() -> impl Strategy<Value = Vec<Step>> {
    let usual = || proptest::collection::vec(step(), 0..5);
    prop_oneof![
        20 => usual(),
        1 => usual().prop_map(|steps| [steps, vec![Step::Overspend]].concat()),
        1 => usual().prop_map(|steps| [steps, vec![Step::Panic]].concat()),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    let delivery = prop_oneof![Just(Delivery::Queue), Just(Delivery::Steer)];
    prop_oneof![
        6 => (script(), delivery).prop_map(|(steps, delivery)| Deed::Prompt(steps, delivery)),
        1 => (0_usize..20).prop_map(Deed::Again),
        2 => (0_usize..20).prop_map(Deed::TakeBack),
        1 => Just(Deed::Compact),
        2 => Just(Deed::Interrupt),
        1 => Just(Deed::SetMode),
        2 => Just(Deed::Attend),
        1 => Just(Deed::StopAttending),
        3 => any::<bool>().prop_map(Deed::Answer),
        1 => Just(Deed::AnswerNobody),
        3 => (1_usize..4).prop_map(Deed::Listen),
        1 => Just(Deed::Second),
        2 => Just(Deed::LetThrough),
        3 => Just(Deed::PassTime),
    ]
}

#[derive(Debug, Clone, Copy)]
enum Goodbye {
    WhenIdle,
    Now,
    Abandon,
}

fn goodbye() -> impl Strategy<Value = Goodbye> {
    prop_oneof![
        Just(Goodbye::WhenIdle),
        Just(Goodbye::Now),
        Just(Goodbye::Abandon)
    ]
}

fn answer(is_allowed: bool) -> Answer {
    if is_allowed {
        return allow();
    }
    Answer::Deny {
        reason: None,
        remember: Remember::Once,
        interrupt: Interrupt::No,
    }
}

async fn answer_all(handle: &SessionHandle, heard: &[Arc<SessionEvent>], is_allowed: bool) {
    for event in heard {
        if let What::Asked(asked) = &event.what {
            let question = Arc::clone(&asked.question);
            let answer = answer(is_allowed);
            // Once it is over nobody wants to know.
            let _ = handle.send(Command::Answer { question, answer }).await;
        }
    }
}

/// Ends a session and hears the rest.
async fn part(mut studio: Studio, goodbye: Goodbye) -> Vec<Arc<SessionEvent>> {
    studio.gate.add_permits(1_000);
    studio.events.stop_attending();
    match goodbye {
        Goodbye::WhenIdle => {
            // What hangs would hang for ever.
            let handle = studio.handle.clone();
            tokio::spawn(async move {
                let when = Shutdown::WhenIdle;
                let _ = handle.send(Command::Shutdown { when }).await;
                while handle.send(Command::Interrupt).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
            studio.rest().await
        }
        Goodbye::Now => {
            let when = Shutdown::Now;
            let _ = studio.handle.send(Command::Shutdown { when }).await;
            studio.rest().await
        }
        Goodbye::Abandon => studio.abandon().await,
    }
}

/// Plays everything and returns what was heard, how often each prompt was sent, and what a second
/// hearer heard.
async fn play(
    deeds: Vec<Deed>,
    goodbye: Goodbye,
) -> (
    Vec<Arc<SessionEvent>>,
    HashMap<String, u32>,
    Vec<EventBatch>,
) {
    let bounds = Bounds {
        prompts: 5,
        ..Bounds::APPLICATION
    };
    let mut studio = Studio::open(bounds);
    let mut sent: HashMap<String, u32> = HashMap::new();
    let mut names = Vec::new();
    let mut heard = Vec::new();
    let mut second = None;
    for deed in deeds {
        let command = match deed {
            Deed::Prompt(steps, delivery) => {
                let id = format!("p{}", names.len());
                names.push((id.clone(), Script::of(&steps).text(), delivery));
                *sent.entry(id.clone()).or_default() += 1;
                let prompt = Prompt::typed(id.as_str(), Script::of(&steps).text());
                Command::Prompt { prompt, delivery }
            }
            Deed::Again(number) => {
                let Some((id, text, delivery)) = names.get(number).cloned() else {
                    continue;
                };
                *sent.entry(id.clone()).or_default() += 1;
                let prompt = Prompt::typed(id.as_str(), text);
                Command::Prompt { prompt, delivery }
            }
            Deed::TakeBack(number) => Command::TakeBack {
                prompt: format!("p{number}").into(),
            },
            Deed::Compact => {
                let id = format!("p{}", names.len());
                names.push((id.clone(), String::new(), Delivery::Queue));
                *sent.entry(id.clone()).or_default() += 1;
                Command::Compact {
                    id: id.into(),
                    instructions: None,
                }
            }
            Deed::Interrupt => Command::Interrupt,
            Deed::SetMode => Command::SetMode {
                mode: PermissionMode::BypassPermissions,
            },
            Deed::Attend => {
                studio.events.attend();
                continue;
            }
            Deed::StopAttending => {
                studio.events.stop_attending();
                continue;
            }
            Deed::Answer(is_allowed) => {
                answer_all(&studio.handle, &heard, is_allowed).await;
                continue;
            }
            Deed::AnswerNobody => Command::Answer {
                question: "nobody".into(),
                answer: allow(),
            },
            Deed::Listen(times) => {
                for _ in 0..times {
                    let next = tokio::time::timeout(Duration::from_millis(1), studio.next());
                    heard.extend(next.await.ok().flatten());
                }
                continue;
            }
            Deed::Second => {
                second = match second {
                    None => Some(studio.handle.subscribe(1)),
                    Some(_) => None,
                };
                continue;
            }
            Deed::LetThrough => {
                studio.gate.add_permits(1);
                continue;
            }
            Deed::PassTime => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
        };
        // A session that broke, or has spent its budget, hears nothing any more.
        if studio.handle.send(command).await.is_err() {
            break;
        }
    }
    heard.extend(part(studio, goodbye).await);
    let mut told = Vec::new();
    if let Some(mut second) = second {
        while let Some(next) = second.next().await {
            told.push(next);
        }
    }
    (heard, sent, told)
}

fn check(events: &[Arc<SessionEvent>], sent: &HashMap<String, u32>, second: &[EventBatch]) {
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event.seq, number as u64 + 1, "a gap in the stream");
    }
    assert!(matches!(
        events.last().map(|event| &event.what),
        Some(What::Closed { .. })
    ));
    let mut ends: HashMap<&str, u32> = HashMap::new();
    let mut given_up: HashMap<&str, u32> = HashMap::new();
    let mut questions: HashMap<&str, u32> = HashMap::new();
    let mut running: Option<&str> = None;
    for event in events {
        match &event.what {
            What::Began { prompt, .. } => {
                assert_eq!(running, None, "two prompts at once");
                running = Some(prompt);
            }
            What::Ended { prompt, .. } => {
                *ends.entry(prompt).or_default() += 1;
                if running == Some(prompt) {
                    running = None;
                }
            }
            What::Run(Event::Steered { prompt, .. }) => *ends.entry(prompt).or_default() += 1,
            What::TakenBack { prompt }
            | What::Refused(Refused {
                what: Place::Prompt(prompt),
                ..
            }) => *given_up.entry(prompt).or_default() += 1,
            What::Asked(asked) => {
                assert_eq!(questions.insert(&asked.question, 0), None, "asked twice");
            }
            What::Answered(answered) => {
                let count = questions
                    .get_mut(&*answered.question)
                    .expect("an answer without a question");
                *count += 1;
            }
            _ => {}
        }
    }
    assert!(questions.values().all(|count| *count == 1), "{questions:?}");
    let is_whole = events.iter().all(|event| {
        !matches!(
            event.what,
            What::Closed {
                why: caliban_session::ClosedWhy::Budget | caliban_session::ClosedWhy::Crashed,
                ..
            }
        )
    });
    for (id, times) in sent {
        let (ends, given_up) = (
            ends.get(&**id).copied().unwrap_or_default(),
            given_up.get(&**id).copied().unwrap_or_default(),
        );
        assert!(ends <= 1, "{id} ended {ends} times");
        assert!(
            ends + given_up <= *times,
            "{id}: {ends} + {given_up} > {times}"
        );
        // What was sent to a session that had ended by itself is nobody's.
        assert!(!is_whole || ends + given_up >= 1, "{id} has no end");
    }
    let mut next = 1;
    for heard in second {
        match heard {
            EventBatch::Missed(count) => next += count,
            EventBatch::Events(events) => {
                for event in events {
                    assert_eq!(event.seq, next, "a gap for the second hearer");
                    next += 1;
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(300),
        ..ProptestConfig::default()
    })]
    #[test]
    fn every_prompt_has_one_end_and_every_question_one_answer(
        deeds in proptest::collection::vec(deed(), 0..40),
        goodbye in goodbye(),
    ) {
        std::panic::set_hook(Box::new(|_| {}));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let played = runtime.block_on(async {
            tokio::time::timeout(Duration::from_hours(1), play(deeds, goodbye)).await
        });
        let _ = std::panic::take_hook();
        let (events, sent, second) = played.expect("the session does not end");
        check(&events, &sent, &second);
    }
}
