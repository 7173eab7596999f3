//! Lists that are acted on: servers, context, hooks, skills, styles, notes, models, keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use caliban_testkit::{After, ModelEntry, Reply, Script, Usage};
use rstest::rstest;
use serde_json::json;

use crate::looks::looks_like;
use crate::person::{Person, bash, eventually, leave, say, until_done};

/// Somebody with one MCP server, the script of which the other tests use.
fn with_server() -> Person {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let line = format!("echo said-on-the-side >&2; exec python3 {script}");
    let settings = format!(
        "[mcp_servers.helper]\ncommand = 'sh'\nargs = ['-c', {}]\n\n[mcp_servers.broken]\ncommand = 'false'\n",
        json!(line)
    );
    Person::answered("All done.")
        .sized(110, 30)
        .settings(&settings)
}

#[test]
fn a_server_is_looked_into_switched_off_and_on() {
    let person = with_server();
    let terminal = person.sit_down();
    say(&terminal, "/mcp");
    terminal.until_text("helper  connected");
    let screen = terminal.until_text("broken  failed");
    looks_like("servers", &person, &screen);
    terminal.keys("/helper");
    terminal.key("enter");
    terminal.until_gone("broken  failed");
    terminal.keys("l");
    terminal.until_text("Log of helper");
    terminal.until_text("said-on-the-side");
    terminal.keys("q");
    terminal.key("enter");
    terminal.until_text("MCP server helper");
    terminal.keys("q");
    terminal.keys("e");
    terminal.until_text("helper  disabled");
    terminal.keys("q");
    terminal.until_gone("MCP servers");
    say(&terminal, "go");
    until_done(&terminal, "All done.");
    let tools = |at: usize| person.told()[at]["tools"].to_string();
    assert!(!tools(0).contains("mcp__helper__"), "{}", tools(0));
    say(&terminal, "/mcp");
    terminal.until_text("helper  disabled");
    terminal.key("down");
    terminal.keys("e");
    terminal.until_text("helper  connected");
    terminal.keys("r");
    terminal.until_text("`helper` is tried again");
    terminal.until_text("helper  connected");
    terminal.keys("q");
    terminal.until_gone("MCP servers");
    say(&terminal, "again");
    eventually("the second answer", || person.told().len() == 2);
    assert!(tools(1).contains("mcp__helper__"), "{}", tools(1));
    until_done(&terminal, "All done.");
    leave(terminal);
}

#[test]
fn a_login_that_a_server_does_not_have_is_told() {
    let person = with_server();
    let terminal = person.sit_down();
    say(&terminal, "/mcp");
    terminal.until_text("helper  connected");
    terminal.keys("o");
    terminal.until_text("configured without OAuth");
    terminal.keys("q");
    leave(terminal);
}

#[test]
fn the_window_is_a_grid() {
    let usage = Usage {
        input: 20_000,
        output: 1_000,
        ..Usage::default()
    };
    let replies = [
        Reply::tool("Read", json!({"path": "a.txt"})),
        Reply::text("All done.").usage(usage),
        Reply::text("They read a file."),
        Reply::text("Yes."),
    ];
    let person = Person::new(replies)
        .sized(120, 30)
        .file("a.txt", &"word ".repeat(4_000));
    let terminal = person.sit_down();
    say(&terminal, "read it");
    until_done(&terminal, "All done.");
    say(&terminal, "/context");
    let screen = terminal.until_text("/compact frees at most");
    for part in [
        "Context: about 21",
        "S system prompt",
        "R results",
        "largest parts",
        "S T P A C R ·",
    ] {
        assert!(screen.contains(part), "{part}\n{}", screen.drawn());
    }
    // What it offers is done, once it was confirmed.
    terminal.keys("c");
    terminal.until_text("Condense the conversation?");
    terminal.key("enter");
    terminal.until_gone("Condense the conversation?");
    assert_eq!(person.told().len(), 2, "what is chosen first is to keep it");
    say(&terminal, "/context");
    terminal.until_text("/compact frees at most");
    terminal.keys("c");
    terminal.until_text("Condense the conversation?");
    terminal.key("down");
    terminal.key("enter");
    terminal.until_text("condensed");
    say(&terminal, "still there?");
    until_done(&terminal, "Yes.");
    let last = person.told().last().unwrap()["messages"].to_string();
    assert!(last.contains("They read a file."), "{last}");
    assert!(!last.contains("word word"), "{last}");
    leave(terminal);
}

