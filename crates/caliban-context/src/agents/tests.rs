use super::*;

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn load(&self) -> (Profiles, Vec<String>) {
        let at = |path: &str| self.0.path().join(path);
        let places = Places {
            workspace: at("w"),
            project: at("w"),
            home: at("home"),
            config: at("home/.config/caliban"),
            foreign: at("home/.claude"),
            foreign_instructions: None,
            data: at("data"),
            notes: at("notes"),
            imports_allowlist: at("imports"),
            plugins: vec![crate::PluginPlace::usual("tools", at("plugin"))],
        };
        let mut notices = Vec::new();
        let profiles = Profiles::load(&places, &Options::default(), &mut notices);
        let notices = notices.iter().map(ToString::to_string).collect();
        (profiles, notices)
    }
}

fn profile(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}.\n{more}---\nYou are {name}.\n")
}

#[test]
fn every_field_is_read() {
    let bench = Bench::new();
    bench.write(
        "w/.caliban/agents/a.md",
        &profile(
            "scout",
            "tools: Read, Grep\ndisallowedTools: [Bash]\nmodel: m\neffort: high\n\
             isolation: worktree\nbackground: true\ninherit_hooks: false\nmemory: user\ncolor: red\n",
        ),
    );
    let (profiles, notices) = bench.load();
    assert_eq!(notices, Vec::<String>::new());
    let scout = profiles.get("scout").unwrap();
    assert_eq!(scout.prompt, "You are scout.");
    assert_eq!(scout.tools.as_deref().unwrap(), ["Read", "Grep"]);
    assert_eq!(scout.disallowed_tools, ["Bash"]);
    assert_eq!(scout.effort, Some(ProfileEffort::High));
    assert_eq!(scout.isolation, ProfileIsolation::Worktree);
    assert!(scout.background && !scout.inherit_hooks);
    assert_eq!(scout.memory, ProfileMemory::User);
    assert_eq!(scout.model.as_deref(), Some("m"));
}

#[test]
fn the_project_comes_before_the_user() {
    let bench = Bench::new();
    bench.write(
        "w/.caliban/agents/x.md",
        &profile("one", "model: project\n"),
    );
    bench.write("w/.claude/agents/x.md", &profile("one", "model: foreign\n"));
    bench.write(
        "w/.claude/agents/y.md",
        &profile("two", "model: inherit\ntools: '*'\n"),
    );
    let user = "home/.config/caliban/agents";
    bench.write(&format!("{user}/x.md"), &profile("one", "model: user\n"));
    bench.write(&format!("{user}/z.md"), &profile("three", ""));
    bench.write(
        "home/.claude/agents/q.md",
        &profile("four", "memory: false\n"),
    );
    let (profiles, notices) = bench.load();
    let names: Vec<&str> = profiles.iter().map(Profile::name).collect();
    assert_eq!(names, ["four", "one", "three", "two"]);
    assert_eq!(
        profiles.get("one").unwrap().model.as_deref(),
        Some("project")
    );
    let two = profiles.get("two").unwrap();
    assert_eq!((&two.model, &two.tools), (&None, &None));
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(
        notices[0].contains("the agent `one` (project) replaces"),
        "{notices:?}"
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, line, words) in [
        ("no head\n", 1, "does not begin"),
        ("---\nname: a\n", 1, "no end"),
        ("---\nname: a\n---\n", 2, "description"),
        ("---\nname: a b\ndescription: d\n---\n", 2, "plain name"),
        ("---\nname: a\ndescription: ''\n---\n", 3, "1 to"),
        (
            "---\nname: a\ndescription: d\nisolation: jail\n---\n",
            4,
            "jail",
        ),
        (
            "---\nname: a\ndescription: d\nbackground: perhaps\n---\n",
            4,
            "bool",
        ),
    ] {
        let bench = Bench::new();
        bench.write("w/.caliban/agents/bad.md", text);
        let (profiles, notices) = bench.load();
        assert!(profiles.is_empty(), "{text}");
        assert_eq!(notices.len(), 1, "{notices:?}");
        let place = format!("bad.md:{line}`");
        assert!(notices[0].contains(&place), "{text}: {notices:?}");
        assert!(notices[0].contains(words), "{text}: {notices:?}");
    }
    let bench = Bench::new();
    let text = profile(
        "a",
        "permissionMode: bypassPermissions\ntools: Bash(git:*), Read\n",
    );
    bench.write("w/.caliban/agents/odd.md", &text);
    let (profiles, notices) = bench.load();
    assert_eq!(
        profiles.get("a").unwrap().tools.as_deref().unwrap(),
        ["Read"]
    );
    assert!(
        notices[0].contains("odd.md:4`: `permissionMode`"),
        "{notices:?}"
    );
    assert!(
        notices[1].contains("odd.md:5`: `Bash(git:*)` is left out"),
        "{notices:?}"
    );
}

