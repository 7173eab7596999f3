//! Looks at the server of a fleet, and says what would lose data.

use caliban_fleet_nats::{Access, Finding, Health, NatsBoard, judge_monitor, read_monitor};
use serde_json::json;
use url::Url;

use crate::args::FleetDoctorArgs;
use crate::console::Console;
use crate::exit::Failure;

/// Where a server tells how it is doing, when nobody says.
const MONITOR: u16 = 8222;

pub(super) async fn doctor(
    access: &Access,
    args: &FleetDoctorArgs,
    console: &mut Console,
) -> Result<(), Failure> {
    let survey = NatsBoard::survey(access).await?;
    let mut findings = survey.findings();
    findings.push(sync(access, args).await);
    for finding in &findings {
        let (word, mark) = match finding.health {
            Health::Good => ("good", "ok"),
            Health::Doubtful => ("doubtful", "--"),
            Health::Bad => ("bad", "!!"),
        };
        let Finding { what, text, .. } = finding;
        if args.json {
            let told = json!({"check": what, "health": word, "text": text});
            console.put(&format!("{told}\n"))?;
        } else {
            console.put(&format!("{mark} {what}: {text}\n"))?;
        }
    }
    console.flush()?;
    if findings.iter().any(|finding| finding.health == Health::Bad) {
        return Err(Failure::Silent(1));
    }
    Ok(())
}

/// Whether acknowledged means written.
async fn sync(access: &Access, args: &FleetDoctorArgs) -> Finding {
    let unknown = |reason: String| {
        Finding::new(
            Health::Doubtful,
            "sync",
            format!(
                "whether acknowledged writes survive a power failure is not known: {reason}; \
                 `--monitor` names the monitoring endpoint"
            ),
        )
    };
    let url = if let Some(url) = &args.monitor {
        url.clone()
    } else {
        let host = Url::parse(&access.address).ok();
        let host = host.and_then(|url| url.host_str().map(str::to_owned));
        let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
        match Url::parse(&format!("http://{host}:{MONITOR}")) {
            Ok(url) => url,
            Err(error) => return unknown(error.to_string()),
        }
    };
    match read_monitor(&url).await {
        Ok(told) => judge_monitor(&told),
        Err(reason) => unknown(format!("{url}: {reason}")),
    }
}
