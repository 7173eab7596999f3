//! Properties of verdicts: more commands and more denials never soften one, both spellings of a
//! pattern mean the same, suggestions allow what they were made for, and a workspace never
//! overrules its user or operator.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

use std::sync::LazyLock;

use caliban_agent::{Confinement, Workspace};
use caliban_permissions::{
    AutoAllow, Decision, Judge, Origin, Place, Places, Protected, Relaxed, Rule, RuleBook, Why,
    relax, suggestions,
};
use caliban_settings::{PermissionMode, RuleAction, RuleSpec};
use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

const COMMANDS: &[&str] = &[
    "git status",
    "git -c a=b log",
    "git log --output=x",
    "ls",
    "ls -la",
    "ls *.rs",
    "ls $x",
    "rm x",
    "/bin/rm x",
    "r\"m\" x",
    "echo hi",
    "echo \"$(rm x)\"",
    "echo `git status`",
    "sudo rm x",
    "timeout 5 git status",
    "nice rm x",
    "env A=1 ls",
    "bash -c 'git log; rm x'",
    "eval 'rm x'",
    "eval \"$x\"",
    "xargs rm",
    "find . -name x",
    "find . -delete",
    "echo x > a",
    "echo x > .git/config",
    "cat < b",
    "cd sub",
    "A=1 ls",
    "PATH=x ls",
    "for i in 1; do ls; done",
    "if ls; then rm x; fi",
    "(git status)",
    "{ rm x; }",
    "$x",
    "unknown rm x",
    "echo rm",
];
const OPERATORS: &[&str] = &[" && ", " || ", "; ", " | ", " & ", "\n", " |& "];
const ACTIONS: &[RuleAction] = &[RuleAction::Allow, RuleAction::Ask, RuleAction::Deny];
const ORIGINS: &[Origin] = &[
    Origin::Local,
    Origin::Project,
    Origin::User,
    Origin::Managed,
];

/// What stands after the tool.
const GLOBS: &[&str] = &[
    "git *",
    "git status",
    "ls",
    "ls *",
    "rm *",
    "rm",
    "r*",
    "echo *",
    "* x",
    "sudo *",
    "timeout *",
    "timeout 5 git *",
    "env *",
    "bash *",
    "eval *",
    "xargs *",
    "find *",
    "find * -delete",
    "cat",
    "cd *",
    "unknown *",
    "?s",
];
const FILES: &[&str] = &[
    "a", "b", "*", "**", "sub/**", ".git/**", "./a", "~/x", "/**",
];
const PATHS: &[&str] = &[
    "a",
    "b",
    "sub/c.rs",
    ".git/config",
    "../x",
    "/etc/x",
    "~/x",
    "sub/../a",
];

struct Fixture {
    _temp: tempfile::TempDir,
    places: Places,
    protected: Protected,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    for directory in ["work/sub", "work/.git", "home"] {
        std::fs::create_dir_all(base.join(directory)).unwrap();
    }
    let home = Some(base.join("home"));
    let root = base.join("work");
    let workspace = Workspace::new(&root, &[], home.clone(), Confinement::Open).unwrap();
    Fixture {
        places: Places::new(workspace, home.clone()),
        protected: Protected::new(home, [], []),
        _temp: temp,
    }
});

fn judge(rules: impl IntoIterator<Item = Rule>) -> Judge {
    Judge {
        book: RuleBook::of(rules),
        places: FIXTURE.places.clone(),
        protected: FIXTURE.protected.clone(),
    }
}

fn decide(judge: &Judge, (tool, input): &(&str, Value)) -> Decision {
    judge.decide(tool, input, Timestamp::UNIX_EPOCH)
}

fn action(rules: &[Rule], call: &(&str, Value)) -> RuleAction {
    decide(&judge(rules.iter().cloned()), call).action
}

fn rule(action: RuleAction, pattern: &str, origin: Origin) -> Rule {
    Rule::new(RuleSpec::new(pattern, action), origin).unwrap()
}

