//! Lists that are signed, plugins that are locked, and names that changed.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::Bench;
use crate::{
    bench, commit, everything, go, init, names, ok, plugin, plugin_ok, shell, user_root, write,
};

/// A list, the key of its marketplace, and the signature of that key for it.
const LIST: &str = r#"{"name":"team","plugins":[{"name":"tools","source":"./tools"}]}"#;
const KEY: &str = "RWRjYWxpYmFuIe6ykC2QYAWFFvFutkjT4jZ4YygZ9MHn2seyclPZgniX";
const SIGNATURE: &str = "untrusted comment: signature of a test
RURjYWxpYmFuIWqS+rkUbhM39X434NQvglH33gDPFripvcFGA48BM/N/zbDWUz1Ooo/JZmTchSGxcANXUmqBgg+nAEH7iYO6vgE=
trusted comment: the list of the team
9CZTiS43KYe0CVJOnYO9VuqcaV4SgZDVI7VVuy67zf3bLrR0QUPyhbCbDmOV8rHi27Fjbd59syNEfsq0zRoaAg==
";

fn market(bench: &Bench) -> PathBuf {
    let market = bench.home.path().join("market");
    everything(&market.join("tools"), "tools", "1.0.0");
    write(&market.join(".claude-plugin/marketplace.json"), LIST);
    market
}

fn settings(bench: &Bench, text: &str) {
    write(
        &bench.home.path().join(".config/caliban/settings.toml"),
        text,
    );
}

