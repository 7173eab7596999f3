//! Plugins as people write them for other programs, recreated: every form is read as it is.

use serde_json::{Value, json};

use crate::support::Bench;
use crate::{
    bench, go, init, names, ok, plugin, plugin_ok, recorded, requests, tool, user_root, write,
};

fn info(bench: &Bench, name: &str) -> Value {
    serde_json::from_str(&plugin_ok(bench, &["info", name])).unwrap()
}

/// Commands and agents by convention, a manifest without a version, an author that is a table.
#[test]
fn a_plugin_of_commands_and_agents() {
    let bench = bench(ok());
    let root = user_root(&bench).join("flow");
    let put = |file: &str, text: &str| write(&root.join(file), text);
    let manifest = json!({"name": "flow", "author": {"name": "A", "email": "a@example.com"}, "keywords": ["x"]});
    put(".claude-plugin/plugin.json", &manifest.to_string());
    put("commands/start.md", "No head at all, $ARGUMENTS.");
    put(
        "commands/git/clean.md",
        "---\nallowed-tools: Bash(git branch:*), Read\nargument-hint: [what] [why]\n---\nClean.",
    );
    put(
        "commands/odd.md",
        "---\ndescription: Use: this \"when: needed\"\n  - broken: [\n---\nOdd.",
    );
    put(
        "agents/plan-maker.md",
        "---\nname: planner\ndescription: Use it when <example>user: \"go\"</example> assistant: \"fine: yes\"\nmodel: opus\n---\nPlan.",
    );
    put("agents/plain.md", "No head.");
    let info = info(&bench, "flow");
    assert_eq!(
        info["commands"],
        json!(["flow:git:clean", "flow:odd", "flow:start"])
    );
    assert_eq!(info["agents"], json!(["flow:plain", "flow:planner"]));
    assert_eq!(info["enabled"], true);
}

/// Skills whose names are titles and whose descriptions are long, and a forced directory of more.
#[test]
fn a_plugin_of_skills() {
    let bench = bench(ok());
    let root = user_root(&bench).join("kit");
    let put = |file: &str, text: &str| write(&root.join(file), text);
    put(
        ".claude-plugin/plugin.json",
        &json!({"name": "kit", "skills": ["./extra"]}).to_string(),
    );
    put(
        "skills/writing-rules/SKILL.md",
        "---\nname: Writing Rules\ndescription: Titles.\n---\nx",
    );
    let long = "word ".repeat(500);
    put(
        "skills/long/SKILL.md",
        &format!("---\nname: long\ndescription: {long}\n---\nx"),
    );
    put(
        "extra/more/SKILL.md",
        "---\nname: more\ndescription: More.\nlicense: x\n---\nSee ${CLAUDE_SKILL_DIR}/a.md",
    );
    let info = info(&bench, "kit");
    assert_eq!(
        info["skills"],
        json!(["kit:long", "kit:more", "kit:writing-rules"])
    );
    assert!(info["tokens"]["always"].as_u64().unwrap() > 200, "{info}");
    go(&bench, &[]);
    let menu = tool(&requests(&bench)[0], "Skill")["description"].to_string();
    assert!(menu.contains("kit:writing-rules"), "{menu}");
}

/// Hooks and servers that stand in the manifest itself, with keys that mean nothing here.
#[test]
fn a_plugin_with_everything_inline() {
    let bench = bench(ok());
    let root = user_root(&bench).join("guard");
    let hook = json!({"type": "command", "command": "echo inline >> \"$RECORD\"", "timeout": 5, "asyncRewake": true, "rewakeMessage": "m"});
    let manifest = json!({
        "name": "guard",
        "hooks": {"SessionStart": [{"matcher": "startup|resume", "hooks": [hook]}]},
        "mcpServers": {"flat": {"command": "python3", "args": ["${CLAUDE_PLUGIN_ROOT}/s.py"], "env": {"X": "${UNSET:-fallback}"}}},
        "lspServers": {"x": {"command": "y"}}, "experimental": {"themes": "./t"},
    });
    write(
        &root.join(".claude-plugin/plugin.json"),
        &manifest.to_string(),
    );
    write(&root.join("s.py"), include_str!("../mcp/server.py"));
    write(&root.join("CLAUDE.md"), "IGNORED INSTRUCTIONS");
    let ran = go(&bench, &[]);
    assert_eq!(recorded(&bench), "inline\n");
    assert!(init(&ran)["mcp_servers"].to_string().contains("guard:flat"));
    assert!(!requests(&bench)[0].to_string().contains("IGNORED"));
    let info = info(&bench, "guard");
    let remarks = info["remarks"].to_string();
    for said in ["lspServers", "experimental", "asyncRewake", "CLAUDE.md"] {
        assert!(remarks.contains(said), "{said}: {remarks}");
    }
    assert_eq!(info["hooks"], 1);
}

