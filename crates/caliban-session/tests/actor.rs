//! What a session promises to those who command and hear it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{Answer, Event, Interrupt, Outcome, Remember};
use caliban_session::{
    Bounds, By, ClosedWhy, Command, Delivery, EventBatch, Place, Prompt, Refused, Shutdown, Stage,
    What,
};

use support::{Script, Step, Studio, allow, kinds};

fn prompt(id: &str, steps: &[Step]) -> Command {
    Command::Prompt {
        prompt: Prompt::typed(id, Script::of(steps).text()),
        delivery: Delivery::Queue,
    }
}

fn ended(what: &What) -> Option<(&str, &Outcome)> {
    match what {
        What::Ended {
            prompt, outcome, ..
        } => Some((prompt, outcome)),
        _ => None,
    }
}

fn success(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Success { .. })
}

#[tokio::test]
async fn prompts_are_worked_on_in_order_and_the_stream_has_no_gaps() {
    let studio = Studio::open(Bounds::APPLICATION);
    for id in ["a", "b", "c"] {
        studio.send(prompt(id, &[Step::Say])).await;
    }
    studio.shut_down(Shutdown::WhenIdle).await;
    let events = studio.rest().await;
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
    let ends: Vec<&str> = events
        .iter()
        .filter_map(|event| ended(&event.what).map(|(id, _)| id))
        .collect();
    assert_eq!(ends, ["a", "b", "c"]);
    let inside = events
        .iter()
        .filter(|event| matches!(event.what, What::Run(_)));
    assert!(inside.into_iter().all(|event| event.exchange.is_some()));
    assert!(matches!(
        events.last().unwrap().what,
        What::Closed {
            why: ClosedWhy::Shutdown,
            trouble: None
        }
    ));
}

#[tokio::test]
async fn an_interrupt_is_heard_however_many_prompts_wait() {
    let studio = Studio::open(Bounds::PIPE);
    studio.send(prompt("first", &[Step::Hang])).await;
    for number in 0..1_000 {
        studio.send(prompt(&number.to_string(), &[])).await;
    }
    studio.send(Command::Interrupt).await;
    studio.shut_down(Shutdown::WhenIdle).await;
    let events = studio.rest().await;
    let ends: Vec<_> = events.iter().filter_map(|it| ended(&it.what)).collect();
    assert_eq!(ends.len(), 1_001);
    assert_eq!(ends[0], ("first", &Outcome::Cancelled));
    assert!(ends[1..].iter().all(|(_, outcome)| success(outcome)));
    // Whoever interrupts is told what waits behind, and not what was stopped.
    let told = events.iter().find_map(|it| match &it.what {
        What::Interrupted { waiting } => Some(waiting),
        _ => None,
    });
    let expected = (0..1_000).map(|number| number.to_string().into());
    assert_eq!(told, Some(&expected.collect::<Vec<_>>()));
}

#[tokio::test]
async fn a_prompt_beyond_the_bound_is_refused_and_the_rest_goes_on() {
    let bounds = Bounds {
        prompts: 2,
        ..Bounds::APPLICATION
    };
    let mut studio = Studio::open(bounds);
    studio.send(prompt("running", &[Step::Hang])).await;
    studio
        .until(|what| matches!(what, What::Began { .. }))
        .await;
    for id in ["one", "two", "three"] {
        studio.send(prompt(id, &[])).await;
    }
    let refused = studio.until(|what| matches!(what, What::Refused(_))).await;
    let What::Refused(Refused {
        what: Place::Prompt(id),
        reason,
    }) = &refused.what
    else {
        panic!("{refused:?}");
    };
    assert_eq!(&**id, "three");
    assert!(reason.contains("2 prompts wait already"), "{reason}");
    studio.send(Command::Interrupt).await;
    studio.shut_down(Shutdown::WhenIdle).await;
    assert_eq!(kinds(&studio.rest().await, "ended").len(), 3);
}

