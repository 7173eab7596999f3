//! What rules know about tools: which argument a pattern is about, and which fields there are.

use serde_json::Value;

/// The argument that `Tool:<pattern>` is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// A shell command line.
    Command,
    /// A file that is read.
    Source,
    /// A file that is changed.
    Target,
    Url,
    /// A plain text in this field.
    Text(&'static str),
    /// Nothing: only the tool's name can be matched.
    None,
}

/// A tool as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct KnownTool {
    pub name: &'static str,
    pub argument: Argument,
    /// The fields of its input, other names included.
    pub fields: &'static [&'static str],
}

const PATHS: [&str; 3] = ["path", "file_path", "notebook_path"];

/// Every tool that can be there besides those of MCP servers.
pub const KNOWN: &[KnownTool] = &[
    tool(
        "AgentTool",
        Argument::None,
        &[
            "prompt",
            "tool_allowlist",
            "model",
            "description",
            "isolation",
            "background",
        ],
    ),
    tool(
        "Bash",
        Argument::Command,
        &[
            "command",
            "timeout_seconds",
            "cwd",
            "description",
            "background",
            "run_in_background",
        ],
    ),
    tool("BashOutput", Argument::None, &["id", "bash_id", "filter"]),
    tool(
        "Edit",
        Argument::Target,
        &[
            "path",
            "file_path",
            "old_string",
            "new_string",
            "replace_all",
        ],
    ),
    // Not a tool: what MCP servers want to know of the user.
    tool("Elicit", Argument::Text("server"), &["server"]),
    tool("EnterPlanMode", Argument::None, &[]),
    tool("ExitPlanMode", Argument::None, &["plan"]),
    tool("Glob", Argument::None, &["pattern", "path", "file_path"]),
    tool(
        "Grep",
        Argument::None,
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
    tool("KillShell", Argument::None, &["id", "shell_id"]),
    tool(
        "MultiEdit",
        Argument::Target,
        &["path", "file_path", "edits"],
    ),
    tool(
        "NotebookEdit",
        Argument::Target,
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
        &["path", "file_path", "offset", "limit"],
    ),
    tool(
        "ReadMemoryTopic",
        Argument::None,
        &["topic", "slug", "name"],
    ),
    tool("Skill", Argument::Text("name"), &["name", "args"]),
    tool("TodoWrite", Argument::None, &["todos"]),
    tool("ToolSearch", Argument::None, &["query", "limit"]),
    tool(
        "WebFetch",
        Argument::Url,
        &["url", "timeout_seconds", "raw"],
    ),
    tool(
        "WebSearch",
        Argument::None,
        &["query", "limit", "allowed_domains", "blocked_domains"],
    ),
    tool("Write", Argument::Target, &["path", "file_path", "content"]),
    tool(
        "WriteMemoryTopic",
        Argument::None,
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

/// The tools that change files.
pub const EDITORS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

const fn tool(
    name: &'static str,
    argument: Argument,
    fields: &'static [&'static str],
) -> KnownTool {
    KnownTool {
        name,
        argument,
        fields,
    }
}

pub(crate) fn known(name: &str) -> Option<&'static KnownTool> {
    KNOWN.iter().find(|tool| tool.name == name)
}

/// Our name for a tool that other programs call differently.
pub(crate) fn canonical(name: &str) -> &str {
    match name {
        "Task" | "Agent" => "AgentTool",
        name => name,
    }
}

pub(crate) fn argument(tool: &str) -> Argument {
    known(tool).map_or(Argument::None, |tool| tool.argument)
}

/// The known name closest to a misspelled one.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    KNOWN
        .iter()
        .map(|tool| {
            (
                distance(&tool.name.to_lowercase(), &name.to_lowercase()),
                tool.name,
            )
        })
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, name)| name)
}

/// The path of a call on a file, whichever of its names the model used.
pub fn file_path(input: &Value) -> Option<&str> {
    PATHS.iter().find_map(|field| input.get(*field)?.as_str())
}

fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut previous = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = previous + usize::from(a != *b);
            previous = row[j + 1];
            row[j + 1] = substituted.min(previous + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_names_have_a_nearest_one() {
        assert_eq!(nearest("bash"), Some("Bash"));
        assert_eq!(nearest("Wrte"), Some("Write"));
        assert_eq!(nearest("Frobnicate"), None);
    }
}
