//! Accounts of many sessions, summed by what tells them apart.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use caliban_sessions::{Account, SessionAccounts, Sums, Work};
use jiff::civil::Date;
use uuid::Uuid;

use crate::args::UsageBy;

/// Days between the first and the last that are listed although nothing happened.
const GAPS: usize = 92;
/// What has no name of its own.
const UNKNOWN: &str = "not known";
/// The session's own agent.
const MAIN: &str = "main";

/// The days that count, both included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) since: Option<Date>,
    pub(super) until: Option<Date>,
}

impl Range {
    fn has(self, day: Date) -> bool {
        self.since.is_none_or(|since| since <= day) && self.until.is_none_or(|until| day <= until)
    }
}

/// One sum.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) name: String,
    /// What a session is about.
    pub(super) title: Option<String>,
    pub(super) sums: Sums,
    /// Nothing where it cannot be told apart by what the lines are about.
    pub(super) work: Option<Work>,
    pub(super) sessions: usize,
}

/// All sums.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) lines: Vec<Line>,
    pub(super) total: Line,
}

#[derive(Default)]
struct Group {
    title: Option<String>,
    sums: Sums,
    work: Work,
    sessions: BTreeSet<Uuid>,
}

impl Group {
    fn line(self, name: String, by: UsageBy) -> Line {
        Line {
            name,
            title: self.title,
            sums: self.sums,
            work: by.has_work().then_some(self.work),
            sessions: self.sessions.len(),
        }
    }
}

impl Sheet {
    pub(super) fn new(by: UsageBy, range: Range, sessions: &[SessionAccounts]) -> Self {
        let mut groups = BTreeMap::<String, Group>::new();
        let mut total = Group::default();
        for session in sessions {
            let id = session.summary.session_id;
            let rows = session.accounts.rows().iter();
            for row in rows.filter(|row| range.has(row.day)) {
                let group = groups.entry(key(by, session, row)).or_default();
                for group in [group, &mut total] {
                    group.sums.add(&row.sums);
                    group.sessions.insert(id);
                }
            }
            let days = session.accounts.days().iter();
            for day in days.filter(|day| range.has(day.day)) {
                total.work.add(day.work);
                let key = match by {
                    UsageBy::Day => day.day.to_string(),
                    UsageBy::Project => project(session),
                    UsageBy::Session => name(session),
                    UsageBy::Model | UsageBy::Purpose | UsageBy::Agent => continue,
                };
                groups.entry(key).or_default().work.add(day.work);
            }
            if by == UsageBy::Session
                && let Some(group) = groups.get_mut(&name(session))
            {
                group.title.clone_from(&session.summary.title);
            }
        }
        if by == UsageBy::Day {
            fill(&mut groups);
        }
        let mut lines: Vec<Line> = groups
            .into_iter()
            .map(|(name, group)| group.line(name, by))
            .collect();
        if by != UsageBy::Day {
            lines.sort_by_key(|line| Reverse((line.sums.cost, tokens(&line.sums))));
        }
        Self {
            lines,
            total: total.line("total".to_owned(), UsageBy::Day),
        }
    }
}

/// Every token, read or written.
pub(super) fn tokens(sums: &Sums) -> u64 {
    sums.usage.total_input() + sums.usage.output
}

fn key(by: UsageBy, session: &SessionAccounts, row: &Account) -> String {
    match by {
        UsageBy::Day => row.day.to_string(),
        UsageBy::Model if row.model.is_empty() => UNKNOWN.to_owned(),
        UsageBy::Model => format!("{}/{}", row.provider, row.model),
        UsageBy::Project => project(session),
        UsageBy::Session => name(session),
        UsageBy::Purpose => row.purpose.slug().to_owned(),
        UsageBy::Agent => row.agent.clone().unwrap_or_else(|| MAIN.to_owned()),
    }
}

fn project(session: &SessionAccounts) -> String {
    session.summary.cwd.display().to_string()
}

fn name(session: &SessionAccounts) -> String {
    session.summary.name.as_str().to_owned()
}

/// Lists the days on which nothing happened, so that the bars tell the truth about time.
fn fill(groups: &mut BTreeMap<String, Group>) {
    let ends = (groups.keys().next(), groups.keys().next_back());
    let (Some(first), Some(last)) = ends else {
        return;
    };
    let (Ok(first), Ok(last)) = (first.parse::<Date>(), last.parse::<Date>()) else {
        return;
    };
    let days = first.series(jiff::Span::new().days(1));
    let days: Vec<Date> = days.take_while(|day| *day <= last).take(GAPS + 1).collect();
    if days.len() <= GAPS {
        for day in days {
            groups.entry(day.to_string()).or_default();
        }
    }
}
