//! Blocks of messages and results of tools as clients of this dialect read them.

use caliban_agent::{Denial, DenialSource, Details, ToolOutput, ToolStatus};
use caliban_model::{Block, Image, ImageSource, Message, Role, ToolContent};
use serde_json::{Value, json};

use super::names::{input_theirs, theirs};

/// Lines around a change that are shown.
const CONTEXT: usize = 3;

/// A block of the model; nothing for one that only its provider understands.
pub(super) fn block(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Text { text, .. } => json!({"type": "text", "text": text}),
        Block::Thinking {
            text, signature, ..
        } => json!({
            "type": "thinking",
            "thinking": text,
            "signature": signature.as_deref().unwrap_or_default(),
        }),
        Block::RedactedThinking { data } => json!({"type": "redacted_thinking", "data": data}),
        Block::ToolUse {
            id, name, input, ..
        } => json!({
            "type": "tool_use",
            "id": id,
            "name": theirs(name),
            "input": tool_input(name, input),
        }),
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => tool_result(tool_use_id, &self::content(content), *is_error),
        Block::Image(image) => json!({"type": "image", "source": source(image)}),
        Block::Opaque { .. } => return None,
    })
}

/// A message of the conversation, as its API has it.
pub fn message_theirs(message: &Message) -> Value {
    let role = match message.role {
        Role::Assistant => "assistant",
        Role::User | Role::System => "user",
    };
    let blocks: Vec<Value> = message.content.iter().filter_map(block).collect();
    let mut value = json!({"role": role, "content": blocks});
    if let (Role::Assistant, Some(origin)) = (message.role, &message.origin) {
        value["model"] = (*origin.model).into();
    }
    value
}

/// The content of a prompt: a text, or blocks.
pub(super) fn prompt(message: &Message) -> Value {
    match &message.content[..] {
        [Block::Text { text, .. }] => text.as_str().into(),
        blocks => blocks.iter().filter_map(block).collect(),
    }
}

/// The input of a call; clients expect an object also where the model wrote none.
pub(super) fn tool_input(name: &str, input: &Value) -> Value {
    match input_theirs(name, input) {
        object @ Value::Object(_) => object,
        other => json!({"input": other}),
    }
}

/// The block of a result.
pub(super) fn tool_result(id: &str, content: &Value, is_error: bool) -> Value {
    let mut block = json!({"tool_use_id": id, "type": "tool_result", "content": content});
    if is_error {
        block["is_error"] = true.into();
    }
    block
}

/// What a call came to, in the words of this dialect.
pub(super) fn result_content(output: &ToolOutput, denial: Option<&Denial>) -> Value {
    if let Some(denial) = denial {
        return match denial.source {
            DenialSource::Person | DenialSource::Hook => denial.reason.as_str().into(),
            DenialSource::Rule | DenialSource::Classifier | DenialSource::Unattended => {
                content(&output.content)
            }
        };
    }
    match (&output.details, output.status) {
        (Some(Details::Command { exit_code, note }), status) => {
            let text = without_note(output, note);
            match (exit_code, status) {
                (Some(0), _) => text.into(),
                (Some(code), _) => format!("Exit code {code}\n{text}").into(),
                (None, _) => content(&output.content),
            }
        }
        (_, ToolStatus::InvalidInput) => {
            format!("<tool_use_error>{}</tool_use_error>", output.text()).into()
        }
        _ => content(&output.content),
    }
}

/// What a call did, for programs that show it.
pub(super) fn structured(input: &Value, output: &ToolOutput) -> Option<Value> {
    if output.is_error() && !matches!(output.details, Some(Details::Command { .. })) {
        return Some(format!("Error: {}", output.text()).into());
    }
    let text = |key: &str| input.get(key).cloned().unwrap_or_default();
    Some(match output.details.as_ref()? {
        Details::Command { note, .. } => json!({
            "stdout": without_note(output, note),
            "stderr": "",
            "interrupted": output.status == ToolStatus::Cancelled,
            "isImage": false,
        }),
        Details::Page {
            path,
            first,
            shown,
            total,
        } => json!({
            "type": "text",
            "file": {
                "filePath": path,
                "content": without_numbers(&output.text()),
                "numLines": shown,
                "startLine": first,
                "totalLines": total.unwrap_or(first + shown - 1),
            },
        }),
        Details::Created { path } => json!({
            "type": "create",
            "filePath": path,
            "content": text("content"),
            "structuredPatch": [],
            "originalFile": null,
        }),
        Details::Overwritten { path } => json!({
            "type": "update",
            "filePath": path,
            "content": text("content"),
            "structuredPatch": [],
            "originalFile": null,
        }),
        Details::Edited { path, texts } => json!({
            "filePath": path,
            "oldString": text("old_string"),
            "newString": text("new_string"),
            "originalFile": texts.as_ref().map(|(before, _)| before),
            "structuredPatch": texts.as_ref().map_or_else(Vec::new, |(before, after)| patch(before, after)),
            "userModified": false,
            "replaceAll": input.get("replace_all").and_then(Value::as_bool).unwrap_or(false),
        }),
        Details::Delegated { .. } | Details::Tasks(_) => return None,
    })
}

/// What a call came to, as hooks of a client are told.
pub fn tool_response(input: &Value, output: &ToolOutput) -> Value {
    structured(input, output).unwrap_or_else(|| content(&output.content))
}

pub(super) fn content(parts: &[ToolContent]) -> Value {
    match parts {
        [ToolContent::Text { text }] => text.as_str().into(),
        parts => parts
            .iter()
            .map(|part| match part {
                ToolContent::Text { text } => json!({"type": "text", "text": text}),
                ToolContent::Image(image) => json!({"type": "image", "source": source(image)}),
            })
            .collect(),
    }
}