/// A report that was asked for while work went on opens over nothing that is written meanwhile.
#[test]
fn a_report_that_waited_leaves_the_draft_alone() {
    let person = Person::new([Reply::text("Long.").hold_after(2), Reply::text("Yes.")]);
    let person = person.sized(120, 30);
    let terminal = person.sit_down();
    say(&terminal, "go");
    terminal.until_text("Esc stops");
    say(&terminal, "/context");
    terminal.keys("con");
    terminal.until_text("> con");
    person.server.release();
    // It stands in the transcript, and letters are letters.
    terminal.until_text("system prompt");
    terminal.keys("c");
    let screen = terminal.until_text("> conc");
    assert!(!screen.contains("─ Context: about"), "{}", screen.drawn());
    assert_eq!(person.told().len(), 1);
    terminal.key("ctrl+u");
    leave(terminal);
}

#[test]
fn a_call_is_tried_by_rules_and_mode_and_a_rule_that_is_gone_does_not_count() {
    let settings = "[permissions]\ndeny = ['Bash:rm *']\n";
    let person = Person::answered("never").sized(110, 30).settings(settings);
    let terminal = person.sit_down();
    say(&terminal, "/permissions");
    terminal.until_text("Permissions: mode default");
    let tried = |call: &str, said: &str| {
        terminal.keys("t");
        terminal.keys(call);
        terminal.key("enter");
        terminal.until_text(said);
    };
    tried("Bash: rm x", "deny by `Bash:rm *`");
    tried("Write: a.txt", "ask by `");
    tried("Writes: a.txt", "did you mean `Write`?");
    terminal.key("tab");
    terminal.until_text("Permissions: mode acceptEdits");
    tried("Write: a.txt", "allow by mode acceptEdits");
    tried("Bash: rm x", "deny by `Bash:rm *`");
    terminal.keys("/Bash:rm");
    terminal.key("enter");
    terminal.keys("d");
    terminal.until_text("`Bash:rm *` does not count any more");
    tried("Bash: rm x", "ask by `");
    let file = person.home().join(".config/caliban/settings.toml");
    assert!(!fs::read_to_string(file).unwrap().contains("rm *"));
    terminal.key("esc");
    terminal.key("esc");
    terminal.until_gone("Permissions: mode");
    leave(terminal);
}

#[test]
fn hooks_tell_how_often_they_ran_and_what_came_of_it() {
    let settings = "[[hooks.PreToolUse]]\nmatcher = 'Bash'\nhooks = [{ type = 'command', command = 'echo not-this-one >&2; exit 2' }]\n";
    let person = Person::new([bash("touch ran"), Reply::text("All done.")]);
    let person = person.settings(settings).sized(110, 30);
    let terminal = person.sit_down();
    say(&terminal, "/hooks");
    terminal.until_text("did not run yet");
    terminal.keys("q");
    terminal.until_gone("did not run yet");
    say(&terminal, "go");
    until_done(&terminal, "All done.");
    say(&terminal, "/hooks");
    let screen = terminal.until_text("ran once, last deny in");
    assert!(screen.contains("not-this-one"), "{}", screen.drawn());
    terminal.key("enter");
    terminal.until_text("matcher: Bash");
    terminal.keys("qq");
    assert!(!person.work().join("ran").exists());
    leave(terminal);
}

#[test]
fn a_skill_and_a_command_are_written_into_the_draft() {
    let skill = "---\nname: tidy\ndescription: Tidies up.\n---\nTidy everything.\n";
    let person = Person::answered("All done.").sized(110, 30);
    let path = person.home().join(".config/caliban/skills/tidy/SKILL.md");
    crate::person::write(&path, skill);
    let terminal = person.sit_down();
    say(&terminal, "/skills");
    terminal.until_text("Tidies up.");
    terminal.keys("/tidies");
    terminal.key("enter");
    terminal.key("enter");
    terminal.until_text("> /tidy");
    terminal.key("enter");
    until_done(&terminal, "All done.");
    let told = person.told().last().unwrap()["messages"].to_string();
    assert!(told.contains("Tidy everything."), "{told}");
    say(&terminal, "/help");
    let screen = terminal.until_text("Enter writes it");
    assert!(
        screen.contains("/compact [what matters]"),
        "{}",
        screen.drawn()
    );
    terminal.keys("/hard the model");
    terminal.key("enter");
    terminal.until_text("❯ /effort [level]");
    terminal.key("enter");
    terminal.until_text("> /effort");
    terminal.keys("high");
    terminal.key("enter");
    terminal.until_text("effort: high");
    leave(terminal);
}

