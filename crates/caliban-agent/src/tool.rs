//! What a tool is: a specification the model reads and a function that never fails, because a
//! failure is something for the model to read too.

use std::fmt::Debug;
use std::sync::Arc;

use caliban_model::{CancellationToken, Effect, ToolContent, ToolSpec};
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::Denial;
use crate::reading::ReadGuard;
use crate::workspace::Workspace;

/// A tool as the loop sees it. Most tools implement [`TypedTool`] instead.
pub trait Tool: Send + Sync + Debug {
    /// Name, description and input schema. Constant for the life of the tool: the provider
    /// caches them.
    fn spec(&self) -> &ToolSpec;

    fn effect(&self) -> Effect;

    /// The argument that identifies a call to a person or a rule: a path, a command, a URL.
    fn first_arg(&self, input: &Value) -> Option<String>;

    /// Calls with the same key run one after the other in the order the model made them.
    fn conflict_key(&self, input: &Value, workspace: &Workspace) -> Option<String>;

    /// A later result with the same key makes this one obsolete.
    fn supersession_key(&self, input: &Value) -> Option<String>;

    /// Whether the tool itself is sure that it understands the input, aliases included; if not,
    /// the schema says what is wrong.
    fn understands(&self, _input: &Value) -> bool {
        false
    }

    /// What a call would change, for whoever is asked about it. Changes nothing; nothing where
    /// that cannot be told.
    fn preview(&self, _input: Value, _context: ToolContext) -> BoxFuture<'_, Option<Details>> {
        async { None }.boxed()
    }

    /// Runs to an end. Cancellation drops the future, which must stop everything it started.
    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput>;
}

/// What a call is given beside its input.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The id of this call.
    pub call_id: Arc<str>,
    pub session_id: Arc<str>,
    pub workspace: Arc<Workspace>,
    /// Whoever opens or names files for the call asks here about each of them.
    pub reading: Arc<dyn ReadGuard>,
    /// Cancelled when the run is; waits should watch it to end early with a useful result.
    pub cancel: CancellationToken,
    pub progress: Progress,
    /// The place of the call in a trace, in the form of a `traceparent`, for programs and servers
    /// that it asks; nothing where nobody follows it.
    pub trace: Option<Arc<str>>,
}

/// Where a running call reports to. Reports are best effort: a slow listener never slows a tool.
#[derive(Debug, Clone)]
pub struct Progress {
    sender: Option<tokio::sync::mpsc::Sender<ProgressReport>>,
    call_id: Arc<str>,
}

/// Something a call wants shown while it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressReport {
    pub call_id: Arc<str>,
    pub kind: ProgressKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ProgressKind {
    /// A piece of output.
    Output(String),
    /// An event of an agent that this call runs.
    Nested(Box<crate::event::Event>),
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    pub status: ToolStatus,
    pub content: Vec<ToolContent>,
    /// What it did, for programs that show it; the model reads the content.
    pub details: Option<Details>,
    /// Present where the call is the last thing the run does.
    pub ending: Option<Ending>,
}

/// What a call did, beyond what the model reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Details {
    /// A command ended; its output is followed by this note.
    Command {
        exit_code: Option<i32>,
        note: String,
    },
    /// Lines of a file, each with its number.
    Page {
        path: String,
        first: u64,
        shown: u64,
        total: Option<u64>,
    },
    Created {
        path: String,
    },
    Overwritten {
        path: String,
    },
    /// A text was changed; both forms are there where they are not too long to show.
    Edited {
        path: String,
        texts: Option<(String, String)>,
    },
    /// The list of tasks is this from now on.
    Tasks(Vec<Task>),
    /// Another agent worked; these are the calls it was not permitted, by id and tool.
    Delegated {
        denials: Vec<(Arc<str>, Arc<str>, Denial)>,
    },
}

/// A task of the list that the model keeps for itself and people follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub text: String,
    pub state: TaskState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    Pending,
    Active,
    Done,
}

