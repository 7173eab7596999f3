//! Jobs in a list.

use caliban_fleet_nats::{Board, JobRecord};

use crate::args::ListArgs;
use crate::console::Console;
use crate::exit::Failure;

pub(super) async fn list<B: Board>(
    board: &B,
    args: &ListArgs,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut records = board.records().await?;
    records.retain(|record| {
        let is_of_pool = args.pool.as_ref().is_none_or(|pool| record.pool == *pool);
        let state = args.state.as_deref();
        is_of_pool && state.is_none_or(|state| record.state.as_str() == state)
    });
    records.sort_by_key(|record| std::cmp::Reverse(record.job));
    let shown = records.iter().take(args.limit);
    for record in shown {
        let line = if args.json {
            let json = serde_json::to_string(record);
            json.map_err(|error| Failure::Runtime(error.to_string()))?
        } else {
            row(record)
        };
        console.put(&format!("{line}\n"))?;
    }
    if records.len() > args.limit && !args.json {
        let left = records.len() - args.limit;
        console.put(&format!("and {left} more; `--limit` shows them\n"))?;
    }
    console.flush()
}

fn row(record: &JobRecord) -> String {
    format!(
        "{}  {:<10}  {:<10}  {:>2}  {:<20}  {}",
        record.job,
        record.state.as_str(),
        record.pool,
        record.attempt,
        record.worker.as_deref().unwrap_or("-"),
        record.summary,
    )
}
