//! The state under everything that may happen to it, without a terminal.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use caliban_agent::{
    Answer, AnswerStep, Event, Inquiry, Opinion, Outcome, Question, RunTotals, ToolCall, ToolOutput,
};
use caliban_model::{Block, Effect as ToolEffect, Message, Role, Usage};
use caliban_session::{Answered, Asked, By, Command, Facts, QuestionKind, SessionEvent, What};
use caliban_terminal::{Capabilities, Focus, Input, Key, KeyCode, Modifiers};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use crate::app::{App, Beginning, Done, Effect, Msg};
use crate::host::Look;
use crate::preferences::Screen;
use crate::questions::Attention;
use crate::view;

fn app(now: Instant) -> App {
    App::new(Beginning {
        width: 80,
        height: 24,
        capabilities: Capabilities::from_environment(&|_| None),
        cwd: PathBuf::from("/home/me/work"),
        home: PathBuf::from("/home/me"),
        screen: Screen::Fullscreen,
        prompt: None,
        draft: None,
        now,
    })
}

fn told(what: What) -> Msg {
    Msg::Told(vec![Arc::new(SessionEvent {
        seq: 1,
        at: Timestamp::UNIX_EPOCH,
        exchange: None,
        what,
    })])
}

fn key(code: KeyCode) -> Msg {
    Msg::Input(Input::Key(Key::plain(code)))
}

fn asked(id: &str) -> Msg {
    let call = ToolCall {
        id: Arc::from("call"),
        agent: None,
        name: Arc::from("Bash"),
        input: json!({"command": "rm -rf build"}),
        effect: ToolEffect::Executes,
        first_arg: Some("rm -rf build".to_owned()),
        turn: 1,
        opinion: Opinion::None,
    };
    let question = Question {
        reason: "Bash needs consent".to_owned(),
        rule: Some("Bash".to_owned()),
        remedy: "add a rule".to_owned(),
        suggestions: vec!["Bash:rm -rf build".to_owned()],
        target: None,
        input: None,
        parts: Vec::new(),
        place: None,
    };
    told(What::Asked(Box::new(Asked {
        question: Arc::from(id),
        agent: None,
        kind: QuestionKind::Permission(Box::new(Inquiry::new(call, question))),
    })))
}

fn answers(app: &mut App) -> Vec<Answer> {
    std::mem::take(&mut app.effects)
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Send(Command::Answer { answer, .. }) => Some(answer),
            _ => None,
        })
        .collect()
}

#[test]
fn a_question_is_deaf_at_first_and_enter_alone_permits_nothing() {
    let begin = Instant::now();
    let mut app = app(begin);
    app.update(asked("q"), begin);
    app.update(key(KeyCode::Char('y')), begin + Duration::from_millis(100));
    assert_eq!(answers(&mut app), []);
    let later = begin + Duration::from_millis(400);
    app.update(key(KeyCode::Enter), later);
    assert_eq!(answers(&mut app), []);
    app.update(key(KeyCode::Char('y')), later);
    assert!(matches!(answers(&mut app)[..], [Answer::Allow { .. }]));
}

/// The keys of a prompt that was sent are of no draft: what it leads to is asked without delay.
#[test]
fn a_question_listens_soon_after_a_prompt_was_sent() {
    let begin = Instant::now();
    let mut app = app(begin);
    let at = |millis| begin + Duration::from_millis(millis);
    app.update(key(KeyCode::Char('g')), at(0));
    app.update(key(KeyCode::Enter), at(10));
    app.update(asked("q"), at(50));
    app.update(key(KeyCode::Char('y')), at(200));
    assert_eq!(answers(&mut app), []);
    app.update(key(KeyCode::Char('y')), at(360));
    assert!(matches!(answers(&mut app)[..], [Answer::Allow { .. }]));
    // Who goes on typing is not heard by it.
    let mut app = super::tests::app(begin);
    app.update(key(KeyCode::Char('g')), at(0));
    app.update(key(KeyCode::Enter), at(10));
    app.update(key(KeyCode::Char('y')), at(40));
    app.update(asked("q"), at(50));
    app.update(key(KeyCode::Backspace), at(60));
    app.update(key(KeyCode::Char('y')), at(500));
    assert_eq!(answers(&mut app), []);
}

#[test]
fn with_a_draft_keys_go_into_it_until_the_operator_turns_to_the_question() {
    let begin = Instant::now();
    let mut app = app(begin);
    app.update(key(KeyCode::Char('h')), begin);
    app.update(asked("q"), begin);
    let later = begin + Duration::from_mins(1);
    app.update(Msg::Tick, later);
    app.update(key(KeyCode::Char('y')), later);
    assert_eq!(answers(&mut app), []);
    assert_eq!(app.editor.text(), "hy");
    app.update(key(KeyCode::Tab), later);
    let listening = later + Duration::from_millis(301);
    app.update(key(KeyCode::Esc), listening);
    assert!(matches!(answers(&mut app)[..], [Answer::Deny { .. }]));
    assert_eq!(app.editor.text(), "hy");
}