/// How a call ends the run it was made in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// This is what was asked for.
    Answer(Value),
    /// An answer of the form asked for will not come.
    GiveUp(String),
}

/// How a call ended. Only [`Ok`](Self::Ok) is not an error to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Ok,
    /// It ran and did not succeed.
    Failed,
    /// The input does not fit the schema or makes no sense.
    InvalidInput,
    /// A rule, a hook or a person said no.
    Denied,
    /// It could not be started.
    CouldNotRun,
    TimedOut,
    Cancelled,
}

impl ToolOutput {
    pub fn ok(text: impl Into<String>) -> Self {
        Self::new(ToolStatus::Ok, text)
    }

    pub fn failed(text: impl Into<String>) -> Self {
        Self::new(ToolStatus::Failed, text)
    }

    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new(ToolStatus::InvalidInput, text)
    }

    pub fn new(status: ToolStatus, text: impl Into<String>) -> Self {
        Self::of(status, vec![ToolContent::Text { text: text.into() }])
    }

    pub fn of(status: ToolStatus, content: Vec<ToolContent>) -> Self {
        Self {
            status,
            content,
            details: None,
            ending: None,
        }
    }

    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(details);
        self
    }

    /// The same, as the last thing the run does.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = Some(ending);
        self
    }

    pub fn is_error(&self) -> bool {
        self.status != ToolStatus::Ok
    }

    /// All text of the output.
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(|part| match part {
                ToolContent::Text { text } => Some(text.as_str()),
                ToolContent::Image(_) => None,
            })
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Progress {
    /// Reports that nobody hears.
    pub fn silent() -> Self {
        Self {
            sender: None,
            call_id: Arc::from(""),
        }
    }

    pub fn new(sender: tokio::sync::mpsc::Sender<ProgressReport>, call_id: Arc<str>) -> Self {
        Self {
            sender: Some(sender),
            call_id,
        }
    }

    /// Shows a piece of output, unless the listener is behind.
    pub fn output(&self, text: impl Into<String>) {
        if let Some(sender) = &self.sender {
            // A full channel means nobody keeps up; the result will carry everything anyway.
            let _ = sender.try_send(ProgressReport {
                call_id: Arc::clone(&self.call_id),
                kind: ProgressKind::Output(text.into()),
            });
        }
    }

    /// Passes on an event of an inner agent; waits for room, since these must not be lost.
    pub async fn nested(&self, event: crate::event::Event) {
        if let Some(sender) = &self.sender {
            let report = ProgressReport {
                call_id: Arc::clone(&self.call_id),
                kind: ProgressKind::Nested(Box::new(event)),
            };
            // The listener is gone only when the run is.
            let _ = sender.send(report).await;
        }
    }
}

/// A tool whose input is a type: the schema and its descriptions are derived from the struct and
/// its doc comments, and the input arrives parsed.
pub trait TypedTool: Send + Sync + Debug + Sized + 'static {
    type Input: DeserializeOwned + JsonSchema + Debug + Send + 'static;

    const NAME: &'static str;
    /// What the model reads about when and how to use it. Short: it is sent with every request.
    const DESCRIPTION: &'static str;
    const EFFECT: Effect;

    fn first_arg(&self, input: &Self::Input) -> Option<String>;

    fn conflict_key(&self, _input: &Self::Input, _workspace: &Workspace) -> Option<String> {
        None
    }

    fn supersession_key(&self, _input: &Self::Input) -> Option<String> {
        None
    }

    /// What a call would change, as [`Tool::preview`] says.
    fn preview(
        &self,
        _input: Self::Input,
        _context: ToolContext,
    ) -> impl Future<Output = Option<Details>> + Send {
        async { None }
    }

    fn run(
        &self,
        input: Self::Input,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutput> + Send;

    /// What the model is told about it.
    fn description(&self) -> String {
        Self::DESCRIPTION.trim().to_owned()
    }

    /// What the model is told about its input.
    fn schema(&self) -> Value {
        input_schema::<Self::Input>()
    }

    /// Makes it a [`Tool`].
    fn boxed(self) -> Arc<dyn Tool> {
        Arc::new(Typed {
            spec: ToolSpec {
                name: Self::NAME.to_owned(),
                description: self.description(),
                input_schema: self.schema(),
            },
            tool: self,
        })
    }
}

