//! What a session consumed, by day, model, purpose and agent. It stands in the head of a session
//! file, so that the accounts of thousands of sessions are read from their beginnings.

use caliban_model::{Purpose, Usage};
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// Accounts that a session keeps apart. What comes beyond is added to one of its own without a
/// model, so that the sums stay right.
const MOST: usize = 1_000;
/// Days that a session keeps apart; what comes beyond counts for the last of them.
const MOST_DAYS: usize = 1_000;

/// Calls of models that have everything in common which is kept apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub day: Date,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    #[serde(default)]
    pub purpose: Purpose,
    /// The kind of sub-agent; nothing for the session's own agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(flatten)]
    pub sums: Sums,
}

/// What calls came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sums {
    pub calls: u64,
    pub usage: Usage,
    /// Of the calls whose price was known when they were made, at that price.
    pub cost: Decimal,
    /// What a cache made cheaper; negative where writing to it cost more than reading saved.
    #[serde(skip_serializing_if = "Decimal::is_zero")]
    pub saved: Decimal,
    /// Calls whose price was not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced: u64,
}

/// The work of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Day {
    pub day: Date,
    #[serde(flatten)]
    pub work: Work,
}

/// What was done beside calling models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// How long prompts were worked on, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub active_ms: u64,
    /// Calls of tools that were not allowed.
    #[serde(skip_serializing_if = "is_zero")]
    pub denials: u64,
}

/// The accounts of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Accounts {
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "one_line_each"
    )]
    rows: Vec<Account>,
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "one_line_each"
    )]
    days: Vec<Day>,
    /// What the session that this one is a copy of had come to: it stands in that one's accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    inherited: Option<Inherited>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Inherited {
    usage: Usage,
    cost: Decimal,
}

impl Sums {
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.usage += other.usage;
        self.cost = self.cost.saturating_add(other.cost);
        self.saved = self.saved.saturating_add(other.saved);
        self.unpriced += other.unpriced;
    }
}

impl Work {
    pub fn add(&mut self, other: Self) {
        self.active_ms = self.active_ms.saturating_add(other.active_ms);
        self.denials = self.denials.saturating_add(other.denials);
    }

    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

impl Accounts {
    pub fn rows(&self) -> &[Account] {
        &self.rows
    }

