//! What is right and wrong with a server, for whoever keeps a fleet on it.

use std::time::Duration;

use semver::Version;
use serde_json::Value;

/// The oldest server that keeps its word: earlier ones lost streams when they crashed.
pub const OLDEST_SERVER: Version = Version::new(2, 12, 0);

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact that the server states"
)]
pub struct Survey {
    pub version: String,
    pub is_loopback: bool,
    pub asks_who: bool,
    pub is_encrypted: bool,
    pub is_clustered: bool,
    /// Whether this identity could delete streams.
    pub may_delete: bool,
    pub streams: Vec<(String, Result<StreamFacts, String>)>,
}

/// What a stream was made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFacts {
    pub is_on_disk: bool,
    pub refuses_when_full: bool,
    pub replicas: usize,
    pub duplicates: Duration,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Good,
    /// It works, and may not when it matters.
    Doubtful,
    /// It loses data, or does not work.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub health: Health,
    pub what: &'static str,
    pub text: String,
}

impl Finding {
    pub fn new(health: Health, what: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { health, what, text }
    }
}

impl Survey {
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = vec![self.version(), self.identity(), self.permissions()];
        found.extend(self.encryption());
        found.extend(self.streams.iter().flat_map(|(name, facts)| {
            let found = stream(name, facts.as_ref(), self.is_clustered);
            found.into_iter()
        }));
        found
    }

    fn version(&self) -> Finding {
        let version = &self.version;
        match Version::parse(version) {
            Ok(known) if known >= OLDEST_SERVER => Finding::new(Health::Good, "version", version),
            Ok(_) => Finding::new(
                Health::Bad,
                "version",
                format!(
                    "{version} is older than {OLDEST_SERVER} and may lose whole streams when it \
                     crashes; install a newer nats-server"
                ),
            ),
            Err(_) => Finding::new(
                Health::Doubtful,
                "version",
                format!("`{version}` is no version that can be compared with {OLDEST_SERVER}"),
            ),
        }
    }

    fn identity(&self) -> Finding {
        if self.asks_who {
            return Finding::new(Health::Good, "identity", "the server asks who comes");
        }
        Finding::new(
            Health::Bad,
            "identity",
            "anybody who reaches the server may submit jobs, answer questions and write results; \
             use the configuration that `caliban fleet init` prints",
        )
    }

    fn permissions(&self) -> Finding {
        if self.may_delete {
            return Finding::new(
                Health::Doubtful,
                "permissions",
                "this identity could delete streams; use that of a submitter or a worker for \
                 daily work",
            );
        }
        Finding::new(
            Health::Good,
            "permissions",
            "this identity cannot delete streams",
        )
    }

    fn encryption(&self) -> Option<Finding> {
        match (self.is_loopback, self.is_encrypted) {
            (_, true) => Some(Finding::new(Health::Good, "encryption", "TLS")),
            (true, false) => None,
            (false, false) => Some(Finding::new(
                Health::Bad,
                "encryption",
                "jobs and answers cross the network in the clear; configure TLS",
            )),
        }
    }
}

fn stream(name: &str, facts: Result<&StreamFacts, &String>, is_clustered: bool) -> Vec<Finding> {
    let facts = match facts {
        Ok(facts) => facts,
        Err(reason) => {
            let text = format!("{name}: {reason}; `caliban fleet init --apply` makes it");
            return vec![Finding::new(Health::Bad, "streams", text)];
        }
    };
    let mut found = Vec::new();
    let mut add = |health, text: &str| {
        found.push(Finding::new(health, "streams", format!("{name}: {text}")));
    };
    if !facts.is_on_disk {
        add(
            Health::Bad,
            "kept in memory: everything is lost when the server ends",
        );
    }
    if name == crate::layout::JOBS {
        if !facts.refuses_when_full {
            add(Health::Bad, "throws old jobs away when it is full");
        }
        if facts.duplicates < Duration::from_hours(1) {
            add(
                Health::Doubtful,
                "forgets within the hour that a job was submitted: one that is submitted again \
                 later runs twice",
            );
        }
    }
    if is_clustered && facts.replicas < 3 {
        add(
            Health::Doubtful,
            "kept by one server of the cluster alone; `--replicas 3` keeps it on three",
        );
    }
    if found.is_empty() {
        found.push(Finding::new(Health::Good, "streams", name));
    }
    found
}

/// What the monitoring endpoint of a server, `/jsz`, says about how it writes.
pub fn judge_monitor(told: &Value) -> Finding {
    const WHAT: &str = "sync";
    let config = &told["config"];
    if config.is_null() {
        let text = "the monitoring endpoint does not speak of JetStream";
        return Finding::new(Health::Doubtful, WHAT, text);
    }
    if config["sync_always"] == true {
        let text = "every write is on the disk before it is acknowledged";
        return Finding::new(Health::Good, WHAT, text);
    }
    let seconds = config["sync_interval"].as_u64().unwrap_or_default() / 1_000_000_000;
    Finding::new(
        Health::Bad,
        WHAT,
        format!(
            "writes are acknowledged up to {seconds} s before they are on the disk: a power \
             failure loses jobs, journals and results that were confirmed; set `sync_interval: \
             always` in the block `jetstream`"
        ),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good() -> Survey {
        let facts = StreamFacts {
            is_on_disk: true,
            refuses_when_full: true,
            replicas: 1,
            duplicates: Duration::from_hours(24),
        };
        Survey {
            version: "2.15.1".to_owned(),
            is_loopback: true,
            asks_who: true,
            is_encrypted: false,
            is_clustered: false,
            may_delete: false,
            streams: vec![(crate::layout::JOBS.to_owned(), Ok(facts))],
        }
    }

    fn worst(survey: &Survey) -> Vec<String> {
        let found = survey.findings().into_iter();
        found
            .filter(|finding| finding.health != Health::Good)
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn a_server_as_it_should_be_is_good() {
        assert_eq!(worst(&good()), [""; 0]);
    }

    #[test]
    fn everything_that_loses_data_is_told() {
        let mut survey = good();
        survey.version = "2.10.27".to_owned();
        survey.asks_who = false;
        survey.is_loopback = false;
        survey.may_delete = true;
        survey.is_clustered = true;
        if let Ok(facts) = &mut survey.streams[0].1 {
            facts.is_on_disk = false;
            facts.refuses_when_full = false;
            facts.duplicates = Duration::from_mins(2);
        }
        let told = worst(&survey).join("\n");
        for words in [
            "older than 2.12.0",
            "anybody who reaches",
            "in the clear",
            "could delete",
            "kept in memory",
            "throws old jobs away",
            "runs twice",
            "one server of the cluster",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
    }

    #[test]
    fn the_monitor_tells_how_writes_are_synced() {
        let default = json!({"config": {"sync_interval": 120_000_000_000_u64}});
        let finding = judge_monitor(&default);
        assert_eq!(finding.health, Health::Bad);
        assert!(finding.text.contains("up to 120 s"));
        let always = json!({"config": {"sync_interval": 120, "sync_always": true}});
        assert_eq!(judge_monitor(&always).health, Health::Good);
        assert_eq!(judge_monitor(&json!({})).health, Health::Doubtful);
    }
}
