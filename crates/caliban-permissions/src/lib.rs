//! Which tool calls may run: rules, the reading of commands, paths and URLs, modes, and the log of
//! decisions.

mod alternatives;
mod audit;
mod auto;
mod bash;
mod catastrophe;
mod command_index;
mod commands;
mod default_rules;
mod evaluation;
mod git_objects;
mod keys;
mod lines;
mod lint;
mod mentions;
mod mode;
mod origin;
mod paths;
mod pattern;
mod pieces;
mod precedence;
mod probe;
mod protected;
mod reading;
mod reads;
mod remedy;
mod rule;
mod rulebook;
mod server_rules;
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
pub use keys::{looks_like_key, without_keys};
pub use lint::{Finding, lint};
pub use mode::{
    AutoAllow, Enforcement, Gating, Latch, ModeError, ModeRequest, Regime, Relaxed, relax,
};
pub use origin::Origin;
pub use paths::{PathPattern, Places, Subject};
pub use pattern::{
    About, CommandPattern, FieldPattern, FieldValue, Pattern, PatternError, Reach, ToolName,
};
pub use pieces::Piece;
pub use precedence::{Found, Guard, Precedence};
pub use probe::Probe;
pub use protected::{
    Access, Protected, credential_places, home_places, is_environment_of_programs, protected_name,
};
pub use reading::Reader;
pub use remedy::{Place, remedy, suggestions};
pub use rule::{Rule, RuleError};
pub use rulebook::{Defaults, RuleBook};
pub use urls::{UrlPattern, UrlPatternError};
pub use wildcard::Wildcard;
