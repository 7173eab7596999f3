use std::sync::Arc;

use caliban_agent::{
    Confinement, Effect, OpenReading, Progress, Tool, ToolContext, ToolOutput, ToolStatus,
    Workspace,
};
use caliban_context::{
    Customization, Invocation, Notes, Notice, Origin, SkillSources, SkillTool, Skills,
};
use caliban_model::CancellationToken;
use serde_json::{Value, json};

use super::Fixture;

fn skill(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\nbody of {description}\n")
}

fn load(fixture: &Fixture) -> (Skills, Vec<Notice>) {
    let mut notices = Vec::new();
    let skills = Skills::load(&fixture.places, &fixture.options, &mut notices);
    (skills, notices)
}

fn listed(skills: &Skills) -> Vec<String> {
    let line = |skill: &caliban_context::Skill| {
        format!(
            "{} {} {}",
            skill.name(),
            skill.description(),
            skill.origin()
        )
    };
    skills.iter().map(line).collect()
}

async fn call(tool: &SkillTool, input: Value) -> ToolOutput {
    let temp = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(temp.path(), &[], None, Confinement::Open).unwrap();
    let context = ToolContext {
        call_id: Arc::from("call"),
        session_id: Arc::from("session"),
        workspace: Arc::new(workspace),
        reading: OpenReading::shared(),
        cancel: CancellationToken::new(),
        progress: Progress::silent(),
        trace: None,
    };
    tool.run(input, context).await
}

/// The same skill everywhere, and one of each place's own.
fn everywhere() -> Fixture {
    let fixture = Fixture::new();
    for (place, own) in [
        ("repo/app/.caliban", "project"),
        ("lib/.caliban", "further"),
        ("home/.config/caliban", "config"),
        ("home/.local/share/caliban", "data"),
        ("repo/app/.claude", "foreign-project"),
        ("home/.claude", "foreign-user"),
        ("plugins/tools", "plugin"),
    ] {
        fixture.write(
            &format!("{place}/skills/same/SKILL.md"),
            &skill("same", own),
        );
        fixture.write(&format!("{place}/skills/{own}/SKILL.md"), &skill(own, own));
    }
    fixture
}

#[test]
fn the_first_root_wins_and_a_repository_does_not_do_so_in_silence() {
    let mut fixture = everywhere();
    fixture.options.notes = Notes::Off;
    let (skills, notices) = load(&fixture);
    assert_eq!(
        listed(&skills),
        [
            "config config user",
            "data data user",
            "project project project",
            "same project project",
            "tools:plugin plugin plugin tools",
            "tools:same plugin plugin tools",
        ]
    );
    let replaced = "the skill `same` (project) replaces the one of that name (user)";
    assert_eq!(fixture.notices(&notices), [replaced, replaced]);

    fixture.options.skills = SkillSources::OwnAndForeign;
    fixture.options.skill_directories = vec![fixture.path("lib")];
    let (skills, _) = load(&fixture);
    for (name, origin) in [
        ("foreign-project", Origin::Project),
        ("foreign-user", Origin::User),
        ("further", Origin::Additional),
    ] {
        assert_eq!(skills.get(name).unwrap().origin(), &origin);
    }
    fixture.options.customization = Customization::Plugins;
    let (skills, _) = load(&fixture);
    assert_eq!(
        skills
            .iter()
            .map(caliban_context::Skill::name)
            .collect::<Vec<_>>(),
        ["tools:plugin", "tools:same"]
    );
    fixture.options.skills = SkillSources::Off;
    assert!(load(&fixture).0.is_empty());
}

#[test]
fn the_built_in_skill_can_be_replaced_and_goes_with_the_notes() {
    let mut fixture = Fixture::new();
    let (skills, notices) = load(&fixture);
    assert_eq!(
        skills.get("auto-memory").unwrap().origin(),
        &Origin::BuiltIn
    );
    assert_eq!(notices, []);
    fixture.write(
        "repo/app/.caliban/skills/auto-memory/SKILL.md",
        &skill("auto-memory", "ours"),
    );
    let (skills, notices) = load(&fixture);
    assert_eq!(
        skills.get("auto-memory").unwrap().body().unwrap(),
        "body of ours"
    );
    assert_eq!(
        fixture.notices(&notices),
        ["the skill `auto-memory` (project) replaces the one of that name (built-in)"]
    );
    fixture.options.notes = Notes::Off;
    assert!(load(&fixture).0.is_empty());
}

