//! Agents of a plugin: Markdown files whose text is the prompt of a sub-agent.

use std::fs;
use std::path::Path;

use caliban_context::frontmatter::Lenient;
use serde_json::Value;

use crate::name::is_plain;

/// The largest agent file, in bytes, and the longest description, in characters.
const LARGEST: u64 = 256 * 1024;
const DESCRIPTION: usize = 1024;
/// Fields that would loosen something, or that others decide.
const IGNORED: [&str; 3] = ["hooks", "mcpServers", "permissionMode"];

/// A kind of sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    /// Without the plugin's name before it.
    pub name: String,
    pub description: String,
    pub prompt: String,
    /// The tools it may use, as it calls them; all if left out.
    pub tools: Option<Vec<String>>,
    /// The tools it may not use.
    pub without: Vec<String>,
    pub model: Option<String>,
}

/// Reads an agent. A head that is not YAML is read line by line; where that does not help, the
/// name of the file says who it is.
pub(crate) fn read(path: &Path, remarks: &mut Vec<String>) -> Option<AgentFile> {
    let stem = path.file_stem()?.to_str()?;
    let mut told = |what: String| remarks.push(format!("the agent `{stem}`: {what}"));
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() <= LARGEST => {}
        Ok(_) => {
            told(format!("it is no file of at most {LARGEST} bytes"));
            return None;
        }
        Err(error) => {
            told(error.to_string());
            return None;
        }
    }
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            told(error.to_string());
            return None;
        }
    };
    let file = Lenient::read(&text);
    if let Some(problem) = &file.problem {
        told(problem.clone());
    }
    let text = |key: &str| file.fields.get(key).and_then(Value::as_str).map(str::trim);
    for key in IGNORED.iter().filter(|key| file.fields.contains_key(**key)) {
        told(format!("`{key}` is not used"));
    }
    let name = text("name").filter(|name| is_plain(name));
    let name = name.or_else(|| is_plain(stem).then_some(stem));
    let Some(name) = name else {
        told("neither its name nor its file's is plain".to_owned());
        return None;
    };
    let description = text("description").filter(|text| !text.is_empty());
    let description = description.map_or_else(|| format!("The agent {name}."), one_line);
    Some(AgentFile {
        name: name.to_owned(),
        description,
        prompt: file.body.trim().to_owned(),
        tools: file.fields.get("tools").and_then(tools),
        without: file
            .fields
            .get("disallowedTools")
            .and_then(tools)
            .unwrap_or_default(),
        model: text("model")
            .filter(|model| !model.is_empty())
            .map(str::to_owned),
    })
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(DESCRIPTION).collect()
}

/// The names of tools, as a list or with commas between them; what stands in parentheses is the
/// business of rules.
fn tools(value: &Value) -> Option<Vec<String>> {
    let items: Vec<String> = match value {
        Value::Array(items) => items
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        Value::String(text) => split(text),
        _ => return None,
    };
    let names: Vec<String> = items
        .iter()
        .map(|item| item.split('(').next().unwrap_or_default().trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    (!names.iter().any(|name| name == "*")).then_some(names)
}

/// Commas in parentheses separate nothing.
fn split(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(file: &str, text: &str) -> (Option<AgentFile>, Vec<String>) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join(file);
        fs::write(&path, text).unwrap();
        let mut remarks = Vec::new();
        let agent = read(&path, &mut remarks);
        (agent, remarks)
    }

    #[test]
    fn fields_are_read() {
        let text = "---\nname: checker\ndescription: Checks\n  things\ntools: Read, Bash(git a, b), Grep\nmodel: opus\npermissionMode: x\n---\nYou check.\n";
        let (read, remarks) = agent("file.md", text);
        let read = read.unwrap();
        assert_eq!(
            (&*read.name, &*read.description),
            ("checker", "Checks things")
        );
        assert_eq!(read.tools.unwrap(), ["Read", "Bash", "Grep"]);
        assert_eq!(
            (&*read.prompt, read.model.as_deref()),
            ("You check.", Some("opus"))
        );
        assert_eq!(remarks, ["the agent `file`: `permissionMode` is not used"]);
    }

    #[test]
    fn a_head_that_is_no_yaml_is_read_by_lines() {
        let text = "---\nname: planner\ndescription: Use it. user: \"a: b\" assistant: \"c\"\nmodel: inherit\n---\nPlan.";
        let read = agent("p.md", text).0.unwrap();
        assert_eq!(&*read.name, "planner");
        assert!(
            read.description.starts_with("Use it. user:"),
            "{}",
            read.description
        );
    }

    #[test]
    fn without_a_head_the_file_says_who_it_is() {
        let read = agent("helper.md", "Help.").0.unwrap();
        assert_eq!(
            (&*read.name, &*read.prompt, read.tools),
            ("helper", "Help.", None)
        );
        assert!(agent("no good.md", "x").0.is_none());
    }
}
