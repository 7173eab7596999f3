//! What the model is told beside its work, and again when its conversation was condensed: the
//! instructions of the directories it works in, and its own task list.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_agent::{
    Event, HookEvent, Inheritance, Observer, PromptStage, PromptVerdict, SessionSource, ToolCall,
    TypedTool, Workspace,
};
use caliban_context::OnDemand;
use caliban_model::{Argument, Block, BuiltInTool, Message, Role, file_path};
use caliban_tools::{Glob, Todo, TodoList, TodoWrite};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::notice_sink::NoticeSink;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Brings up instruction files of the directories that one agent's tools work in, and rules for
/// the paths.
#[derive(Debug)]
pub(crate) struct NestedMemory {
    /// As it was before anything was worked on.
    untouched: OnDemand,
    on_demand: Mutex<OnDemand>,
    workspace: Workspace,
    found: Mutex<Vec<String>>,
    notice_sink: NoticeSink,
}

impl NestedMemory {
    /// `earlier` is what the session's conversation holds already.
    pub(crate) fn new(
        on_demand: OnDemand,
        earlier: &[Arc<Message>],
        workspace: Workspace,
        notice_sink: NoticeSink,
    ) -> Self {
        let untouched = on_demand.clone();
        let mut on_demand = on_demand;
        on_demand.recall(told(earlier));
        Self {
            untouched,
            on_demand: Mutex::new(on_demand),
            workspace,
            found: Mutex::default(),
            notice_sink,
        }
    }

    /// The conversation is another one: what it does not hold has not been told.
    pub(crate) fn recall(&self, messages: &[Arc<Message>]) {
        let mut on_demand = self.untouched.clone();
        on_demand.recall(told(messages));
        *lock(&self.on_demand) = on_demand;
        lock(&self.found).clear();
    }

    fn touch(&self, path: &Path) {
        let addition = lock(&self.on_demand).touch(path);
        for notice in &addition.notices {
            self.notice_sink.say(Event::Notice {
                subtype: "memory".into(),
                message: notice.to_string(),
            });
        }
        lock(&self.found).extend(addition.text());
    }
}

impl Observer for NestedMemory {
    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        if let HookEvent::PostToolUse { call, .. } = event
            && let Some(path) = touched(call)
            && let Ok(resolved) = self.workspace.resolve_freely(&path)
        {
            self.touch(&resolved.real);
        }
        async {}.boxed()
    }

    fn remarks(&self, _: &[Arc<str>]) -> Option<String> {
        let found = std::mem::take(&mut *lock(&self.found));
        (!found.is_empty()).then(|| found.join("\n\n"))
    }

    fn retell(&self, kept: &[Arc<Message>]) -> Option<String> {
        let kept: Vec<&str> = told(kept).collect();
        lock(&self.on_demand).retell(&kept)
    }

    /// A sub-agent has seen nothing of what others were told, so it starts from the beginning.
    fn for_sub_agent(self: Arc<Self>, _: Inheritance) -> Option<Arc<dyn Observer>> {
        let (untouched, workspace) = (self.untouched.clone(), self.workspace.clone());
        let notice_sink = self.notice_sink.clone();
        Some(Arc::new(Self::new(untouched, &[], workspace, notice_sink)))
    }
}

/// What a conversation says in the user's name, without the results of calls: those say what they
/// like.
fn told(messages: &[Arc<Message>]) -> impl Iterator<Item = &str> {
    let of_user = messages.iter().filter(|message| message.role == Role::User);
    let blocks = of_user.flat_map(|message| &message.content);
    blocks.filter_map(|block| match block {
        Block::Text { text, .. } => Some(&**text),
        _ => None,
    })
}

/// The path of a file that a call worked on, or of the directory it looked into.
fn touched(call: &ToolCall) -> Option<Cow<'_, str>> {
    let tool = BuiltInTool::named(&call.name)?;
    let given = file_path(&call.input).map(Cow::Borrowed);
    let pattern = call.input.get("pattern").and_then(Value::as_str);
    match (tool.argument, pattern) {
        // It may begin with the directory that it is about.
        (Argument::Place, Some(pattern)) if tool.name == Glob::NAME => {
            let named = literal(pattern);
            match given {
                Some(path) if !named.starts_with(['/', '~']) => {
                    Some(format!("{path}/{named}").into())
                }
                _ => (!named.is_empty()).then_some(named.into()),
            }
        }
        (Argument::Source | Argument::Target | Argument::Place, _) => given,
        (Argument::Command | Argument::Url | Argument::Text(_) | Argument::None, _) => None,
    }
}

/// The directories that a pattern begins with by name.
fn literal(pattern: &str) -> &str {
    let end = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    pattern[..end]
        .rsplit_once('/')
        .map_or("", |(directory, _)| directory)
}

/// Tells the session's agent of its task list where it would not know it otherwise: when another
/// agent changed it, after a summary, and after a resume.
#[derive(Debug)]
pub(crate) struct TaskReminder {
    list: Arc<TodoList>,
    /// What the model has read last; nothing while it has not read any.
    known: Mutex<Option<Arc<[Todo]>>>,
}

impl TaskReminder {
    pub(crate) fn new(list: Arc<TodoList>, source: SessionSource) -> Self {
        let known = match source {
            SessionSource::Startup => Some(list.items()),
            SessionSource::Resume => None,
        };
        let known = Mutex::new(known);
        Self { list, known }
    }

    /// The list, if it is another one than the model knows.
    fn news(&self) -> Option<String> {
        let is_known = lock(&self.known).as_ref() == Some(&self.list.items());
        if is_known { None } else { self.remind() }
    }

    /// The list, unless it is empty; from then on the model knows it.
    fn remind(&self) -> Option<String> {
        let items = self.list.items();
        let is_empty = items.is_empty();
        *lock(&self.known) = Some(items);
        (!is_empty).then(|| format!("The task list of this session:\n\n{}", self.list.render()))
    }
}

impl PromptStage for TaskReminder {
    fn before_prompt<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        let news = self.news();
        async move { news.map_or(PromptVerdict::Accept, PromptVerdict::AcceptWith) }.boxed()
    }
}

impl Observer for TaskReminder {
    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        // The result of the call is the list.
        if let HookEvent::PostToolUse { call, .. } = event
            && &*call.name == TodoWrite::NAME
        {
            *lock(&self.known) = Some(self.list.items());
        }
        async {}.boxed()
    }

    fn remarks(&self, _: &[Arc<str>]) -> Option<String> {
        self.news()
    }

    fn retell(&self, _: &[Arc<Message>]) -> Option<String> {
        self.remind()
    }

    /// The list is the session's: an agent that works on a part of it has a task of its own.
    fn for_sub_agent(self: Arc<Self>, _: Inheritance) -> Option<Arc<dyn Observer>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_begins_with_directories_or_not() {
        for (pattern, directory) in [
            ("*.rs", ""),
            ("src/**/*.rs", "src"),
            ("src/a/b{c,d}/*.rs", "src/a"),
            ("/abs/x.rs", "/abs"),
            ("name", ""),
        ] {
            assert_eq!(literal(pattern), directory, "{pattern}");
        }
    }
}