#[test]
fn a_plugins_agents_are_read_with_patience() {
    let bench = Bench::new();
    bench.write(
        "plugin/agents/file.md",
        "---\nname: checker\ndescription: Checks\n  things\ntools: Read, Bash(git a, b), Grep\nmodel: opus\npermissionMode: x\n---\nYou check ${CLAUDE_PLUGIN_ROOT} and ${CLAUDE_PLUGIN_DATA}.\n",
    );
    bench.write(
        "plugin/agents/deep/p.md",
        "---\nname: planner\ndescription: Use it. user: \"a: b\" assistant: \"c\"\nmodel: inherit\n---\nPlan.",
    );
    bench.write("plugin/agents/helper.md", "Help.");
    bench.write("plugin/agents/no good.md", "x");
    let (profiles, notices) = bench.load();
    let checker = profiles.get("tools:checker").unwrap();
    let tools = checker.tools.as_deref().unwrap();
    assert_eq!(
        (&*checker.description, tools),
        (
            "Checks things",
            &["Read".to_owned(), "Bash".to_owned(), "Grep".to_owned()][..]
        )
    );
    let root = bench.0.path().canonicalize().unwrap().join("plugin");
    let data = bench.0.path().join("plugin/data");
    let prompt = format!("You check {} and {}.", root.display(), data.display());
    assert_eq!(checker.prompt, prompt);
    assert_eq!(checker.model.as_deref(), Some("opus"));
    let planner = profiles.get("tools:planner").unwrap();
    assert!(planner.description.starts_with("Use it. user:"));
    assert_eq!(planner.model, None);
    let helper = profiles.get("tools:helper").unwrap();
    assert_eq!((&*helper.prompt, &helper.tools), ("Help.", &None));
    assert_eq!(profiles.iter().count(), 3);
    let all = notices.join("\n");
    assert!(
        all.contains("file.md:7`: `permissionMode` is not used"),
        "{all}"
    );
    assert!(all.contains("`no good` is not a plain name"), "{all}");
}

#[test]
fn what_another_program_takes_is_taken_from_its_directories() {
    let bench = Bench::new();
    bench.write(
        "w/.claude/agents/generated.md",
        "---\nname: generated\ndescription: Use it when. Examples: user: \"a\"\n\
         tools: [\"Read\", \"Grep\"]\nmodel: sonnet\ncolor: blue\n---\nG",
    );
    bench.write("w/.claude/agents/README.md", "# About our agents\n");
    bench.write(
        "home/.claude/agents/team/deep.md",
        &profile("deep", "effort: xhigh\nmaxTurns: 5\nskills: a, b\n"),
    );
    bench.write(
        "home/.claude/agents/odd.md",
        &profile("odd", "tools:\n  a: b\neffort: 7x\n"),
    );
    let (profiles, notices) = bench.load();
    let generated = profiles.get("generated").unwrap();
    assert_eq!(generated.tools.as_deref().unwrap(), ["Read", "Grep"]);
    assert!(generated.description.ends_with("user: \"a\""));
    assert_eq!(
        profiles.get("deep").unwrap().effort,
        Some(ProfileEffort::Xhigh)
    );
    // What cannot be made out never widens anything.
    assert_eq!(profiles.get("odd").unwrap().tools.as_deref(), Some(&[][..]));
    assert_eq!(profiles.iter().count(), 3);
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(
        notices[0].contains("odd.md:4`: `tools` names no tools"),
        "{notices:?}"
    );
    assert!(
        notices[1].contains("odd.md:6`: what `effort` says"),
        "{notices:?}"
    );
}

#[test]
#[cfg(unix)]
fn a_plugins_agents_do_not_lead_out() {
    let bench = Bench::new();
    bench.write("secret.md", "x");
    bench.write("plugin/agents/fine.md", "Fine.");
    let link = bench.0.path().join("plugin/agents/out.md");
    std::os::unix::fs::symlink(bench.0.path().join("secret.md"), link).unwrap();
    let (profiles, notices) = bench.load();
    assert_eq!(profiles.iter().count(), 1);
    assert!(notices.join("\n").contains("somewhere else"), "{notices:?}");
}

#[test]
fn a_mistake_has_one_line_number_which_is_that_of_the_file() {
    let text = "---\nname: y\ndescription: b\neffort: 7x\n---\nhi\n";
    let (line, reason) = super::fields::read(text).err().unwrap();
    assert_eq!(line, 4, "{reason}");
    assert!(reason.starts_with("unknown variant"), "{reason}");
}
