//! Marketplaces of every kind, archives, and who may be installed from.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Bench, run};
use crate::{
    Files, bench, commit, everything, go, init, names, ok, plugin, plugin_command, plugin_ok,
    program, record, shell, user_root, warnings, write,
};

/// An archive of a plugin, served on this machine, with its digest.
fn archive(bench: &Bench, name: &str, zipped: bool) -> (Files, PathBuf, String) {
    let work = bench.home.path().join("archives");
    everything(&work.join("top/inner"), name, "1.0.0");
    let file = if zipped { "a.zip" } else { "a.tgz" };
    if zipped {
        let script = "import os,sys,zipfile\nz=zipfile.ZipFile('../a.zip','w',zipfile.ZIP_DEFLATED)\nfor d,_,fs in os.walk('inner'):\n  for f in fs: z.write(os.path.join(d,f))\nz.close()";
        shell(&work.join("top"), "python3", &["-c", script]);
    } else {
        shell(&work.join("top"), "tar", &["czf", "../a.tgz", "inner"]);
    }
    let digest = shell(&work, "sha256sum", &[file]);
    let digest = digest.split_whitespace().next().unwrap().to_owned();
    (Files::serve(work.clone()), work, digest)
}

/// How an index writes where an archive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Whole,
    FromTheIndex,
}

#[rstest]
#[case(false, Written::Whole)]
#[case(true, Written::Whole)]
#[case(false, Written::FromTheIndex)]
fn an_index_of_archives_is_installed_from(#[case] zipped: bool, #[case] written: Written) {
    let bench = bench(ok());
    let (files, work, digest) = archive(&bench, "tools", zipped);
    let file = if zipped { "a.zip" } else { "a.tgz" };
    let url = format!("{}/{file}", files.address);
    let listed = match written {
        Written::Whole => &url,
        Written::FromTheIndex => file,
    };
    let index = json!({"plugins": [{"name": "tools", "versions": [
        {"version": "0.9.0", "url": format!("{url}.old"), "sha256": "0".repeat(64)},
        {"version": "1.0.0", "url": listed, "sha256": digest},
    ]}]});
    write(&work.join("index.json"), &index.to_string());
    let name = format!("tools@{}/index.json", files.address);
    let refused = plugin(&bench, &["install", &name]);
    assert_eq!(refused.code, Some(64), "{}", refused.stderr);
    assert!(
        refused.stdout.contains(&url) && refused.stdout.contains("sha256:"),
        "{}",
        refused.stdout
    );
    plugin_ok(&bench, &["install", &name, "--yes"]);
    let ran = go(&bench, &[]);
    assert_eq!(names(&init(&ran)), ["tools"]);
    let script = user_root(&bench).join("tools/hooks/told.sh");
    let mode = fs::metadata(script).unwrap().permissions().mode();
    assert!(zipped || mode & 0o100 != 0, "what can be run stays so");
}

