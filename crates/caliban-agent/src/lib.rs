//! The agent loop: request, stream, tool calls, results, request again. It calls tools, hooks,
//! compaction and limits through small contracts and tells everything it does as one stream of
//! events; it knows no concrete tool and no face.

mod agent;
mod answer;
mod capping;
mod compaction;
mod consult;
mod conversation;
mod dispatch;
mod event;
mod hooks;
mod listener;
mod operator;
mod outcome;
mod registry;
mod remarks;
mod repetition;
mod reply;
mod run;
mod settings;
mod tool;
mod toolbox;
mod workspace;

pub use agent::{Agent, InputProvider};
pub use answer::AnswerSchema;
pub use consult::Consultant;
pub use conversation::Conversation;
pub use event::{
    AnswerStep, CompactionReason, Denial, DenialSource, Event, ModelTotals, RunTotals,
};
pub use hooks::{
    HookChain, HookEvent, Hooks, Inheritance, NoHooks, Opinion, PromptVerdict, SessionSource,
    StopVerdict, ToolCall, Verdict,
};
pub use listener::Listener;
pub use operator::{
    Answer, Elicitation, Interrupt, Operator, Question, Remember, Reply, SharedOperator, Unattended,
};
pub use outcome::Outcome;
pub use registry::Registry;
pub use remarks::Remarks;
pub use settings::{
    Capping, CompactionSettings, Limits, Micro, ModelOverrides, Settings, Strategy,
};
pub use tool::{
    Details, Effect, Ending, Progress, ProgressKind, ProgressReport, Tool, ToolContext, ToolOutput,
    ToolStatus, TypedTool, input_schema,
};
pub use toolbox::{ToolSource, Toolbox};
pub use workspace::{Confinement, PathError, ResolvedPath, Workspace};
