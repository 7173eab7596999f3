//! What a session is after everything that was recorded: the same function makes it while a
//! session is written and when it is read.

use std::path::PathBuf;
use std::sync::Arc;

use caliban_model::{Block, Message, Purpose, Reasoning, Role, Usage};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::accounts::{Account, Accounts, Sums};
use crate::name::SessionName;
use crate::past::{Past, Position, under};
use crate::record::{Effects, FORMAT, Header, Notice, Record, StateChange, Totals};
use crate::stored::{Done, OpenCall};

/// Characters of a title that is taken from the first prompt.
const TITLE: usize = 120;
/// How many notices and records of unknown kind are kept; the oldest go first.
const KEPT: usize = 200;
/// The tool that writes the task list.
const TASKS: &str = "TodoWrite";

/// A session as it continues. Its messages are a valid conversation for every provider.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionState {
    pub name: SessionName,
    pub session_id: Uuid,
    /// The session this one was forked from.
    pub parent: Option<Uuid>,
    /// What the session is about: the beginning of its first prompt unless it was given one.
    pub title: Option<String>,
    pub provider: String,
    pub model: String,
    /// How hard the model was told to think; nothing where nobody said.
    pub effort: Option<Reasoning>,
    /// The permission mode.
    pub mode: Option<String>,
    pub plan_mode: bool,
    pub todos: Value,
    pub cwd: PathBuf,
    /// Which version of the program wrote it last.
    pub program_version: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub turns: u64,
    pub usage: Usage,
    /// Of all calls whose price is known.
    pub cost: Decimal,
    /// Both, by what is kept apart.
    pub accounts: Accounts,
    pub messages: Vec<Arc<Message>>,
    /// The latest notices.
    pub notices: Vec<Notice>,
    /// What the conversation was before.
    pub past: Past,
}

/// A session with what only its files need to know.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub(crate) state: SessionState,
    /// The last record that it contains.
    pub(crate) seq: u64,
    pub(crate) turn: Turn,
    /// Calls of the turn that have begun.
    pub(crate) calls: Vec<OpenCall>,
    /// Records of versions that know more.
    pub(crate) unknown: Vec<Box<RawValue>>,
    /// Fields of the snapshot that nobody here knows.
    pub(crate) extra: Map<String, Value>,
}

/// Whether every call that began since the last complete turn is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Turn {
    /// The model made calls, and the turn has not ended.
    Open,
    #[default]
    Closed,
}

/// What a session begins with.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSession {
    pub session_id: Uuid,
    pub provider: String,
    pub model: String,
    pub mode: Option<String>,
    pub cwd: PathBuf,
    pub program_version: String,
}

impl SessionState {
    /// Whether a person gave the name.
    pub fn is_named(&self) -> bool {
        is_named(&self.name, self.session_id)
    }

    /// What the session consumed, with what was consumed before that was kept apart.
    pub fn accounts_in_full(&self) -> Accounts {
        let mut accounts = self.accounts.clone();
        let of = Account {
            day: utc_day(self.updated_at),
            provider: self.provider.clone(),
            model: self.model.clone(),
            purpose: Purpose::Other,
            agent: None,
            sums: Sums::default(),
        };
        accounts.complete(&self.usage, self.cost, of);
        accounts
    }

    /// Where the conversation stands.
    pub fn position(&self) -> Position {
        self.past.position(&self.messages)
    }

    /// The conversation as it would go on from a position, told what it is told first now; nothing
    /// where that is no longer kept.
    pub fn conversation_at(&self, position: Position) -> Option<Vec<Arc<Message>>> {
        let earlier = self.past.at(&self.messages, position)?;
        Some(under(&self.messages, earlier))
    }

    fn replace(&mut self, messages: Vec<Arc<Message>>) {
        let before = std::mem::replace(&mut self.messages, messages);
        self.past.replace(&before, &self.messages);
    }

    /// What hangs on the conversation follows it when it goes back.
    fn go_back(&mut self, messages: Vec<Arc<Message>>) {
        let derived = first_title(&self.messages);
        self.replace(messages);
        self.todos = tasks(&self.messages);
        if self.title == derived {
            self.title = first_title(&self.messages);
        }
    }
}

pub(crate) fn is_named(name: &SessionName, id: Uuid) -> bool {
    *name != SessionName::from_id(id)
}

impl Replica {
    pub(crate) fn new(name: SessionName, new: NewSession, now: Timestamp) -> Self {
        Self::of(SessionState {
            name,
            session_id: new.session_id,
            parent: None,
            title: None,
            provider: new.provider,
            model: new.model,
            effort: None,
            mode: new.mode,
            plan_mode: false,
            todos: Value::Array(Vec::new()),
            cwd: new.cwd,
            program_version: new.program_version,
            created_at: now,
            updated_at: now,
            turns: 0,
            usage: Usage::default(),
            cost: Decimal::ZERO,
            accounts: Accounts::default(),
            messages: Vec::new(),
            notices: Vec::new(),
            past: Past::default(),
        })
    }

