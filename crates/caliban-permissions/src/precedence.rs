//! Which of the rules that match decides.

use caliban_settings::RuleAction;
use serde::{Deserialize, Serialize};

use crate::origin::Origin;
use crate::rule::Rule;

/// How rules of different writers weigh against each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precedence {
    /// The first that matches decides, unless a guard holds against it. The flags are those of the
    /// person who types them, so they come before the settings.
    #[default]
    FirstMatch,
    /// Whatever denies comes before whatever asks, and that before whatever allows, wherever it is
    /// written. The flags are those of a program, which cannot undo what its user forbade.
    StrictestFirst,
    /// The first that matches decides, as for a person. Only what is allowed while the session runs
    /// was allowed through a program, and that undoes nothing that anybody forbade.
    DenyBeforeClient,
}

/// Why the first match did not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// The operator of the machine forbids it, which holds against everybody.
    Managed,
    /// The user forbids it, which holds against the workspace.
    User,
    /// A rule for everything forbids it, which holds against the rules of a single server.
    General,
    /// Somebody forbids it, which holds against what a program allowed for a session.
    Client,
}

/// The rule that decides.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    pub index: usize,
    pub rule: &'a Rule,
    pub guard: Option<Guard>,
}

/// Finds the first rule among those that are asked.
pub(crate) type FindFirst<'f, 'a> = &'f dyn Fn(&dyn Fn(&Rule) -> bool) -> Option<(usize, &'a Rule)>;

impl Precedence {
    /// The rule that decides, found by asking for the first among some of them.
    pub(crate) fn decide<'a>(self, first: FindFirst<'_, 'a>) -> Option<Found<'a>> {
        match self {
            Self::FirstMatch => guarded(first),
            Self::DenyBeforeClient => {
                let decided = guarded(first)?;
                let is_clients = decided.rule.origin == Origin::Runtime
                    && decided.rule.action == RuleAction::Allow;
                let denied = first(&|rule| {
                    is_clients && rule.action == RuleAction::Deny && rule.origin != Origin::BuiltIn
                });
                Some(denied.map_or(decided, |(index, rule)| Found {
                    index,
                    rule,
                    guard: Some(Guard::Client),
                }))
            }
            Self::StrictestFirst => {
                let of = |action: RuleAction| {
                    first(&|rule| rule.action == action && rule.origin != Origin::BuiltIn)
                };
                let (index, rule) = of(RuleAction::Deny)
                    .or_else(|| of(RuleAction::Ask))
                    .or_else(|| of(RuleAction::Allow))
                    // The defaults are nobody's wish.
                    .or_else(|| first(&|_| true))?;
                Some(Found {
                    index,
                    rule,
                    guard: None,
                })
            }
        }
    }
}

/// The first rule that matches, unless a guard holds against it.
fn guarded<'a>(first: FindFirst<'_, 'a>) -> Option<Found<'a>> {
    let (index, rule) = first(&|_| true)?;
    let guarded = |is_asked: &dyn Fn(Origin) -> bool, guard: Guard| {
        first(&|rule| is_asked(rule.origin))
            .filter(|(_, rule)| rule.action == RuleAction::Deny)
            .map(|(index, rule)| Found {
                index,
                rule,
                guard: Some(guard),
            })
    };
    let decided = Found {
        index,
        rule,
        guard: None,
    };
    if rule.action == RuleAction::Deny {
        return Some(decided);
    }
    let by_managed = guarded(&|origin| origin == Origin::Managed, Guard::Managed);
    let by_others = || match rule.origin {
        Origin::Local | Origin::Project => guarded(&|origin| origin == Origin::User, Guard::User),
        Origin::Server => guarded(&|origin| origin != Origin::Server, Guard::General),
        Origin::Runtime
        | Origin::Flag
        | Origin::Overlay
        | Origin::User
        | Origin::Managed
        | Origin::Client
        | Origin::BuiltIn => None,
    };
    Some(by_managed.or_else(by_others).unwrap_or(decided))
}

