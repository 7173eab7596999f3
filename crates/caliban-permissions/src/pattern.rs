//! The pattern of a rule: a tool, and what is said about its call.
//!
//! `Tool`, `Tool:glob`, `Bash:~glob`, `Tool:key=glob,key=glob`, `*`, and the same with
//! parentheses: `Bash(git *)`, `Bash(git:*)`, `WebFetch(domain:example.com)`, `mcp__server`,
//! and `mcp__plugin:server__tool` for a server of a plugin.

use std::fmt;

use caliban_model::{Argument, BuiltInTool};
use caliban_settings::mcp_names::with_plugin_servers;

use crate::alternatives::{self, AnyOf, TooMany};
use crate::paths::PathPattern;
use crate::tools;
use crate::urls::{UrlPattern, UrlPatternError};
use crate::wildcard::Wildcard;

/// What a rule is about.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    tool: ToolName,
    about: About,
}

/// Which tools a pattern is about.
#[derive(Debug, Clone)]
pub enum ToolName {
    Every,
    Exactly(String),
    /// All tools whose name matches.
    Like(Wildcard),
}

/// What a pattern says about the call.
#[derive(Debug, Clone)]
pub enum About {
    /// Any call.
    Anything,
    Command(AnyOf<CommandPattern>),
    Path(PathPattern),
    Url(AnyOf<UrlPattern>),
    /// Every field must match.
    Fields(Vec<FieldPattern>),
    /// No call there is: it is kept as it was written, and why it matches nothing.
    Never(PatternError),
}

/// A pattern about the commands of a shell line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    pub glob: Wildcard,
    /// The same with more words behind it.
    pub longer: Wildcard,
    pub reach: Reach,
}

impl CommandPattern {
    pub fn new(glob: &str, reach: Reach) -> Self {
        let glob = glob.trim();
        Self {
            glob: Wildcard::new(glob),
            longer: Wildcard::new(&format!("{glob} *")),
            reach,
        }
    }
}

/// Where in a command a pattern applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The whole of a simple command.
    Whole,
    /// A simple command that begins with these words: `Bash(git:*)`.
    Prefix,
    /// From any word on: `Bash:~rm *`.
    Anywhere,
}

/// `key=glob` with dots for nested objects.
#[derive(Debug, Clone)]
pub struct FieldPattern {
    pub key: String,
    pub value: FieldValue,
}

/// A field that decides what a tool touches is matched as carefully as the tool's own argument.
#[derive(Debug, Clone)]
pub enum FieldValue {
    Text(AnyOf<Wildcard>),
    Command(AnyOf<CommandPattern>),
    Path(PathPattern),
    Url(AnyOf<UrlPattern>),
}

/// Why a text is not a pattern, or not one that could ever match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern is empty; write `Tool`, `Tool:<glob>` or `*`")]
    Empty,
    #[error("there is no tool `{name}`{}; MCP tools are `mcp__<server>__<tool>`", nearest(.name))]
    UnknownTool { name: String },
    #[error("`{0}` has no closing parenthesis")]
    Unclosed(String),
    #[error("the part after `{0}:` is empty; leave it and the colon out to match every call")]
    NoArgument(String),
    #[error(
        "calls of `{tool}` have no argument that `{tool}:<glob>` could match; write `{tool}` or `{tool}:<field>=<glob>`"
    )]
    NoAccessor { tool: String },
    #[error("`~` means anywhere in a command and is only for `Bash`")]
    Anywhere,
    #[error("`{tool}` has no field `{field}`; its fields are {}", fields(.tool))]
    UnknownField { tool: String, field: String },
    #[error("`{glob}` is not a glob: {reason}")]
    Glob { glob: String, reason: String },
    #[error("`{pattern}` is not a URL pattern: {reason}")]
    Url {
        pattern: String,
        reason: UrlPatternError,
    },
}

impl PatternError {
    /// Whether the pattern makes sense, and there is only nothing that it could match.
    fn is_idle(&self) -> bool {
        match self {
            Self::NoAccessor { .. } | Self::Anywhere => true,
            Self::Empty
            | Self::UnknownTool { .. }
            | Self::Unclosed(_)
            | Self::NoArgument(_)
            | Self::UnknownField { .. }
            | Self::Glob { .. }
            | Self::Url { .. } => false,
        }
    }
}

fn nearest(name: &str) -> String {
    tools::nearest(name).map_or_else(String::new, |near| format!(", did you mean `{near}`?"))
}

