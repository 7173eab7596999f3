//! A session that has everything in it, and what must be true of it after any interruption.

use std::path::Path;
use std::sync::Arc;

use caliban_model::{
    Block, Image, ImageMime, ImageSource, Message, Purpose, Role, ToolContent, Usage,
};
use caliban_sessions::{
    CallStatus, Durability, Effects, Error, Health, Notice, Record, SessionState, StateChange,
    Store, Writer,
};

use crate::scratch::{assistant, calls, message, name, new_session, result, results, text, user};

pub(crate) const NAME: &str = "script";
const NEVER: &str = "never started";

/// Looks at what was told after each step.
pub(crate) type Observer<'a> = &'a mut dyn FnMut(&Told);

/// A script that is being played.
struct Play<'a> {
    writer: Writer,
    told: Told,
    observer: Observer<'a>,
}

/// What was recorded, and how much of it was confirmed.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) records: Vec<Record>,
    pub(crate) written: usize,
    pub(crate) synced: usize,
    pub(crate) end: End,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Open,
    Closed,
}

/// The part of a state that the script predicts.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    messages: Vec<Arc<Message>>,
    turns: u64,
    input: u64,
}

impl Play<'_> {
    fn append(&mut self, record: Record, durability: Durability) {
        self.told.records.push(record.clone());
        match self.writer.append(record, durability) {
            Ok(()) => {
                assert_eq!(self.writer.health(), Health::Sound, "confirmed");
                self.told.confirm(durability);
            }
            Err(Error::Unsaved { .. }) => {
                assert_ne!(self.writer.health(), Health::Sound, "not confirmed");
            }
            Err(other) => panic!("{other}"),
        }
        (self.observer)(&self.told);
    }

    /// Notes what a call that syncs everything says.
    fn note(&mut self, outcome: Result<(), Error>) {
        match outcome {
            Ok(()) => self.told.confirm(Durability::Synced),
            Err(Error::Unsaved { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        (self.observer)(&self.told);
    }
}

impl Told {
    fn confirm(&mut self, durability: Durability) {
        self.written = self.records.len();
        if durability == Durability::Synced {
            self.synced = self.records.len();
        }
    }
}

/// Runs the script on a store.
pub(crate) fn run(store: &Store, observer: Observer<'_>) -> Told {
    let Ok(writer) = store.create(&name(NAME), new_session(1)) else {
        return Told::default();
    };
    let mut play = Play {
        writer,
        told: Told::default(),
        observer,
    };
    let system = message(Message::system("be good"));
    play.append(system, Durability::Written);
    first_turn(&mut play);
    let handle = play.writer.sync_handle();
    play.note(handle.and_then(|handle| handle.sync()));
    second_turn(&mut play);
    let outcome = play.writer.retry();
    play.note(outcome);
    compaction(&mut play);
    let Play {
        writer, mut told, ..
    } = play;
    if writer.close().is_ok() {
        told.confirm(Durability::Synced);
        told.end = End::Closed;
    }
    told
}

fn usage(input: u64) -> Record {
    Record::Usage {
        provider: "anthropic".into(),
        model: "claude-sonnet-4-6".into(),
        usage: Usage {
            input,
            ..Usage::default()
        },
        cost: Some("0.001".parse().unwrap()),
        purpose: Purpose::MainLoop,
        agent: None,
        saved: None,
        calls: 1,
        day: None,
    }
}

fn intent(id: &str, effects: Effects) -> Record {
    Record::ToolIntent {
        id: id.into(),
        agent: None,
        name: "Bash".into(),
        effects,
    }
}

fn done(id: &str, content: Vec<ToolContent>) -> Record {
    Record::ToolDone {
        id: id.into(),
        agent: None,
        status: CallStatus::Ok,
        content,
    }
}

fn first_turn(play: &mut Play<'_>) {
    use Durability::{Synced, Written};
    play.append(user("first"), Synced);
    play.append(usage(1), Written);
    play.append(calls(&["a", "b"]), Written);
    play.append(intent("a", Effects::ReadOnly), Written);
    play.append(intent("b", Effects::SideEffects), Synced);
    play.append(done("a", text("result a")), Written);
    play.append(done("b", image()), Synced);
    let blocks = vec![result("a", text("result a")), result("b", image())];
    play.append(results(blocks), Written);
    play.append(Record::TurnEnded {}, Synced);
}

/// With a snapshot while a call runs, and a result that is a blob.
fn second_turn(play: &mut Play<'_>) {
    use Durability::{Synced, Written};
    play.append(usage(2), Written);
    play.append(calls(&["c"]), Written);
    play.append(intent("c", Effects::SideEffects), Synced);
    let outcome = play.writer.snapshot();
    play.note(outcome);
    play.append(done("c", text(&long())), Written);
    play.append(results(vec![result("c", text(&long()))]), Written);
    play.append(assistant("half way"), Written);
    play.append(Record::TurnEnded {}, Synced);
    let change = StateChange {
        mode: Some("plan".into()),
        plan_mode: Some(true),
        ..StateChange::default()
    };
    play.append(Record::State(Box::new(change)), Written);
    let notice = Notice {
        subtype: "info".into(),
        message: "noted".into(),
    };
    play.append(Record::Notice(notice), Written);
}

fn compaction(play: &mut Play<'_>) {
    use Durability::{Synced, Written};
    play.append(user("second"), Synced);
    let before = play.writer.state().messages.clone();
    let mut after = vec![Arc::clone(&before[0]), Arc::new(Message::user("summary"))];
    after.extend(before.last().cloned());
    play.append(Record::compaction(&before, &after), Written);
    play.append(usage(3), Written);
    play.append(calls(&["a"]), Written);
    play.append(intent("a", Effects::SideEffects), Synced);
    play.append(results(vec![result("a", text("again"))]), Synced);
    play.append(assistant("the end"), Written);
    play.append(Record::TurnEnded {}, Written);
}

fn image() -> Vec<ToolContent> {
    vec![ToolContent::Image(Image {
        mime: ImageMime::Png,
        source: ImageSource::Base64 {
            data: "iVBORw0KGgo=".into(),
        },
        dims: None,
    })]
}

fn long() -> String {
    "line\n".repeat(14_000)
}

impl Model {
    fn apply(&mut self, record: &Record) {
        match record {
            Record::Message(message) => self.messages.push(Arc::clone(message)),
            Record::Compacted { keep, messages } => {
                self.messages.truncate(*keep);
                self.messages.extend(messages.iter().cloned());
            }
            Record::Usage { usage, .. } => self.input += usage.input,
            Record::TurnEnded {} => self.turns += 1,
            _ => {}
        }
    }

    fn is(&self, state: &SessionState) -> bool {
        let Some(added) = state.messages.strip_prefix(&self.messages[..]) else {
            return false;
        };
        let is_settlement = match added {
            [] => true,
            [one] => {
                let is_result = |block: &Block| matches!(block, Block::ToolResult { .. });
                one.role == Role::User && one.content.iter().all(is_result)
            }
            _ => false,
        };
        is_settlement && state.turns == self.turns && state.usage.input == self.input
    }
}

/// Asserts that a state has at least the first `confirmed` records and is valid.
pub(crate) fn check(state: &SessionState, told: &Told, confirmed: usize) {
    check_valid(&state.messages);
    let mut model = Model::default();
    let mut models = vec![model.clone()];
    for record in &told.records {
        model.apply(record);
        models.push(model.clone());
    }
    let fits = models[confirmed..].iter().any(|model| model.is(state));
    assert!(
        fits,
        "of {} records {confirmed} were confirmed, but the session is: {} turns, {} tokens, {:#?}",
        told.records.len(),
        state.turns,
        state.usage.input,
        state.messages
    );
    check_truth(state, &told.records[..confirmed]);
}

/// Of a call whose beginning was confirmed nobody says that it never began, and a result that
/// was confirmed is not made up.
fn check_truth(state: &SessionState, confirmed: &[Record]) {
    let Some(last) = confirmed.iter().rposition(
        |record| matches!(record, Record::Message(message) if message.role == Role::Assistant),
    ) else {
        return;
    };
    for record in &confirmed[last..] {
        match record {
            Record::ToolIntent { id, .. } => {
                for said in said_of(state, id) {
                    assert!(!said.contains(NEVER), "{id} had begun, but: {said}");
                }
            }
            Record::ToolDone { id, content, .. } => {
                let [ToolContent::Text { text }] = &content[..] else {
                    continue;
                };
                assert!(said_of(state, id).contains(text), "the result of {id}");
            }
            _ => {}
        }
    }
}

/// The texts of the results of a call.
fn said_of(state: &SessionState, wanted: &str) -> Vec<String> {
    let blocks = state.messages.iter().flat_map(|message| &message.content);
    let contents = blocks.filter_map(|block| match block {
        Block::ToolResult {
            tool_use_id,
            content,
            ..
        } if tool_use_id == wanted => Some(content),
        _ => None,
    });
    let texts = contents.flatten().filter_map(|content| match content {
        ToolContent::Text { text } => Some(text.clone()),
        ToolContent::Image(_) => None,
    });
    texts.collect()
}

/// Every call is followed by its result at once.
fn check_valid(messages: &[Arc<Message>]) {
    for (at, message) in messages.iter().enumerate() {
        assert!(message.role != Role::System || at == 0);
        let wanted: Vec<&str> = message.tool_uses().map(|(id, _, _)| id).collect();
        if wanted.is_empty() {
            continue;
        }
        let next = messages.get(at + 1).expect("a call without a result");
        let found = next.content.iter().filter_map(|block| match block {
            Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.as_str()),
            _ => None,
        });
        assert_eq!(found.collect::<Vec<_>>(), wanted);
    }
}

/// Asserts that the lines of a journal count upwards, if there is one.
pub(crate) fn check_numbers(directory: &Path) {
    let Ok(journal) = std::fs::read_to_string(directory.join(format!("{NAME}.journal"))) else {
        return;
    };
    assert!(journal.ends_with('\n'));
    let numbers: Vec<u64> = journal
        .lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["seq"].as_u64().unwrap()
        })
        .collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}
