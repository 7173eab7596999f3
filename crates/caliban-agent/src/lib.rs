//! The agent loop: request, stream, tool calls, results, request again. It calls tools, hooks,
//! compaction and limits through small contracts and tells everything it does as one stream of
//! events; it knows no concrete tool and no face.

mod agent;
mod answer;
mod call;
mod capping;
mod compaction;
mod company;
mod consult;
mod conversation;
mod dial;
mod dispatch;
mod event;
mod hook_event;
mod limits;
mod listener;
mod mailbox;
mod meanwhile;
mod operator;
mod outcome;
mod reading;
mod registry;
mod remarks;
mod repetition;
mod reply;
mod roles;
mod run;
mod settings;
mod tool;
mod toolbox;
mod window;
mod workspace;

pub use agent::Agent;
pub use answer::AnswerSchema;
/// What a tool says of itself.
pub use caliban_model::Effect;
pub use call::{Opinion, ToolCall};
pub use compaction::Part;
pub use company::Company;
pub use consult::Consultant;
pub use conversation::{Conversation, estimate as estimated_tokens};
pub use dial::{Dial, Reading};
pub use dispatch::tells_of_denial;
pub use event::{
    AnswerStep, CompactionReason, Denial, DenialSource, Event, ModelTotals, RunTotals,
};
pub use hook_event::{HookEvent, NotificationKind, SessionSource};
pub use listener::Listener;
pub use mailbox::Mailbox;
pub use meanwhile::tells_of_interrupt;
pub use operator::{
    Answer, Elicitation, Inquiry, Interrupt, Operator, PartVerdict, Question, QuestionPart,
    Remember, Reply, RulePlace, SharedOperator, Unattended,
};
pub use outcome::Outcome;
pub use reading::{Closed, ClosedReading, Extent, OpenReading, ReadGuard};
pub use registry::Registry;
pub use remarks::Remarks;
pub use roles::{
    Advice, Adviser, Gate, Hearing, Inheritance, Intake, Observer, PromptStage, PromptVerdict,
    StopStage, StopVerdict, Tracer, Verdict, Witness,
};
pub use settings::{
    Capping, CompactionSettings, Limits, Micro, ModelOverrides, Settings, Strategy,
};
pub use tool::{
    Details, Ending, Progress, ProgressKind, ProgressReport, Task, TaskState, Tool, ToolContext,
    ToolOutput, ToolStatus, TypedTool, input_schema,
};
pub use toolbox::{ToolSource, Toolbox};
pub use workspace::{Boundary, Confinement, PathError, ResolvedPath, Workspace};