fn fields(tool: &str) -> String {
    tools::known(tool).map_or_else(String::new, |tool| tool.fields.join(", "))
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        let whole = with_plugin_servers(text);
        let (name, specifier) = split(&whole)?;
        let name = BuiltInTool::canonical(name);
        let tool = tool_name(name)?;
        let about = match specifier {
            None => About::Anything,
            Some(specifier) if specifier.text.trim() == "*" => About::Anything,
            Some(specifier) if specifier.text.trim().is_empty() => {
                return Err(PatternError::NoArgument(name.to_owned()));
            }
            Some(specifier) => match about(name, &specifier) {
                Ok(about) => about,
                Err(error) if error.is_idle() => About::Never(error),
                Err(error) => return Err(error),
            },
        };
        Ok(Self {
            text: text.to_owned(),
            tool,
            about,
        })
    }

    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why it can never match, if it cannot.
    pub fn never(&self) -> Option<&PatternError> {
        match &self.about {
            About::Never(why) => Some(why),
            About::Anything
            | About::Command(_)
            | About::Path(_)
            | About::Url(_)
            | About::Fields(_) => None,
        }
    }

    /// Whether it matches every call of its tools.
    pub fn is_bare(&self) -> bool {
        matches!(self.about, About::Anything)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl ToolName {
    pub fn matches(&self, tool: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Exactly(name) => name == tool,
            Self::Like(name) => name.matches(tool),
        }
    }
}

/// The part after the tool, and how it was written.
struct Specifier<'a> {
    text: std::borrow::Cow<'a, str>,
    written: Written,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Colon,
    Parentheses,
}

/// Separates the tool from what is said about it. Whichever of `:` and `(` comes first decides.
fn split(text: &str) -> Result<(&str, Option<Specifier<'_>>), PatternError> {
    let Some(at) = text.find([':', '(']) else {
        return Ok((text, None));
    };
    let (name, rest) = (&text[..at], &text[at + 1..]);
    if text.as_bytes()[at] == b':' {
        let specifier = Specifier {
            text: rest.into(),
            written: Written::Colon,
        };
        return Ok((name, Some(specifier)));
    }
    let inner = rest
        .strip_suffix(')')
        .ok_or_else(|| PatternError::Unclosed(text.to_owned()))?;
    let inner = inner.replace("\\(", "(").replace("\\)", ")");
    Ok((
        name,
        Some(Specifier {
            text: inner.into(),
            written: Written::Parentheses,
        }),
    ))
}

fn tool_name(name: &str) -> Result<ToolName, PatternError> {
    let unknown = || PatternError::UnknownTool {
        name: name.to_owned(),
    };
    if name == "*" {
        return Ok(ToolName::Every);
    }
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_-.*?".contains(letter);
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(unknown());
    }
    if let Some(server) = name.strip_prefix("mcp__") {
        if server.is_empty() {
            return Err(unknown());
        }
        // A server without a tool is all of its tools.
        return Ok(if name.contains(['*', '?']) {
            ToolName::Like(Wildcard::new(name))
        } else if server.contains("__") {
            ToolName::Exactly(name.to_owned())
        } else {
            ToolName::Like(Wildcard::new(&format!("{}__*", Wildcard::escape(name))))
        });
    }
    if name.contains(['*', '?']) {
        let like = Wildcard::new(name);
        let matches_some = tools::all().any(|tool| like.matches(tool.name));
        // `m*` may be about MCP tools, which are not known here.
        return if matches_some || name.starts_with('*') || "mcp__".starts_with(prefix(name)) {
            Ok(ToolName::Like(like))
        } else {
            Err(unknown())
        };
    }
    tools::known(name)
        .map(|tool| ToolName::Exactly(tool.name.to_owned()))
        .ok_or_else(unknown)
}

/// What stands before the first wildcard.
fn prefix(name: &str) -> &str {
    name.split(['*', '?']).next().unwrap_or_default()
}

fn about(tool: &str, specifier: &Specifier<'_>) -> Result<About, PatternError> {
    let text = specifier.text.as_ref();
    let argument = tools::argument(tool);
    if let Some(pairs) = field_pairs(tool, specifier) {
        return pairs
            .into_iter()
            .map(|(key, glob)| field(tool, key, glob))
            .collect::<Result<_, _>>()
            .map(About::Fields);
    }
    if let Some(glob) = text.strip_prefix('~')
        && specifier.written == Written::Colon
    {
        return match argument {
            Argument::Command => command(glob, Reach::Anywhere).map(About::Command),
            Argument::Source | Argument::Target if glob.starts_with('/') => path(text),
            Argument::Source
            | Argument::Target
            | Argument::Place
            | Argument::Url
            | Argument::Text(_)
            | Argument::None => Err(PatternError::Anywhere),
        };
    }
    match argument {
        Argument::Command => anchored_command(text).map(About::Command),
        Argument::Source | Argument::Target => path(text),
        Argument::Url => url(text),
        Argument::Text(key) => Ok(About::Fields(vec![FieldPattern {
            key: key.to_owned(),
            value: FieldValue::Text(wildcards(text)?),
        }])),
        Argument::Place | Argument::None => Err(PatternError::NoAccessor {
            tool: tool.to_owned(),
        }),
    }
}

