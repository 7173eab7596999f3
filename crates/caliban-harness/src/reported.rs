//! What commands report, for programs: the same as their words, as values.

use caliban_hooks::ExternalHooks;
use caliban_session::Engine;
use serde_json::{Value, json};

use crate::inventory::{Inventory, Listed, ListedProfile};
use crate::mcp::status_name;
use crate::recorder::Recorder;
use crate::reports::reasoning;
use crate::session::Session;

/// Gives a report the name of its command.
pub(crate) fn of(command: &str, report: Value) -> Value {
    let mut named = serde_json::Map::new();
    named.insert("command".to_owned(), command.into());
    if let Value::Object(report) = report {
        named.extend(report);
    }
    Value::Object(named)
}

pub(crate) fn status(session: &Session) -> Value {
    let facts = session.facts();
    json!({
        "version": facts.program_version,
        "session_id": facts.session_id,
        "session_name": session.recorder.as_ref().and_then(Recorder::name),
        "cwd": facts.cwd,
        "provider": session.agent.provider.id(),
        "model": facts.model,
        "effort": reasoning(session.reasoning()),
        "permission_mode": facts.permission_mode,
        "trusted": facts.trusted,
        "setting_sources": facts.setting_sources,
        "messages": facts.messages,
        "context_window": facts.context_window,
        "mcp_servers": facts.servers.len(),
        "skills": facts.skills.len(),
        "agents": session.fleet.as_ref().map(|fleet| fleet.status()),
    })
}

pub(crate) fn servers(session: &Session) -> Value {
    let statuses = session.servers().map(caliban_mcp::Servers::status);
    let server = |server: caliban_mcp::ServerStatus| {
        let status = if session.switches.is_off(&server.name) {
            "disabled"
        } else {
            status_name(&server.status)
        };
        let reason = match server.status {
            caliban_mcp::Status::Failed { reason }
            | caliban_mcp::Status::NeedsAuth { reason, .. } => Some(reason),
            caliban_mcp::Status::Connecting
            | caliban_mcp::Status::Connected { .. }
            | caliban_mcp::Status::Disabled => None,
        };
        json!({
            "name": server.name,
            "status": status,
            "reason": reason,
            "tools": server.tools,
            "withheld": server.withheld,
        })
    };
    let servers: Vec<Value> = statuses.into_iter().flatten().map(server).collect();
    json!({ "servers": servers })
}

pub(crate) fn hooks(hooks: Option<&ExternalHooks>) -> Value {
    let handlers = hooks.map(ExternalHooks::report).unwrap_or_default();
    json!({ "handlers": handlers })
}

pub(crate) fn skills(inventory: &Inventory) -> Value {
    let skill = |skill: &Listed| json!({"name": skill.name, "description": skill.about, "origin": skill.origin});
    json!({ "skills": inventory.skills.iter().map(skill).collect::<Vec<_>>() })
}

pub(crate) fn profiles(inventory: &Inventory) -> Value {
    let profile = |profile: &ListedProfile| {
        json!({
            "name": profile.name,
            "description": profile.about,
            "origin": profile.origin,
            "path": profile.path.to_string_lossy(),
        })
    };
    json!({ "profiles": inventory.profiles.iter().map(profile).collect::<Vec<_>>() })
}

pub(crate) fn plugins(inventory: &Inventory) -> Value {
    let plugin = |plugin: &Listed| json!({"name": plugin.name, "state": plugin.about, "origin": plugin.origin});
    json!({ "plugins": inventory.plugins.iter().map(plugin).collect::<Vec<_>>() })
}

pub(crate) fn memory(inventory: &Inventory) -> Value {
    let files = inventory.instructions.iter().map(|file| {
        json!({"kind": file.tag.as_str(), "path": file.path.to_string_lossy(), "tokens": file.tokens})
    });
    let files: Vec<Value> = files.collect();
    let total: u64 = inventory.instructions.iter().map(|file| file.tokens).sum();
    let notes = inventory.notes.as_ref().map(|notes| {
        let topics = notes.topics();
        let topics = topics.topics.iter().map(
            |(name, topic)| json!({"name": name.as_str(), "description": topic.description()}),
        );
        json!({
            "directory": notes.directory().to_string_lossy(),
            "topics": topics.collect::<Vec<_>>(),
        })
    });
    json!({"files": files, "tokens": total, "notes": notes})
}