fn source(image: &Image) -> Value {
    match &image.source {
        ImageSource::Base64 { data } => json!({
            "type": "base64",
            "media_type": image.mime.as_str(),
            "data": data,
        }),
        ImageSource::Url { url } => json!({"type": "url", "url": url}),
    }
}

fn without_note(output: &ToolOutput, note: &str) -> String {
    let text = output.text();
    match text.strip_suffix(note) {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// A page of a file as the file has it: without numbers and remarks.
fn without_numbers(page: &str) -> String {
    page.lines()
        .filter_map(|line| {
            let (number, text) = line.split_once('\t')?;
            number.trim().parse::<u64>().ok()?;
            Some(format!("{text}\n"))
        })
        .collect()
}

/// One hunk from the first line that differs to the last.
fn patch(before: &str, after: &str) -> Vec<Value> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(old, new)| old == new).count()
    };
    let head = same(&mut old.iter().zip(&new));
    if head == old.len() && head == new.len() {
        return Vec::new();
    }
    let tail = same(&mut old[head..].iter().rev().zip(new[head..].iter().rev()));
    let start = head.saturating_sub(CONTEXT);
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let last = (old_end + CONTEXT).min(old.len());
    let marked = |mark: char, lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| format!("{mark}{line}")).collect()
    };
    let lines = [
        marked(' ', &old[start..head]),
        marked('-', &old[head..old_end]),
        marked('+', &new[head..new_end]),
        marked(' ', &old[old_end..last]),
    ]
    .concat();
    let context = (head - start) + (last - old_end);
    vec![json!({
        "oldStart": start + 1,
        "oldLines": old_end - head + context,
        "newStart": start + 1,
        "newLines": new_end - head + context,
        "lines": lines,
    })]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn command(text: &str, exit_code: i32) -> ToolOutput {
        let note = format!("\n[exit {exit_code} in 0.1 s]");
        let status = match exit_code {
            0 => ToolStatus::Ok,
            _ => ToolStatus::Failed,
        };
        ToolOutput::new(status, format!("{text}{note}")).with_details(Details::Command {
            exit_code: Some(exit_code),
            note,
        })
    }

    #[test]
    fn commands_read_as_in_that_world() {
        assert_eq!(result_content(&command("hi", 0), None), "hi");
        assert_eq!(result_content(&command("no", 3), None), "Exit code 3\nno");
        assert_eq!(
            structured(&json!({}), &command("hi", 0)).unwrap(),
            json!({"stdout": "hi", "stderr": "", "interrupted": false, "isImage": false})
        );
        let wrong = ToolOutput::invalid("bad");
        assert_eq!(
            result_content(&wrong, None),
            "<tool_use_error>bad</tool_use_error>"
        );
        assert_eq!(structured(&json!({}), &wrong).unwrap(), "Error: bad");
    }

    #[test]
    fn a_refusal_is_the_words_of_who_refused() {
        let output = ToolOutput::new(ToolStatus::Denied, "The call was not permitted: no.");
        let mut denial = Denial::by_hook("no");
        assert_eq!(result_content(&output, Some(&denial)), "no");
        denial.source = DenialSource::Unattended;
        assert_eq!(
            result_content(&output, Some(&denial)),
            "The call was not permitted: no."
        );
    }

    #[test]
    fn files_are_shown_as_they_are() {
        let page = ToolOutput::ok("     1\tone\n     2\t\ttwo\n(lines 1-2 of 9)\n").with_details(
            Details::Page {
                path: "/p/a".to_owned(),
                first: 1,
                shown: 2,
                total: Some(9),
            },
        );
        assert_eq!(
            structured(&json!({}), &page).unwrap()["file"],
            json!({"filePath": "/p/a", "content": "one\n\ttwo\n", "numLines": 2, "startLine": 1, "totalLines": 9})
        );
        let edit = ToolOutput::ok("done").with_details(Details::Edited {
            path: "/p/a".to_owned(),
            texts: Some(("a\nb\nc\n".to_owned(), "a\nB\nc\n".to_owned())),
        });
        let shown = structured(&json!({"old_string": "b", "new_string": "B"}), &edit).unwrap();
        assert_eq!(
            shown["structuredPatch"],
            json!([{"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": [" a", "-b", "+B", " c"]}])
        );
    }

    proptest! {
        #[test]
        fn a_patch_turns_one_text_into_the_other(
            before in prop::collection::vec("[ab]", 0..12),
            after in prop::collection::vec("[ab]", 0..12),
        ) {
            let hunks = patch(&before.join("\n"), &after.join("\n"));
            let Some(hunk) = hunks.first() else {
                prop_assert_eq!(before, after);
                return Ok(());
            };
            let start = usize::try_from(hunk["oldStart"].as_u64().unwrap()).unwrap() - 1;
            let lines: Vec<&str> = hunk["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
            let side = |skip: char| -> Vec<String> {
                lines.iter().filter(|line| !line.starts_with(skip)).map(|line| line[1..].to_owned()).collect()
            };
            let (old, new) = (side('+'), side('-'));
            prop_assert_eq!(hunk["oldLines"].as_u64().unwrap(), old.len() as u64);
            prop_assert_eq!(hunk["newLines"].as_u64().unwrap(), new.len() as u64);
            let mut result = before.clone();
            result.splice(start..start + old.len(), new);
            prop_assert_eq!(result, after);
        }
    }
}
