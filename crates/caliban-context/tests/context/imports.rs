use std::fs;

use caliban_context::{Approval, ImportAllowlist, ImportApproval, Memory, load_memory};

use super::Fixture;

fn load(fixture: &Fixture) -> Memory {
    load_memory(&fixture.places, &fixture.options)
}

/// The text of the workspace's own file.
fn text(fixture: &Fixture, memory: &Memory) -> String {
    fixture.shown(&memory.sections.last().unwrap().text)
}

#[test]
fn imports_are_put_in_place() {
    let fixture = Fixture::new();
    fixture.write(
        "repo/app/CLAUDE.md",
        "first\n@./docs/a.md\n  @../shared.md\n`@docs/c.md` and @docs/c.md\n```\n@docs/c.md\n```\nlast",
    );
    fixture.write("repo/app/docs/a.md", "a\n@b.md\n");
    fixture.write("repo/app/docs/b.md", "b\n");
    fixture.write("repo/app/docs/c.md", "c");
    fixture.write("repo/shared.md", "shared");
    let memory = load(&fixture);
    assert_eq!(
        text(&fixture, &memory),
        "first\n\
         <!-- imported from ~~/repo/app/docs/a.md -->\na\n\
         <!-- imported from ~~/repo/app/docs/b.md -->\nb\n\
         <!-- end of ~~/repo/app/docs/b.md -->\n\
         <!-- end of ~~/repo/app/docs/a.md -->\n\
         <!-- imported from ~~/repo/shared.md -->\nshared\n\
         <!-- end of ~~/repo/shared.md -->\n\
         `@docs/c.md` and @docs/c.md\n```\n@docs/c.md\n```\nlast"
    );
    assert_eq!(memory.notices, []);
}

#[test]
fn circles_end_and_nothing_is_included_twice() {
    let fixture = Fixture::new();
    fixture.write("repo/app/CLAUDE.md", "@a.md\n@a.md\n@AGENTS.md");
    fixture.write("repo/app/a.md", "a\n@b.md\n@./CLAUDE.md");
    fixture.write("repo/app/b.md", "b\n@a.md");
    fixture.write("repo/app/AGENTS.md", "agents");
    let memory = load(&fixture);
    assert_eq!(memory.sections.len(), 1, "AGENTS.md was imported already");
    assert_eq!(
        text(&fixture, &memory),
        "<!-- imported from ~~/repo/app/a.md -->\na\n\
         <!-- imported from ~~/repo/app/b.md -->\nb\n@a.md\n<!-- end of ~~/repo/app/b.md -->\n\
         @./CLAUDE.md\n<!-- end of ~~/repo/app/a.md -->\n@a.md\n\
         <!-- imported from ~~/repo/app/AGENTS.md -->\nagents\n<!-- end of ~~/repo/app/AGENTS.md -->"
    );
}

#[test]
fn five_levels_are_followed() {
    let fixture = Fixture::new();
    fixture.write("repo/app/CLAUDE.md", "@1.md");
    for level in 1..=7 {
        fixture.write(
            &format!("repo/app/{level}.md"),
            &format!("level {level}\n@{}.md", level + 1),
        );
    }
    let memory = load(&fixture);
    let text = text(&fixture, &memory);
    assert!(text.contains("level 5\n@6.md\n"));
    assert!(!text.contains("level 6"));
    assert_eq!(
        fixture.notices(&memory.notices),
        ["`~~/repo/app/5.md` imports `6.md` more than 5 levels deep"]
    );
}

#[test]
fn what_cannot_be_imported_stays_as_it_was() {
    let fixture = Fixture::new();
    let lines = "@https://evil.example/x.md\n@./none.md\n@Override\n@types/node\n@docs";
    fixture.write("repo/app/CLAUDE.md", lines);
    fs::create_dir(fixture.path("repo/app/docs")).unwrap();
    let memory = load(&fixture);
    assert_eq!(text(&fixture, &memory), lines);
    assert_eq!(
        fixture.notices(&memory.notices),
        [
            "`~~/repo/app/CLAUDE.md` imports `https://evil.example/x.md`: only local files can be imported",
            "`~~/repo/app/CLAUDE.md` imports `./none.md`, which does not exist",
            "`~~/repo/app/docs` is not used: it is not a regular file",
        ]
    );
}

