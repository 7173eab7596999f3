use std::collections::BTreeSet;

use caliban_agent::input_schema;
use caliban_context::{NoteStore, Skills};
use caliban_model::{BUILT_IN, BuiltInTool, Effect};
use caliban_process::Guard;
use caliban_tools::{SearchBackend, SearchConfig, WebPolicy};
use serde_json::Value;

use super::*;
use crate::choices::BuiltIn;

/// A tool that comes from a crate of its own; there its name is held to the table.
const FROM_SERVERS: &str = "ToolSearch";

/// What a tool says of itself.
struct Stated {
    name: String,
    effect: Effect,
    schema: Value,
}

/// Every tool that a session of this program can offer.
fn stated() -> Vec<Stated> {
    let directory = std::env::temp_dir();
    let built_in = BuiltIn {
        environment: Vec::new(),
        guard: Guard::None,
        jobs_directory: directory.clone(),
        search: SearchConfig {
            backend: SearchBackend::default(),
            key: None,
            base_url: None,
        },
        web: WebPolicy::default(),
        sub_agents: SubAgents::Withheld,
        agent_kinds: Vec::new(),
        default_agent: None,
        grounds: None,
    };
    let mut tools = build_tools(Tools::BuiltIn(Box::new(built_in)), None).tools;
    let notes = NoteStore::new(directory);
    tools.push(ReadMemoryTopic::new(notes.clone()).boxed());
    tools.push(WriteMemoryTopic::new(notes).boxed());
    tools.push(Arc::new(SkillTool::new(Arc::new(Skills::default()))));
    let stated = tools.iter().map(|tool| Stated {
        name: tool.spec().name.clone(),
        effect: tool.effect(),
        schema: tool.spec().input_schema.clone(),
    });
    let sub_agents = Stated {
        name: AgentTool::NAME.to_owned(),
        effect: AgentTool::EFFECT,
        schema: input_schema::<<AgentTool as TypedTool>::Input>(),
    };
    stated.chain([sub_agents]).collect()
}

#[test]
fn the_table_of_tools_has_every_tool_and_says_of_it_what_it_says_itself() {
    let stated = stated();
    for tool in &stated {
        let row = BuiltInTool::named(&tool.name).unwrap_or_else(|| panic!("{}", tool.name));
        assert_eq!(row.effect, tool.effect, "{}", tool.name);
        let properties = tool.schema["properties"].as_object().unwrap();
        for field in properties.keys() {
            assert!(
                row.fields.contains(&field.as_str()),
                "{}: {field}",
                tool.name
            );
        }
    }
    let names: BTreeSet<&str> = stated
        .iter()
        .map(|tool| tool.name.as_str())
        .chain([FROM_SERVERS])
        .collect();
    let rows: BTreeSet<&str> = BUILT_IN.iter().map(|row| row.name).collect();
    assert_eq!(rows, names);
}