#[test]
fn what_is_pasted_answers_nothing() {
    let begin = Instant::now();
    let mut app = app(begin);
    app.update(asked("q"), begin);
    let later = begin + Duration::from_secs(1);
    app.update(Msg::Input(Input::Paste("y\ny\n".to_owned())), later);
    assert_eq!(answers(&mut app), []);
}

/// Something that happens.
#[derive(Debug, Clone)]
enum Happening {
    Key(Key),
    Paste(String),
    Resize(u16, u16),
    Focus(Focus),
    Later(u64),
    Text(String),
    Thought(String),
    Answer,
    Call(u8),
    Started(u8),
    Progress(u8, String),
    Finished(u8, String),
    Whole(String),
    Ask(u8),
    Withdraw(u8),
    End,
    Look,
    Tick,
}

fn keys() -> impl Strategy<Value = Key> {
    let code = prop_oneof![
        6 => any::<char>().prop_map(KeyCode::Char),
        8 => prop::sample::select(vec!['y', 'Y', 'n', 'N', 'e', 'd', '?', '/', '@', '!', 'a', ' ']).prop_map(KeyCode::Char),
        6 => prop::sample::select(vec![
            KeyCode::Enter, KeyCode::Tab, KeyCode::BackTab, KeyCode::Backspace, KeyCode::Delete, KeyCode::Esc,
            KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right, KeyCode::Home, KeyCode::End,
            KeyCode::PageUp, KeyCode::PageDown, KeyCode::F(1),
        ]),
    ];
    let modifiers = prop_oneof![
        6 => Just(Modifiers::none()),
        2 => Just(Modifiers::CTRL),
        1 => Just(Modifiers::ALT),
        1 => Just(Modifiers::SHIFT),
    ];
    (code, modifiers).prop_map(|(code, modifiers)| Key::new(code, modifiers))
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        12 => keys().prop_map(Happening::Key),
        1 => ".{0,200}".prop_map(Happening::Paste),
        1 => (0u16..130, 0u16..50).prop_map(|(width, height)| Happening::Resize(width, height)),
        1 => prop::sample::select(vec![Focus::Gained, Focus::Lost]).prop_map(Happening::Focus),
        4 => (0u64..2_000).prop_map(Happening::Later),
        3 => "(?s).{0,120}".prop_map(Happening::Text),
        1 => "(?s).{0,60}".prop_map(Happening::Thought),
        1 => Just(Happening::Answer),
        2 => (0u8..3).prop_map(Happening::Call),
        1 => (0u8..3).prop_map(Happening::Started),
        1 => ((0u8..3), ".{0,80}").prop_map(|(id, text)| Happening::Progress(id, text)),
        2 => ((0u8..3), "(?s).{0,200}").prop_map(|(id, text)| Happening::Finished(id, text)),
        1 => ".{0,100}".prop_map(Happening::Whole),
        2 => (0u8..4).prop_map(Happening::Ask),
        1 => (0u8..4).prop_map(Happening::Withdraw),
        1 => Just(Happening::End),
        1 => Just(Happening::Look),
        1 => Just(Happening::Tick),
    ]
}