fn bash(line: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": line}))
}

fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => select(GLOBS).prop_map(|glob| format!("Bash:{glob}")),
        2 => select(GLOBS).prop_map(|glob| format!("Bash:~{glob}")),
        1 => Just("Bash".to_owned()),
        1 => Just("*".to_owned()),
        2 => (select(&["Write", "Edit", "Read"][..]), select(FILES))
            .prop_map(|(tool, glob)| format!("{tool}:{glob}")),
    ]
}

fn rules(origins: &'static [Origin]) -> impl Strategy<Value = Vec<Rule>> {
    let one = (select(ACTIONS), pattern(), select(origins))
        .prop_map(|(action, pattern, origin)| rule(action, &pattern, origin));
    // In the order in which scopes are asked.
    vec(one, 0..6).prop_map(|mut rules| {
        rules.sort_by_key(|rule| rule.origin);
        rules
    })
}

fn line() -> impl Strategy<Value = String> {
    (
        select(COMMANDS),
        vec((select(OPERATORS), select(COMMANDS)), 0..3),
    )
        .prop_map(|(first, more)| {
            more.into_iter()
                .fold(first.to_owned(), |line, (operator, command)| {
                    line + operator + command
                })
        })
}

fn call() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        3 => line().prop_map(|line| bash(&line)),
        1 => (select(&["Write", "Edit", "Read"][..]), select(PATHS))
            .prop_map(|(tool, path)| (tool, json!({"path": path}))),
    ]
}

