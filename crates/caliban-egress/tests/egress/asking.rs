//! Hosts that no list names are asked about, once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use caliban_egress::{Answer, Limits, Refusal, Rule, Verdict};
use rstest::rstest;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use crate::support::{Person, Setup, leading_to, origin, policy, refused, to_end};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi";
const REQUEST: &[u8] = b"GET http://good.example/ HTTP/1.1\r\n\r\n";

fn person() -> (
    Arc<Person>,
    mpsc::UnboundedReceiver<caliban_egress::Question>,
) {
    let (asked, questions) = mpsc::unbounded_channel();
    let person = Person {
        asked,
        answers: Mutex::default(),
        changed: tokio::sync::Notify::new(),
    };
    (Arc::new(person), questions)
}

#[rstest]
#[case::once(Answer::AllowOnce, Some(Rule::Command))]
#[case::session(Answer::AllowSession, Some(Rule::Session))]
#[case::no(Answer::Deny, None)]
#[case::nobody(Answer::NobodyAttends, None)]
#[tokio::test]
async fn many_connections_have_one_question(#[case] answer: Answer, #[case] rule: Option<Rule>) {
    let (address, _heard) = origin(b"\r\n\r\n", ANSWER).await;
    let (person, mut questions) = person();
    let policy = policy(&[], &[], None);
    let setup = || Setup {
        world: leading_to(address),
        policy: policy.clone(),
        asker: person.clone(),
        limits: Limits::default(),
    };
    let mut bench = setup().serve().await;
    let mut waiting = Vec::new();
    for _ in 0..8 {
        let mut stream = bench.connect().await;
        stream.write_all(REQUEST).await.unwrap();
        waiting.push(stream);
    }
    let question = questions.recv().await.unwrap();
    assert_eq!(question.target.to_string(), "good.example:80");
    assert_eq!(question.entry, "good.example");
    assert_eq!(
        bench.world.lookups(),
        [""; 0],
        "nothing is looked up before the answer"
    );
    person.says("good.example", answer);
    for stream in &mut waiting {
        let answer = to_end(stream).await;
        assert_eq!(answer == ANSWER, rule.is_some());
        let told = bench.told().await;
        assert_eq!(told.rule, rule);
        assert_eq!(told.verdict == Verdict::Passed, rule.is_some());
    }
    // The answer holds for the command.
    assert_eq!(bench.say(REQUEST).await == ANSWER, rule.is_some());
    assert!(questions.try_recv().is_err(), "it was asked once");
    // For the next command only what was meant for longer.
    let bench = setup().serve().await;
    assert_eq!(bench.say(REQUEST).await == ANSWER, rule.is_some());
    assert_eq!(
        questions.try_recv().is_err(),
        answer == Answer::AllowSession
    );
}

#[tokio::test]
async fn an_answer_that_comes_late_holds_for_the_next_try() {
    let (address, _heard) = origin(b"\r\n\r\n", ANSWER).await;
    let (person, mut questions) = person();
    let setup = Setup {
        world: leading_to(address),
        policy: policy(&[], &[], None),
        asker: person.clone(),
        limits: Limits {
            answer: Duration::from_millis(50),
            ..Limits::default()
        },
    };
    let mut bench = setup.serve().await;
    let answer = String::from_utf8(bench.say(REQUEST).await).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 403 the user was asked about good.example:80; try again\r\n"),
        "{answer}"
    );
    assert_eq!(refused(&bench.told().await), &Refusal::Unanswered);
    questions.recv().await.unwrap();
    person.says("good.example", Answer::AllowOnce);
    loop {
        // The answer is on its way to the proxy.
        if bench.say(REQUEST).await == ANSWER {
            break;
        }
    }
    assert!(questions.try_recv().is_err(), "it was asked once");
}

#[tokio::test]
async fn other_ports_are_other_questions() {
    let (person, mut questions) = person();
    person.says("good.example", Answer::AllowSession);
    person.says("good.example:22", Answer::Deny);
    let setup = Setup {
        policy: policy(&[], &[], None),
        asker: person,
        ..Setup::allowing(&[])
    };
    let mut bench = setup.serve().await;
    bench
        .say(b"CONNECT good.example:443 HTTP/1.1\r\n\r\n")
        .await;
    assert!(matches!(bench.told().await.verdict, Verdict::Failed(_)));
    bench.say(b"CONNECT good.example:22 HTTP/1.1\r\n\r\n").await;
    assert_eq!(refused(&bench.told().await), &Refusal::Declined);
    let asked = [
        questions.recv().await.unwrap().entry,
        questions.recv().await.unwrap().entry,
    ];
    assert_eq!(asked, ["good.example", "good.example:22"]);
}

#[rstest]
#[case(b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n")]
#[case(b"CONNECT 10.0.0.1:443 HTTP/1.1\r\n\r\n")]
#[case(b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n")]
#[case(b"CONNECT localhost:22 HTTP/1.1\r\n\r\n")]
#[case(b"GET http://169.254.169.254/ HTTP/1.1\r\n\r\n")]
#[tokio::test]
async fn private_places_are_not_even_asked_about(#[case] said: &[u8]) {
    let (person, mut questions) = person();
    let setup = Setup {
        asker: person,
        ..Setup::allowing(&[])
    };
    let mut bench = setup.serve().await;
    assert!(bench.say(said).await.starts_with(b"HTTP/1.1 403 "));
    refused(&bench.told().await);
    assert!(questions.try_recv().is_err());
}

/// A name that an answer allowed leads nowhere else than one of the list.
#[tokio::test]
async fn an_answer_does_not_open_private_addresses() {
    let (person, _questions) = person();
    person.says("good.example", Answer::AllowSession);
    let setup = Setup {
        asker: person,
        ..Setup::allowing(&[])
    };
    let mut bench = setup.serve().await;
    bench.world.name("good.example", &[&["10.0.0.1"]]);
    bench.say(REQUEST).await;
    assert!(matches!(
        refused(&bench.told().await),
        Refusal::Private { .. }
    ));
}

#[tokio::test]
async fn one_command_does_not_ask_for_ever() {
    let (person, mut questions) = person();
    let setup = Setup {
        asker: person,
        limits: Limits {
            answer: Duration::from_millis(1),
            ..Limits::default()
        },
        ..Setup::allowing(&[])
    };
    let mut bench = setup.serve().await;
    for number in 0..40 {
        let request = format!("CONNECT host{number}.example:443 HTTP/1.1\r\n\r\n");
        bench.say(request.as_bytes()).await;
        let expected = match number {
            0..16 => Refusal::Unanswered,
            _ => Refusal::TooManyQuestions,
        };
        assert_eq!(refused(&bench.told().await), &expected);
    }
    bench.close().await;
    let mut asked = 0;
    while questions.recv().await.is_some() {
        asked += 1;
    }
    assert_eq!(asked, 16);
}
