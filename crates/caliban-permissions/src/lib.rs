//! Which tool calls may run: rules, the reading of commands, paths and URLs, modes, and the log of
//! decisions.

mod alternatives;
mod audit;
mod auto;
mod bash;
mod catastrophe;
mod commands;
mod evaluation;
mod lines;
mod lint;
mod mentions;
mod mode;
mod paths;
mod pattern;
mod probe;
mod protected;
mod reading;
mod reads;
mod remedy;
mod rulebook;
pub mod shell;
mod tools;
mod twins;
mod urls;
mod values;
mod wildcard;

pub use alternatives::AnyOf;
pub use audit::{AuditLog, DecidedBy, Entry, Filter, MatchedRule};
pub use auto::{
    AutoModeError, AutoRules, AutoVerdict, CLASSIFIER_PROMPT, VerdictCache, classifier_question,
    classifier_verdict,
};
pub use evaluation::{Decision, Item, Judge, Part, Why};
pub use lint::{Finding, lint};
pub use mode::{
    AutoAllow, Enforcement, Gating, Latch, ModeError, ModeRequest, Regime, Relaxed, relax,
};
pub use paths::{PathPattern, Places, Subject};
pub use pattern::{
    About, CommandPattern, FieldPattern, FieldValue, Pattern, PatternError, Reach, ToolName,
};
pub use probe::Probe;
pub use protected::{Access, Protected};
pub use reading::Reader;
pub use remedy::{Place, remedy, suggestions};
pub use rulebook::{Defaults, Found, Guard, Origin, Precedence, Rule, RuleBook, RuleError};
pub use urls::{UrlPattern, UrlPatternError};
pub use wildcard::Wildcard;
