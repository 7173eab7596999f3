//! How calls of tools look to an editor: what kind they are, what they are called, which files
//! they are about and what they change.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    Diff, PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolCallContent, ToolCallLocation,
    ToolKind,
};
use caliban_agent::{Details, Task, TaskState};
use caliban_model::{BuiltInTool, file_path};
use serde_json::Value;

use super::shown;

/// The tool whose calls are shown as a plan.
pub(super) const TASKS: &str = "TodoWrite";
const EXIT_PLAN: &str = "ExitPlanMode";

/// The longest title.
const TITLE: usize = 160;
/// The longest text of a change that is shown.
const CHANGE: usize = 512 * 1024;

pub(super) fn kind(name: &str) -> ToolKind {
    match name {
        "Read" | "ReadMemoryTopic" | "BashOutput" => ToolKind::Read,
        "Grep" | "Glob" | "ToolSearch" => ToolKind::Search,
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => ToolKind::Edit,
        "Bash" | "KillShell" => ToolKind::Execute,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        "EnterPlanMode" | EXIT_PLAN => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

/// What a call is called: a command is its own name.
pub(super) fn title(name: &str, first_arg: Option<&str>) -> String {
    let first_arg = first_arg.map(str::trim).filter(|text| !text.is_empty());
    let whole = match (name, first_arg) {
        ("Bash", Some(command)) => command.to_owned(),
        (name, Some(about)) => format!("{name} {about}"),
        (name, None) => name.to_owned(),
    };
    let mut words = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() > TITLE {
        words = words.chars().take(TITLE - 1).chain(['…']).collect();
    }
    words
}

/// The files that a call is about.
pub(super) fn locations(name: &str, input: &Value, cwd: &Path) -> Vec<ToolCallLocation> {
    let is_about_files = BuiltInTool::named(name)
        .is_some_and(|tool| tool.opens() || matches!(tool.name, "Grep" | "Glob"));
    let path = file_path(input).filter(|path| is_about_files && !path.is_empty());
    let line = input.get("offset").and_then(Value::as_u64);
    let line = line.filter(|_| name == "Read");
    path.map(|path| {
        let line = line.and_then(|line| u32::try_from(line).ok());
        ToolCallLocation::new(absolute(path, cwd)).line(line)
    })
    .into_iter()
    .collect()
}

fn absolute(path: &str, cwd: &Path) -> PathBuf {
    cwd.join(path)
}

/// What a call wants to change, as far as its input tells.
pub(super) fn changes(name: &str, input: &Value, cwd: &Path) -> Vec<ToolCallContent> {
    let text = |value: &Value, field: &str| value.get(field)?.as_str().map(str::to_owned);
    let Some(path) = file_path(input).map(|path| absolute(path, cwd)) else {
        return Vec::new();
    };
    let replaced = |edit: &Value| {
        let old = text(edit, "old_string")?;
        // What is replaced by nothing is gone; what replaces nothing is new.
        let new = text(edit, "new_string").unwrap_or_default();
        diff(&path, Some(old).filter(|old| !old.is_empty()), new)
    };
    match name {
        "Edit" => replaced(input).into_iter().collect(),
        "MultiEdit" => {
            let edits = input.get("edits").and_then(Value::as_array);
            edits.into_iter().flatten().filter_map(replaced).collect()
        }
        "Write" => text(input, "content")
            .and_then(|content| diff(&path, None, content))
            .into_iter()
            .collect(),
        "NotebookEdit" => text(input, "new_source")
            .and_then(|source| diff(&path, None, source))
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

fn diff(path: &Path, old: Option<String>, new: String) -> Option<ToolCallContent> {
    let is_shown = old.as_ref().map_or(0, String::len) + new.len() <= CHANGE;
    is_shown.then(|| ToolCallContent::Diff(Diff::new(path, new).old_text(old)))
}

/// What a call changed or would change, where its tool told, and the line where that begins.
pub(super) fn changed(details: Option<&Details>) -> Option<(ToolCallContent, ToolCallLocation)> {
    let Some(Details::Edited {
        path,
        texts: Some((old, new)),
    }) = details
    else {
        return None;
    };
    let line = first_change(old, new);
    let before = Some(old.clone()).filter(|old| !old.is_empty());
    let diff = diff(Path::new(path), before, new.clone())?;
    Some((diff, ToolCallLocation::new(path).line(line)))
}

/// The first line that is not the same any more, counted from 1.
fn first_change(old: &str, new: &str) -> Option<u32> {
    let same = old
        .lines()
        .zip(new.lines())
        .take_while(|(one, other)| one == other);
    u32::try_from(same.count() + 1).ok()
}

/// What a person should read before he permits a call, beside what it changes.
pub(super) fn proposal(name: &str, input: &Value) -> Option<ToolCallContent> {
    let plan = input.get("plan").filter(|_| name == EXIT_PLAN)?;
    shown::output(plan.as_str()?)
}

/// The task list as a plan.
pub(super) fn plan(tasks: &[Task]) -> Vec<PlanEntry> {
    let entry = |task: &Task| {
        let status = match task.state {
            TaskState::Pending => PlanEntryStatus::Pending,
            TaskState::Active => PlanEntryStatus::InProgress,
            TaskState::Done => PlanEntryStatus::Completed,
        };
        PlanEntry::new(task.text.clone(), PlanEntryPriority::Medium, status)
    };
    tasks.iter().map(entry).collect()
}

/// The same from the input of the call that made it.
pub(super) fn written_plan(input: &Value) -> Vec<PlanEntry> {
    let todos = input.get("todos").and_then(Value::as_array);
    let entry = |todo: &Value| {
        let text = todo.get("content")?.as_str()?;
        let status = match todo.get("status").and_then(Value::as_str) {
            Some("in_progress") => PlanEntryStatus::InProgress,
            Some("completed") => PlanEntryStatus::Completed,
            Some(_) | None => PlanEntryStatus::Pending,
        };
        Some(PlanEntry::new(text, PlanEntryPriority::Medium, status))
    };
    todos.into_iter().flatten().filter_map(entry).collect()
}

/// How an agent is called that a call runs.
pub(super) fn agent_name(input: &Value) -> String {
    let field = |name: &str| input.get(name).and_then(Value::as_str);
    let named = field("subagent_type").or_else(|| field("description"));
    let named = named.map(str::trim).filter(|name| !name.is_empty());
    title(named.unwrap_or("agent"), None)
}

#[cfg(test)]
mod tests {
    use caliban_model::BUILT_IN;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_tool_that_edits_or_runs_is_of_that_kind() {
        for tool in BUILT_IN {
            if tool.edits() {
                assert_eq!(kind(tool.name), ToolKind::Edit, "{}", tool.name);
            }
        }
        assert_eq!(kind("Bash"), ToolKind::Execute);
        assert_eq!(kind("mcp__x__y"), ToolKind::Other);
    }

    #[rstest]
    #[case("Bash", Some("git  status\n"), "git status")]
    #[case("Read", Some("src/main.rs"), "Read src/main.rs")]
    #[case("mcp__x__y", None, "mcp__x__y")]
    #[case("Grep", Some(" "), "Grep")]
    fn titles_are_one_line(#[case] name: &str, #[case] about: Option<&str>, #[case] want: &str) {
        assert_eq!(title(name, about), want);
        assert_eq!(
            title("Bash", Some(&"x ".repeat(400))).chars().count(),
            TITLE
        );
    }

    #[test]
    fn locations_are_absolute_and_know_their_line() {
        let of = |name: &str, input: Value| {
            let found = locations(name, &input, Path::new("/w"));
            found
                .into_iter()
                .map(|it| (it.path, it.line))
                .collect::<Vec<_>>()
        };
        let read = json!({"file_path": "a.rs", "offset": 7});
        assert_eq!(of("Read", read), [("/w/a.rs".into(), Some(7))]);
        let edit = json!({"path": "/x/b.rs", "offset": 7});
        assert_eq!(of("Edit", edit), [("/x/b.rs".into(), None)]);
        assert_eq!(
            of("Grep", json!({"pattern": "x", "path": "src"})),
            [("/w/src".into(), None)]
        );
        assert_eq!(of("Bash", json!({"path": "a"})), []);
        assert_eq!(of("mcp__a__b", json!({"path": "a"})), []);
    }

    #[test]
    fn a_change_is_where_the_first_line_differs() {
        assert_eq!(first_change("a\nb\nc", "a\nx\nc"), Some(2));
        assert_eq!(first_change("", "a"), Some(1));
        assert_eq!(first_change("a", "a\nb"), Some(2));
    }

    #[test]
    fn agents_have_a_name() {
        assert_eq!(
            agent_name(&json!({"subagent_type": "reviewer", "description": "d"})),
            "reviewer"
        );
        assert_eq!(
            agent_name(&json!({"description": "count files"})),
            "count files"
        );
        assert_eq!(agent_name(&json!({})), "agent");
    }
}