#[test]
fn files_that_are_no_skills_are_notices() {
    let fixture = Fixture::new();
    let root = "repo/app/.caliban/skills";
    fixture.write(&format!("{root}/none/README.md"), "not a skill directory");
    fixture.write(&format!("{root}/a-bare/SKILL.md"), "no head");
    fixture.write(&format!("{root}/b-other/SKILL.md"), &skill("other", "d"));
    fixture.write(
        &format!("{root}/c-missing/SKILL.md"),
        "---\nname: c-missing\n---\nx",
    );
    fixture.write(
        &format!("{root}/d-empty/SKILL.md"),
        &skill("d-empty", "\"\""),
    );
    fixture.write(&format!("{root}/e e/SKILL.md"), &skill("e e", "d"));
    fixture.write(
        &format!("{root}/good/SKILL.md"),
        "---\nname: good\ndescription: \"a: b\"\nlicense: MIT\nmetadata:\n  trigger: pre\n  n: 1\n---\n# Good\n",
    );
    let (skills, notices) = load(&fixture);
    let good = skills.get("good").unwrap();
    assert_eq!(good.body().unwrap(), "# Good");
    assert_eq!(
        Value::Object(good.metadata().clone()),
        json!({"trigger": "pre", "n": 1})
    );
    let notices = fixture.notices(&notices);
    assert_eq!(notices.len(), 5);
    for (notice, part) in notices.iter().zip([
        "a-bare/SKILL.md` is not used: it does not begin with a `---` block",
        "b-other/SKILL.md` is not used: its name is `other` and its directory's `b-other`",
        "c-missing/SKILL.md` is not used: its `---` block cannot be read",
        "d-empty/SKILL.md` is not used: its description must have 1 to 1024 characters",
        "e e/SKILL.md` is not used: `e e` is not a plain name",
    ]) {
        assert!(notice.contains(part), "{notice}");
    }
}

#[tokio::test]
async fn the_tool_lists_skills_and_returns_their_text() {
    let fixture = Fixture::new();
    let path = "repo/app/.caliban/skills/flow/SKILL.md";
    fixture.write(path, &skill("flow", "the flow"));
    fixture.write(
        "repo/app/.caliban/skills/hidden/SKILL.md",
        "---\nname: hidden\ndescription: d\ndisable-model-invocation: true\n---\nx",
    );
    let (skills, _) = load(&fixture);
    assert_eq!(
        skills.get("hidden").unwrap().invocation(),
        Invocation::UserOnly
    );
    let tool = SkillTool::new(Arc::new(skills));
    assert_eq!(tool.effect(), Effect::ReadOnly);
    assert_eq!(tool.spec().name, "Skill");
    let menu: Vec<&str> = tool.spec().description.lines().skip(1).collect();
    assert!(menu[0].starts_with("- auto-memory: How to use your notes"));
    assert_eq!(menu[1..], ["- flow: the flow"]);
    assert_eq!(
        tool.first_arg(&json!({"skill": "flow"})).as_deref(),
        Some("flow")
    );

    let output = call(&tool, json!({"name": "flow"})).await;
    assert_eq!(
        fixture.shown(&output.text()),
        "Skill `flow` (project), whose files are in ~~/repo/app/.caliban/skills/flow.\n\nbody of the flow"
    );
    for unknown in ["none", "hidden", "../flow"] {
        let output = call(&tool, json!({"name": unknown})).await;
        assert_eq!(output.status, ToolStatus::InvalidInput);
        assert!(output.text().ends_with("There are: auto-memory, flow."));
    }
    std::fs::remove_file(fixture.path(path)).unwrap();
    assert_eq!(
        call(&tool, json!({"name": "flow"})).await.status,
        ToolStatus::Failed
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_skill_does_not_lead_out_of_its_repository() {
    let fixture = Fixture::new();
    let outside = fixture.write("outside/flow/SKILL.md", &skill("flow", "outside"));
    std::fs::create_dir_all(fixture.path("repo/app/.caliban/skills")).unwrap();
    let planted = fixture.path("repo/app/.caliban/skills/flow");
    super::link(outside.parent().unwrap(), &planted);
    let (skills, notices) = load(&fixture);
    assert!(skills.get("flow").is_none());
    assert!(fixture.notices(&notices)[0].contains("which is somewhere else"));

    // A link that is put there after the start is refused as well.
    std::fs::remove_file(&planted).unwrap();
    let path = fixture.write(
        "repo/app/.caliban/skills/flow/SKILL.md",
        &skill("flow", "inside"),
    );
    let tool = SkillTool::new(Arc::new(load(&fixture).0));
    std::fs::remove_file(&path).unwrap();
    super::link(&outside, &path);
    let output = call(&tool, json!({"name": "flow"})).await;
    assert_eq!(output.status, ToolStatus::Failed);
    assert!(!output.text().contains("body of"));
}
