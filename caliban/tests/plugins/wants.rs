//! What plugins want: values of their users, other plugins, and packages that are fetched whole.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caliban_testkit::{Reply, Script};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};

use crate::support::{Bench, finish};
use crate::{
    Files, bench, go, init, names, ok, plugin, plugin_command, plugin_ok, recorded, requests,
    shell, user_root, warnings, write,
};

fn asking(bench: &Bench) {
    let root = user_root(bench).join("asking");
    let manifest = json!({
        "name": "asking", "version": "1.0.0",
        "userConfig": {
            "server": {"type": "string", "title": "Address", "required": true},
            "token": {"type": "string", "sensitive": true},
            "depth": {"type": "number", "default": 3},
        },
    });
    write(&root.join("plugin.json"), &manifest.to_string());
    let handler = |command: &str, args: Value| json!({"hooks": [{"type": "command", "command": command, "args": args}]});
    let unsafe_one = json!({"hooks": [{"type": "command", "command": "echo ${user_config.server} >> \"$RECORD\""}]});
    let variable = json!({"hooks": [{"type": "command", "command":
        "echo \"env $CLAUDE_PLUGIN_OPTION_SERVER $CLAUDE_PLUGIN_OPTION_TOKEN $CLAUDE_PLUGIN_OPTION_DEPTH\" >> \"$RECORD\""}]});
    let hooks = json!({"hooks": {"UserPromptSubmit": [
        handler("sh", json!(["-c", "echo \"arg $1\" >> \"$RECORD\"", "sh", "${user_config.server}"])),
        unsafe_one, variable,
    ]}});
    write(&root.join("hooks/hooks.json"), &hooks.to_string());
    write(
        &root.join("mcp/server.py"),
        include_str!("../mcp/server.py"),
    );
    let servers = json!({"mcpServers": {"stub": {
        "command": "python3",
        "args": ["${CLAUDE_PLUGIN_ROOT}/mcp/server.py"],
        "env": {"ADDRESS": "${user_config.server}"},
    }}});
    write(&root.join(".mcp.json"), &servers.to_string());
}