    pub fn days(&self) -> &[Day] {
        &self.days
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds to the account that has everything in common with this one.
    pub fn enter(&mut self, entry: Account) {
        let same = |row: &&mut Account| {
            row.day == entry.day
                && row.model == entry.model
                && row.provider == entry.provider
                && row.purpose == entry.purpose
                && row.agent == entry.agent
        };
        // The latest is the likeliest.
        if let Some(row) = self.rows.iter_mut().rev().find(same) {
            row.sums.add(&entry.sums);
            return;
        }
        if self.rows.len() < MOST {
            self.rows.push(entry);
            return;
        }
        let Some(last) = self.rows.last_mut() else {
            return;
        };
        if !last.model.is_empty() {
            last.provider.clear();
            last.model.clear();
            last.agent = None;
            last.purpose = Purpose::Other;
        }
        last.sums.add(&entry.sums);
    }

    pub(crate) fn work(&mut self, day: Date, work: Work) {
        let has_room = self.days.len() < MOST_DAYS;
        match self.days.iter_mut().rev().find(|kept| kept.day == day) {
            Some(kept) => kept.work.add(work),
            None if has_room => self.days.push(Day { day, work }),
            None => {
                if let Some(last) = self.days.last_mut() {
                    last.work.add(work);
                }
            }
        }
    }

    /// The accounts of a copy of this session, which has spent nothing itself yet.
    pub(crate) fn of_copy(usage: Usage, cost: Decimal) -> Self {
        Self {
            inherited: Some(Inherited { usage, cost }),
            ..Self::default()
        }
    }

    /// What the session that this one is a copy of had come to, which is no part of the sums.
    pub fn inherited(&self) -> (Usage, Decimal) {
        let inherited = self.inherited.unwrap_or_default();
        (inherited.usage, inherited.cost)
    }

    /// What all accounts come to.
    pub fn total(&self) -> Sums {
        let mut total = Sums::default();
        for row in &self.rows {
            total.add(&row.sums);
        }
        total
    }

    pub fn total_work(&self) -> Work {
        let mut total = Work::default();
        for day in &self.days {
            total.add(day.work);
        }
        total
    }

    /// Adds an account for what a session came to beyond its accounts: it was written before there
    /// were any, or not everything of it was read.
    pub(crate) fn complete(&mut self, usage: &Usage, cost: Decimal, of: Account) {
        let inherited = self.inherited.unwrap_or_default();
        let mut known = self.total().usage;
        known += inherited.usage;
        let rest = usage.beyond(&known);
        let cost = cost - self.total().cost - inherited.cost;
        let cost = cost.max(Decimal::ZERO);
        if rest != Usage::default() || !cost.is_zero() {
            self.rows.push(Account {
                sums: Sums {
                    usage: rest,
                    cost,
                    ..Sums::default()
                },
                ..of
            });
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form in which serde calls it"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A list with each of its entries on one line, also where everything else is spread out: hundreds
/// of them are to stand in the first kilobytes.
fn one_line_each<T: Serialize, S: Serializer>(
    entries: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let lines = entries.iter().map(|entry| {
        let text = serde_json::to_string(entry)?;
        RawValue::from_string(text)
    });
    let lines: Vec<Box<RawValue>> = lines.collect::<Result<_, _>>().map_err(S::Error::custom)?;
    lines.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rust_decimal::dec;

    fn account(day: Date, model: &str) -> Account {
        Account {
            day,
            provider: "anthropic".to_owned(),
            model: model.to_owned(),
            purpose: Purpose::MainLoop,
            agent: None,
            sums: Sums {
                calls: 1,
                usage: Usage {
                    input: 10,
                    ..Usage::default()
                },
                cost: dec!(0.5),
                ..Sums::default()
            },
        }
    }

    const DAY: Date = Date::constant(2026, 1, 31);

    #[test]
    fn what_has_everything_in_common_is_one_account() {
        let mut accounts = Accounts::default();
        for model in ["a", "b", "a"] {
            accounts.enter(account(DAY, model));
        }
        assert_eq!(accounts.rows().len(), 2);
        assert_eq!(accounts.rows()[0].sums.calls, 2);
        assert_eq!(accounts.total().cost, dec!(1.5));
    }

    #[test]
    fn there_is_a_bound_and_the_sums_stay_right() {
        let mut accounts = Accounts::default();
        for number in 0..MOST + 50 {
            accounts.enter(account(DAY, &format!("m{number}")));
        }
        assert_eq!(accounts.rows().len(), MOST);
        assert_eq!(accounts.total().calls, MOST as u64 + 50);
    }

    #[test]
    fn they_are_read_as_they_are_written_one_line_each() {
        let mut accounts = Accounts::default();
        accounts.enter(account(DAY, "a"));
        accounts.enter(account(DAY.tomorrow().unwrap(), "a"));
        let work = Work {
            active_ms: 1_500,
            denials: 2,
        };
        accounts.work(DAY, work);
        let text = serde_json::to_string_pretty(&accounts).unwrap();
        assert_eq!(text.lines().count(), 9, "{text}");
        assert_eq!(serde_json::from_str::<Accounts>(&text).unwrap(), accounts);
    }

    #[test]
    fn what_nobody_accounted_for_is_told_apart() {
        let mut accounts = Accounts::of_copy(
            Usage {
                input: 5,
                ..Usage::default()
            },
            dec!(1),
        );
        accounts.enter(account(DAY, "a"));
        let all = Usage {
            input: 18,
            ..Usage::default()
        };
        accounts.complete(&all, dec!(1.75), account(DAY, "old"));
        let rest = &accounts.rows()[1];
        assert_eq!((rest.sums.usage.input, rest.sums.cost), (3, dec!(0.25)));
        let before = accounts.clone();
        accounts.complete(&all, dec!(1.75), account(DAY, "old"));
        assert_eq!(accounts, before);
    }
}
