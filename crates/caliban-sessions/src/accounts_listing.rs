//! The accounts of all sessions, read from the heads of their files, and from the journals of those
//! that are open or were not closed.

use std::io;
use std::path::Path;

use caliban_model::Purpose;

use crate::accounts::{Account, Accounts, Sums};
use crate::disk::{Disk, DiskReader};
use crate::error::{Error, Warning};
use crate::journal::{Found, Scanner};
use crate::listing::{Summary, names, summary_with_accounts};
use crate::paths::Paths;
use crate::record::Record;
use crate::state::{entry, utc_day};

/// Bytes of a journal that are looked through. What a larger one tells after that is part of the
/// session's sums, and of no account.
const LONGEST: u64 = 64 << 20;

/// A session and what it consumed.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionAccounts {
    pub summary: Summary,
    pub accounts: Accounts,
}

/// All sessions, and what could not be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AllAccounts {
    pub sessions: Vec<SessionAccounts>,
    pub warnings: Vec<Warning>,
}

pub(crate) fn read(disk: &dyn Disk, directory: &Path) -> Result<AllAccounts, Error> {
    let mut all = AllAccounts::default();
    for name in names(disk, directory)? {
        let paths = Paths::new(directory, name);
        match of_session(disk, &paths) {
            Ok(Some(session)) => all.sessions.push(session),
            // Removed meanwhile.
            Ok(None) => {}
            Err(error) => all.warnings.push(Warning::Unlisted {
                path: paths.snapshot(),
                problem: error.to_string(),
            }),
        }
    }
    Ok(all)
}

fn of_session(disk: &dyn Disk, paths: &Paths) -> Result<Option<SessionAccounts>, Error> {
    let path = paths.journal();
    // Before the session file, as when a session is loaded.
    let journal = match disk.read(&path) {
        Ok(reader) => Some(reader),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    let Some(found) = summary_with_accounts(disk, paths)? else {
        return Ok(None);
    };
    let (summary, mut accounts) = (found.summary, found.accounts);
    if let Some(journal) = journal {
        bring_up_to_date(&mut accounts, journal, found.base, &summary)
            .map_err(Error::io("read", path))?;
    }
    let of = Account {
        day: utc_day(summary.updated_at),
        provider: summary.provider.clone(),
        model: summary.model.clone(),
        purpose: Purpose::Other,
        agent: None,
        sums: Sums::default(),
    };
    accounts.complete(&summary.usage, summary.cost, of);
    Ok(Some(SessionAccounts { summary, accounts }))
}

/// Adds what a journal says after record `base`.
fn bring_up_to_date(
    accounts: &mut Accounts,
    journal: Box<dyn DiskReader>,
    base: u64,
    summary: &Summary,
) -> io::Result<()> {
    let mut scanner = Scanner::new(journal);
    if let Some(header) = scanner.header()?
        && header.session_id != summary.session_id
    {
        return Ok(());
    }
    while let Some(scanned) = scanner.next()? {
        if scanned.end > LONGEST {
            break;
        }
        let Found::Line(line) = scanned.found else {
            continue;
        };
        if line.seq <= base || !matches!(line.kind(), "usage" | "work") {
            continue;
        }
        match serde_json::from_str(line.text()) {
            Ok(Record::Work { day, work }) => accounts.work(day, work),
            Ok(record) => {
                if let Some(entry) = entry(record, line.at) {
                    accounts.enter(entry);
                }
            }
            Err(_) => {}
        }
    }
    Ok(())
}