#[tokio::test]
async fn the_same_prompt_is_not_worked_on_twice() {
    let mut studio = Studio::open(Bounds::APPLICATION);
    studio.send(prompt("a", &[Step::Say])).await;
    studio.until(|what| *what == What::Idle).await;
    studio.send(prompt("a", &[Step::Say])).await;
    let again = studio
        .until(|what| matches!(what, What::Repeated { .. }))
        .await;
    assert!(matches!(&again.what, What::Repeated { prompt, outcome, .. }
        if &**prompt == "a" && success(outcome)));
    studio.shut_down(Shutdown::WhenIdle).await;
    assert!(kinds(&studio.rest().await, "began").is_empty());
}

#[tokio::test]
async fn what_waits_can_be_taken_back_and_what_runs_cannot() {
    let studio = Studio::open(Bounds::APPLICATION);
    studio.send(prompt("running", &[Step::Hang])).await;
    studio.send(prompt("waiting", &[])).await;
    for id in ["waiting", "running", "nobody"] {
        let prompt = id.into();
        studio.send(Command::TakeBack { prompt }).await;
    }
    studio.send(Command::Interrupt).await;
    studio.shut_down(Shutdown::WhenIdle).await;
    let events = studio.rest().await;
    assert_eq!(kinds(&events, "taken_back").len(), 1);
    assert_eq!(kinds(&events, "refused").len(), 2);
    assert_eq!(kinds(&events, "ended").len(), 1);
}

#[tokio::test]
async fn a_question_is_answered_once_by_whoever_is_first() {
    let mut studio = Studio::open(Bounds::APPLICATION);
    studio.events.attend();
    studio.send(prompt("a", &[Step::Ask])).await;
    let asked = studio.until(|what| matches!(what, What::Asked(_))).await;
    let What::Asked(asked) = &asked.what else {
        panic!("{asked:?}");
    };
    let deny = Answer::Deny {
        reason: None,
        remember: Remember::Once,
        interrupt: Interrupt::No,
    };
    for answer in [allow(), deny] {
        let question = Arc::clone(&asked.question);
        studio.send(Command::Answer { question, answer }).await;
    }
    studio.shut_down(Shutdown::WhenIdle).await;
    let events = studio.rest().await;
    assert_eq!(kinds(&events, "answered").len(), 1);
    assert_eq!(kinds(&events, "refused").len(), 1);
    let text = events.iter().find_map(|it| ended(&it.what)).unwrap().1;
    assert_eq!(
        *text,
        Outcome::Success {
            text: "allowed".to_owned()
        }
    );
}

#[tokio::test]
async fn nobody_attending_means_the_unattended_answer_at_once() {
    let mut studio = Studio::open(Bounds::APPLICATION);
    studio.send(prompt("a", &[Step::Ask])).await;
    studio.until(|what| *what == What::Idle).await;
    studio.events.attend();
    studio.send(prompt("b", &[Step::Ask])).await;
    studio.until(|what| matches!(what, What::Asked(_))).await;
    // Whoever could have answered goes away.
    studio.events.stop_attending();
    studio.shut_down(Shutdown::WhenIdle).await;
    let events = studio.rest().await;
    let (_, outcome) = events.iter().find_map(|it| ended(&it.what)).unwrap();
    assert_eq!(
        *outcome,
        Outcome::Success {
            text: "refused".to_owned()
        }
    );
}

#[tokio::test]
async fn an_interrupted_question_is_withdrawn() {
    let mut studio = Studio::open(Bounds::APPLICATION);
    studio.events.attend();
    studio.send(prompt("a", &[Step::Ask])).await;
    studio.until(|what| matches!(what, What::Asked(_))).await;
    studio.send(Command::Interrupt).await;
    studio.shut_down(Shutdown::WhenIdle).await;
    let events = studio.rest().await;
    assert_eq!(kinds(&events, "answered").len(), 1);
    let (_, outcome) = events.iter().find_map(|it| ended(&it.what)).unwrap();
    assert_eq!(*outcome, Outcome::Cancelled);
}