#[cfg(test)]
mod tests {
    use caliban_settings::RuleSpec;
    use jiff::Timestamp;

    use super::*;
    use crate::rulebook::{Defaults, RuleBook};

    fn rule(pattern: &str, action: RuleAction, origin: Origin) -> Rule {
        Rule::new(RuleSpec::new(pattern, action), origin).unwrap()
    }

    fn decide(rules: Vec<Rule>, tool: &str) -> (RuleAction, Origin, Option<Guard>) {
        let book = RuleBook::of(rules);
        let now = Timestamp::UNIX_EPOCH;
        let found = book
            .find(&book.all(), Defaults::Included, now, |rule| {
                rule.is_about(tool)
            })
            .unwrap();
        (found.rule.action, found.rule.origin, found.guard)
    }

    #[test]
    fn a_workspace_cannot_allow_what_its_user_or_operator_forbade() {
        use Origin::{Flag, Local, Managed, Project, User};
        use RuleAction::{Allow, Ask, Deny};
        let of = |action, origin| rule("Write", action, origin);
        assert_eq!(decide(vec![], "Write").0, Ask);
        assert_eq!(
            decide(vec![of(Allow, Project), of(Deny, User)], "Write"),
            (Deny, User, Some(Guard::User))
        );
        assert_eq!(
            decide(vec![of(Allow, Local), of(Deny, Managed)], "Write"),
            (Deny, Managed, Some(Guard::Managed))
        );
        assert_eq!(
            decide(vec![of(Allow, Flag), of(Deny, User)], "Write"),
            (Allow, Flag, None)
        );
        assert_eq!(
            decide(vec![of(Allow, Flag), of(Deny, Managed)], "Write"),
            (Deny, Managed, Some(Guard::Managed))
        );
        // A scope's own verdict is its first match.
        assert_eq!(
            decide(
                vec![of(Allow, Project), of(Allow, User), of(Deny, User)],
                "Write"
            ),
            (Allow, Project, None)
        );
    }

    #[test]
    fn whatever_denies_comes_first_where_a_program_gives_the_flags() {
        use Origin::{Flag, Project, Runtime, User};
        use RuleAction::{Allow, Ask, Deny};
        let of = |action, origin| rule("Write", action, origin);
        let strictest = |rules: Vec<Rule>| {
            let book = RuleBook::of(rules).judged(Precedence::StrictestFirst);
            let all = book.all();
            let found = book.find(&all, Defaults::Included, Timestamp::UNIX_EPOCH, |rule| {
                rule.is_about("Write")
            });
            found
                .map(|found| (found.rule.action, found.rule.origin))
                .unwrap()
        };
        for (rules, expected) in [
            (vec![of(Allow, Flag), of(Deny, User)], (Deny, User)),
            (vec![of(Allow, Runtime), of(Deny, Project)], (Deny, Project)),
            (vec![of(Allow, Flag), of(Ask, User)], (Ask, User)),
            (
                vec![of(Ask, Flag), of(Allow, User), of(Deny, User)],
                (Deny, User),
            ),
            (vec![of(Allow, Project)], (Allow, Project)),
            (vec![], (Ask, Origin::BuiltIn)),
        ] {
            assert_eq!(strictest(rules), expected);
        }
    }

    #[test]
    fn a_servers_own_rules_stand_between_denials_and_everything_else() {
        use Origin::{Flag, Server, User};
        use RuleAction::{Allow, Ask, Deny};
        let of = |action, origin| rule("mcp__s__*", action, origin);
        for (own, general, expected) in [
            (Allow, Deny, (Deny, User, Some(Guard::General))),
            (Deny, Allow, (Deny, Server, None)),
            (Ask, Allow, (Ask, Server, None)),
            (Allow, Ask, (Allow, Server, None)),
        ] {
            let rules = vec![of(own, Server), of(general, User)];
            assert_eq!(decide(rules, "mcp__s__t"), expected);
        }
        let flags = vec![of(Allow, Server), of(Deny, Flag)];
        assert_eq!(decide(flags, "mcp__s__t").0, Deny);
    }
}