fn message(happening: &Happening) -> Option<Msg> {
    let call = |id: &u8| Arc::<str>::from(format!("call-{id}"));
    let run = |event: Event| Some(told(What::Run(event)));
    match happening {
        Happening::Key(key) => Some(Msg::Input(Input::Key(*key))),
        Happening::Paste(text) => Some(Msg::Input(Input::Paste(text.clone()))),
        Happening::Resize(width, height) => Some(Msg::Resized(*width, *height)),
        Happening::Focus(focus) => Some(Msg::Input(Input::Focus(*focus))),
        Happening::Later(_) => None,
        Happening::Text(text) => run(Event::TextDelta { text: text.clone() }),
        Happening::Thought(text) => run(Event::ThinkingDelta { text: text.clone() }),
        Happening::Answer => run(Event::Answer(AnswerStep::Started {
            model: Arc::from("model"),
        })),
        Happening::Call(id) => run(Event::ToolReady {
            id: call(id),
            name: Arc::from("Bash"),
            input: json!({"command": "ls"}),
            first_arg: None,
        }),
        Happening::Started(id) => run(Event::ToolStarted {
            id: call(id),
            name: Arc::from("Bash"),
            first_arg: None,
        }),
        Happening::Progress(id, text) => run(Event::ToolProgress {
            id: call(id),
            text: text.clone(),
        }),
        Happening::Finished(id, text) => run(Event::ToolFinished {
            id: call(id),
            name: Arc::from("Bash"),
            output: ToolOutput::ok(text.clone()),
            duration: Duration::from_millis(1),
            denial: None,
        }),
        Happening::Whole(text) => run(Event::AssistantMessage {
            message: Arc::new(Message::new(
                Role::Assistant,
                vec![Block::text(text.clone())],
            )),
            usage: Usage::default(),
            cost: None,
        }),
        Happening::Ask(id) => Some(asked(&format!("question-{id}"))),
        Happening::Withdraw(id) => Some(told(What::Answered(Answered {
            question: Arc::from(format!("question-{id}")),
            by: By::Withdrawn,
        }))),
        Happening::End => Some(told(What::Ended {
            prompt: Arc::from("prompt"),
            outcome: Outcome::Success {
                text: String::new(),
            },
            totals: Box::new(RunTotals::default()),
        })),
        Happening::Look => Some(Msg::Done(Done::Looked(Ok(Box::new(Look::default()))))),
        Happening::Tick => Some(Msg::Tick),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Nothing breaks it, the cursor stays on the screen, and no question is answered by a key
    /// that came before it listened.
    #[test]
    fn anything_may_happen(happenings in prop::collection::vec(happening(), 1..200)) {
        let mut now = Instant::now();
        let mut app = app(now);
        app.update(told(What::Opened(Arc::new(Facts::default()))), now);
        for happening in &happenings {
            if let Happening::Later(passed) = happening {
                now += Duration::from_millis(*passed);
            }
            let listened = app.questions.attention(now) == Attention::Listens;
            if let Some(msg) = message(happening) {
                app.update(msg, now);
            }
            let answered = answers(&mut app);
            let is_key = matches!(happening, Happening::Key(_));
            prop_assert!(answered.is_empty() || (listened && is_key), "{answered:?}");
            let canvas = view::draw(&mut app);
            if let Some(cursor) = canvas.cursor {
                prop_assert!(cursor.x < app.width.max(1) && cursor.y < app.height.max(1));
            }
        }
    }
}

#[test]
fn no_key_from_before_trust_was_asked_about_grants_it() {
    let begin = Instant::now();
    let mut app = app(begin);
    let look = Look {
        untrusted: vec!["hooks (project)".to_owned()],
        ..Look::default()
    };
    let looked = Msg::Done(Done::Looked(Ok(Box::new(look))));
    app.update(looked, begin);
    let trusts = |app: &mut App| {
        let effects = std::mem::take(&mut app.effects);
        effects.iter().any(|effect| matches!(effect, Effect::Trust))
    };
    let soon = begin + Duration::from_millis(200);
    app.update(key(KeyCode::Char('y')), soon);
    assert!(!trusts(&mut app));
    // Who goes on typing has not seen it.
    let typing = soon + Duration::from_millis(900);
    app.update(key(KeyCode::Char('y')), typing);
    assert!(!trusts(&mut app));
    app.update(
        key(KeyCode::Char('y')),
        typing + Duration::from_millis(1100),
    );
    assert!(trusts(&mut app));
}

/// A report that was asked for and comes now.
fn reported(app: &mut App, asked: Option<Instant>, now: Instant) -> usize {
    use crate::app::state::{Reader, Waiting};
    let id: Arc<str> = Arc::from("typed");
    app.queue.push(Waiting {
        id: Arc::clone(&id),
        pieces: Vec::new(),
        text: "/doctor".to_owned(),
        steers: false,
        overlay: Some(Reader {
            title: "Doctor",
            asked,
        }),
    });
    let began = What::Began {
        prompt: Arc::clone(&id),
        facts: Arc::new(Facts::default()),
    };
    app.update(told(began), now);
    let ended = What::Ended {
        prompt: id,
        outcome: Outcome::obeyed("All is well."),
        totals: Box::new(RunTotals::default()),
    };
    app.update(told(ended), now);
    let opened = app.layers.len();
    app.layers.clear();
    opened
}

#[test]
fn a_report_opens_only_where_no_key_was_meant_for_something_else() {
    let begin = Instant::now();
    let mut app = app(begin);
    let asked = begin + Duration::from_secs(5);
    app.update(key(KeyCode::Char('x')), asked);
    app.update(key(KeyCode::Backspace), asked);
    // At once, where nothing was typed since.
    let typed = app.last_typed;
    assert_eq!(reported(&mut app, typed, asked), 1);
    // Somebody writes.
    app.update(key(KeyCode::Char('c')), asked + Duration::from_secs(1));
    let later = asked + Duration::from_mins(1);
    assert_eq!(reported(&mut app, Some(asked), later), 0);
    // Somebody wrote a moment ago.
    app.update(key(KeyCode::Backspace), later);
    let soon = later + Duration::from_millis(900);
    assert_eq!(reported(&mut app, Some(asked), soon), 0);
    let quiet = later + Duration::from_millis(1_100);
    assert_eq!(reported(&mut app, Some(asked), quiet), 1);
}