fn asked(what: &What) -> Option<Arc<str>> {
    match what {
        What::Asked(asked) => Some(Arc::clone(&asked.question)),
        _ => None,
    }
}

#[tokio::test]
async fn what_is_asked_aside_outlives_the_prompt_and_can_be_answered_after_it() {
    let mut studio = Studio::open(Bounds::APPLICATION);
    studio.events.attend();
    studio.send(prompt("a", &[Step::AskAside])).await;
    let event = studio.until(|what| asked(what).is_some()).await;
    studio.until(|what| ended(what).is_some()).await;
    studio.send(prompt("b", &[])).await;
    studio.until(|what| ended(what).is_some()).await;
    let question = asked(&event.what).unwrap();
    let answer = allow();
    studio.send(Command::Answer { question, answer }).await;
    let answered = studio.until(|what| matches!(what, What::Answered(_))).await;
    let What::Answered(answered) = &answered.what else {
        unreachable!()
    };
    assert_eq!(answered.by, By::Operator(allow()));
    assert_eq!(studio.answers.recv().await, Some(allow()));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_what_is_asked_aside_is_nobodys_refusal() {
    let mut studio = Studio::patient(Bounds::APPLICATION, Some(Duration::from_secs(1)));
    studio.events.attend();
    studio.send(prompt("a", &[Step::AskAside])).await;
    studio.until(|what| asked(what).is_some()).await;
    assert_eq!(studio.answers.recv().await, Some(Answer::TimedOut));
}

#[tokio::test]
async fn what_is_asked_aside_is_withdrawn_with_the_session() {
    let mut studio = Studio::open(Bounds::APPLICATION);
    studio.events.attend();
    studio.send(prompt("a", &[Step::AskAside])).await;
    studio.until(|what| asked(what).is_some()).await;
    studio.shut_down(Shutdown::Now).await;
    let answered = studio.until(|what| matches!(what, What::Answered(_))).await;
    let What::Answered(answered) = &answered.what else {
        unreachable!()
    };
    assert_eq!(answered.by, By::Withdrawn);
    assert_eq!(studio.answers.recv().await, Some(Answer::Nobody));
}

#[tokio::test]
async fn a_steering_message_joins_or_comes_next() {
    let mut studio = Studio::open(Bounds::APPLICATION);
    let steer = |id: &str| Command::Prompt {
        prompt: Prompt::typed(id, ""),
        delivery: Delivery::Steer,
    };
    // The engine looks into the mailbox once, between its two steps.
    studio
        .send(prompt("a", &[Step::Gate, Step::TakeMail, Step::Gate]))
        .await;
    studio
        .until(|what| matches!(what, What::Began { .. }))
        .await;
    studio.send(steer("joins")).await;
    studio
        .until(|what| matches!(what, What::Queued { .. }))
        .await;
    studio.gate.add_permits(1);
    studio
        .until(|what| matches!(what, What::Run(Event::Steered { .. })))
        .await;
    studio.send(steer("late")).await;
    studio
        .until(|what| matches!(what, What::Queued { .. }))
        .await;
    studio.gate.add_permits(1);
    studio.shut_down(Shutdown::WhenIdle).await;
    let events = studio.rest().await;
    let ends: Vec<&str> = events
        .iter()
        .filter_map(|it| ended(&it.what).map(|(id, _)| id))
        .collect();
    assert_eq!(ends, ["a", "late"]);
}

#[tokio::test]
async fn a_panic_is_a_result_and_the_end() {
    let studio = Studio::open(Bounds::APPLICATION);
    studio.send(prompt("a", &[Step::Panic])).await;
    studio.send(prompt("b", &[])).await;
    let events = studio.rest().await;
    let ends: Vec<_> = events.iter().filter_map(|it| ended(&it.what)).collect();
    assert_eq!(ends.len(), 2, "{ends:?}");
    for (_, outcome) in ends {
        let Outcome::Internal { message } = outcome else {
            panic!("{outcome:?}");
        };
        assert!(message.contains("internal error: as scripted"), "{message}");
    }
    assert!(matches!(
        events.last().unwrap().what,
        What::Closed {
            why: ClosedWhy::Crashed,
            ..
        }
    ));
}

#[tokio::test]
async fn a_spent_budget_ends_the_session() {
    let studio = Studio::open(Bounds::APPLICATION);
    studio.send(prompt("a", &[Step::Overspend])).await;
    studio.send(prompt("b", &[Step::Say])).await;
    let events = studio.rest().await;
    assert_eq!(kinds(&events, "began").len(), 1);
    let ends: Vec<_> = events.iter().filter_map(|it| ended(&it.what)).collect();
    assert_eq!(ends.len(), 2);
    assert!(matches!(
        events.last().unwrap().what,
        What::Closed {
            why: ClosedWhy::Budget,
            ..
        }
    ));
}

#[tokio::test]
async fn a_later_hearer_gets_everything_since_a_number_and_holds_nobody_up() {
    let mut studio = Studio::open(Bounds::APPLICATION);
    studio.send(prompt("a", &[Step::Say])).await;
    studio.until(|what| *what == What::Idle).await;
    let mut second = studio.handle.subscribe(1);
    let Some(EventBatch::Events(first)) = second.next().await else {
        panic!("nothing was kept");
    };
    assert_eq!(first[0].seq, 1);
    // It does not listen while much happens, and is told what it missed.
    for number in 0..40 {
        let steps = [Step::SayMuch];
        studio.send(prompt(&number.to_string(), &steps)).await;
        studio.until(|what| *what == What::Idle).await;
    }
    let mut heard = first.len() as u64;
    studio.shut_down(Shutdown::WhenIdle).await;
    let all = studio.rest().await.last().unwrap().seq;
    let mut missed = 0;
    while let Some(next) = second.next().await {
        match next {
            EventBatch::Events(events) => {
                assert_eq!(events[0].seq, heard + missed + 1);
                heard += events.len() as u64;
            }
            EventBatch::Missed(count) => missed += count,
        }
    }
    assert!(missed > 0);
    assert_eq!(heard + missed, all);
}

#[tokio::test]
async fn a_session_that_nobody_holds_ends() {
    let mut studio = Studio::open(Bounds::APPLICATION);
    studio.send(prompt("a", &[Step::Hang])).await;
    studio
        .until(|what| matches!(what, What::Began { .. }))
        .await;
    let events = studio.abandon().await;
    assert!(matches!(
        events.last().unwrap().what,
        What::Closed {
            why: ClosedWhy::Abandoned,
            ..
        }
    ));
    assert_eq!(kinds(&events, "ended").len(), 1);
}

#[tokio::test]
async fn the_state_can_be_looked_at() {
    let mut studio = Studio::open(Bounds::APPLICATION);
    studio.send(prompt("a", &[Step::Hang])).await;
    studio.send(prompt("b", &[])).await;
    studio
        .until(|what| matches!(what, What::Queued { .. }))
        .await;
    let state = studio.handle.state();
    assert_eq!(state.stage, Stage::Working { prompt: "a".into() });
    assert_eq!(state.waiting, 1);
    studio.shut_down(Shutdown::Now).await;
    let handle = studio.handle.clone();
    studio.rest().await;
    assert_eq!(handle.state().stage, Stage::Closed);
}

#[test]
fn commands_and_events_survive_the_wire() {
    let commands = [
        prompt("a", &[Step::Say]),
        Command::Interrupt,
        Command::Answer {
            question: "q".into(),
            answer: allow(),
        },
        Command::Shutdown {
            when: Shutdown::WhenIdle,
        },
    ];
    for command in commands {
        let text = serde_json::to_string(&command).unwrap();
        assert_eq!(serde_json::from_str::<Command>(&text).unwrap(), command);
    }
}
