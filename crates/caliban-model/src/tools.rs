//! The tools that come with the program, by name: the one place that says what each of them does
//! and which of its arguments rules are about. Who needs a list of them derives it from here.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What running a tool can do to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Only looks; may run in plan mode.
    ReadOnly,
    /// Changes only the session itself: its task list, its mode.
    Session,
    /// Changes files.
    Writes,
    /// Runs programs.
    Executes,
    /// Runs other agents: it does what their calls do, each of which passes the same gate.
    Delegates,
}

/// The argument that a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// A shell command line.
    Command,
    /// A file that is read.
    Source,
    /// A file that is changed.
    Target,
    /// A file or directory that is searched, which is to read it.
    Place,
    Url,
    /// A plain text in this field.
    Text(&'static str),
    None,
}

/// A tool that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct BuiltInTool {
    pub name: &'static str,
    pub argument: Argument,
    pub effect: Effect,
    /// The fields of its input, other names included.
    pub fields: &'static [&'static str],
}

/// The names under which a path is given.
const PATHS: [&str; 3] = ["path", "file_path", "notebook_path"];

/// Fields that a tool takes under several names, our own first.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("AgentTool", &["background", "run_in_background"]),
    ("Bash", &["background", "run_in_background"]),
    ("BashOutput", &["id", "bash_id"]),
    ("Edit", &PATHS),
    ("Glob", &PATHS),
    ("Grep", &PATHS),
    ("KillShell", &["id", "shell_id"]),
    ("MultiEdit", &PATHS),
    ("NotebookEdit", &PATHS),
    ("Read", &PATHS),
    ("ReadMemoryTopic", &["topic", "slug", "name"]),
    ("Skill", &["name", "skill"]),
    ("Write", &PATHS),
    ("WriteMemoryTopic", &["topic", "slug", "name"]),
    ("WriteMemoryTopic", &["content", "body"]),
];

/// Every tool that can be there besides those of MCP servers and clients, by name.
pub const BUILT_IN: &[BuiltInTool] = &[
    tool(
        "AgentTool",
        Argument::None,
        Effect::Delegates,
        &[
            "prompt",
            "tool_allowlist",
            "model",
            "description",
            "inherit_hooks",
            "isolation",
            "worktree",
            "background",
            "run_in_background",
            "subagent_type",
        ],
    ),
    tool(
        "Bash",
        Argument::Command,
        Effect::Executes,
        &[
            "command",
            "timeout_seconds",
            "cwd",
            "description",
            "background",
            "run_in_background",
        ],
    ),
    tool(
        "BashOutput",
        Argument::None,
        Effect::ReadOnly,
        &["id", "bash_id", "filter"],
    ),
    tool(
        "Edit",
        Argument::Target,
        Effect::Writes,
        &[
            "path",
            "file_path",
            "old_string",
            "new_string",
            "replace_all",
        ],
    ),
    tool("EnterPlanMode", Argument::None, Effect::Session, &[]),
    tool("ExitPlanMode", Argument::None, Effect::Session, &["plan"]),
    tool(
        "Glob",
        Argument::Place,
        Effect::ReadOnly,
        &["pattern", "path", "file_path"],
    ),
    tool(
        "Grep",
        Argument::Place,
        Effect::ReadOnly,
        &[
            "pattern",
            "path",
            "file_path",
            "glob",
            "type",
            "output_mode",
            "ignore_case",
            "multiline",
            "context",
            "limit",
        ],
    ),
    tool(
        "KillShell",
        Argument::None,
        Effect::Executes,
        &["id", "shell_id"],
    ),
    tool(
        "MultiEdit",
        Argument::Target,
        Effect::Writes,
        &["path", "file_path", "edits"],
    ),
    tool(
        "NotebookEdit",
        Argument::Target,
        Effect::Writes,
        &[
            "path",
            "file_path",
            "notebook_path",
            "cell_id",
            "cell_index",
            "edit_mode",
            "cell_type",
            "new_source",
        ],
    ),
    tool(
        "Read",
        Argument::Source,
        Effect::ReadOnly,
        &["path", "file_path", "offset", "limit"],
    ),
    tool(
        "ReadMemoryTopic",
        Argument::None,
        Effect::ReadOnly,
        &["topic", "slug", "name"],
    ),
    tool(
        "Skill",
        Argument::Text("name"),
        Effect::ReadOnly,
        &["name", "skill"],
    ),
    tool("TodoWrite", Argument::None, Effect::Session, &["todos"]),
    tool(
        "ToolSearch",
        Argument::None,
        Effect::ReadOnly,
        &["query", "max_results"],
    ),
    tool(
        "WebFetch",
        Argument::Url,
        Effect::ReadOnly,
        &["url", "timeout_seconds", "raw"],
    ),
    tool(
        "WebSearch",
        Argument::None,
        Effect::ReadOnly,
        &["query", "limit", "allowed_domains", "blocked_domains"],
    ),
    tool(
        "Write",
        Argument::Target,
        Effect::Writes,
        &["path", "file_path", "content"],
    ),
    tool(
        "WriteMemoryTopic",
        Argument::None,
        Effect::Writes,
        &[
            "topic",
            "slug",
            "name",
            "type",
            "description",
            "content",
            "body",
        ],
    ),
];

