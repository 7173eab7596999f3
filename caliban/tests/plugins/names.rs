//! What a plugin brings is found by its full name, and by less where that means only one thing.

use serde_json::Value;

use crate::support::run;
use crate::{bench, everything, go, init, ok, plugin_ok, requests, user_root, warnings, write};

#[test]
fn a_command_may_be_typed_with_a_blank_behind_its_plugin() {
    let bench = bench(ok());
    let root = user_root(&bench).join("tools");
    everything(&root, "tools", "1.0.0");
    write(&root.join("commands/greet.md"), "Greet $ARGUMENTS.");
    let ran = run(bench.command().args(["-p", "/tools greet the world"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let request = requests(&bench).pop().unwrap().to_string();
    assert!(request.contains("Greet the world."), "{request}");
}

#[test]
fn a_style_and_an_agent_are_chosen_without_their_plugin() {
    let bench = bench(ok());
    everything(&user_root(&bench).join("tools"), "tools", "1.0.0");
    let info: Value = serde_json::from_str(&plugin_ok(&bench, &["info", "tools"])).unwrap();
    let bare = |what: &str| {
        let name = info[what][0].as_str().unwrap_or_else(|| panic!("{info}"));
        name.split_once(':').unwrap().1.to_owned()
    };
    let style = format!("output_style = \"{}\"", bare("output_styles"));
    write(
        &bench.home.path().join(".config/caliban/settings.toml"),
        &style,
    );
    let agent = bare("agents");
    let init = init(&go(&bench, &["--agent", &agent]));
    let said = warnings(&init);
    assert!(!said.contains("there is no output style"), "{said}");
}
