//! What it costs when nothing happens, and when only the sign of work moves.

use std::time::Duration;

use anyhow::Result;
use caliban_testkit::terminal::Terminal;
use caliban_testkit::{BlockingServer, Reply, Script};

use super::super::process::{megabytes, milliseconds};
use super::super::report::{Row, Target, Unit};
use super::super::stage::Stage;
use super::{FEW, RUNNING, caliban, caliban_at, float, peers, row, waiting};

const WHILE: Duration = Duration::from_secs(5);
/// What a session puts off so that short runs do not pay for it has begun by then.
const BEGUN: Duration = Duration::from_millis(1_500);

/// What a program does in that time.
struct Spent {
    switches: f64,
    bytes: f64,
    cpu: f64,
}

fn spent(terminal: &Terminal) -> Result<Spent> {
    let (switches, cpu) = (terminal.voluntary_switches(), terminal.cpu());
    let bytes = terminal.counts().bytes;
    std::thread::sleep(WHILE);
    let switches = terminal.voluntary_switches().saturating_sub(switches);
    Ok(Spent {
        switches: float(usize::try_from(switches)?),
        bytes: float(terminal.counts().bytes - bytes),
        cpu: milliseconds(terminal.cpu().saturating_sub(cpu)),
    })
}

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let [mut woken, mut bytes, mut memory, mut cpu]: [Vec<f64>; 4] = Default::default();
    let [mut woken_at_work, mut cpu_at_work]: [Vec<f64>; 2] = Default::default();
    let mut peers = peers::installed();
    for _ in 0..stage.runs.min(FEW) {
        let terminal = waiting(caliban(stage, &[]));
        memory.push(megabytes(terminal.rss()));
        std::thread::sleep(BEGUN);
        let rest = spent(&terminal)?;
        woken.push(rest.switches);
        bytes.push(rest.bytes);
        cpu.push(rest.cpu);
        drop(terminal);
        let work = working(stage)?;
        woken_at_work.push(work.switches / WHILE.as_secs_f64());
        cpu_at_work.push(work.cpu / WHILE.as_secs_f64());
        for peer in &mut peers {
            peer.rest(stage, WHILE);
        }
    }
    let cpu = row("CPU in 5 s at rest", Unit::Milliseconds, cpu)?;
    let mut rows = vec![
        row("memory at the first prompt", Unit::Megabytes, memory)?.target(Target::AtMost(25.0)),
        row("wakeups in 5 s at rest", Unit::Number, woken)?.target(Target::AtMost(0.0)),
        row("bytes in 5 s at rest", Unit::Bytes, bytes)?.target(Target::AtMost(0.0)),
        cpu.clone(),
        row(
            "wakeups a second while it works and says nothing",
            Unit::PerSecond,
            woken_at_work,
        )?
        .target(Target::AtMost(10.0)),
        row("its CPU a second", Unit::Milliseconds, cpu_at_work)?.target(Target::AtMost(5.0)),
    ];
    for peer in peers {
        let name = peer.name;
        rows.extend(peer.summary().map(|rest| cpu.clone().against(name, rest)));
    }
    Ok(rows)
}

/// The model was asked and does not answer.
fn working(stage: &Stage) -> Result<Spent> {
    let script = Script::new([Reply::text("never").hold_after(0)]);
    let server = BlockingServer::start(script)?;
    let terminal = Terminal::start(caliban_at(stage, &server.url(), &["go"]));
    terminal.until_text(RUNNING);
    spent(&terminal)
}