const fn tool(
    name: &'static str,
    argument: Argument,
    effect: Effect,
    fields: &'static [&'static str],
) -> BuiltInTool {
    BuiltInTool {
        name,
        argument,
        effect,
        fields,
    }
}

impl BuiltInTool {
    pub fn named(name: &str) -> Option<&'static Self> {
        BUILT_IN.iter().find(|tool| tool.name == name)
    }

    /// Our name for a tool that other programs call differently.
    pub fn canonical(name: &str) -> &str {
        match name {
            "Task" | "Agent" => "AgentTool",
            "TaskOutput" => "BashOutput",
            "TaskStop" => "KillShell",
            name => name,
        }
    }

    /// The names under which it takes a field, this one included.
    pub fn synonyms<'a>(&self, field: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        let name = self.name;
        let same = SYNONYMS
            .iter()
            .find(|(tool, names)| *tool == name && names.contains(&field));
        let others = same.map_or(&[][..], |(_, names)| names).iter().copied();
        std::iter::once(field).chain(others.filter(move |other| *other != field))
    }

    /// The names of those that change the file they are given.
    pub fn editors() -> impl Iterator<Item = &'static str> {
        let editors = BUILT_IN.iter().filter(|tool| tool.edits());
        editors.map(|tool| tool.name)
    }

    /// Whether it changes the file it is given.
    pub fn edits(&self) -> bool {
        self.argument == Argument::Target
    }

    /// Whether it reads or changes one file, which it is given.
    pub fn opens(&self) -> bool {
        matches!(self.argument, Argument::Source | Argument::Target)
    }
}

/// The path of a call on a file, whichever of its names the model used.
pub fn file_path(input: &Value) -> Option<&str> {
    PATHS.iter().find_map(|field| input.get(*field)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_agrees_with_itself() {
        assert!(BUILT_IN.is_sorted_by(|one, other| one.name < other.name));
        for tool in BUILT_IN {
            let (name, fields) = (tool.name, tool.fields);
            match tool.argument {
                Argument::Command => assert!(fields.contains(&"command"), "{name}"),
                Argument::Source | Argument::Target | Argument::Place => {
                    assert!(fields.contains(&"path"), "{name}");
                }
                Argument::Url => assert!(fields.contains(&"url"), "{name}"),
                Argument::Text(field) => assert!(fields.contains(&field), "{name}"),
                Argument::None => {}
            }
            // Who changes a file changes the one it names; notes have a place of their own.
            assert_eq!(
                tool.edits(),
                tool.effect == Effect::Writes && name != "WriteMemoryTopic",
                "{name}"
            );
        }
        for (name, fields) in SYNONYMS {
            let tool = BuiltInTool::named(name).unwrap();
            let known = fields.iter().filter(|field| tool.fields.contains(field));
            assert!(known.count() > 1, "{name}");
        }
        let skill = BuiltInTool::named("Skill").unwrap();
        assert!(skill.synonyms("skill").eq(["skill", "name"]));
        assert!(skill.synonyms("other").eq(["other"]));
        let editors: Vec<&str> = BuiltInTool::editors().collect();
        assert_eq!(editors, ["Edit", "MultiEdit", "NotebookEdit", "Write"]);
    }
}