/// The pairs of `key=glob,key=glob`. In a command, `NAME=value` is far more often an assignment
/// than a field, so there only the names of fields count, and only after a colon.
fn field_pairs<'a>(tool: &str, specifier: &'a Specifier<'_>) -> Option<Vec<(&'a str, &'a str)>> {
    let pairs = pairs(&specifier.text)?;
    let (first, _) = pairs.first()?;
    let top = first.split('.').next().unwrap_or_default();
    match tools::known(tool) {
        Some(known) => {
            let is_field = known.fields.contains(&top);
            let is_only_text = match known.argument {
                Argument::Command | Argument::Source | Argument::Target | Argument::Url => true,
                Argument::Place | Argument::Text(_) | Argument::None => false,
            };
            match specifier.written {
                Written::Colon if is_field || !is_only_text => Some(pairs),
                Written::Colon | Written::Parentheses => None,
            }
        }
        None => Some(pairs),
    }
}

/// Splits at commas that begin another `key=`; other commas belong to the glob before.
fn pairs(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    let mut start = 0;
    let (key, _) = key_at(text)?;
    let mut current = key;
    let mut value_start = key.len() + 1;
    for comma in alternatives::ungrouped_commas(text) {
        let next = text[comma + 1..].trim_start();
        let Some((key, _)) = key_at(next) else {
            continue;
        };
        pairs.push((current, &text[value_start..comma]));
        start = text.len() - next.len();
        current = key;
        value_start = start + key.len() + 1;
    }
    debug_assert!(start <= value_start);
    pairs.push((current, &text[value_start..]));
    Some(pairs)
}

fn key_at(text: &str) -> Option<(&str, &str)> {
    let (key, rest) = text.split_once('=')?;
    let is_key = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    (!key.is_empty() && key.chars().all(is_key)).then_some((key, rest))
}

fn field(tool: &str, key: &str, glob: &str) -> Result<FieldPattern, PatternError> {
    let top = key.split('.').next().unwrap_or_default();
    if let Some(known) = tools::known(tool)
        && !known.fields.contains(&top)
    {
        return Err(PatternError::UnknownField {
            tool: tool.to_owned(),
            field: key.to_owned(),
        });
    }
    let value = match (tools::argument(tool), key) {
        (Argument::Command, "command") => FieldValue::Command(anchored_command(glob)?),
        (Argument::Source | Argument::Target, "path" | "file_path" | "notebook_path") => {
            FieldValue::Path(path_pattern(glob)?)
        }
        (Argument::Url, "url") => FieldValue::Url(url_pattern(glob)?),
        _ => FieldValue::Text(wildcards(glob)?),
    };
    Ok(FieldPattern {
        key: key.to_owned(),
        value,
    })
}

fn anchored_command(text: &str) -> Result<AnyOf<CommandPattern>, PatternError> {
    match text.strip_suffix(":*") {
        Some(prefix) => command(prefix, Reach::Prefix),
        None => command(text, Reach::Whole),
    }
}

fn command(glob: &str, reach: Reach) -> Result<AnyOf<CommandPattern>, PatternError> {
    let alternatives = spelled_out(glob)?;
    Ok(alternatives.map(|glob| CommandPattern::new(&glob, reach)))
}

fn wildcards(glob: &str) -> Result<AnyOf<Wildcard>, PatternError> {
    Ok(spelled_out(glob)?.map(|glob| Wildcard::new(&glob)))
}

fn spelled_out(glob: &str) -> Result<AnyOf<String>, PatternError> {
    AnyOf::spelled_out(glob).map_err(|error: TooMany| PatternError::Glob {
        glob: glob.to_owned(),
        reason: error.to_string(),
    })
}

fn path(text: &str) -> Result<About, PatternError> {
    path_pattern(text).map(About::Path)
}

fn path_pattern(text: &str) -> Result<PathPattern, PatternError> {
    PathPattern::new(text.trim()).map_err(|error| PatternError::Glob {
        glob: text.to_owned(),
        reason: error.kind().to_string(),
    })
}