    pub(crate) fn of(state: SessionState) -> Self {
        Self {
            state,
            seq: 0,
            turn: Turn::default(),
            calls: Vec::new(),
            unknown: Vec::new(),
            extra: Map::new(),
        }
    }

    /// The session that a journal without a snapshot begins with.
    pub(crate) fn from_header(name: SessionName, header: &Header) -> Self {
        let new = NewSession {
            session_id: header.session_id,
            provider: header.provider.clone(),
            model: header.model.clone(),
            mode: header.mode.clone(),
            cwd: header.cwd.clone(),
            program_version: header.program_version.clone(),
        };
        let mut replica = Self::new(name, new, header.created_at);
        replica.state.parent = header.parent;
        replica
    }

    /// The header of a journal that continues from here.
    pub(crate) fn header(&self) -> Header {
        let state = &self.state;
        Header {
            format: FORMAT,
            session_id: state.session_id,
            name: state.name.to_string(),
            cwd: state.cwd.clone(),
            program_version: state.program_version.clone(),
            base: self.seq,
            created_at: state.created_at,
            provider: state.provider.clone(),
            model: state.model.clone(),
            mode: state.mode.clone(),
            parent: state.parent,
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        let state = &self.state;
        Totals {
            turns: state.turns,
            usage: state.usage,
            cost: state.cost,
            provider: state.provider.clone(),
            model: state.model.clone(),
            title: state.title.clone(),
        }
    }

    /// Takes in a record.
    pub(crate) fn apply(&mut self, seq: u64, at: Timestamp, record: Record) {
        self.seq = seq;
        let state = &mut self.state;
        state.updated_at = state.updated_at.max(at);
        match record {
            Record::Message(message) => self.add(message),
            Record::ToolIntent {
                id,
                agent,
                name,
                effects,
            } => {
                self.calls.retain(|call| !call.is(agent.as_deref(), &id));
                self.calls.push(OpenCall {
                    id,
                    agent,
                    name,
                    effects,
                    done: None,
                });
            }
            // Its result is no part of this conversation, so nothing is left to be told.
            Record::ToolDone {
                id,
                agent: Some(agent),
                ..
            } => self.calls.retain(|call| !call.is(Some(&agent), &id)),
            Record::ToolDone {
                id,
                agent: None,
                status,
                content,
            } => {
                let done = Some(Done { status, content });
                match self.calls.iter_mut().find(|call| call.is(None, &id)) {
                    Some(call) => call.done = done,
                    // A call that was refused ends without having begun.
                    None => self.calls.push(OpenCall {
                        id,
                        agent: None,
                        name: String::new(),
                        effects: Effects::ReadOnly,
                        done,
                    }),
                }
            }
            Record::Usage { usage, cost, .. } => {
                state.usage += usage;
                state.cost = state.cost.saturating_add(cost.unwrap_or_default());
                if let Some(entry) = entry(record, at) {
                    state.accounts.enter(entry);
                }
            }
            Record::Work { day, work } => state.accounts.work(day, work),
            Record::State(change) => state.change(*change),
            Record::Compacted { keep, messages } => {
                let kept = state.messages.iter().take(keep).cloned();
                state.replace(kept.chain(messages).collect());
            }
            Record::Rewound {
                restore,
                position,
                note,
                ..
            } => {
                if let Some(messages) = position.and_then(|it| state.conversation_at(it)) {
                    state.go_back(messages);
                    self.end_turn();
                }
                self.state.past.rewound = Some(restore);
                if let Some(note) = note {
                    self.add(Arc::new(Message::user(note)));
                }
            }
            Record::Repaired { keep, messages } => {
                if keep < state.messages.len() {
                    let kept = state.messages.iter().take(keep).cloned();
                    state.replace(kept.collect());
                }
                for message in messages {
                    self.add(message);
                }
                self.end_turn();
            }
            Record::TurnEnded {} => {
                state.turns += 1;
                self.end_turn();
            }
            Record::Title { text } => state.title = Some(text),
            Record::Notice(notice) => {
                state.notices.push(notice);
                bound(&mut state.notices);
            }
        }
    }

    /// Takes in a record that is not understood.
    pub(crate) fn keep_unknown(&mut self, seq: u64, at: Timestamp, record: Box<RawValue>) {
        self.seq = seq;
        self.state.updated_at = self.state.updated_at.max(at);
        self.unknown.push(record);
        bound(&mut self.unknown);
    }

    fn add(&mut self, message: Arc<Message>) {
        match message.role {
            Role::System => {}
            Role::User => {
                for block in &message.content {
                    if let Block::ToolResult { tool_use_id, .. } = block {
                        self.close(tool_use_id);
                    }
                }
                if self.state.title.is_none() {
                    self.state.title = title(&message);
                }
            }
            Role::Assistant => {
                self.turn = match message.tool_uses().next() {
                    Some(_) => Turn::Open,
                    None => Turn::Closed,
                };
            }
        }
        self.state.messages.push(message);
    }

    /// A call has its result, which also tells of those that were made on its behalf.
    fn close(&mut self, id: &str) {
        self.calls.retain(|call| call.told_by() != id);
    }

    fn end_turn(&mut self) {
        self.calls.clear();
        self.turn = Turn::Closed;
    }
}

impl SessionState {
    fn change(&mut self, change: StateChange) {
        let StateChange {
            provider,
            model,
            effort,
            mode,
            plan_mode,
            todos,
            cwd,
            program_version,
        } = change;
        set(&mut self.provider, provider);
        set(&mut self.model, model);
        self.effort = effort.or(self.effort);
        self.mode = mode.or(self.mode.take());
        set(&mut self.plan_mode, plan_mode);
        set(&mut self.todos, todos);
        set(&mut self.cwd, cwd);
        set(&mut self.program_version, program_version);
    }
}

/// The account of a record of calls.
pub(crate) fn entry(record: Record, at: Timestamp) -> Option<Account> {
    let Record::Usage {
        provider,
        model,
        usage,
        cost,
        purpose,
        agent,
        saved,
        calls,
        day,
    } = record
    else {
        return None;
    };
    Some(Account {
        day: day.unwrap_or_else(|| utc_day(at)),
        provider,
        model,
        purpose,
        agent,
        sums: Sums {
            calls,
            usage,
            cost: cost.unwrap_or_default(),
            saved: saved.unwrap_or_default(),
            unpriced: if cost.is_some() { 0 } else { calls },
        },
    })
}

/// The day of a time where nobody says what the clock on the wall said.
pub(crate) fn utc_day(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn bound<T>(kept: &mut Vec<T>) {
    let surplus = kept.len().saturating_sub(KEPT);
    kept.drain(..surplus);
}

/// The title that a conversation has by itself.
fn first_title(messages: &[Arc<Message>]) -> Option<String> {
    let mut prompts = messages.iter().filter(|it| it.role == Role::User);
    prompts.find_map(|message| title(message))
}

/// The task list as a conversation left it: that of the last call which wrote one.
fn tasks(messages: &[Arc<Message>]) -> Value {
    let calls = messages.iter().rev().flat_map(|message| {
        let calls: Vec<_> = message.tool_uses().collect();
        calls.into_iter().rev()
    });
    let mut written = calls.filter(|(_, name, _)| *name == TASKS);
    let written = written.find_map(|(_, _, input)| input.get("todos").cloned());
    written.unwrap_or(Value::Array(Vec::new()))
}

/// The beginning of a prompt, on one line. What was typed comes first; files and the like that go
/// along with it are texts of their own.
pub(crate) fn title(message: &Message) -> Option<String> {
    let mut title = String::new();
    let mut texts = message.content.iter().filter_map(|block| match block {
        Block::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let typed = texts.find(|text| !text.trim().is_empty())?;
    for word in typed.split_whitespace() {
        if !title.is_empty() {
            title.push(' ');
        }
        title.extend(word.chars().filter(|c| !c.is_control()).take(TITLE));
        if title.chars().count() > TITLE {
            title = title.chars().take(TITLE).collect();
            title.push('…');
            break;
        }
    }
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_beginning_of_the_first_prompt_on_one_line() {
        let of = |text: &str| title(&Message::user(text));
        assert_eq!(of("fix\n  the\ttests").as_deref(), Some("fix the tests"));
        assert_eq!(of(" \n"), None);
        let long = of(&"wort ".repeat(100)).unwrap();
        assert_eq!(long.chars().count(), TITLE + 1);
        assert!(long.ends_with('…'));
        let unbroken = of(&"ä".repeat(100_000)).unwrap();
        assert!(unbroken.chars().count() <= TITLE + 1);
        assert_eq!(of("a\u{1b}[31mb").as_deref(), Some("a[31mb"));
        let mut attached = Message::user(" ");
        attached.content.extend(Message::user("explain @f").content);
        attached.content.extend(Message::user("<file>…").content);
        assert_eq!(title(&attached).as_deref(), Some("explain @f"));
    }
}
