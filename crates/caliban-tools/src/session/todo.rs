//! The task list that the model keeps for itself and people follow.

use std::collections::HashSet;
use std::sync::Arc;

use caliban_agent::{Details, Effect, Task, TaskState, ToolContext, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::watch;

/// The most tasks of a list.
const MAX_ITEMS: usize = 100;

/// The most characters of a task, and of its id.
const MAX_CONTENT: usize = 1000;
const MAX_ID: usize = 100;

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Todo {
    pub id: String,
    pub content: String,
    pub status: TodoStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

impl Todo {
    /// As people follow it.
    fn task(&self) -> Task {
        Task {
            text: self.content.clone(),
            state: match self.status {
                TodoStatus::Pending => TaskState::Pending,
                TodoStatus::InProgress => TaskState::Active,
                TodoStatus::Completed => TaskState::Done,
            },
        }
    }
}

/// The list, shared by the tool and whoever shows it.
#[derive(Debug)]
pub struct TodoList(watch::Sender<Arc<[Todo]>>);

/// Why a list was not taken over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTodos {
    #[error("there are {0} tasks; at most {MAX_ITEMS} are allowed")]
    TooMany(usize),
    #[error("the id `{0}` is used twice")]
    DuplicateId(String),
    #[error("task {0} has an id that is empty or longer than {MAX_ID} characters")]
    BadId(usize),
    #[error("the task `{0}` has no content")]
    Empty(String),
    #[error("the task `{0}` is longer than {MAX_CONTENT} characters")]
    TooLong(String),
}

impl Default for TodoList {
    fn default() -> Self {
        Self::new()
    }
}

impl TodoList {
    /// Starts empty.
    pub fn new() -> Self {
        Self(watch::Sender::new(Arc::from([])))
    }

    pub fn items(&self) -> Arc<[Todo]> {
        Arc::clone(&self.0.borrow())
    }

    /// Puts a new list in place of the old one, whole or not at all.
    pub fn replace(&self, items: Vec<Todo>) -> Result<(), InvalidTodos> {
        check(&items)?;
        self.0.send_replace(Arc::from(items));
        Ok(())
    }

    /// The list as text, one task a line.
    pub fn render(&self) -> String {
        let items = self.items();
        if items.is_empty() {
            return "The task list is empty.".to_owned();
        }
        let line = |todo: &Todo| {
            let mark = match todo.status {
                TodoStatus::Pending => "[ ]",
                TodoStatus::InProgress => "[~]",
                TodoStatus::Completed => "[x]",
            };
            format!("{mark} {}: {}", todo.id, todo.content)
        };
        items.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Tells of every replacement.
    pub fn watch(&self) -> watch::Receiver<Arc<[Todo]>> {
        self.0.subscribe()
    }
}

fn check(items: &[Todo]) -> Result<(), InvalidTodos> {
    if items.len() > MAX_ITEMS {
        return Err(InvalidTodos::TooMany(items.len()));
    }
    let mut ids = HashSet::new();
    for (index, todo) in items.iter().enumerate() {
        if todo.id.trim().is_empty() || todo.id.chars().count() > MAX_ID {
            return Err(InvalidTodos::BadId(index + 1));
        }
        if !ids.insert(&todo.id) {
            return Err(InvalidTodos::DuplicateId(todo.id.clone()));
        }
        if todo.content.trim().is_empty() {
            return Err(InvalidTodos::Empty(todo.id.clone()));
        }
        if todo.content.chars().count() > MAX_CONTENT {
            return Err(InvalidTodos::TooLong(todo.id.clone()));
        }
    }
    Ok(())
}

/// Replaces the task list.
#[derive(Debug)]
pub struct TodoWrite(Arc<TodoList>);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoWriteInput {
    /// The whole list; what is left out is dropped.
    #[serde(deserialize_with = "numbered")]
    todos: Vec<Todo>,
}

/// A task as it is written where tasks have no ids, but words for while they are worked on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    id: Option<String>,
    content: String,
    status: TodoStatus,
    #[serde(default, rename = "activeForm")]
    _active_form: Option<String>,
}

/// Tasks, of which those without an id have the first number that nobody has.
fn numbered<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Todo>, D::Error> {
    let written = Vec::<Written>::deserialize(input)?;
    let mut taken: HashSet<String> = written.iter().filter_map(|it| it.id.clone()).collect();
    let mut numbers = (1..).map(|number: usize| number.to_string());
    let mut free = || numbers.find(|number| taken.insert(number.clone()));
    Ok(written
        .into_iter()
        .map(|it| Todo {
            id: it.id.or_else(&mut free).unwrap_or_default(),
            content: it.content,
            status: it.status,
        })
        .collect())
}

impl TodoWrite {
    pub fn new(list: Arc<TodoList>) -> Self {
        Self(list)
    }
}

impl TypedTool for TodoWrite {
    type Input = TodoWriteInput;

    const NAME: &'static str = "TodoWrite";
    const DESCRIPTION: &'static str = "Replaces the task list of this session. Use it for work of \
         several steps: keep one task in progress, and mark each completed when it is done.";
    const EFFECT: Effect = Effect::Session;

    fn first_arg(&self, _: &TodoWriteInput) -> Option<String> {
        None
    }

    fn conflict_key(&self, _: &TodoWriteInput, _: &caliban_agent::Workspace) -> Option<String> {
        Some("todos".to_owned())
    }

    fn supersession_key(&self, _: &TodoWriteInput) -> Option<String> {
        Some("todos".to_owned())
    }

    async fn run(&self, input: TodoWriteInput, _: ToolContext) -> ToolOutput {
        match self.0.replace(input.todos) {
            Ok(()) => {
                let items = self.0.items();
                let tasks = items.iter().map(Todo::task).collect();
                ToolOutput::ok(self.0.render()).with_details(Details::Tasks(tasks))
            }
            Err(error) => ToolOutput::invalid(format!("The list was not changed: {error}.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn todo(id: &str, content: &str, status: TodoStatus) -> Todo {
        Todo {
            id: id.to_owned(),
            content: content.to_owned(),
            status,
        }
    }

    #[test]
    fn a_list_is_replaced_rendered_and_announced() {
        let list = TodoList::new();
        assert_eq!(list.render(), "The task list is empty.");
        let mut watch = list.watch();
        list.replace(vec![
            todo("1", "look", TodoStatus::Completed),
            todo("2", "change", TodoStatus::InProgress),
            todo("3", "test", TodoStatus::Pending),
        ])
        .unwrap();
        assert_eq!(list.render(), "[x] 1: look\n[~] 2: change\n[ ] 3: test");
        assert!(watch.has_changed().unwrap());
        assert_eq!(watch.borrow_and_update().len(), 3);
    }

    #[test]
    fn a_bad_list_changes_nothing() {
        let list = TodoList::new();
        let pending = TodoStatus::Pending;
        list.replace(vec![todo("1", "keep", pending)]).unwrap();
        let watch = list.watch();
        for (items, expected) in [
            (
                vec![todo("1", "a", pending), todo("1", "b", pending)],
                InvalidTodos::DuplicateId("1".to_owned()),
            ),
            (
                vec![todo("1", &"x".repeat(MAX_CONTENT + 1), pending)],
                InvalidTodos::TooLong("1".to_owned()),
            ),
            (
                vec![todo("1", " ", pending)],
                InvalidTodos::Empty("1".to_owned()),
            ),
            (vec![todo("", "a", pending)], InvalidTodos::BadId(1)),
            (
                (0..=MAX_ITEMS)
                    .map(|n| todo(&n.to_string(), "a", pending))
                    .collect(),
                InvalidTodos::TooMany(MAX_ITEMS + 1),
            ),
        ] {
            assert_eq!(list.replace(items), Err(expected));
        }
        assert_eq!(list.render(), "[ ] 1: keep");
        assert!(!watch.has_changed().unwrap());
    }
}
