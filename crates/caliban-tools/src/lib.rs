//! The built-in tools: files, shell, search, web, tasks, plans and sub-agents.

mod agent;
mod background_agent;
mod files;
mod search;
mod session;
mod shell;
mod web;

pub use agent::{
    AgentKind, AgentTool, Attendance, GENERAL, Ground, GroundWish, Grounds, Isolation, ModelPolicy,
    Occupant, Recollection,
};
pub use background_agent::{Background, BackgroundHooks, BackgroundTask, Handover};
pub use files::{
    EditTool, FileState, MultiEditTool, NotebookEditTool, ReadTool, WriteTool, conflict_key_for,
};
pub use search::{Glob, Grep};
pub use session::{
    EnterPlanMode, ExitPlanMode, InvalidTodos, PlanMode, Todo, TodoList, TodoStatus, TodoWrite,
};
pub use shell::{
    Bash, BashOutput, JobEnd, JobLimits, Jobs, KillShell, ListedJob, Shell, WITHOUT_SANDBOX,
};
pub use web::{
    OpenedHosts, PrivateAddresses, SearchBackend, SearchConfig, UnknownSearchBackend, WebFetch,
    WebPolicy, WebSearch,
};
