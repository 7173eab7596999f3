//! What a plugin brings reaches the session under the plugin's name.

use std::fs;

use caliban_testkit::{After, Match, Reply, Script};
use serde_json::{Value, json};

use crate::support::{Bench, run};
use crate::{
    bench, everything, go, init, names, ok, plugin, plugin_ok, program, project_root, recorded,
    requests, tool, user_root, warnings, write,
};

#[test]
fn one_of_everything_is_there_and_works() {
    let bench = bench(Script::new([
        Reply::tool("Skill", json!({"name": "tools:greet"})),
        Reply::tool("Read", json!({"path": "a.txt"})),
        Reply::tool("mcp__plugin_tools_stub__add", json!({"a": 2, "b": 3})),
        Reply::tool(
            "AgentTool",
            json!({"prompt": "inner task", "subagent_type": "tools:scout"}),
        ),
        Reply::text("the scout is done").when(Match::last_user("inner task")),
        Reply::text("done"),
    ]));
    write(&bench.workspace.path().join("a.txt"), "text");
    let root = user_root(&bench).join("tools");
    everything(&root, "tools", "1.2.3");
    let ran = go(&bench, &[]);
    let init = init(&ran);
    assert_eq!(
        init["plugins"],
        json!([{"name": "tools", "path": root.display().to_string(), "source": "user", "version": "1.2.3"}])
    );
    let states = init["mcp_servers"].as_array().unwrap();
    assert!(
        states.iter().any(|it| it["name"] == "tools:stub"),
        "{states:?}"
    );

    let requests = requests(&bench);
    let first = &requests[0];
    let menu = tool(first, "Skill")["description"].to_string();
    assert!(
        menu.contains("tools:greet") && menu.contains("How to greet."),
        "{menu}"
    );
    let agents = tool(first, "AgentTool");
    let kinds = &agents["input_schema"]["properties"]["subagent_type"]["enum"];
    assert_eq!(*kinds, json!(["general-purpose", "tools:scout"]));
    let menu = agents["description"].to_string();
    assert!(menu.contains("tools:scout: Looks around."), "{menu}");
    let text = requests[1].to_string();
    let real = root.canonicalize().unwrap();
    assert!(
        text.contains(&format!("Greet from {}, loudly.", real.display())),
        "{text}"
    );
    assert!(requests[3].to_string().contains("\"5\""), "{}", requests[3]);
    let inner = &requests[4];
    assert!(
        inner["system"].to_string().contains("You are the scout."),
        "{inner}"
    );
    assert_eq!(
        tool(inner, "Bash"),
        &Value::Null,
        "it has the tools that it lists"
    );
    assert_eq!(
        inner["model"], first["model"],
        "tiers mean nothing without routes"
    );

    let told = recorded(&bench);
    let expected = format!("hook {} unset\n", real.display());
    assert!(told.starts_with(&expected), "{told}");
    let event: Value = serde_json::from_str(told.lines().nth(1).unwrap()).unwrap();
    assert_eq!(event["tool_input"]["path"], "a.txt");
    assert_eq!(
        event["tool_input"]["file_path"], "a.txt",
        "the name that others use"
    );
}

