//! Kinds of sub-agents as clients define them.

use caliban_model::{BUILT_IN, Effect, Effort, Reasoning};
use caliban_protocol::claude::{SubAgent, ToolNames, ours};
use caliban_settings::variables::Environment;
use caliban_tools::AgentKind;

use super::models;
use crate::console::note;

/// What a client means, in our terms. What would make the agent looser or stricter and has no
/// counterpart is told.
pub(super) fn kind(name: String, agent: SubAgent, environment: &Environment) -> AgentKind {
    let mut tools = agent.tools.as_ref().map(names);
    let mut idle: Vec<&str> = agent.others.keys().map(String::as_str).collect();
    match agent.permission_mode.as_deref() {
        // An agent that plans only looks.
        Some("plan") => tools = Some(looking(tools)),
        Some(_) => idle.push("permissionMode"),
        None => {}
    }
    let effort = agent.effort.as_ref().and_then(serde_json::Value::as_str);
    let reasoning = effort.and_then(|effort| effort.parse::<Effort>().ok());
    if agent.effort.is_some() && reasoning.is_none() {
        idle.push("effort");
    }
    if !idle.is_empty() {
        note(&format!(
            "warning: the agent `{name}` is defined with {}, which has no effect here",
            idle.join(", ")
        ));
    }
    AgentKind {
        tools,
        without: agent
            .disallowed_tools
            .as_ref()
            .map(names)
            .unwrap_or_default(),
        model: agent
            .model
            .filter(|model| model != "inherit")
            .and_then(|model| models::resolve(&model, environment)),
        reasoning: reasoning.map(Reasoning::Effort),
        ..AgentKind::new(name, agent.description, agent.prompt)
    }
}

/// The tools among these that only look.
fn looking(tools: Option<Vec<String>>) -> Vec<String> {
    let looks = |name: &str| {
        let tool = BUILT_IN.iter().find(|tool| tool.name == name);
        tool.is_some_and(|tool| tool.effect == Effect::ReadOnly)
    };
    let all = || BUILT_IN.iter().map(|tool| tool.name.to_owned()).collect();
    let mut tools = tools.unwrap_or_else(all);
    tools.retain(|name| looks(name));
    tools
}

/// Our names of tools. A rule about some calls of a tool stands for all of them.
fn names(tools: &ToolNames) -> Vec<String> {
    let plain = |name: &str| {
        let plain = name.split_once('(').map_or(name, |(tool, _)| tool);
        ours(plain.trim()).to_owned()
    };
    tools.list().into_iter().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(agent: serde_json::Value) -> AgentKind {
        let agent: SubAgent = serde_json::from_value(agent).unwrap();
        kind("a".to_owned(), agent, &Environment::new(|_: &str| None))
    }

    #[test]
    fn what_narrows_an_agent_does() {
        let kind = made(json!({
            "prompt": "P",
            "tools": "Read, Bash",
            "disallowedTools": ["Bash(rm:*)", "Task"],
            "effort": "high",
            "model": "haiku",
            "maxTurns": 3,
        }));
        assert_eq!(kind.tools.unwrap(), ["Read", "Bash"]);
        assert_eq!(kind.without, ["Bash", "AgentTool"]);
        assert_eq!(kind.reasoning, Some(Reasoning::Effort(Effort::High)));
        assert_eq!(kind.model.as_deref(), Some("claude-haiku-4-5"));
    }

    #[test]
    fn an_agent_that_plans_only_looks() {
        let plans = |tools: serde_json::Value| {
            made(json!({"prompt": "P", "tools": tools, "permissionMode": "plan"}))
        };
        let some = plans(json!(["Read", "Write", "mcp__a__b"]));
        assert_eq!(some.tools.unwrap(), ["Read"]);
        let all = plans(json!(null)).tools.unwrap();
        assert!(all.iter().any(|name| name == "Grep"));
        assert!(!all.iter().any(|name| name == "Bash" || name == "Write"));
    }
}
