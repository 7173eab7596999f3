//! What is told of agent profiles.

use caliban_context::{Profile, ProfileIsolation, ProfileMemory, Profiles};
use serde_json::{Value, json};

use crate::reports::columns;

/// What a profile has of its own, in one line.
pub(crate) fn details(profile: &Profile) -> String {
    let mut parts = Vec::new();
    match profile.tools.as_deref() {
        None => {}
        Some([]) => parts.push("no tools".to_owned()),
        Some(tools) => parts.push(format!("tools {}", tools.join(", "))),
    }
    if !profile.disallowed_tools.is_empty() {
        parts.push(format!("without {}", profile.disallowed_tools.join(", ")));
    }
    parts.extend(profile.model.iter().map(|model| format!("model {model}")));
    let effort = profile.effort.iter();
    parts.extend(effort.map(|effort| format!("effort {}", effort.as_str())));
    if profile.isolation == ProfileIsolation::Worktree {
        parts.push("in a worktree".to_owned());
    }
    if profile.background {
        parts.push("in the background".to_owned());
    }
    if !profile.inherit_hooks {
        parts.push("without hooks".to_owned());
    }
    match profile.memory {
        ProfileMemory::None => {}
        ProfileMemory::Project => parts.push("notes on the project".to_owned()),
        ProfileMemory::User => parts.push("notes of the user".to_owned()),
    }
    parts.join("; ")
}

/// All profiles for people.
pub fn listed(profiles: &Profiles) -> String {
    if profiles.is_empty() {
        return NONE.to_owned();
    }
    let rows = profiles.iter().flat_map(|profile| {
        let about = format!("{} ({})", profile.description, profile.origin());
        let details = details(profile);
        let more = (!details.is_empty()).then(|| (String::new(), details));
        [(profile.name().to_owned(), about)].into_iter().chain(more)
    });
    columns(rows)
}

/// What is said where there is none.
pub(crate) const NONE: &str =
    "There are no agent profiles. `.caliban/agents/NAME.md` defines one for this project.";

/// All profiles for programs.
pub fn reported(profiles: &Profiles) -> Value {
    profiles.iter().map(one).collect()
}

fn one(profile: &Profile) -> Value {
    json!({
        "name": profile.name(),
        "description": profile.description,
        "origin": profile.origin().to_string(),
        "path": profile.path().to_string_lossy(),
        "tools": profile.tools,
        "disallowed_tools": profile.disallowed_tools,
        "model": profile.model,
        "effort": profile.effort.map(caliban_context::ProfileEffort::as_str),
        "isolation": match profile.isolation {
            ProfileIsolation::None => "none",
            ProfileIsolation::Worktree => "worktree",
        },
        "background": profile.background,
        "inherit_hooks": profile.inherit_hooks,
        "memory": match profile.memory {
            ProfileMemory::None => "none",
            ProfileMemory::Project => "project",
            ProfileMemory::User => "user",
        },
    })
}
