//! Tools that change only the session: its task list and its mode.

mod plan;
mod todo;

pub use plan::{EnterPlanMode, ExitPlanMode, PlanMode};
pub use todo::{InvalidTodos, Todo, TodoList, TodoStatus, TodoWrite};