fn url(text: &str) -> Result<About, PatternError> {
    url_pattern(text).map(About::Url)
}

fn url_pattern(text: &str) -> Result<AnyOf<UrlPattern>, PatternError> {
    let text = text.trim();
    let parsed = match text.strip_prefix("domain:") {
        Some(host) => spelled_out(host.trim())?.try_map(|host| UrlPattern::domain(&host)),
        None => spelled_out(text)?.try_map(|text| UrlPattern::new(&text)),
    };
    parsed.map_err(|reason| PatternError::Url {
        pattern: text.to_owned(),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn shape(text: &str) -> String {
        let pattern = Pattern::parse(text).unwrap();
        match pattern.about() {
            About::Anything => "anything".into(),
            About::Command(command) => format!("{:?}", command.iter().next().unwrap().reach),
            About::Path(_) => "path".into(),
            About::Url(_) => "url".into(),
            About::Never(why) => format!("never: {why}"),
            About::Fields(fields) => fields
                .iter()
                .map(|field| field.key.clone())
                .collect::<Vec<_>>()
                .join("+"),
        }
    }

    #[rstest]
    #[case("Bash", "anything")]
    #[case("Bash:*", "anything")]
    #[case("Bash(*)", "anything")]
    #[case("*", "anything")]
    #[case("Bash:git *", "Whole")]
    #[case("Bash(git *)", "Whole")]
    #[case("Bash(git:*)", "Prefix")]
    #[case("Bash:~rm *", "Anywhere")]
    #[case("Bash(~/bin/tool:*)", "Prefix")]
    #[case("Bash(RUST_LOG=debug cargo test:*)", "Prefix")]
    #[case("Bash:FOO=1 make", "Whole")]
    #[case("Bash:command=git *", "command")]
    #[case("Bash:git log --format=%h,%s", "Whole")]
    #[case("Read(./src/**)", "path")]
    #[case("Read:~/notes/**", "path")]
    #[case("Edit:a=b.txt", "path")]
    #[case("WebFetch(domain:example.com)", "url")]
    #[case("mcp__github", "anything")]
    #[case("mcp__github__*", "anything")]
    #[case("mcp__gh__create_issue:repo=acme/*,title=feat*", "repo+title")]
    #[case("mcp__gh__x:a.b.c=1,2", "a.b.c")]
    #[case("mcp__gh__x:repo={a,b=1}/*,c=2", "repo+c")]
    #[case("mcp__gh__x(repo=acme/*)", "repo")]
    #[case("Task", "anything")]
    #[case("Skill:review", "name")]
    #[case("Grep:path=src/*", "path")]
    fn patterns_are_read_in_both_spellings(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(shape(text), expected, "{text}");
    }

    #[rstest]
    #[case("", "empty")]
    #[case("Bsh:git *", "did you mean `Bash`")]
    #[case("bash", "did you mean `Bash`")]
    #[case("Bash(git *", "no closing parenthesis")]
    #[case("Bash:", "is empty")]
    #[case("Bash()", "is empty")]
    #[case("Grep:pth=x", "no field `pth`")]
    #[case("Edit:a[b", "not a glob")]
    #[case(
        "Bash:{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
        "more than 256 alternatives"
    )]
    #[case("WebFetch:https://user@host/", "user name")]
    #[case("mcp__", "no tool")]
    #[case("X*", "no tool")]
    fn what_makes_no_sense_is_an_error(#[case] text: &str, #[case] why: &str) {
        let error = Pattern::parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }

    #[rstest]
    #[case("Read:~foo", "only for `Bash`")]
    #[case("mcp__gh__create_issue:acme/*", "no argument")]
    #[case("Grep:todo", "no argument")]
    fn what_can_never_match_is_kept(#[case] text: &str, #[case] why: &str) {
        let pattern = Pattern::parse(text).unwrap();
        assert!(pattern.never().unwrap().to_string().contains(why), "{text}");
        assert_eq!(pattern.text(), text);
    }

    #[test]
    fn a_server_is_all_of_its_tools_and_no_other_server() {
        let plugin = Pattern::parse("mcp__tools:db__get").unwrap();
        assert!(plugin.tool().matches("mcp__plugin_tools_db__get") && plugin.is_bare());
        let plugin = Pattern::parse("mcp__tools:db").unwrap();
        assert!(plugin.tool().matches("mcp__plugin_tools_db__set"));
        let pattern = Pattern::parse("mcp__git").unwrap();
        assert!(pattern.tool().matches("mcp__git__log"));
        assert!(!pattern.tool().matches("mcp__github__log"));
        assert!(!pattern.tool().matches("mcp__git"));
    }
}