#[test]
fn files_from_outside_need_approval_of_their_content() {
    let mut fixture = Fixture::new();
    let outside = fixture.write("home/notes/api.md", "api\n@other.md");
    fixture.write("home/notes/other.md", "other");
    fixture.write("repo/app/CLAUDE.md", "@~/notes/api.md");
    let list = ImportAllowlist::new(&fixture.places.imports_allowlist);

    let memory = load(&fixture);
    assert_eq!(text(&fixture, &memory), "@~/notes/api.md");
    let [import] = memory.external.as_slice() else {
        panic!("{:?}", memory.external);
    };
    assert_eq!(
        (&import.path, import.approval),
        (&outside, Approval::Unknown)
    );
    assert_eq!(import.imported_by, fixture.path("repo/app/CLAUDE.md"));
    assert_eq!(memory.notices.len(), 1);

    list.approve(import).unwrap();
    let memory = load(&fixture);
    assert_eq!(
        text(&fixture, &memory),
        "<!-- imported from ~~/home/notes/api.md -->\napi\n@other.md\n<!-- end of ~~/home/notes/api.md -->",
        "what an approved file imports needs its own approval"
    );
    assert_eq!(memory.external[1].path, fixture.path("home/notes/other.md"));

    fixture.write("home/notes/api.md", "api, changed");
    let memory = load(&fixture);
    assert_eq!(text(&fixture, &memory), "@~/notes/api.md");
    assert_eq!(memory.external[0].approval, Approval::Changed);
    assert!(fixture.notices(&memory.notices)[0].contains("has changed since it was approved"));

    fixture.options.imports = ImportApproval::All;
    let memory = load(&fixture);
    assert!(text(&fixture, &memory).contains("api, changed"));
    assert_eq!((memory.external.len(), memory.notices.len()), (1, 0));
}

#[test]
fn the_user_s_directory_gives_only_markdown_to_a_project() {
    let fixture = Fixture::new();
    fixture.write("home/.config/caliban/style.md", "style");
    fixture.write("home/.config/caliban/settings.toml", "key = 'secret'");
    fixture.write(
        "repo/app/CLAUDE.md",
        "@~/.config/caliban/style.md\n@~/.config/caliban/settings.toml",
    );
    let memory = load(&fixture);
    let text = text(&fixture, &memory);
    assert!(text.contains("\nstyle\n") && !text.contains("secret"));
    assert_eq!(memory.external.len(), 1);
}

#[cfg(unix)]
#[test]
fn a_link_in_the_workspace_does_not_make_a_file_its_own() {
    let fixture = Fixture::new();
    let secret = fixture.write("outside/id", "key");
    super::link(&secret, &fixture.path("repo/app/notes.md"));
    super::link(&fixture.path("outside"), &fixture.path("repo/app/dir"));
    fixture.write("repo-evil/x.md", "evil");
    fixture.write(
        "repo/app/CLAUDE.md",
        "@notes.md\n@dir/id\n@../../repo-evil/x.md",
    );
    let memory = load(&fixture);
    assert_eq!(
        text(&fixture, &memory),
        "@notes.md\n@dir/id\n@../../repo-evil/x.md"
    );
    assert_eq!(memory.external.len(), 3);
}

#[test]
fn the_number_of_files_is_bounded() {
    let fixture = Fixture::new();
    let lines: Vec<String> = (0..600).map(|index| format!("@d/{index}.md")).collect();
    for index in 0..600 {
        fixture.write(&format!("repo/app/d/{index}.md"), "x");
    }
    fixture.write("repo/app/CLAUDE.md", &lines.join("\n"));
    let memory = load(&fixture);
    let imported = memory.sections[0].text.matches("<!-- imported").count();
    assert_eq!(imported, 499);
    assert_eq!(
        fixture.notices(&memory.notices),
        ["only the first 500 instruction files are used"]
    );
}