#[test]
fn a_style_is_chosen_and_written() {
    let person = Person::answered("All done.").sized(110, 30);
    let terminal = person.sit_down();
    say(&terminal, "/output-style");
    let screen = terminal.until_text("it counts after /clear or a restart");
    assert!(screen.contains("current"), "{}", screen.drawn());
    terminal.keys("/explanatory");
    terminal.key("enter");
    terminal.until_text("❯ explanatory");
    terminal.key("enter");
    terminal.until_text("output_style: explanatory");
    terminal.key("enter");
    terminal.until_text("when you press w");
    terminal.keys("w");
    terminal.until_text("restart required");
    let file = person.work().join(".caliban/settings.toml");
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text, "output_style = \"explanatory\"\n");
    terminal.keys("q");
    leave(terminal);
}

#[test]
fn a_note_is_read_edited_and_deleted() {
    let person = Person::answered("All done.").sized(110, 30);
    let person = person
        .program("change", "sed -i s/cargo/xtask/ \"$1\"")
        .env("VISUAL", "change")
        .file("CLAUDE.md", "Use cargo here.\n");
    let notes = "---\nname: build\ndescription: How it is built.\nmetadata:\n  node_type: memory\n  type: project\n---\n\nWith cargo build.\n";
    let terminal = person.sit_down();
    let index = eventually_kept(&person, "MEMORY.md");
    fs::write(index.with_file_name("build.md"), notes).unwrap();
    say(&terminal, "/memory");
    terminal.until_text("How it is built.");
    terminal.keys("/how it");
    terminal.key("enter");
    terminal.key("enter");
    terminal.until_text("With cargo build.");
    terminal.keys("q");
    terminal.keys("e");
    terminal.until_text("the note `build` is written");
    let text = fs::read_to_string(index.with_file_name("build.md")).unwrap();
    assert!(text.contains("With xtask build."), "{text}");
    terminal.keys("d");
    terminal.until_text("Delete the note `build`?");
    terminal.key("down");
    terminal.key("enter");
    terminal.until_text("the note `build` is gone");
    assert!(!index.with_file_name("build.md").exists());
    // Instructions are edited in their own file.
    terminal.key("/");
    terminal.key("esc");
    terminal.keys("/CLAUDE.md");
    terminal.key("enter");
    terminal.keys("e");
    terminal.until_text("is written; the next session reads it");
    let text = fs::read_to_string(person.work().join("CLAUDE.md")).unwrap();
    assert_eq!(text, "Use xtask here.\n");
    terminal.keys("q");
    leave(terminal);
}

fn eventually_kept(person: &Person, name: &str) -> std::path::PathBuf {
    eventually("the notes to be there", || person.kept(name).is_some());
    person.kept(name).unwrap()
}

#[test]
fn models_stand_by_provider_and_change_with_the_effort() {
    let script = Script::new([Reply::text("All done.")])
        .after(After::RepeatLast)
        .model(ModelEntry::new("claude-sonnet-4-6"))
        .model(ModelEntry::new("claude-haiku-4-5"));
    let person = Person::scripted(script).sized(120, 30);
    let terminal = person.sit_down();
    say(&terminal, "/model");
    let screen = terminal.until_text("effort: auto");
    assert!(screen.contains("[anthropic]"), "{}", screen.drawn());
    assert!(screen.contains("per million"), "{}", screen.drawn());
    terminal.keys(">");
    terminal.until_text("effort: low");
    // Another provider's model is not chosen by accident.
    terminal.keys("/--provider openai");
    terminal.key("enter");
    terminal.key("enter");
    terminal.until_text("start with `--provider openai");
    terminal.key("/");
    terminal.key("esc");
    terminal.keys("/haiku-4-5");
    terminal.key("enter");
    terminal.key("enter");
    terminal.until_gone("Models");
    terminal.until_text("anthropic claude-haiku-4-5");
    say(&terminal, "go");
    until_done(&terminal, "All done.");
    let told = person.told().remove(0);
    assert!(
        told["model"].as_str().unwrap().contains("haiku-4-5"),
        "{told}"
    );
    leave(terminal);
}

/// The file that keeps keys where there is no secret store.
fn keys(person: &Person) -> std::path::PathBuf {
    person
        .home()
        .join(".local/share/caliban/provider-keys.json")
}

