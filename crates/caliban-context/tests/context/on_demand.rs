use caliban_context::{BasePrompt, Memory, OutputStyles, Section, load_memory, system_prompt};

use super::Fixture;

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.write("repo/app/CLAUDE.md", "app");
    fixture.write("repo/app/a/CLAUDE.md", "a\n@./more.md");
    fixture.write("repo/app/a/more.md", "more");
    fixture.write("repo/app/a/b/AGENTS.md", "b");
    fixture.write("repo/other/CLAUDE.md", "sibling");
    fixture.write(
        "repo/app/.caliban/rules/ts.md",
        "---\npaths: [\"src/**/*.ts\", \"a/*.ts\"]\n---\ntypes",
    );
    fixture.write("repo/app/.caliban/rules/all.md", "always");
    fixture
}

fn prompt(fixture: &Fixture, memory: &Memory) -> String {
    let styles = OutputStyles::load(&fixture.places, &fixture.options, &mut Vec::new());
    let style = styles.select(None).style;
    system_prompt(BasePrompt::Custom("base"), Some(style), &memory.sections).unwrap()
}

fn texts(sections: &[Section]) -> Vec<&str> {
    sections
        .iter()
        .map(|section| section.text.as_str())
        .collect()
}

#[test]
fn nested_files_are_added_once_and_the_prompt_stays() {
    let fixture = fixture();
    let mut memory = load_memory(&fixture.places, &fixture.options);
    let before = prompt(&fixture, &memory);
    let addition = memory
        .on_demand
        .touch(&fixture.path("repo/app/a/b/new/file.rs"));
    assert_eq!(
        fixture.shown(&addition.text().unwrap()),
        "These instructions of the project are about paths that were used:\n\n\
         <project-claude-md path=\"~~/repo/app/a/CLAUDE.md\">\na\n\
         <!-- imported from ~~/repo/app/a/more.md -->\nmore\n\
         <!-- end of ~~/repo/app/a/more.md -->\n</project-claude-md>\n\n\
         <project-claude-md path=\"~~/repo/app/a/b/AGENTS.md\">\nb\n</project-claude-md>"
    );
    for again in [
        "repo/app/a/b/new/file.rs",
        "repo/app/a/x",
        "repo/app/a",
        "repo/app/x",
    ] {
        assert_eq!(memory.on_demand.touch(&fixture.path(again)).text(), None);
    }
    assert_eq!(prompt(&fixture, &memory), before);
    let told = addition.text();
    assert_eq!(memory.on_demand.retell(&[]), told);
    let kept = format!("before\n{}\nafter", addition.sections[0].render());
    let rest = memory.on_demand.retell(&[&kept]).unwrap();
    assert!(rest.contains("AGENTS.md") && !rest.contains("CLAUDE.md"));
    assert_eq!(memory.on_demand.retell(&[&told.unwrap()]), None);
}

#[test]
fn paths_beyond_the_workspace_bring_nothing() {
    let fixture = fixture();
    let mut memory = load_memory(&fixture.places, &fixture.options);
    for path in [
        "repo/other/x",
        "repo/x",
        "nowhere/x",
        "repo/app/none/../../other/x",
    ] {
        let addition = memory.on_demand.touch(&fixture.path(path));
        assert_eq!(addition.sections, [], "{path}");
    }
    assert_eq!(memory.on_demand.touch("relative".as_ref()).sections, []);
}

#[cfg(unix)]
#[test]
fn links_count_as_what_they_lead_to() {
    let fixture = fixture();
    let outside = fixture.write("outside/CLAUDE.md", "outside");
    super::link(outside.parent().unwrap(), &fixture.path("repo/app/out"));
    super::link(&fixture.path("repo/app/a"), &fixture.path("repo/app/in"));
    std::fs::create_dir(fixture.path("repo/app/c")).unwrap();
    super::link(&outside, &fixture.path("repo/app/c/CLAUDE.md"));
    let mut memory = load_memory(&fixture.places, &fixture.options);
    let out = memory.on_demand.touch(&fixture.path("repo/app/out/x"));
    assert_eq!(out.sections, []);
    let linked = memory.on_demand.touch(&fixture.path("repo/app/c/x"));
    assert_eq!((linked.sections.len(), linked.external.len()), (0, 1));
    let inside = memory.on_demand.touch(&fixture.path("repo/app/in/x"));
    assert_eq!(inside.sections.len(), 1);
}

#[test]
fn rules_wait_for_their_paths() {
    let fixture = fixture();
    let mut memory = load_memory(&fixture.places, &fixture.options);
    assert_eq!(texts(&memory.sections), ["app", "always"]);
    let mut touch = |path: &str| {
        let addition = memory.on_demand.touch(&fixture.path(path));
        addition
            .sections
            .iter()
            .map(|s| s.text.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(touch("repo/app/src/x.rs"), [""; 0]);
    assert_eq!(touch("repo/app/x.ts"), [""; 0]);
    assert_eq!(touch("repo/app/src/deep/er/x.ts"), ["types"]);
    assert_eq!(touch("repo/app/src/y.ts"), [""; 0]);
}

#[test]
fn a_resumed_session_is_not_told_twice() {
    let fixture = fixture();
    let mut before = load_memory(&fixture.places, &fixture.options).on_demand;
    let told = before.touch(&fixture.path("repo/app/a/x.ts")).text();
    let told = told.unwrap();
    assert_eq!(told.matches(" path=").count(), 2);
    let mut after = load_memory(&fixture.places, &fixture.options).on_demand;
    after.recall(["a prompt", &told]);
    let again = after.touch(&fixture.path("repo/app/a/x.ts"));
    assert_eq!(again.sections, []);
    assert_eq!(after.retell(&["a summary"]).unwrap().len(), told.len());
    // What merely looks like it tells nothing.
    let mut other = load_memory(&fixture.places, &fixture.options).on_demand;
    other.recall([format!("It said:\n{told}").as_str()]);
    let addition = other.touch(&fixture.path("repo/app/a/x.ts"));
    assert_eq!(addition.sections.len(), 2);
}

#[test]
fn additions_have_a_budget_of_their_own() {
    let mut fixture = fixture();
    for name in ["p", "q", "r"] {
        fixture.write(&format!("repo/app/{name}/CLAUDE.md"), &name.repeat(60));
    }
    fixture.options.caps.combined = 25;
    let mut memory = load_memory(&fixture.places, &fixture.options);
    let mut touch = |path: &str| {
        let addition = memory.on_demand.touch(&fixture.path(path));
        (addition.sections[0].text.len(), addition.notices.len())
    };
    assert_eq!(touch("repo/app/p/x"), (60, 0));
    assert_eq!(touch("repo/app/q/x"), (40, 1));
    assert_eq!(touch("repo/app/r/x"), (0, 1));
}