proptest! {
    /// Not so for a line of several commands and a longer one: a wildcard of a rule against
    /// the line as it is written may reach over an operator, `deny Bash:ls *` over `ls && x`.
    #[test]
    fn a_line_is_never_softer_than_its_commands(
        rules in rules(ORIGINS),
        first in select(COMMANDS),
        more in vec((select(OPERATORS), select(COMMANDS)), 0..6),
    ) {
        let line = more.iter().fold(first.to_owned(), |line, (operator, command)| {
            line + operator + command
        });
        let all = action(&rules, &bash(&line));
        for command in more.iter().map(|(_, command)| *command).chain([first]) {
            prop_assert!(all >= action(&rules, &bash(command)), "{command:?}");
        }
    }

    #[test]
    fn nothing_in_a_chain_makes_a_catastrophe_bearable(
        rules in rules(ORIGINS),
        first in line(),
        operator in select(OPERATORS),
    ) {
        let call = bash(&format!("{first}{operator}rm -rf /"));
        let decision = decide(&judge(rules), &call);
        prop_assert_ne!(decision.action, RuleAction::Allow);
        if decision.action == RuleAction::Ask {
            prop_assert!(matches!(decision.why, Why::Catastrophe(_)), "{:?}", decision.why);
            for mode in [PermissionMode::DontAsk, PermissionMode::Auto] {
                let relaxed = relax(mode, AutoAllow::On, call.0, &decision);
                prop_assert_eq!(relaxed, Relaxed::Ask);
            }
        }
    }

    #[test]
    fn another_denial_is_never_softer(
        mut rules in rules(ORIGINS),
        denied in pattern(),
        origin in select(ORIGINS),
        place in any::<prop::sample::Index>(),
        call in call(),
    ) {
        let before = action(&rules, &call);
        rules.insert(place.index(rules.len() + 1), rule(RuleAction::Deny, &denied, origin));
        prop_assert!(action(&rules, &call) >= before);
    }

    #[test]
    fn both_spellings_mean_the_same(
        wish in select(ACTIONS),
        glob in select(GLOBS),
        file in select(FILES),
        call in call(),
    ) {
        for (tool, text) in [("Bash", glob), ("Write", file), ("Edit", file), ("Read", file)] {
            let verdict = |pattern: String| action(&[rule(wish, &pattern, Origin::Flag)], &call);
            let colon = verdict(format!("{tool}:{text}"));
            prop_assert_eq!(colon, verdict(format!("{tool}({text})")), "{}:{}", tool, text);
        }
    }

    #[test]
    fn what_is_denied_as_a_whole_is_denied_anywhere(glob in select(GLOBS), line in line()) {
        let verdict = |pattern: String| {
            action(&[rule(RuleAction::Deny, &pattern, Origin::Flag)], &bash(&line))
        };
        if verdict(format!("Bash:{glob}")) == RuleAction::Deny {
            prop_assert_eq!(verdict(format!("Bash:~{glob}")), RuleAction::Deny);
        }
    }

    #[test]
    fn a_workspace_overrules_neither_its_user_nor_its_operator(
        own in rules(&[Origin::Local, Origin::Project]),
        user in rules(&[Origin::User]),
        managed in rules(&[Origin::Managed]),
        call in call(),
    ) {
        let all = [own, user.clone(), managed.clone()].concat();
        for scope in [user, managed] {
            let decision = decide(&judge(scope), &call);
            // What is never allowed is no wish of a scope.
            let by_rule = !matches!(decision.why, Why::Catastrophe(_));
            if decision.action == RuleAction::Deny && by_rule {
                prop_assert_eq!(action(&all, &call), RuleAction::Deny);
            }
        }
    }

    #[test]
    fn suggestions_allow_their_command_and_no_other(
        program in "[a-z]{2,8}",
        arguments in vec("[a-zA-Z0-9_./*?\\\\\\[\\]{}~=:,@%+ -]{1,10}", 0..4),
    ) {
        let quoted: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
        let line = format!("{program} {}", quoted.join(" "));
        let call = bash(&line);
        let asked = judge([]);
        let decision = decide(&asked, &call);
        let patterns = suggestions(&asked, call.0, &call.1, &decision, Place::Flag, Timestamp::UNIX_EPOCH);
        prop_assert!(!patterns.is_empty() || decision.action != RuleAction::Ask, "{line}");
        let rules: Vec<Rule> = patterns
            .iter()
            .map(|pattern| rule(RuleAction::Allow, pattern, Origin::Flag))
            .collect();
        if decision.action == RuleAction::Ask {
            prop_assert_eq!(action(&rules, &call), RuleAction::Allow, "{:?}", patterns);
        }
        if patterns != ["Bash"] {
            let more = bash(&format!("{line}; otherprogram"));
            prop_assert_ne!(action(&rules, &more), RuleAction::Allow, "{:?}", patterns);
        }
    }

    #[test]
    fn suggestions_allow_their_file_and_no_other(
        names in vec("[a-zA-Z0-9_.*?\\\\\\[\\]{}!~ -]{1,8}", 1..4),
        tool in select(&["Write", "Edit"][..]),
    ) {
        let path = names.join("/");
        let call = (tool, json!({"path": path}));
        let asked = judge([]);
        let decision = decide(&asked, &call);
        let patterns = suggestions(&asked, tool, &call.1, &decision, Place::Flag, Timestamp::UNIX_EPOCH);
        let rules: Vec<Rule> = patterns
            .iter()
            .map(|pattern| rule(RuleAction::Allow, pattern, Origin::Flag))
            .collect();
        if !patterns.is_empty() {
            prop_assert_eq!(action(&rules, &call), RuleAction::Allow, "{:?}", patterns);
        }
        let plain = !names.iter().any(|name| matches!(name.as_str(), "." | ".."));
        if plain && !path.starts_with('~') && names.iter().all(|name| name.trim() == name) {
            prop_assert!(!patterns.is_empty(), "{path}");
            prop_assert_ne!(&patterns, &[tool.to_owned()], "{}", path);
            let other = (tool, json!({"path": format!("{path}x")}));
            prop_assert_ne!(action(&rules, &other), RuleAction::Allow, "{:?}", patterns);
        }
    }
}