#[test]
fn an_earlier_version_is_installed_where_it_is_asked_for() {
    let bench = bench(ok());
    let (files, work, digest) = archive(&bench, "tools", false);
    let index = json!({"plugins": [{"name": "tools", "versions": [
        {"version": "1.0.0", "url": "a.tgz", "sha256": digest},
        {"version": "2.0.0", "url": "gone.tgz", "sha256": "0".repeat(64)},
    ]}]});
    write(&work.join("index.json"), &index.to_string());
    let name = format!("tools@{}/index.json", files.address);
    let install = |more: &[&str]| {
        let args = ["install", &name, "--yes"];
        plugin(
            &bench,
            &args.iter().chain(more).copied().collect::<Vec<_>>(),
        )
    };
    let ran = install(&["--version", "3.0.0"]);
    assert_ne!(ran.code, Some(0));
    let said = "it has no version `3.0.0`; there is 1.0.0, 2.0.0";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert_ne!(install(&[]).code, Some(0), "the latest is not there");
    let ran = install(&["--version", "1.0.0"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = go(&bench, &[]);
    assert_eq!(init(&ran)["plugins"][0]["version"], "1.0.0");
}

#[test]
fn an_archive_with_another_digest_is_not_unpacked() {
    let bench = bench(ok());
    let (files, work, _) = archive(&bench, "tools", false);
    let url = format!("{}/a.tgz", files.address);
    let index = json!({"plugins": [
        {"name": "tools", "version": "1.0.0", "url": url, "sha256": "0".repeat(64)},
        {"name": "bare", "version": "1.0.0", "url": url},
        {"name": "away", "version": "1.0.0", "url": format!("{}/away/plain", files.address), "sha256": "0".repeat(64)},
    ]});
    write(&work.join("index.json"), &index.to_string());
    let at = format!("{}/index.json", files.address);
    for (name, said) in [
        ("tools", "its sha256 is"),
        ("bare", "no `sha256`"),
        ("away", "not https"),
        ("tool", "did you mean `tools`?"),
    ] {
        let ran = plugin(&bench, &["install", &format!("{name}@{at}"), "--yes"]);
        assert_ne!(ran.code, Some(0));
        assert!(ran.stderr.contains(said), "{name}: {}", ran.stderr);
    }
    let left = fs::read_dir(user_root(&bench)).map_or(0, |entries| {
        entries
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .count()
    });
    assert_eq!(left, 0, "nothing is left behind");
}

#[test]
fn hostile_archives_leave_nothing() {
    let bench = bench(ok());
    let work = bench.home.path().join("archives");
    fs::create_dir_all(&work).unwrap();
    let make = "import io,sys,tarfile\n\
        t=tarfile.open('link.tgz','w:gz'); i=tarfile.TarInfo('x'); i.type=tarfile.SYMTYPE; i.linkname='/etc'; t.addfile(i); t.close()\n\
        t=tarfile.open('up.tgz','w:gz'); i=tarfile.TarInfo('../../evil'); i.size=1; t.addfile(i,io.BytesIO(b'x')); t.close()\n\
        t=tarfile.open('dev.tgz','w:gz'); i=tarfile.TarInfo('x'); i.type=tarfile.CHRTYPE; t.addfile(i); t.close()\n\
        t=tarfile.open('many.tgz','w:gz')\n\
        for n in range(10001):\n  t.addfile(tarfile.TarInfo('f%d'%n))\n\
        t.close()\n\
        t=tarfile.open('bomb.tgz','w:gz'); i=tarfile.TarInfo('z'); i.size=65*1024*1024; t.addfile(i,io.BytesIO(bytes(i.size))); t.close()\n\
        open('junk.tgz','wb').write(b'MZ not an archive')\n";
    shell(&work, "python3", &["-c", make]);
    let files = Files::serve(work.clone());
    let cases = ["link", "up", "dev", "many", "bomb", "junk"];
    let entries: Vec<Value> = cases
        .iter()
        .map(|name| {
            let digest = shell(&work, "sha256sum", &[&format!("{name}.tgz")]);
            let digest = digest.split_whitespace().next().unwrap().to_owned();
            json!({"name": name, "version": "1.0.0", "url": format!("{}/{name}.tgz", files.address), "sha256": digest})
        })
        .collect();
    write(
        &work.join("index.json"),
        &json!({ "plugins": entries }).to_string(),
    );
    for name in cases {
        let ran = plugin(
            &bench,
            &[
                "install",
                &format!("{name}@{}/index.json", files.address),
                "--yes",
            ],
        );
        assert_eq!(ran.code, Some(1), "{name}");
        assert!(
            ran.stderr.contains("is not taken"),
            "{name}: {}",
            ran.stderr
        );
    }
    assert!(!bench.home.path().join("evil").exists());
    let left = fs::read_dir(user_root(&bench))
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_dir());
    assert_eq!(left.count(), 0);
}

/// Several plugins of a repository have a file or skill in common, by links.
#[rstest]
#[case::repository(true)]
#[case::directory(false)]
fn what_plugins_share_by_links_comes_along(#[case] fetched: bool) {
    use std::os::unix::fs::symlink;
    let bench = bench(ok());
    let market = bench.home.path().join("market");
    let list = json!({"name": "m", "plugins": [{"name": "tools", "source": "./plugins/tools"}]});
    write(
        &market.join(".claude-plugin/marketplace.json"),
        &list.to_string(),
    );
    let plugin_root = market.join("plugins/tools");
    write(
        &plugin_root.join(".claude-plugin/plugin.json"),
        r#"{"name": "tools"}"#,
    );
    write(
        &market.join("shared/greet/SKILL.md"),
        "---\nname: greet\ndescription: Greets\n---\nHello.\n",
    );
    fs::create_dir(plugin_root.join("skills")).unwrap();
    symlink("../../../shared/greet", plugin_root.join("skills/greet")).unwrap();
    symlink("AGENTS.md", plugin_root.join("NOTES.md")).unwrap();
    write(&plugin_root.join("AGENTS.md"), "About it.\n");
    let source = if fetched {
        commit(&market, "one");
        format!("file://{}", market.display())
    } else {
        market.display().to_string()
    };
    plugin_ok(&bench, &["marketplace", "add", &source]);
    plugin_ok(&bench, &["install", "tools@m", "--yes"]);
    let root = user_root(&bench).join("tools");
    let skill = fs::read_to_string(root.join("skills/greet/SKILL.md")).unwrap();
    assert!(skill.contains("Hello."));
    assert_eq!(
        fs::read_to_string(root.join("NOTES.md")).unwrap(),
        "About it.\n"
    );
    assert!(!root.join("NOTES.md").is_symlink());
    // Nothing else of the machine does.
    symlink("/etc/hostname", plugin_root.join("out.txt")).unwrap();
    if fetched {
        commit(&market, "two");
        plugin_ok(&bench, &["update", "tools", "--yes"]);
        assert_eq!(
            fs::read_to_string(root.join("out.txt")).unwrap(),
            "/etc/hostname"
        );
    } else {
        let refused = plugin(&bench, &["update", "tools", "--yes"]);
        assert_eq!(refused.code, Some(1));
        assert!(
            refused.stderr.contains("leads elsewhere"),
            "{}",
            refused.stderr
        );
    }
}

/// Entries of every kind of source that git serves, in one list.
#[test]
fn plugins_in_repositories_of_their_own_are_pinned() {
    let bench = bench(ok());
    let repository = bench.home.path().join("repo");
    everything(&repository.join("deep/tools"), "tools", "1.0.0");
    std::os::unix::fs::symlink(
        "/etc/passwd",
        repository.join("deep/tools/skills/greet/out.md"),
    )
    .unwrap();
    program(
        &repository.join(".githooks/post-checkout"),
        "#!/bin/sh\ntouch \"$RECORD\"\n",
    );
    let first = commit(&repository, "one");
    write(&repository.join("deep/tools/new.txt"), "later");
    let second = commit(&repository, "two");
    let url = format!("file://{}", repository.display());
    let market = bench.home.path().join("market");
    let entry = |sha: &str| {
        json!({"name": "m", "plugins": [
            {"name": "tools", "source": {"source": "git-subdir", "url": url, "path": "deep/tools", "sha": sha}},
            {"name": "later", "source": {"source": "carrier-pigeon"}},
        ]})
    };
    let list = market.join(".claude-plugin/marketplace.json");
    write(&list, &entry(&first).to_string());
    plugin_ok(&bench, &["marketplace", "add", market.to_str().unwrap()]);
    plugin_ok(&bench, &["install", "tools@m", "--yes"]);
    let root = user_root(&bench).join("tools");
    assert!(
        !root.join("new.txt").exists(),
        "it is the commit that was named"
    );
    assert!(!root.join(".git").exists());
    assert!(
        !root.join("skills/greet/out.md").is_symlink(),
        "links are texts"
    );
    assert!(!record(&bench).exists(), "nothing of the repository runs");
    write(&list, &entry(&second).to_string());
    plugin_ok(&bench, &["update", "tools", "--yes"]);
    assert!(root.join("new.txt").exists());
    write(&list, &entry(&"0".repeat(40)).to_string());
    let gone = plugin(&bench, &["update", "tools", "--yes"]);
    assert_eq!(gone.code, Some(1), "{}", gone.stderr);
    assert!(root.join("new.txt").exists(), "the old one stays");
    let odd = plugin(&bench, &["install", "later@m", "--yes"]);
    assert!(odd.stderr.contains("unknown"), "{}", odd.stderr);
}

/// A list whose entries are the plugins: no manifest beside them, parts chosen one by one.
#[test]
fn an_entry_may_say_what_a_plugin_is_made_of() {
    let bench = bench(ok());
    let market = bench.home.path().join("market");
    for name in ["pdf", "xlsx", "hidden"] {
        let text = format!("---\nname: {name}\ndescription: About {name}.\n---\nx");
        write(&market.join(format!("skills/{name}/SKILL.md")), &text);
    }
    let list = json!({"name": "docs", "metadata": {"description": "d"}, "plugins": [{
        "name": "documents", "source": "./", "strict": false, "description": "Documents",
        "skills": ["./skills/pdf", "./skills/xlsx"],
    }]});
    write(
        &market.join(".claude-plugin/marketplace.json"),
        &list.to_string(),
    );
    plugin_ok(
        &bench,
        &[
            "install",
            &format!("documents@{}", market.display()),
            "--yes",
        ],
    );
    let info: Value = serde_json::from_str(&plugin_ok(&bench, &["info", "documents"])).unwrap();
    assert_eq!(info["skills"], json!(["documents:pdf", "documents:xlsx"]));
}

#[test]
fn marketplaces_are_blocked_and_listed_in_every_spelling() {
    let bench = bench(ok());
    let market = bench.home.path().join("market");
    everything(&market.join("tools"), "tools", "1.0.0");
    let list = json!({"name": "team", "plugins": [{"name": "tools", "source": "./tools"}]});
    write(
        &market.join(".claude-plugin/marketplace.json"),
        &list.to_string(),
    );
    let path = market.to_str().unwrap();
    let with = |variable: &str, value: &str, args: &[&str]| {
        run(plugin_command(&bench, args).env(variable, value))
    };
    let blocked = with(
        "CALIBAN_BLOCKED_MARKETPLACES",
        "x,team",
        &["marketplace", "add", path],
    );
    assert!(
        blocked.code == Some(1) && blocked.stderr.contains("`team` is blocked"),
        "{}",
        blocked.stderr
    );
    let unknown = with(
        "CALIBAN_STRICT_KNOWN_MARKETPLACES",
        "1",
        &["marketplace", "add", path],
    );
    assert!(
        unknown.stderr.contains("not one of those that are allowed"),
        "{}",
        unknown.stderr
    );
    plugin_ok(&bench, &["marketplace", "add", path]);
    assert!(
        bench
            .home
            .path()
            .join(".caliban/marketplaces-allowlist.json")
            .exists()
    );
    let known = with(
        "CALIBAN_STRICT_KNOWN_MARKETPLACES",
        "1",
        &["install", "tools@team", "--yes"],
    );
    assert_eq!(known.code, Some(0), "{}", known.stderr);
    assert_eq!(names(&init(&go(&bench, &[]))), ["tools"]);
    // What is blocked later does not count any more.
    let settings = format!("{{\"plugins\": {{\"marketplaces\": {{\"blocked\": [\"{path}\"]}}}}}}");
    let init = init(&go(&bench, &["--settings", &settings]));
    assert_eq!(names(&init), [""; 0]);
    assert!(
        warnings(&init).contains("is blocked"),
        "{}",
        warnings(&init)
    );
    let none = r#"{"plugins": {"marketplaces": {"strict_known": []}}}"#;
    assert_eq!(
        names(&crate::init(&go(&bench, &["--settings", none]))),
        [""; 0]
    );
}

#[rstest]
#[case("plain", 64, "names no marketplace")]
#[case("x@word", 66, "no marketplace `word`")]
#[case("x@http://example.com/i.json", 64, "not https")]
#[case("x@example.com/a/b", 64, "write `https://example.com/a/b`")]
#[case("x@ext::sh", 64, "not an address")]
fn what_cannot_be_fetched_is_said(#[case] name: &str, #[case] code: i32, #[case] said: &str) {
    let bench = bench(ok());
    let ran = plugin(&bench, &["install", name, "--yes"]);
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}
