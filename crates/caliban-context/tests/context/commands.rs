use caliban_context::{Command, CommandError, Commands, Notice, Origin, Skills};

use super::Fixture;

fn load(fixture: &Fixture) -> (Commands, Vec<Notice>) {
    let mut notices = Vec::new();
    let skills = Skills::load(&fixture.places, &fixture.options, &mut Vec::new());
    let commands = Commands::load(
        &fixture.places,
        &fixture.options,
        &skills,
        &["help", "skills"],
        &mut notices,
    );
    (commands, notices)
}

fn prompt(commands: &Commands, line: &str) -> Option<String> {
    commands
        .expand(line)
        .unwrap()
        .map(|expansion| expansion.prompt())
}

#[test]
fn commands_become_prompts() {
    let fixture = Fixture::new();
    fixture.write(
        "repo/app/.caliban/commands/review.md",
        "---\ndescription: Reviews a file\nargument-hint: [file] \nmodel: fast\nallowed-tools: Read, Bash(git diff:*)\n---\nReview $1 for $2. All: $ARGUMENTS\n",
    );
    fixture.write(
        "repo/app/.caliban/commands/git/commit.md",
        "# Commit\n\nCommit it.",
    );
    fixture.write("home/.config/caliban/commands/note.md", "Note this down");
    fixture.write("plugins/tools/commands/deploy.md", "Deploy");
    let (commands, notices) = load(&fixture);
    assert_eq!(notices, []);
    let listed: Vec<(&str, &str)> = commands
        .iter()
        .map(|command| (command.name(), command.description()))
        .collect();
    assert_eq!(
        listed[1..],
        [
            ("git:commit", "Commit"),
            ("note", "Note this down"),
            ("review", "Reviews a file"),
            ("tools:deploy", "Deploy"),
        ]
    );
    assert_eq!(listed[0].0, "auto-memory");
    let review = commands.get("review").unwrap();
    assert_eq!(review.argument_hint(), Some("[file]"));

    let expansion = commands
        .expand("/review src/a.rs \"long lines\"\n")
        .unwrap()
        .unwrap();
    assert_eq!(
        expansion.prompt(),
        "Review src/a.rs for long lines. All: src/a.rs \"long lines\""
    );
    assert_eq!(expansion.model.as_deref(), Some("fast"));
    assert_eq!(expansion.allowed_tools, ["Read", "Bash(git diff:*)"]);
    assert_eq!(expansion.origin, Origin::Project);
    assert_eq!(
        prompt(&commands, "/git:commit").unwrap(),
        "# Commit\n\nCommit it."
    );
    assert_eq!(
        prompt(&commands, "/note buy milk").unwrap(),
        "Note this down\n\nbuy milk"
    );
}

#[test]
fn what_is_no_command_is_left_alone() {
    let fixture = Fixture::new();
    fixture.write("repo/app/.caliban/commands/a.md", "A");
    let (commands, _) = load(&fixture);
    for line in [
        "/none x",
        "/usr/bin/env",
        "a",
        "",
        "/",
        "/ a",
        "//a",
        "/A",
        "/../a",
        "see /a",
    ] {
        assert_eq!(commands.expand(line).unwrap(), None, "{line}");
    }
    assert_eq!(prompt(&commands, "  /a  ").unwrap(), "A");
}

#[test]
fn names_that_are_taken_stay_taken() {
    let fixture = Fixture::new();
    fixture.write("repo/app/.caliban/commands/help.md", "hijacked");
    fixture.write("repo/app/.caliban/commands/same.md", "project");
    fixture.write("home/.config/caliban/commands/same.md", "user");
    let skill = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nskill {name}: $1");
    for name in ["same", "help", "flow"] {
        fixture.write(
            &format!("home/.config/caliban/skills/{name}/SKILL.md"),
            &skill(name),
        );
    }
    let (commands, notices) = load(&fixture);
    assert!(commands.get("help").is_none());
    assert_eq!(prompt(&commands, "/same").unwrap(), "project");
    assert_eq!(prompt(&commands, "/flow now").unwrap(), "skill flow: now");
    assert_eq!(
        fixture.notices(&notices),
        [
            "`~~/repo/app/.caliban/commands/help.md` is not used: `/help` is a built-in command",
            "the command `same` (project) replaces the one of that name (user)",
            "typing `/help` does not use the skill of this name: it is a built-in command; rename one of \
             them",
            "typing `/same` does not use the skill of this name: it is a command of your own (project); \
             rename one of them",
        ]
    );
}

#[cfg(unix)]
#[test]
fn files_that_are_no_commands_are_notices() {
    let fixture = Fixture::new();
    let root = "repo/app/.caliban/commands";
    fixture.write(&format!("{root}/a b.md"), "x");
    fixture.write(&format!("{root}/open.md"), "---\nno end");
    fixture.write(&format!("{root}/1/2/3/4/deep.md"), "x");
    fixture.write(&format!("{root}/1/2/3/4/5/deeper.md"), "x");
    let outside = fixture.write("outside/x.md", "secret");
    super::link(&outside, &fixture.path(&format!("{root}/linked.md")));
    super::link(
        &fixture.path(root),
        &fixture.path(&format!("{root}/circle")),
    );
    let (commands, notices) = load(&fixture);
    let names: Vec<&str> = commands.iter().map(Command::name).collect();
    assert_eq!(names, ["1:2:3:4:deep", "auto-memory"]);
    assert_eq!(notices.len(), 3);

    let path = fixture.write(&format!("{root}/later.md"), "x");
    let (commands, _) = load(&fixture);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        commands.expand("/later"),
        Err(CommandError::Gone(path.clone()))
    );
    super::link(&outside, &path);
    assert!(matches!(
        commands.expand("/later"),
        Err(CommandError::Unusable { .. })
    ));
}