fn without_key() -> Person {
    Person::answered("All done.")
        .sized(110, 30)
        .without("ANTHROPIC_API_KEY")
        .without("ANTHROPIC_BASE_URL")
}

#[test]
fn a_key_that_is_missing_is_asked_for_kept_and_used() {
    let person = without_key();
    let terminal = person.start(&[]);
    terminal.until_text("key of anthropic: ");
    terminal.paste("sk-secret-1234\n");
    let screen = terminal.until_text("**************");
    assert!(!screen.contains("sk-secret"), "{}", screen.drawn());
    terminal.key("enter");
    terminal.until_text("session: ");
    let kept = fs::read_to_string(keys(&person)).unwrap();
    assert!(kept.contains("sk-secret-1234"), "{kept}");
    let mode = fs::metadata(keys(&person)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    leave(terminal);
    // It is nowhere else, and the next start asks nothing and uses it.
    assert!(!all_text(&person.home(), &keys(&person)).contains("sk-secret"));
    let url = person.server.url();
    let person = person.env("ANTHROPIC_BASE_URL", &url);
    let terminal = person.sit_down();
    say(&terminal, "go");
    until_done(&terminal, "All done.");
    let request = person.server.model_requests().remove(0);
    assert_eq!(request.header("x-api-key"), Some("sk-secret-1234"));
    say(&terminal, "/logout openai");
    terminal.until_text("Forget the key of openai?");
    terminal.key("down");
    terminal.key("enter");
    terminal.until_text("No key of openai was kept here");
    assert!(fs::read_to_string(keys(&person)).unwrap().contains("sk-"));
    say(&terminal, "/logout");
    terminal.until_text("Forget the key of anthropic?");
    terminal.key("down");
    terminal.key("enter");
    terminal.until_text("The key of anthropic is forgotten.");
    assert!(!fs::read_to_string(keys(&person)).unwrap().contains("sk-"));
    leave(terminal);
}

/// Everything that is written below a directory but for one file.
fn all_text(directory: &Path, except: &Path) -> String {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let texts = entries.map(|entry| {
        let path = entry.path();
        if path == except {
            String::new()
        } else if path.is_dir() {
            all_text(&path, except)
        } else {
            String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned()
        }
    });
    texts.collect()
}

#[rstest]
#[case("two words")]
#[case("schlüssel")]
fn what_is_no_key_is_not_kept(#[case] text: &str) {
    let person = Person::answered("never").sized(110, 30);
    let terminal = person.sit_down();
    say(&terminal, "/login nobody");
    terminal.until_text("No provider with a key is called `nobody`");
    say(&terminal, "/login openai");
    terminal.until_text("key of openai: ");
    terminal.key("tab");
    terminal.until_text("key of anthropic: ");
    terminal.paste(text);
    terminal.key("enter");
    terminal.until_text("that is no key");
    assert!(!keys(&person).exists());
    terminal.key("esc");
    terminal.until_gone("Log in");
    leave(terminal);
}

#[test]
fn a_file_that_others_can_read_keeps_no_key() {
    let person = without_key();
    crate::person::write(&keys(&person), "{\"anthropic\": \"sk-open-1234\"}\n");
    fs::set_permissions(keys(&person), fs::Permissions::from_mode(0o644)).unwrap();
    let terminal = person.start(&[]);
    terminal.until_text("key of anthropic: ");
    terminal.key("esc");
    let ended = terminal.wait();
    assert_ne!(ended.code, Some(0));
    assert!(
        ended.after.contains("ANTHROPIC_API_KEY"),
        "{}",
        ended.after.drawn()
    );
}

#[test]
fn hooks_hear_what_the_screen_obeys_itself() {
    let settings = "[[hooks.UserPromptSubmit]]\nhooks = [{ type = 'command', command = 'cat > seen.json; grep -q /mcp seen.json && { echo no-servers-today >&2; exit 2; }; exit 0' }]\n";
    let person = Person::answered("never").sized(110, 30).settings(settings);
    let terminal = person.sit_down();
    say(&terminal, "/mcp");
    let screen = terminal.until_text("no-servers-today");
    assert!(!screen.contains("MCP servers"), "{}", screen.drawn());
    let seen = fs::read_to_string(person.work().join("seen.json")).unwrap();
    let seen: serde_json::Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(
        (&seen["is_slash"], &seen["command"]),
        (&json!(true), &json!("mcp"))
    );
    say(&terminal, "/keys");
    terminal.until_text("also Alt+Enter, Ctrl+J");
    terminal.keys("q");
    leave(terminal);
}

#[test]
fn the_words_of_a_command_are_completed() {
    let person = Person::answered("never").sized(100, 30);
    let terminal = person.sit_down();
    terminal.keys("/effort xh");
    terminal.until_text("❯ xhigh");
    terminal.key("tab");
    terminal.until_text("> /effort xhigh");
    terminal.key("enter");
    terminal.until_text("effort: xhigh");
    // Enter sends what is written, whatever is offered.
    terminal.keys("/theme li");
    terminal.until_text("❯ light");
    terminal.key("enter");
    terminal.until_text("`li` is no theme");
    terminal.keys("/model ");
    terminal.until_text("claude-haiku");
    terminal.key("ctrl+u");
    leave(terminal);
}

/// What is written, and what is seen then.
fn on_screen(name: &str) -> (&'static str, &'static str) {
    match name {
        "help" => ("", "Enter writes it"),
        "keys" => ("", "also Alt+Enter, Ctrl+J"),
        "copy" => ("", "There is no answer yet"),
        "clear" => ("", "Clear the conversation?"),
        "export" => (" out.md", "out.md"),
        "rename" => (" Better", "`--resume Better` opens it"),
        "fork" => ("", "there is nothing to copy yet"),
        "resume" => ("", "┌─ Sessions"),
        "tasks" => ("", "no background jobs"),
        "init" => ("", "CLAUDE.draft.md"),
        "diff" => ("", "repository"),
        "model" | "effort" => ("", "effort: auto"),
        "status" => ("", "not trusted"),
        "system" => ("", "┌─ System prompt"),
        "login" => ("", "key of anthropic: "),
        "logout" => ("", "Forget the key of anthropic?"),
        "permissions" => ("", "Permissions: mode default"),
        "sandbox" => ("", "┌─ Sandbox"),
        "plan" => ("", "Plan mode is on"),
        "add-dir" => (" /", "`/`"),
        "trust" => ("", "trust"),
        "cost" => ("", "$0.0000"),
        "usage" => ("", "read from cache"),
        "context" => ("", "┌─ Context: about"),
        "memory" => ("", "┌─ Memory"),
        "skills" => ("", "┌─ Skills"),
        "agents" => ("", "no agent profiles; "),
        "plugins" => ("", "┌─ Plugins"),
        "hooks" => ("", "no hooks; `[[hooks.EVENT]]`"),
        "mcp" => ("", "┌─ MCP servers"),
        "config" => ("", "┌─ Settings: Model"),
        "output-style" => ("", "┌─ Output styles"),
        "theme" => ("", "┌─ Themes"),
        "vim" => ("", "vi keys"),
        "tui" => ("", "surface: fullscreen; `/tui inline` changes it"),
        "statusline" => ("", "[statusLine]"),
        "doctor" => ("", "┌─ Doctor"),
        "feedback" => (" Fine.", "feedback_url"),
        name => panic!("what does /{name} show on a screen?"),
    }
}

#[test]
fn every_command_is_obeyed_on_a_screen() {
    use caliban_slash::{Asks, BUILT_IN, Does};
    let person = Person::answered("never").sized(110, 40);
    for entry in BUILT_IN {
        // Those that ask a model, that leave, and that take prompts back have tests of their own.
        if entry.asks == Asks::Model || matches!(entry.name, "quit" | "rewind" | "web") {
            continue;
        }
        let terminal = person.sit_down();
        let (arguments, seen) = match entry.does {
            Does::Missing { .. } => ("", "does nothing: this version has no"),
            Does::Act(_) | Does::NeedsScreen { .. } => on_screen(entry.name),
        };
        say(&terminal, &format!("/{}{arguments}", entry.name));
        terminal.until_text(seen);
        drop(terminal);
    }
    assert_eq!(person.told().len(), 0, "no model was asked");
}

#[test]
fn what_is_written_too_much_is_told_on_a_screen_too() {
    let person = Person::answered("never").sized(110, 40);
    let terminal = person.sit_down();
    for (line, seen) in [
        (
            "/quit now please",
            "it takes no arguments, but got `now please`; write `/quit`",
        ),
        ("/clear it", "`/clear`: it takes no arguments, but got `it`"),
        ("/mcp list", "`/mcp`: it takes no arguments, but got `list`"),
        ("/agents all", "`all` is not known; use `watch` or nothing"),
    ] {
        say(&terminal, line);
        terminal.until_text(seen);
    }
    leave(terminal);
}

#[test]
fn a_skill_that_cannot_be_typed_is_told_and_writes_nothing_else() {
    let skill = "---\nname: help\ndescription: Helps along.\n---\nHelp.\n";
    let person = Person::answered("never").sized(140, 30);
    let path = person.home().join(".config/caliban/skills/help/SKILL.md");
    crate::person::write(&path, skill);
    let terminal = person.sit_down();
    terminal.until_text("typing `/help` does not use the skill of this name");
    say(&terminal, "/skills");
    terminal.until_text("`/help` is another command");
    terminal.keys("/helps");
    terminal.key("enter");
    terminal.key("enter");
    terminal.key("esc");
    terminal.key("esc");
    terminal.until_gone("─ Skills");
    let screen = terminal.until_text("session: ");
    assert!(!screen.contains("> /help"), "{}", screen.drawn());
    leave(terminal);
}

#[rstest]
#[case("help", "Enter writes it")]
#[case("permissions", "Tab mode")]
#[case("hooks", "Enter reads it")]
#[case("skills", "auto-memory")]
#[case("output-style", "it counts after /clear")]
#[case("memory", "e edits it")]
#[case("login", "Enter keeps it")]
#[case("agents", "e edits it")]
#[case("model", "< > effort")]
#[case("rewind", "before the first prompt")]
fn panels_look_so(#[case] command: &str, #[case] seen: &str) {
    let settings = "[[hooks.Stop]]\nhooks = [{ type = 'command', command = 'true' }]\n\n[permissions]\ndeny = ['Bash:rm *']\n";
    let person = Person::answered("never").sized(100, 30).settings(settings);
    let person = person.file("CLAUDE.md", "Be kind.\n");
    let terminal = person.sit_down();
    say(&terminal, &format!("/{command}"));
    let screen = terminal.until_text(seen);
    looks_like(&format!("panel-{command}"), &person, &screen);
    assert_eq!(terminal.agreed(), Ok(()));
    terminal.key("esc");
    terminal.until_gone(seen);
    leave(terminal);
}

/// On a terminal of the usual size, every key of a panel is told.
#[rstest]
#[case("/config", &["s scope", "Enter edit", "w write", "q closes"])]
#[case("/permissions", &["Tab mode", "d delete", "try a call", "q closes"])]
#[case("/resume", &["Enter open", "Tab preview", "^R rename", "^F fork", "^D delete"])]
#[case("/mcp", &["Enter tools", "e on or off", "q closes"])]
fn no_key_of_a_panel_is_cut_off(#[case] line: &str, #[case] keys: &[&str]) {
    let person = Person::answered("All done.").sized(80, 24);
    let terminal = person.sit_down();
    say(&terminal, "go");
    until_done(&terminal, "All done.");
    say(&terminal, line);
    terminal.until(|screen| keys.iter().all(|key| screen.contains(key)));
    terminal.key("esc");
    leave(terminal);
}

#[test]
fn a_theme_is_tried_and_chosen() {
    let person = Person::answered("never").sized(100, 30);
    let terminal = person.sit_down();
    say(&terminal, "/theme");
    let screen = terminal.until_text("┌─ Themes");
    assert!(screen.contains("❯ auto  current"), "{}", screen.drawn());
    // What is only looked at is gone with the panel.
    terminal.key("down");
    terminal.until_text("❯ dark");
    terminal.key("esc");
    terminal.until_gone("┌─ Themes");
    say(&terminal, "/theme");
    terminal.until_text("❯ auto  current");
    terminal.key("end");
    terminal.until_text("❯ none");
    terminal.key("enter");
    terminal.until_gone("┌─ Themes");
    say(&terminal, "/theme");
    terminal.until_text("❯ none  current");
    terminal.key("esc");
    leave(terminal);
}

#[test]
fn what_is_asked_of_a_provider_s_key_is_whole_on_a_narrow_screen() {
    let person = without_key().sized(60, 20);
    let terminal = person.start(&[]);
    let screen = terminal.until_text("key of anthropic: ");
    let text = screen.text();
    let words = text.split_whitespace().filter(|word| *word != "│");
    let words = words.collect::<Vec<_>>().join(" ");
    for part in ["only you can read.", "set `ANTHROPIC_API_KEY`"] {
        assert!(words.contains(part), "{part}\n{}", screen.drawn());
    }
    terminal.key("esc");
    terminal.wait();
}
