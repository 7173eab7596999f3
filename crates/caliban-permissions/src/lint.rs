//! What is wrong with a list of rules: duplicates, contradictions, rules that never decide, and
//! rules that bind less than they seem to.

use std::fmt;

use caliban_model::BuiltInTool;
use caliban_settings::RuleAction;
use jiff::Timestamp;

use crate::pattern::{About, CommandPattern, Reach, ToolName};
use crate::rule::Rule;
use crate::tools;
use crate::wildcard::Wildcard;

/// Something about a rule that its author should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The same rule stands there twice.
    Duplicate {
        pattern: String,
        action: RuleAction,
    },
    /// The same pattern with another action; only the first counts.
    Conflict {
        pattern: String,
        first: RuleAction,
        second: RuleAction,
    },
    /// An earlier rule matches everything this one does.
    Shadowed {
        pattern: String,
        by: String,
    },
    /// An objection behind an allow rule that is broader, which decides first.
    Overruled {
        pattern: String,
        action: RuleAction,
        by: String,
    },
    Expired {
        pattern: String,
    },
    /// There is no call that it could be about.
    Idle {
        pattern: String,
        why: String,
    },
    /// It binds less than it seems to.
    Advice {
        pattern: String,
        advice: String,
    },
}

impl Finding {
    /// Whether the list should be changed; advice leaves it to its author.
    pub fn is_fault(&self) -> bool {
        !matches!(self, Self::Advice { .. } | Self::Expired { .. })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate { pattern, action } => {
                write!(f, "duplicate: pattern=\"{pattern}\" action={action}")
            }
            Self::Conflict {
                pattern,
                first,
                second,
            } => write!(
                f,
                "conflict: pattern=\"{pattern}\" action={first} comes before action={second}, which never counts"
            ),
            Self::Shadowed { pattern, by } => {
                write!(
                    f,
                    "shadowed: pattern=\"{pattern}\" is never reached behind \"{by}\""
                )
            }
            Self::Overruled {
                pattern,
                action,
                by,
            } => write!(
                f,
                "overruled: pattern=\"{pattern}\" action={action} stands behind \"{by}\" action=allow, which decides first; put it before"
            ),
            Self::Expired { pattern } => {
                write!(f, "expired: pattern=\"{pattern}\" no longer counts")
            }
            Self::Idle { pattern, why } => {
                write!(f, "never matches: pattern=\"{pattern}\": {why}")
            }
            Self::Advice { pattern, advice } => write!(f, "note: pattern=\"{pattern}\" {advice}"),
        }
    }
}

/// Looks at the rules of one scope in their order.
pub fn lint(rules: &[Rule], now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let pattern = rule.pattern.text().to_owned();
        if rule.is_expired(now) {
            findings.push(Finding::Expired { pattern });
            continue;
        }
        if let Some(why) = rule.pattern.never() {
            let why = why.to_string();
            findings.push(Finding::Idle { pattern, why });
            continue;
        }
        let earlier = || rules[..index].iter().filter(|rule| !rule.is_expired(now));
        let same = earlier().find(|earlier| earlier.pattern.text() == pattern);
        let finding = match same {
            Some(first) if first.action == rule.action => Some(Finding::Duplicate {
                pattern,
                action: rule.action,
            }),
            Some(first) => Some(Finding::Conflict {
                pattern,
                first: first.action,
                second: rule.action,
            }),
            None => earlier().find_map(|earlier| behind(earlier, rule)),
        };
        findings.extend(finding);
        findings.extend(advice(rule, rules));
    }
    findings
}

/// What is to be said of a rule behind this one, as far as that is easy to see.
fn behind(earlier: &Rule, later: &Rule) -> Option<Finding> {
    if !covers_tools(earlier, later) {
        return None;
    }
    let pattern = later.pattern.text().to_owned();
    let by = earlier.pattern.text().to_owned();
    if earlier.pattern.is_bare() {
        return Some(Finding::Shadowed { pattern, by });
    }
    match (earlier.action, later.action) {
        // An allow matches less than an objection with the same glob does, so some of it is left.
        (RuleAction::Allow, RuleAction::Ask | RuleAction::Deny) => covers_usually(earlier, later)
            .then_some(Finding::Overruled {
                pattern,
                action: later.action,
                by,
            }),
        (RuleAction::Allow, RuleAction::Allow) | (RuleAction::Ask | RuleAction::Deny, _) => {
            covers_always(earlier, later).then_some(Finding::Shadowed { pattern, by })
        }
    }
}

