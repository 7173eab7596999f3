//! Who consents to a command: rules, modes, `auto_allow_bash_if_sandboxed` and
//! `allow_unsandboxed_commands` in every combination, and where the command then runs.

use rstest::rstest;
use serde_json::json;

use crate::{ask, bash, bench, calls, result, unavailable};

/// What became of a command that writes where nobody confined may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Became {
    /// It wrote.
    Outside,
    /// It ran and could not write.
    Confined,
    /// It did not run.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Default,
    AcceptEdits,
    DontAsk,
    Plan,
    AutoAllow,
    NoPermissions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    None,
    Allow,
    Ask,
    Deny,
}

/// What is written in `[sandbox]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Keys {
    auto_allow: bool,
    listed: bool,
}

impl Mode {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Default => &[],
            Self::AcceptEdits => &["--permission-mode", "acceptEdits"],
            Self::DontAsk => &["--permission-mode", "dontAsk"],
            Self::Plan => &["--permission-mode", "plan"],
            Self::AutoAllow => &["--auto-allow"],
            Self::NoPermissions => &["--no-permissions"],
        }
    }
}

impl Rule {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Allow => &["--allow", "Bash:touch *"],
            Self::Ask => &["--ask", "Bash:touch *"],
            Self::Deny => &["--deny", "Bash:touch *"],
        }
    }
}

/// Whether it runs, where nobody can be asked.
fn runs(mode: Mode, rule: Rule, keys: Keys) -> bool {
    match (mode, rule) {
        (Mode::NoPermissions, _) => true,
        (Mode::Plan, _) | (_, Rule::Deny) | (Mode::Default | Mode::AcceptEdits, Rule::Ask) => false,
        (Mode::DontAsk | Mode::AutoAllow, _) | (_, Rule::Allow) => true,
        // Only the built-in rules ask, and the sandbox stands for consent to what it confines.
        (Mode::Default | Mode::AcceptEdits, Rule::None) => keys.auto_allow && !keys.listed,
    }
}

fn expected(mode: Mode, rule: Rule, keys: Keys) -> Became {
    match (runs(mode, rule, keys), keys.listed) {
        (false, _) => Became::Refused,
        (true, false) => Became::Confined,
        (true, true) => Became::Outside,
    }
}

fn became(mode: Mode, rule: Rule, keys: Keys) -> Became {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x");
    let mut settings = String::from("[sandbox]\nenabled = true\nfail_if_unavailable = true\n");
    if keys.auto_allow {
        settings.push_str("auto_allow_bash_if_sandboxed = true\n");
    }
    if keys.listed {
        settings.push_str("allow_unsandboxed_commands = ['touch']\n");
    }
    let bench = bench(&settings, bash(&format!("touch {}", file.display())));
    let flags: Vec<&str> = [mode.flags(), rule.flags()].concat();
    let (ran, _) = ask(&bench, &flags);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = result(&bench);
    match (file.exists(), told.contains("cannot touch")) {
        (true, _) => Became::Outside,
        (false, true) => Became::Confined,
        (false, false) => Became::Refused,
    }
}

#[rstest]
fn every_mode_and_rule_counts_as_it_says(
    #[values(
        Mode::Default,
        Mode::AcceptEdits,
        Mode::DontAsk,
        Mode::Plan,
        Mode::AutoAllow,
        Mode::NoPermissions
    )]
    mode: Mode,
) {
    if unavailable() {
        return;
    }
    let mut wrong = Vec::new();
    let rules: &[Rule] = match mode {
        // It cannot be given together with rules.
        Mode::NoPermissions => &[Rule::None],
        _ => &[Rule::None, Rule::Allow, Rule::Ask, Rule::Deny],
    };
    for &rule in rules {
        for (auto_allow, listed) in [(false, false), (true, false), (false, true), (true, true)] {
            let keys = Keys { auto_allow, listed };
            let (saw, wanted) = (became(mode, rule, keys), expected(mode, rule, keys));
            if saw != wanted {
                wrong.push(format!(
                    "{mode:?} {rule:?} {keys:?}: {saw:?}, not {wanted:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_run_that_fell_back_consents_to_nothing() {
    let settings = "[sandbox]\nenabled = true\nauto_allow_bash_if_sandboxed = true\nfail_if_unavailable = false\nbwrap_path = '/no'\n";
    let bench = bench(settings, bash("touch ran"));
    let (ran, _) = ask(&bench, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!bench.workspace.path().join("ran").exists());
}

#[test]
fn what_is_judged_are_the_commands_and_not_the_words() {
    if unavailable() {
        return;
    }
    let settings = "[sandbox]\nenabled = true\nauto_allow_bash_if_sandboxed = true\nallow_unsandboxed_commands = ['touch']\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x").display().to_string();
    for line in [
        format!("touch {file}; true"),
        format!("touch {file} | cat"),
        format!("X=1 touch {file}"),
        format!("touch {file} > out"),
        format!("bash -c 'touch {file}'"),
        format!("touch $(echo {file})"),
    ] {
        let bench = bench(settings, calls(vec![("Bash", json!({"command": line}))]));
        let (ran, _) = ask(&bench, &["--allow", "Bash"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!folder.path().join("x").exists(), "{line}");
    }
}
