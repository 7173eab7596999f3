//! Confines the programs of a session: which files they see, what they may write and whom they
//! reach. Independent of rules, which say whether a program runs at all.

mod aftermath;
mod backend;
mod bwrap;
mod causes;
mod disk;
mod egress;
mod environment;
mod explain;
mod git;
mod git_programs;
mod outside;
mod places;
mod plan;
mod policy;
mod private;
mod sandbox;
#[cfg(any(test, target_os = "macos"))]
mod seatbelt;

#[cfg(target_os = "linux")]
mod carry;
#[cfg(target_os = "linux")]
mod chain;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod way_out;

#[cfg(target_os = "linux")]
pub use chain::{CONFINE_ARGUMENT, INNER_ARGUMENT, confine_main, inner_main};

pub use aftermath::Quarantined;
pub use causes::Unavailable;
pub use egress::{Egress, Errand, OperatorProxy, Refusals};
pub use explain::Standing;
pub use outside::Outside;
pub use plan::PlanError;
pub use policy::{
    Consent, LinkedGit, LocalBinding, Network, Policy, PolicyError, Reading, Requirement, Strength,
    Surroundings, UnixSockets,
};
pub use sandbox::{
    Call, ConfineError, Confined, Confining, Place, Report, Sandbox, StartError, Success, Told,
};