/// Whether everything that the later rule matches is matched by the earlier one before.
fn covers_always(earlier: &Rule, later: &Rule) -> bool {
    let (About::Command(earlier), About::Command(later)) =
        (earlier.pattern.about(), later.pattern.about())
    else {
        return false;
    };
    let is_whole = |command: &&CommandPattern| command.reach == Reach::Whole;
    later.iter().all(|later| {
        let mut broader = earlier.iter().filter(is_whole);
        is_whole(&later) && broader.any(|earlier| earlier.glob.covers(&later.glob))
    })
}

/// Whether what the later rule is about is matched by the earlier one in its usual spelling.
fn covers_usually(earlier: &Rule, later: &Rule) -> bool {
    match (earlier.pattern.about(), later.pattern.about()) {
        (About::Command(earlier), About::Command(later)) => later.iter().any(|later| {
            earlier.any(|earlier| match earlier.reach {
                Reach::Whole | Reach::Anywhere => earlier.glob.covers(&later.glob),
                Reach::Prefix => earlier.longer.covers(&later.glob) || earlier.glob == later.glob,
            })
        }),
        (About::Path(_), About::Path(_)) => {
            let directory = argument(earlier).trim_end_matches("**");
            let is_tree = directory.len() < argument(earlier).len();
            is_tree && argument(later).starts_with(directory)
        }
        (About::Url(_), About::Url(_)) => {
            Wildcard::new(argument(earlier)).covers(&Wildcard::new(argument(later)))
        }
        (
            About::Anything
            | About::Command(_)
            | About::Path(_)
            | About::Url(_)
            | About::Fields(_)
            | About::Never(_),
            _,
        ) => false,
    }
}

/// What a pattern says behind the tool.
fn argument(rule: &Rule) -> &str {
    let text = rule.pattern.text();
    let argument = text.split_once([':', '(']).map_or("", |(_, rest)| rest);
    argument.trim_end_matches(')')
}

fn covers_tools(earlier: &Rule, later: &Rule) -> bool {
    match (earlier.pattern.tool(), later.pattern.tool()) {
        (ToolName::Every, _) => true,
        (ToolName::Exactly(a), ToolName::Exactly(b)) => a == b,
        (ToolName::Like(a), ToolName::Exactly(b)) => a.matches(b),
        (_, ToolName::Every) | (ToolName::Exactly(_) | ToolName::Like(_), ToolName::Like(_)) => {
            false
        }
    }
}

fn advice(rule: &Rule, rules: &[Rule]) -> Option<Finding> {
    let text = rule.pattern.text();
    let note = |advice: &str| {
        Some(Finding::Advice {
            pattern: text.to_owned(),
            advice: advice.to_owned(),
        })
    };
    match (rule.pattern.about(), rule.action) {
        (About::Command(commands), RuleAction::Deny | RuleAction::Ask) => {
            let has_flags = commands.any(|command| {
                let words = command.glob.spelled_words();
                words.iter().skip(1).any(|word| word.starts_with('-'))
            });
            if has_flags {
                return note(
                    "depends on how options are spelled and ordered; other spellings are not matched",
                );
            }
            None
        }
        (About::Command(commands), RuleAction::Allow) => {
            if commands.any(|command| command.reach == Reach::Anywhere) {
                return note(
                    "allows the command behind wrappers such as sudo as well; `~` is meant for denying",
                );
            }
            let is_open =
                |command: &CommandPattern| command.glob.first_word().is_some_and(runs_anything);
            commands
                .any(is_open)
                .then(|| note("lets the program run anything at all"))
                .flatten()
        }
        (About::Path(_), RuleAction::Deny) => {
            let name = match rule.pattern.tool() {
                ToolName::Exactly(name) => name.as_str(),
                ToolName::Every | ToolName::Like(_) => return None,
            };
            if tools::is_editor(name) {
                let argument = argument(rule);
                let others: Vec<&str> = BuiltInTool::editors()
                    .filter(|editor| {
                        !rules.iter().any(|other| {
                            other.action == RuleAction::Deny
                                && other.is_about(editor)
                                && (other.pattern.is_bare()
                                    || other.pattern.text().contains(argument))
                        })
                    })
                    .collect();
                if !others.is_empty() {
                    return note(&format!(
                        "does not bind {}, nor programs that Bash runs",
                        others.join(", ")
                    ));
                }
            }
            note("does not bind programs that Bash runs; only redirections are checked")
        }
        _ => None,
    }
}