/// Two plugins whose commands are spelled alike are two.
#[test]
fn the_same_words_in_two_plugins_are_two_hooks() {
    let bench = bench(ok());
    for name in ["a", "b"] {
        let root = user_root(&bench).join(name);
        let hook = json!({"type": "command", "command": "sh \"${CLAUDE_PLUGIN_ROOT}/x.sh\""});
        let hooks = json!({"hooks": {"SessionStart": [{"hooks": [hook]}]}});
        write(
            &root.join("plugin.json"),
            &json!({"name": name, "version": "1.0.0"}).to_string(),
        );
        write(&root.join("hooks/hooks.json"), &hooks.to_string());
        write(&root.join("x.sh"), &format!("echo {name} >> \"$RECORD\""));
    }
    go(&bench, &[]);
    assert_eq!(recorded(&bench), "a\nb\n");
}

#[test]
fn a_new_plugin_validates_and_works() {
    let bench = bench(ok());
    let made = plugin_ok(&bench, &["new", "mine"]);
    assert!(made.contains("mine/plugin.json"), "{made}");
    let checked = plugin_ok(&bench, &["validate", "mine", "--strict"]);
    assert!(checked.contains("can be used"), "{checked}");
    let ran = go(&bench, &["--plugin-dir", "mine"]);
    assert_eq!(names(&init(&ran)), ["mine"]);
    assert!(
        tool(&requests(&bench)[0], "Skill")["description"]
            .to_string()
            .contains("mine:example")
    );
    let again = plugin(&bench, &["new", "mine"]);
    assert_eq!(again.code, Some(1), "{}", again.stderr);
}

#[test]
fn what_is_validated_may_be_named_by_its_manifest() {
    let bench = bench(ok());
    let root = bench.workspace.path();
    write(
        &root.join("a/plugin.json"),
        r#"{"name": "a", "version": "1.0.0"}"#,
    );
    write(
        &root.join("b/.claude-plugin/plugin.json"),
        r#"{"name": "b"}"#,
    );
    let list = r#"{"name": "m", "plugins": []}"#;
    write(&root.join("m/.claude-plugin/marketplace.json"), list);
    for path in [
        "a/plugin.json",
        "b/.claude-plugin/plugin.json",
        "m/.claude-plugin/marketplace.json",
    ] {
        plugin_ok(&bench, &["validate", path]);
    }
}

#[test]
fn validating_names_what_is_wrong() {
    let bench = bench(ok());
    let root = bench.workspace.path();
    write(&root.join("bad/plugin.json"), r#"{"name": "bad"}"#);
    let ran = plugin(&bench, &["validate", "bad"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout.contains("`version` is missing"),
        "{}",
        ran.stdout
    );
    write(
        &root.join("odd/plugin.json"),
        r#"{"name": "odd", "version": "1.0.0", "colour": "red"}"#,
    );
    assert_eq!(plugin(&bench, &["validate", "odd"]).code, Some(0));
    let strict = plugin(&bench, &["validate", "odd", "--strict", "--json"]);
    assert_eq!(strict.code, Some(1));
    let report: Value = serde_json::from_str(&strict.stdout).unwrap();
    assert!(
        report["findings"][0]["remarks"]
            .to_string()
            .contains("`colour` is unknown")
    );
    let list = json!({"name": "m", "plugins": [
        {"name": "odd", "source": "./odd"}, {"name": "far", "source": {"source": "command", "command": "x"}},
    ]});
    write(
        &root.join(".claude-plugin/marketplace.json"),
        &list.to_string(),
    );
    let market = plugin(&bench, &["validate", "."]);
    assert_eq!(market.code, Some(0), "{}", market.stdout);
    assert!(
        market.stdout.contains("odd (odd): can be used"),
        "{}",
        market.stdout
    );
    assert!(
        market.stdout.contains("`far` cannot be installed"),
        "{}",
        market.stdout
    );
}
