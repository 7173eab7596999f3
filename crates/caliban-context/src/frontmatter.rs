//! The YAML block at the head of a Markdown file.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The longest block, in bytes.
const MAX_BLOCK: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrontmatterError {
    #[error("it does not begin with a `---` block")]
    Missing,
    #[error("its `---` block has no end")]
    Unclosed,
    #[error("its `---` block is longer than {MAX_BLOCK} bytes")]
    TooLong,
    #[error("its `---` block cannot be read: {0}")]
    Invalid(String),
}

/// The block, if there is one, and the text below it.
pub(crate) fn split(text: &str) -> Result<(Option<&str>, &str), FrontmatterError> {
    let Some(rest) = text
        .strip_prefix("---")
        .and_then(|rest| rest.trim_start_matches([' ', '\t']).strip_prefix('\n'))
    else {
        return Ok((None, text));
    };
    let mut offset = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            if offset > MAX_BLOCK {
                return Err(FrontmatterError::TooLong);
            }
            return Ok((Some(&rest[..offset]), &rest[offset + line.len()..]));
        }
        offset += line.len();
    }
    Err(FrontmatterError::Unclosed)
}

/// A file that must have a block: its fields and the text below it.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<(T, &str), FrontmatterError> {
    let (block, body) = split(text)?;
    let fields = fields(block.ok_or(FrontmatterError::Missing)?)?;
    Ok((fields, body))
}

/// A file that may have a block.
pub(crate) fn parse_optional<T: DeserializeOwned + Default>(
    text: &str,
) -> Result<(T, &str), FrontmatterError> {
    let (block, body) = split(text)?;
    let fields = match block {
        Some(block) if !block.trim().is_empty() => fields(block)?,
        Some(_) | None => T::default(),
    };
    Ok((fields, body))
}

fn fields<T: DeserializeOwned>(block: &str) -> Result<T, FrontmatterError> {
    serde_saphyr::from_str(block).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        FrontmatterError::Invalid(first.to_owned())
    })
}

/// A file that others wrote for other programs: as much of it as can be made out.
#[derive(Debug, Clone, PartialEq)]
pub struct Lenient<'a> {
    pub fields: Map<String, Value>,
    pub body: &'a str,
    /// What is wrong with the block.
    pub problem: Option<String>,
}

impl<'a> Lenient<'a> {
    /// Reads a file that may have a block. One that is not YAML is read line by line, each a name
    /// and, as text, whatever follows its colon.
    pub fn read(text: &'a str) -> Self {
        let (block, body) = match split(text) {
            Ok((block, body)) => (block.unwrap_or_default(), body),
            Err(error) => {
                return Self {
                    fields: Map::new(),
                    body: text,
                    problem: Some(error.to_string()),
                };
            }
        };
        if block.trim().is_empty() {
            return Self {
                fields: Map::new(),
                body,
                problem: None,
            };
        }
        match fields(block) {
            Ok(fields) => Self {
                fields,
                body,
                problem: None,
            },
            Err(error) => Self {
                fields: lines(block),
                body,
                problem: Some(error.to_string()),
            },
        }
    }
}

/// The names of a block that is not YAML, with what stands behind their colons as text. A value that is
/// YAML by itself (a list in brackets, a text in quotes) is what it says, and so are a list and a text
/// whose lines follow their name.
fn lines(block: &str) -> Map<String, Value> {
    let mut fields: Map<String, Value> = Map::new();
    let mut rest = block.lines().peekable();
    while let Some(line) = rest.next() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let mut below = Vec::new();
        if is_name(name) && matches!(value.trim(), "" | "|" | ">" | "|-" | ">-") {
            while let Some(line) = rest.next_if(|line| belongs(line)) {
                below.push(line.trim());
            }
        }
        if is_name(name) {
            fields.insert(name.to_owned(), by_itself(value.trim(), &below));
        }
    }
    fields
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
}

/// Whether a line is a part of the value whose name stands above it.
fn belongs(line: &str) -> bool {
    line.starts_with([' ', '\t']) || line.starts_with("- ") || line.trim().is_empty()
}

fn by_itself(value: &str, below: &[&str]) -> Value {
    let items: Vec<&str> = below.iter().copied().filter(|it| !it.is_empty()).collect();
    let dashed: Option<Vec<&str>> = items.iter().map(|item| item.strip_prefix("- ")).collect();
    match dashed {
        Some(dashed) if value.is_empty() && !dashed.is_empty() => {
            let bare = |item: &&str| Value::from(item.trim().trim_matches(['"', '\'']));
            return dashed.iter().map(bare).collect();
        }
        Some(_) | None => {}
    }
    if !below.is_empty() {
        return below.join("\n").trim().into();
    }
    let is_closed = value.starts_with(['[', '"', '\'']);
    let read = is_closed.then(|| serde_saphyr::from_str::<Value>(value).ok());
    match read.flatten() {
        Some(read @ (Value::Array(_) | Value::String(_))) => read,
        Some(_) | None => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    struct Fields {
        name: String,
    }

    #[test]
    fn blocks_are_found_at_the_head_only() {
        assert_eq!(
            split("---\na: 1\n---\nbody\n"),
            Ok((Some("a: 1\n"), "body\n"))
        );
        assert_eq!(split("--- \n---"), Ok((Some(""), "")));
        assert_eq!(
            split("text\n---\na: 1\n---\n"),
            Ok((None, "text\n---\na: 1\n---\n"))
        );
        assert_eq!(split("---x\n---\n"), Ok((None, "---x\n---\n")));
        assert_eq!(split("---\na: 1\n"), Err(FrontmatterError::Unclosed));
        let long = format!("---\n{}\n---\n", "#".repeat(MAX_BLOCK));
        assert_eq!(split(&long), Err(FrontmatterError::TooLong));
    }

    #[test]
    fn fields_are_typed() {
        let (fields, body) = parse::<Fields>("---\nname: x\nother: 1\n---\nb").unwrap();
        assert_eq!((fields.name.as_str(), body), ("x", "b"));
        assert_eq!(parse::<Fields>("b").unwrap_err(), FrontmatterError::Missing);
        assert!(matches!(
            parse::<Fields>("---\nname: [\n---\n").unwrap_err(),
            FrontmatterError::Invalid(_)
        ));
        assert_eq!(parse_optional::<Fields>("---\n---\nb").unwrap().1, "b");
    }

    #[test]
    fn what_is_no_yaml_is_read_line_by_line() {
        let text = "---\nname: helper\ndescription: Use it when. user: \"hi\"\n\
                    tools: [\"Read\", \"Grep\"]\nmodel: 'haiku'\nskills:\n  - one\n  - \"two\"\n\
                    color:\nnote: |\n  a: b\n  c\nodd: [open\n---\nbody\n";
        let read = Lenient::read(text);
        assert!(read.problem.is_some());
        let expected = serde_json::json!({
            "name": "helper",
            "description": "Use it when. user: \"hi\"",
            "tools": ["Read", "Grep"],
            "model": "haiku",
            "skills": ["one", "two"],
            "color": "",
            "note": "a: b\nc",
            "odd": "[open",
        });
        assert_eq!(Value::Object(read.fields), expected);
    }

    proptest! {
        #[test]
        fn any_text_is_split_without_loss(text in "(---\n|[a-z: ]{0,5}\n|é|-){0,12}") {
            if let Ok((block, body)) = split(&text) {
                let length = block.map_or(0, |block| block.len() + 6);
                prop_assert!(text.ends_with(body) && length + body.len() <= text.len());
            }
        }
    }
}
