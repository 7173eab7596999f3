//! The dialect of programs that were written for Claude Code: its frames, its input lines, its
//! control protocol and its names for tools. The engine knows nothing of it.

mod control;
mod encode;
mod fit;
mod frame;
mod hook_answer;
mod input;
mod matcher;
mod names;
mod permission;
mod result;
mod stream;
mod tool_result;

pub use control::{
    ControlError, HookMatchers, Initialize, Request, RewindFiles, SubAgent, Texts, ToolNames,
    cancel_request, error_response, request, success_response,
};
pub use encode::{Audience, Emitted, Encoder, FrameKinds, Ids, Options, States, Turn};
pub use fit::{LONGEST_LINE, fit};
pub use frame::{InitFacts, McpServer, plugin_rows};
pub use hook_answer::{HookAnswer, Stance};
pub use input::{Input, InputError, UserInput, Wording, decode};
pub use matcher::Matcher;
pub use names::{
    ASK_USER_QUESTION, input_ours, input_theirs, ours, schema_theirs, theirs, wording_theirs,
};
pub use permission::{
    Behavior, Choice, Destination, PermissionAnswer, PermissionUpdate, RuleRef, pattern_theirs,
    permission_request, suggestions,
};
pub use result::{Failed, failure};
pub use tool_result::{message_theirs, tool_response};

/// The version that is reported where programs ask for it: the newest whose protocol is spoken.
pub const VERSION: &str = "2.1.325";