#[derive(Debug)]
struct Typed<T: TypedTool> {
    spec: ToolSpec,
    tool: T,
}

impl<T: TypedTool> Typed<T> {
    fn parse(input: &Value) -> Option<T::Input> {
        serde_json::from_value(input.clone()).ok()
    }
}

impl<T: TypedTool> Tool for Typed<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self) -> Effect {
        T::EFFECT
    }

    fn first_arg(&self, input: &Value) -> Option<String> {
        self.tool.first_arg(&Self::parse(input)?)
    }

    fn conflict_key(&self, input: &Value, workspace: &Workspace) -> Option<String> {
        self.tool.conflict_key(&Self::parse(input)?, workspace)
    }

    fn supersession_key(&self, input: &Value) -> Option<String> {
        self.tool.supersession_key(&Self::parse(input)?)
    }

    fn understands(&self, input: &Value) -> bool {
        Self::parse(input).is_some()
    }

    fn preview(&self, input: Value, context: ToolContext) -> BoxFuture<'_, Option<Details>> {
        match serde_json::from_value(input) {
            Ok(input) => self.tool.preview(input, context).boxed(),
            Err(_) => async { None }.boxed(),
        }
    }

    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        match serde_json::from_value(input) {
            Ok(input) => self.tool.run(input, context).boxed(),
            Err(error) => {
                let text = format!("The input of {} does not fit: {error}.", T::NAME);
                async move { ToolOutput::invalid(text) }.boxed()
            }
        }
    }
}

/// The schema of a tool's input as models read it best: one inlined object, without the
/// decorations that schema generators add and every request would pay for.
pub fn input_schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    tidy(&mut schema);
    if let Value::Object(fields) = &mut schema {
        fields.remove("description");
        fields
            .entry("properties")
            .or_insert(Value::Object(Map::new()));
        fields.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    schema
}

fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // `title` repeats the Rust name and `format` its integer width; a default of null
            // and a nullable type only say that a field is optional, which `required` does.
            // The keys of `properties` are names, not keywords.
            fields.remove("title");
            if fields.get("format").is_some_and(Value::is_string) {
                fields.remove("format");
            }
            if fields.get("default").is_some_and(Value::is_null) {
                fields.remove("default");
            }
            if let Some(Value::Array(types)) = fields.get("type")
                && let [first, second] = types.as_slice()
                && second == "null"
            {
                let first = first.clone();
                fields.insert("type".to_owned(), first);
            }
            if let Some(Value::Array(values)) = fields.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            for (key, value) in fields.iter_mut() {
                match (key.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        properties.values_mut().for_each(tidy);
                    }
                    (_, value) => tidy(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Input {
        /// Where to look.
        #[serde(alias = "file_path")]
        #[expect(dead_code, reason = "only the schema is looked at")]
        path: String,
        /// How many.
        #[serde(default)]
        #[expect(dead_code, reason = "only the schema is looked at")]
        limit: Option<u32>,
        /// What the title is.
        #[serde(default)]
        #[expect(dead_code, reason = "only the schema is looked at")]
        title: Option<String>,
    }

    #[test]
    fn schemas_hold_what_models_need_and_no_more() {
        assert_eq!(
            input_schema::<Input>(),
            json!({
                "type": "object",
                "properties": {
                    "path": {"description": "Where to look.", "type": "string"},
                    "limit": {"description": "How many.", "type": "integer", "minimum": 0},
                    "title": {"description": "What the title is.", "type": "string"},
                },
                "additionalProperties": false,
                "required": ["path"],
            })
        );
    }
}