#[test]
fn a_list_counts_only_with_the_signature_that_its_key_asks_for() {
    let bench = bench(ok());
    let market = market(&bench);
    let place = market.display().to_string();
    let signature = market.join(".claude-plugin/marketplace.json.minisig");
    let install = || plugin(&bench, &["install", &format!("tools@{place}"), "--yes"]);
    let key = |text: &str| {
        settings(
            &bench,
            &format!("[plugins.marketplaces.keys]\nteam = \"{text}\"\n"),
        );
    };
    key(KEY);
    let ran = install();
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("no signature"), "{}", ran.stderr);
    assert_ne!(
        plugin(&bench, &["marketplace", "add", &place]).code,
        Some(0)
    );

    write(&signature, &SIGNATURE.replace("of the team", "of a thief"));
    let ran = install();
    assert!(
        ran.stderr.contains("is not one of the key"),
        "{}",
        ran.stderr
    );

    write(&signature, SIGNATURE);
    key("nonsense");
    let ran = install();
    let said = "`plugins.marketplaces.keys.team` is no public key";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert!(!user_root(&bench).join("tools").exists());

    key(KEY);
    plugin_ok(&bench, &["marketplace", "add", &place]);
    let shown = plugin(&bench, &["install", "tools@team"]);
    assert!(
        shown.stdout.contains("with the key of `team`"),
        "{}",
        shown.stdout
    );
    plugin_ok(&bench, &["install", "tools@team", "--yes"]);

    // The list changes, and nobody signs it.
    let other = LIST.replace("./tools", "./fools");
    write(&market.join(".claude-plugin/marketplace.json"), &other);
    for args in [&["update", "tools"][..], &["marketplace", "update", "team"]] {
        let ran = plugin(&bench, args);
        assert_ne!(ran.code, Some(0));
        assert!(
            ran.stderr.contains("is not one of the key"),
            "{}",
            ran.stderr
        );
    }
    // A name of its own does not lead past the key of its address.
    let other = LIST.replace("team", "mine");
    write(&market.join(".claude-plugin/marketplace.json"), &other);
    let ran = install();
    assert!(
        ran.stderr.contains("is not one of the key"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_list_without_a_key_is_installed_from_and_told_as_unsigned() {
    let bench = bench(ok());
    let place = market(&bench).display().to_string();
    let shown = plugin_ok(&bench, &["install", &format!("tools@{place}"), "--yes"]);
    assert!(shown.contains("signed    no"), "{shown}");
}

#[test]
fn what_is_locked_is_installed_to_the_byte_or_not_at_all() {
    let bench = bench(ok());
    let market = market(&bench);
    commit(&market, "a state");
    let source = format!("file://{}", market.display());
    plugin_ok(&bench, &["install", &format!("tools@{source}"), "--yes"]);
    let aside = bench.home.path().join("aside");
    crate::everything(&aside, "aside", "1.0.0");
    plugin_ok(&bench, &["install", "--dir", &aside.display().to_string()]);

    let nothing = plugin(&bench, &["install", "--frozen"]);
    assert_eq!(nothing.code, Some(66), "{}", nothing.stderr);
    let ran = plugin(&bench, &["lock"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("`aside` is left out"), "{}", ran.stderr);
    let lock = bench.workspace.path().join(".caliban/plugins.lock");
    let text = fs::read_to_string(&lock).unwrap();
    let locked: Value = serde_json::from_str(&text).unwrap();
    let digest = locked["plugins"]["tools"]["digest"].clone();
    assert!(
        locked["plugins"]["tools"]["origin"]["commit"].is_string(),
        "{locked}"
    );
    let again = plugin_ok(&bench, &["install", "--frozen"]);
    assert!(
        again.contains("everything that is locked is installed"),
        "{again}"
    );

    // The marketplace goes on; what was locked does not.
    write(
        &market.join("tools/skills/more/SKILL.md"),
        "---\nname: more\ndescription: x\n---\nx\n",
    );
    commit(&market, "a state");
    shell(
        &market,
        "git",
        &["config", "uploadpack.allowAnySHA1InWant", "true"],
    );
    plugin_ok(&bench, &["remove", "tools"]);
    plugin_ok(&bench, &["remove", "aside"]);
    fs::remove_file(
        bench
            .home
            .path()
            .join(".local/share/caliban/trust/plugins.json"),
    )
    .unwrap();
    let unasked = plugin(&bench, &["install", "--frozen"]);
    assert_eq!(unasked.code, Some(64), "{}", unasked.stderr);
    plugin_ok(&bench, &["install", "--frozen", "--yes"]);
    let path = user_root(&bench).join("installed.json");
    let installed: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(installed["plugins"]["tools"]["digest"], digest);
    assert_eq!(names(&init(&go(&bench, &[]))), ["tools"]);

    // Files that are others than those that were locked are not installed.
    plugin_ok(&bench, &["remove", "tools"]);
    let other = text.replace(
        digest.as_str().unwrap(),
        &format!("sha256:{}", "0".repeat(64)),
    );
    write(&lock, &other);
    let ran = plugin(&bench, &["install", "--frozen", "--yes"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("is not as it is locked"),
        "{}",
        ran.stderr
    );
    assert!(!user_root(&bench).join("tools").exists());
    for (broken, said) in [
        ("{", "is not used"),
        (r#"{"version": 9, "plugins": {}}"#, "version is 9"),
    ] {
        write(&lock, broken);
        let ran = plugin(&bench, &["install", "--frozen", "--yes"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn a_plugin_with_another_name_now_is_found_under_it() {
    let bench = bench(ok());
    let market = market(&bench);
    let place = market.display().to_string();
    let list = |value: &Value| {
        write(
            &market.join(".claude-plugin/marketplace.json"),
            &value.to_string(),
        );
    };
    everything(&market.join("kit"), "kit", "1.0.0");
    plugin_ok(&bench, &["marketplace", "add", &place]);
    plugin_ok(&bench, &["install", "tools@team", "--yes"]);
    list(&json!({
        "name": "team", "plugins": [{"name": "kit", "source": "./kit"}],
        "renames": {"tools": "kit", "gone": null},
    }));
    let ran = plugin(&bench, &["update", "tools"]);
    assert_eq!(ran.code, Some(66));
    assert!(
        ran.stderr.contains("it is called `kit` now"),
        "{}",
        ran.stderr
    );
    let ran = plugin(&bench, &["install", "gone@team", "--yes"]);
    assert!(ran.stderr.contains("taken away"), "{}", ran.stderr);
    plugin_ok(&bench, &["remove", "tools"]);
    plugin_ok(&bench, &["install", "tools@team", "--yes"]);
    assert!(user_root(&bench).join("kit").is_dir());
}