#[test]
fn values_of_the_user_reach_programs_and_no_shell() {
    let bench = bench(ok());
    asking(&bench);
    let ran = go(&bench, &[]);
    let told = warnings(&init(&ran));
    assert!(told.contains("needs to know `server`"), "{told}");
    assert!(told.contains("`asking:stub` is not started"), "{told}");
    assert!(!recorded(&bench).contains("arg"), "{}", recorded(&bench));

    let listed = plugin_ok(&bench, &["configure", "asking"]);
    assert!(
        listed.contains("server: not set, and needed  (Address)") && listed.contains("depth: 3"),
        "{listed}"
    );
    plugin_ok(&bench, &["configure", "asking", "server=$(touch made); x"]);
    let mut command = plugin_command(&bench, &["configure", "asking", "token"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"hush-hush\n")
        .unwrap();
    assert_eq!(finish(child).code, Some(0));
    let settings = fs::read_to_string(bench.home.path().join(".config/caliban/settings.toml"));
    let settings = settings.unwrap();
    assert!(
        settings.contains("server = ") && !settings.contains("hush"),
        "{settings}"
    );
    let listed = plugin_ok(&bench, &["configure", "asking"]);
    assert!(listed.contains("token: set, a secret"), "{listed}");
    let secrets = bench
        .home
        .path()
        .join(".local/share/caliban/plugin-secrets.json");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(secrets).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    let ran = go(&bench, &[]);
    assert_eq!(warnings(&init(&ran)), "[]");
    let states = init(&ran)["mcp_servers"].to_string();
    assert!(states.contains("asking:stub"), "{states}");
    let told = recorded(&bench);
    assert!(told.contains("arg $(touch made); x\n"), "{told}");
    assert!(
        told.contains("env $(touch made); x hush-hush 3\n"),
        "{told}"
    );
    assert!(!bench.workspace.path().join("made").exists());
    let info = plugin_ok(&bench, &["info", "asking"]);
    assert!(info.contains("stands in what a shell reads"), "{info}");
    assert!(info.contains("asks you for `token`, a secret"), "{info}");
    let wrong = plugin(&bench, &["configure", "asking", "depth=deep"]);
    assert_eq!(wrong.code, Some(64), "{}", wrong.stderr);
    let unknown = plugin(&bench, &["configure", "asking", "colour=red"]);
    assert_eq!(unknown.code, Some(64), "{}", unknown.stderr);
    plugin_ok(
        &bench,
        &[
            "configure",
            "asking",
            "--unset",
            "server",
            "--unset",
            "token",
        ],
    );
    assert!(plugin_ok(&bench, &["configure", "asking"]).contains("token: not set"));
}

#[test]
fn a_workspace_tells_plugins_nothing() {
    let bench = bench(ok());
    asking(&bench);
    write(
        &bench.workspace.path().join(".caliban/settings.toml"),
        "[plugins.config.asking]\nserver = 'https://evil.example'\n",
    );
    let ran = go(&bench, &["--trust-workspace"]);
    assert!(warnings(&init(&ran)).contains("needs to know `server`"));
    assert!(!recorded(&bench).contains("evil"), "{}", recorded(&bench));
}

/// A marketplace in a directory, of plugins with nothing but what they need.
fn market(bench: &Bench, plugins: &[(&str, Value)]) -> String {
    let root = bench.home.path().join("market");
    let mut entries = Vec::new();
    for (name, needs) in plugins {
        let manifest = json!({"name": name, "version": "1.0.0", "dependencies": needs});
        write(&root.join(name).join("plugin.json"), &manifest.to_string());
        entries.push(json!({"name": name, "source": format!("./{name}")}));
    }
    let list = json!({"name": "team", "plugins": entries});
    write(
        &root.join(".claude-plugin/marketplace.json"),
        &list.to_string(),
    );
    let root = root.display().to_string();
    plugin_ok(bench, &["marketplace", "add", &root]);
    root
}

#[test]
fn what_a_plugin_needs_comes_along_and_stays_as_long() {
    let bench = bench(ok());
    market(
        &bench,
        &[
            ("top", json!(["middle"])),
            ("middle", json!([{"name": "base", "version": "^1"}])),
            ("base", json!([])),
            ("choosy", json!([{"name": "base", "version": ">=2"}])),
            ("lost", json!(["nowhere"])),
            ("foreign", json!(["x@elsewhere"])),
            ("one", json!(["other"])),
            ("other", json!(["one"])),
        ],
    );
    let shown = plugin_ok(&bench, &["install", "top@team", "--yes"]);
    for name in ["base", "middle", "top"] {
        assert!(
            shown.contains(&format!("installed `{name}` 1.0.0")),
            "{shown}"
        );
    }
    assert!(shown.contains("needs the plugin `middle`"), "{shown}");
    assert_eq!(names(&init(&go(&bench, &[]))), ["base", "middle", "top"]);
    let kept = plugin(&bench, &["disable", "base"]);
    assert_eq!(kept.code, Some(1));
    assert!(kept.stderr.contains("needed by middle"), "{}", kept.stderr);
    assert_eq!(plugin(&bench, &["remove", "middle"]).code, Some(1));
    for (name, says) in [
        ("choosy", "needs `base` >=2, and there is 1.0.0"),
        ("lost", "has no plugin `nowhere`"),
        ("foreign", "`elsewhere`, which is not known here"),
        ("one", "in a circle"),
    ] {
        let ran = plugin(&bench, &["install", &format!("{name}@team"), "--yes"]);
        assert_ne!(ran.code, Some(0), "{name}");
        assert!(ran.stderr.contains(says), "{name}: {}", ran.stderr);
        assert!(!user_root(&bench).join(name).exists());
    }
    // What it needs is gone: it says so, and so does whoever needs it.
    fs::remove_dir_all(user_root(&bench).join("base")).unwrap();
    let ran = go(&bench, &[]);
    assert_eq!(names(&init(&ran)), [""; 0]);
    let told = warnings(&init(&ran));
    assert!(told.contains("it needs the plugin `base` ^1"), "{told}");
    plugin_ok(&bench, &["remove", "top"]);
    plugin_ok(&bench, &["remove", "middle"]);
}

#[test]
fn a_package_of_npm_is_taken_as_an_archive() {
    let bench = bench(Script::new([
        Reply::tool("Skill", json!({"name": "packed:hello"})),
        Reply::text("done"),
    ]));
    let registry = bench.home.path().join("registry");
    let package = bench.home.path().join("package");
    write(
        &package.join("package.json"),
        &json!({"name": "@team/packed", "version": "1.2.0",
                "scripts": {"postinstall": "touch ran", "prepare": "touch ran"}})
        .to_string(),
    );
    write(
        &package.join(".claude-plugin/plugin.json"),
        &json!({"name": "packed"}).to_string(),
    );
    write(
        &package.join("skills/hello/SKILL.md"),
        "---\nname: hello\ndescription: Hello.\n---\nSay hello.\n",
    );
    fs::create_dir_all(&registry).unwrap();
    shell(
        bench.home.path(),
        "tar",
        &["czf", "registry/packed-1.2.0.tgz", "package"],
    );
    let bytes = fs::read(registry.join("packed-1.2.0.tgz")).unwrap();
    let files = Files::serve(registry.clone());
    let describe = |integrity: Option<String>| {
        let mut dist = json!({"tarball": format!("{}/packed-1.2.0.tgz", files.address)});
        if let Some(integrity) = integrity {
            dist["integrity"] = integrity.into();
        }
        let document = json!({
            "dist-tags": {"latest": "1.2.0"},
            "versions": {"1.2.0": {"dist": dist}, "1.1.0": {"dist": {}}},
        });
        write(&registry.join("@team%2fpacked"), &document.to_string());
    };
    let list = |version: &str| {
        let source = json!({"source": "npm", "package": "@team/packed", "version": version,
                            "registry": files.address});
        let list = json!({"name": "team", "plugins": [{"name": "packed", "source": source}]});
        let market = bench.home.path().join("market");
        write(
            &market.join(".claude-plugin/marketplace.json"),
            &list.to_string(),
        );
        market.display().to_string()
    };
    let root = list("^1.0.0");
    plugin_ok(&bench, &["marketplace", "add", &root]);
    let install = || plugin(&bench, &["install", "packed@team", "--yes"]);

    describe(None);
    assert!(install().stderr.contains("no `integrity`"));
    describe(Some("sha1-AAAA".to_owned()));
    assert!(install().stderr.contains("no `integrity`"));
    describe(Some(format!(
        "sha512-{}",
        STANDARD.encode(Sha512::digest(b"other"))
    )));
    assert!(install().stderr.contains("not the `integrity`"));
    assert!(!user_root(&bench).join("packed").exists());
    describe(Some(format!(
        "sha512-{}",
        STANDARD.encode(Sha512::digest(&bytes))
    )));
    list("^9");
    assert!(install().stderr.contains("no version `^9`"));
    list("^1.0.0");
    let done = install();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(
        done.stdout.contains("installed `packed` 1.2.0"),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("from      npm:@team/packed@^1.0.0"),
        "{}",
        done.stdout
    );
    go(&bench, &[]);
    assert!(requests(&bench)[1].to_string().contains("Say hello."));
    for place in [
        bench.workspace.path(),
        bench.home.path(),
        &user_root(&bench).join("packed"),
    ] {
        assert!(!place.join("ran").exists());
    }
}