/// Programs for which a pattern on their arguments restrains nothing.
fn runs_anything(program: &str) -> bool {
    matches!(
        program,
        "bash"
            | "sh"
            | "zsh"
            | "dash"
            | "eval"
            | "python"
            | "python3"
            | "node"
            | "perl"
            | "ruby"
            | "php"
            | "npx"
            | "uvx"
            | "pipx"
            | "xargs"
            | "sudo"
            | "doas"
            | "ssh"
            | "env"
    )
}

#[cfg(test)]
mod tests {
    use caliban_settings::RuleSpec;

    use super::*;
    use crate::origin::Origin;

    fn findings(rules: &[(&str, RuleAction)]) -> Vec<String> {
        let rules: Vec<Rule> = rules
            .iter()
            .map(|(pattern, action)| {
                Rule::new(RuleSpec::new(*pattern, *action), Origin::Project).unwrap()
            })
            .collect();
        lint(&rules, Timestamp::UNIX_EPOCH)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn duplicates_contradictions_and_shadows_are_found() {
        use RuleAction::{Allow, Deny};
        assert!(findings(&[("Bash:git *", Allow), ("Bash:ls *", Allow)]).is_empty());
        assert_eq!(
            findings(&[("Bash:git *", Allow), ("Bash:git *", Allow)]),
            ["duplicate: pattern=\"Bash:git *\" action=allow"]
        );
        assert!(
            findings(&[("Bash:git *", Allow), ("Bash:git *", Deny)])[0].starts_with("conflict")
        );
        assert!(
            findings(&[("Bash:git *", Allow), ("Bash:git push *", Allow)])[0]
                .starts_with("shadowed")
        );
        assert!(findings(&[("Bash", Allow), ("Bash:rm *", Deny)])[0].starts_with("shadowed"));
        assert!(findings(&[("*", Deny), ("Read", Allow)])[0].starts_with("shadowed"));
    }

    #[test]
    fn an_objection_behind_a_broader_allow_is_found() {
        use RuleAction::{Allow, Ask, Deny};
        for (broad, narrow) in [
            ("Bash:git *", "Bash:git push *"),
            ("Bash(git:*)", "Bash(git push:*)"),
            ("Bash:{git,hg} *", "Bash:~git push *"),
            ("Edit:src/**", "Edit:src/secret.rs"),
            ("WebFetch:https://*", "WebFetch:https://example.com/x"),
        ] {
            for action in [Ask, Deny] {
                let found = findings(&[(broad, Allow), (narrow, action)]);
                let expected = format!("overruled: pattern=\"{narrow}\" action={action}");
                assert!(
                    found.iter().any(|it| it.starts_with(&expected)),
                    "{found:?}"
                );
            }
            let found = findings(&[(narrow, Deny), (broad, Allow)]);
            assert!(
                !found.iter().any(|it| it.starts_with("overruled")),
                "{found:?}"
            );
        }
        let apart = findings(&[("Bash:git log *", Allow), ("Bash:git push *", Deny)]);
        assert!(apart.is_empty(), "{apart:?}");
    }

    #[test]
    fn rules_that_bind_less_than_they_seem_are_noted() {
        use RuleAction::{Allow, Deny};
        assert!(findings(&[("Bash:rm -rf *", Deny)])[0].contains("spelled and ordered"));
        assert!(findings(&[("Bash:rm *", Deny)]).is_empty());
        assert!(findings(&[("Bash:python3 *", Allow)])[0].contains("anything at all"));
        assert!(findings(&[("Edit:.env", Deny)])[0].contains("does not bind MultiEdit"));
    }
}
