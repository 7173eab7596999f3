//! What is wrong with a list of rules: duplicates, contradictions, rules that never decide, and
//! rules that bind less than they seem to.

use std::fmt;

use caliban_model::BuiltInTool;
use caliban_settings::RuleAction;
use jiff::Timestamp;

use crate::pattern::{About, Reach, ToolName};
use crate::rulebook::Rule;
use crate::tools;

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
    Expired {
        pattern: String,
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
            Self::Expired { pattern } => {
                write!(f, "expired: pattern=\"{pattern}\" no longer counts")
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
            None => earlier()
                .find(|earlier| shadows(earlier, rule))
                .map(|earlier| Finding::Shadowed {
                    pattern,
                    by: earlier.pattern.text().to_owned(),
                }),
        };
        findings.extend(finding);
        findings.extend(advice(rule, rules));
    }
    findings
}

/// Whether everything that `later` matches is matched by `earlier` before, as far as that is easy
/// to see.
fn shadows(earlier: &Rule, later: &Rule) -> bool {
    let tools = match (earlier.pattern.tool(), later.pattern.tool()) {
        (ToolName::Every, _) => true,
        (ToolName::Exactly(a), ToolName::Exactly(b)) => a == b,
        (ToolName::Like(a), ToolName::Exactly(b)) => a.matches(b),
        (_, ToolName::Every) | (ToolName::Exactly(_) | ToolName::Like(_), ToolName::Like(_)) => {
            false
        }
    };
    let calls = match (earlier.pattern.about(), later.pattern.about()) {
        (About::Anything, _) => true,
        (About::Command(a), About::Command(b)) => {
            let strict = earlier.action == RuleAction::Allow && later.action != RuleAction::Allow;
            // An allow matches less than an objection with the same glob does.
            !strict && a.reach == Reach::Whole && b.reach == Reach::Whole && a.glob.covers(&b.glob)
        }
        _ => false,
    };
    tools && calls
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
        (About::Command(command), RuleAction::Deny | RuleAction::Ask) => {
            let words = command.glob.spelled_words();
            let has_flags = words.iter().skip(1).any(|word| word.starts_with('-'));
            if has_flags {
                return note(
                    "depends on how options are spelled and ordered; other spellings are not matched",
                );
            }
            None
        }
        (About::Command(command), RuleAction::Allow) => match command.reach {
            Reach::Anywhere => note(
                "allows the command behind wrappers such as sudo as well; `~` is meant for denying",
            ),
            Reach::Whole | Reach::Prefix => runs_anything(command.glob.first_word()?)
                .then(|| note("lets the program run anything at all"))
                .flatten(),
        },
        (About::Path(_), RuleAction::Deny) => {
            let name = match rule.pattern.tool() {
                ToolName::Exactly(name) => name.as_str(),
                ToolName::Every | ToolName::Like(_) => return None,
            };
            if tools::is_editor(name) {
                let argument = text.split_once([':', '(']).map_or("", |(_, rest)| rest);
                let argument = argument.trim_end_matches(')');
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
    use crate::rulebook::Origin;

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
    fn rules_that_bind_less_than_they_seem_are_noted() {
        use RuleAction::{Allow, Deny};
        assert!(findings(&[("Bash:rm -rf *", Deny)])[0].contains("spelled and ordered"));
        assert!(findings(&[("Bash:rm *", Deny)]).is_empty());
        assert!(findings(&[("Bash:python3 *", Allow)])[0].contains("anything at all"));
        assert!(findings(&[("Edit:.env", Deny)])[0].contains("does not bind MultiEdit"));
    }
}