#[test]
fn a_command_is_typed_with_the_name_of_its_plugin_and_lends_no_tools() {
    let bench = bench(Script::new([
        Reply::tool("Bash", json!({"command": "touch ran"})),
        Reply::text("done"),
    ]));
    everything(&user_root(&bench).join("tools"), "tools", "1.0.0");
    let mut command = bench.command();
    command.args([
        "--output-format",
        "stream-json",
        "-p",
        "/tools:recap the week",
    ]);
    let ran = run(&mut command);
    let prompt = requests(&bench)[0]["messages"][0].to_string();
    assert!(
        prompt.contains("Recap the week as the plugin says."),
        "{prompt}"
    );
    assert!(
        !bench.workspace.path().join("ran").exists(),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_style_is_chosen_by_name_or_insists() {
    let bench = bench(ok());
    let root = user_root(&bench).join("tools");
    everything(&root, "tools", "1.0.0");
    go(
        &bench,
        &["--settings", r#"{"output_style": "tools:terse"}"#],
    );
    assert!(
        requests(&bench)[0]["system"]
            .to_string()
            .contains("Use few words.")
    );
    go(&bench, &[]);
    assert!(
        !requests(&bench)[1]["system"]
            .to_string()
            .contains("Use few words.")
    );
    write(
        &root.join("output-styles/terse.md"),
        "---\nname: Terse Mode\ndescription: Few words.\nforce-for-plugin: true\n---\nUse few words.\n",
    );
    let ran = go(
        &bench,
        &["--settings", r#"{"output_style": "explanatory"}"#],
    );
    assert!(
        requests(&bench)[2]["system"]
            .to_string()
            .contains("Use few words.")
    );
    assert!(warnings(&init(&ran)).contains("the plugin `tools` sets the output style"));
    let told = bench.run(["-p", "/output-style"]).stdout;
    assert!(told.contains("locked by plugin: tools"), "{told}");
    plugin_ok(&bench, &["disable", "tools"]);
    go(
        &bench,
        &["--settings", r#"{"output_style": "explanatory"}"#],
    );
    assert!(
        !requests(&bench)[3]["system"]
            .to_string()
            .contains("Use few words.")
    );
}

#[test]
fn what_a_new_plugin_runs_is_told_once() {
    let bench = bench(ok());
    let root = user_root(&bench).join("tools");
    everything(&root, "tools", "1.0.0");
    let first = warnings(&init(&go(&bench, &[])));
    assert!(
        first.contains("the plugin `tools` is new or changed"),
        "{first}"
    );
    assert!(
        first.contains("runs `${CALIBAN_PLUGIN_ROOT}/hooks/told.sh` on PreToolUse (Read)"),
        "{first}"
    );
    assert!(
        first.contains("starts the MCP server `tools:stub`"),
        "{first}"
    );
    assert_eq!(warnings(&init(&go(&bench, &[]))), "[]");
    let hook = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}});
    write(&root.join("hooks/hooks.json"), &hook.to_string());
    let changed = warnings(&init(&go(&bench, &[])));
    assert!(changed.contains("runs `true` on Stop"), "{changed}");
}

#[test]
fn switches_choose_what_is_loaded() {
    let bench = bench(ok());
    for name in ["one", "two"] {
        let manifest = json!({"name": name, "version": "1.0.0"});
        write(
            &user_root(&bench).join(name).join("plugin.json"),
            &manifest.to_string(),
        );
    }
    assert_eq!(names(&init(&go(&bench, &[]))), ["one", "two"]);
    assert_eq!(names(&init(&go(&bench, &["--no-plugins"]))), [""; 0]);
    assert_eq!(names(&init(&go(&bench, &["--bare"]))), [""; 0]);
    let only = r#"{"plugins": {"enabled": ["two"]}}"#;
    assert_eq!(names(&init(&go(&bench, &["--settings", only]))), ["two"]);
    let table = r#"{"plugins": {"enabled": {"one": true, "two": false}}}"#;
    assert_eq!(names(&init(&go(&bench, &["--settings", table]))), ["one"]);
    let with = |variable: &str, value: &str| {
        let mut command = bench.command();
        command
            .args(["--output-format", "stream-json", "-p", "go"])
            .env(variable, value);
        names(&init(&run(&mut command)))
    };
    assert_eq!(with("CALIBAN_NO_PLUGINS", "1"), [""; 0]);
    assert_eq!(with("CALIBAN_NO_PLUGINS", "0"), ["one", "two"]);
    assert_eq!(with("CALIBAN_ENABLED_PLUGINS", "one, three"), ["one"]);
    let elsewhere = bench.home.path().join("elsewhere");
    let manifest = json!({"name": "three", "version": "1.0.0"});
    write(&elsewhere.join("three/plugin.json"), &manifest.to_string());
    assert_eq!(
        with("CALIBAN_PLUGIN_ROOT", elsewhere.to_str().unwrap()),
        ["three"]
    );
    let directory = elsewhere.join("three");
    let given = go(&bench, &["--plugin-dir", directory.to_str().unwrap()]);
    assert_eq!(names(&init(&given)), ["three", "one", "two"]);
}

#[test]
fn enabling_and_disabling_are_written_down() {
    let bench = bench(ok());
    everything(&user_root(&bench).join("tools"), "tools", "1.0.0");
    plugin_ok(&bench, &["disable", "tools"]);
    let settings = bench.home.path().join(".config/caliban/settings.toml");
    let text = fs::read_to_string(&settings).unwrap();
    assert!(text.contains("disabled = [\"tools\"]"), "{text}");
    let ran = go(&bench, &[]);
    assert_eq!(names(&init(&ran)), [""; 0]);
    assert_eq!(
        warnings(&init(&ran)),
        "[]",
        "a disabled plugin says nothing"
    );
    let skill = tool(&requests(&bench)[0], "Skill").to_string();
    assert!(!skill.contains("tools:"), "{skill}");
    assert!(plugin_ok(&bench, &["list"]).contains("disabled"));
    plugin_ok(&bench, &["enable", "tools"]);
    assert_eq!(names(&init(&go(&bench, &[]))), ["tools"]);
    let gone = plugin(&bench, &["enable", "nothing"]);
    assert_eq!(gone.code, Some(66), "{}", gone.stderr);
}

#[test]
fn the_session_lists_its_plugins() {
    let bench = bench(Script::new([]).after(After::RepeatLast));
    everything(&user_root(&bench).join("tools"), "tools", "1.0.0");
    write(&user_root(&bench).join("broken/plugin.json"), "{");
    let ran = bench.run(["-p", "/plugins"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("tools") && ran.stdout.contains("enabled, One of everything"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("broken"), "{}", ran.stdout);
    assert!(bench.server.model_requests().is_empty());
}

#[test]
fn only_plugins_customise_where_that_is_wanted() {
    let bench = bench(ok());
    everything(&user_root(&bench).join("tools"), "tools", "1.0.0");
    let config = bench.home.path().join(".config/caliban");
    write(
        &config.join("skills/mine/SKILL.md"),
        "---\nname: mine\ndescription: My own.\n---\nx\n",
    );
    let hook = format!(
        "strict_plugin_only_customization = true\n[[hooks.SessionStart]]\nhooks = [{{ type = 'command', command = 'touch {}/own' }}]\n",
        bench.home.path().display()
    );
    write(&config.join("settings.toml"), &hook);
    go(&bench, &[]);
    let menu = tool(&requests(&bench)[0], "Skill")["description"].to_string();
    assert!(
        menu.contains("tools:greet") && !menu.contains("mine"),
        "{menu}"
    );
    assert!(!bench.home.path().join("own").exists());
    // A repository does not decide this.
    write(&config.join("settings.toml"), "");
    write(
        &bench.workspace.path().join(".caliban/settings.toml"),
        "strict_plugin_only_customization = true\n",
    );
    go(&bench, &["--trust-workspace"]);
    let menu = tool(&requests(&bench)[1], "Skill")["description"].to_string();
    assert!(menu.contains("mine"), "{menu}");
}

/// What a command of the model said, whose plugin has programs.
fn said(bench: &Bench, flags: &[&str]) -> String {
    go(bench, flags);
    let requests = requests(bench);
    let last = requests.last().unwrap()["messages"].as_array().unwrap();
    last.last().unwrap()["content"][0]["content"].to_string()
}

#[test]
fn its_programs_are_found_by_commands_behind_all_others() {
    let line = "tally; cat; printenv PATH";
    let call = || Reply::tool("Bash", json!({"command": line}));
    let replies = (0..3).flat_map(|_| [call(), Reply::text("done")]);
    let bench = bench(Script::new(replies));
    let root = user_root(&bench).join("tools");
    everything(&root, "tools", "1.0.0");
    program(
        &root.join("bin/tally"),
        "#!/bin/sh\necho tally of the plugin\n",
    );
    program(&root.join("bin/cat"), "#!/bin/sh\necho an impostor\n");
    write(&root.join("bin/notes"), "no program");
    let hook = root.join("hooks/told.sh");
    program(
        &hook,
        "#!/bin/sh\ncommand -v tally >> \"$RECORD\"\nexit 0\n",
    );
    let shown = plugin_ok(&bench, &["info", "tools"]);
    let offered = "offers the program `tally` to commands";
    assert!(
        shown.contains(offered) && !shown.contains("notes"),
        "{shown}"
    );

    let told = said(&bench, &[]);
    assert!(told.contains("tally of the plugin"), "{told}");
    assert!(!told.contains("impostor"), "{told}");
    let directory = root.canonicalize().unwrap().join("bin");
    assert!(
        told.contains(&format!(":{}", directory.display())),
        "{told}"
    );
    assert_eq!(recorded(&bench), "", "hooks do not find them");

    let told = said(&bench, &["--no-plugins"]);
    assert!(!told.contains("tally of the plugin"), "{told}");
    plugin_ok(&bench, &["disable", "tools"]);
    let told = said(&bench, &[]);
    assert!(
        told.contains("not found") && !told.contains("tools/bin"),
        "{told}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn its_programs_are_found_in_the_sandbox_too() {
    let call = Reply::tool("Bash", json!({"command": "tally"}));
    let bench = bench(Script::new([call, Reply::text("done")]));
    let root = user_root(&bench).join("tools");
    everything(&root, "tools", "1.0.0");
    program(
        &root.join("bin/tally"),
        "#!/bin/sh\necho tally of the plugin\n",
    );
    let settings = bench.home.path().join(".config/caliban/settings.toml");
    write(
        &settings,
        "[sandbox]\nenabled = true\nfail_if_unavailable = true\n",
    );
    let mut probe = bench.command();
    probe.args(["sandbox", "exec", "--", "true"]);
    if run(&mut probe).code != Some(0) {
        // There are machines without one; other tests say so.
        return;
    }
    let told = said(&bench, &[]);
    assert!(told.contains("tally of the plugin"), "{told}");
}

#[test]
fn the_programs_of_a_workspace_wait_for_trust() {
    let call = Reply::tool("Bash", json!({"command": "tally"}));
    let bench = bench(Script::new([call, Reply::text("done")]));
    let root = project_root(&bench).join("tools");
    everything(&root, "tools", "1.0.0");
    program(
        &root.join("bin/tally"),
        "#!/bin/sh\necho tally of the plugin\n",
    );
    let told = said(&bench, &[]);
    assert!(told.contains("not found"), "{told}");
}
