//! The configuration of a server for a fleet: who may come, and what each may do.

use std::fmt::Write as _;

use crate::layout::{ARTEFACTS, EVENTS, JOBS, JOURNAL, QUESTIONS, RECORDS, RESULTS};

/// Who comes to the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Makes streams and pools.
    Admin,
    /// Submits jobs, answers questions, reads what becomes of them.
    Submitter,
    /// Takes jobs and tells what becomes of them.
    Worker,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Admin, Self::Submitter, Self::Worker];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Submitter => "submitter",
            Self::Worker => "worker",
        }
    }
}

/// The public key of each role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles {
    pub admin: String,
    pub submitter: String,
    pub worker: String,
}

/// A new pair of keys: the seed, which is secret, and the public key.
pub fn keys() -> Result<(String, String), String> {
    let pair = nkeys::KeyPair::new_user();
    let seed = pair.seed().map_err(|error| error.to_string())?;
    Ok((seed, pair.public_key()))
}

/// The public key of a seed.
pub fn public_key(seed: &str) -> Result<String, String> {
    let pair = nkeys::KeyPair::from_seed(seed).map_err(|error| error.to_string())?;
    Ok(pair.public_key())
}

/// The file for `nats-server -c`.
pub fn server_file(roles: &Roles, store: &str, listen: &str, monitor: &str) -> String {
    let mut text = format!(
        "# A NATS server for a caliban fleet. Start it with `nats-server -c FILE`.\n\
         # Off this machine, add a block `tls` with a certificate: clients insist on it.\n\
         listen: \"{listen}\"\n\
         # For `caliban fleet doctor`; keep it to this machine.\n\
         http: \"{monitor}\"\n\
         max_payload: 1MB\n\
         jetstream {{\n  store_dir: \"{store}\"\n  \
         # Acknowledged means on the disk, also when the power fails.\n  sync_interval: always\n}}\n\
         accounts {{\n  FLEET {{\n    jetstream: enabled\n    users: [\n"
    );
    for (role, key) in [
        (Role::Admin, &roles.admin),
        (Role::Submitter, &roles.submitter),
        (Role::Worker, &roles.worker),
    ] {
        let (publish, subscribe) = permissions(role);
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "      # {role}\n      {{ nkey: {key}, permissions: {{\n        publish: [{}]\n        \
             subscribe: [{}]\n      }} }}\n",
            quoted(&publish),
            quoted(&subscribe),
            role = role.as_str(),
        );
    }
    text.push_str("    ]\n  }\n}\n");
    text
}

fn quoted(subjects: &[String]) -> String {
    let lines = subjects.iter().map(|subject| format!("\"{subject}\""));
    lines.collect::<Vec<_>>().join(", ")
}

/// What a role may publish and subscribe to.
fn permissions(role: Role) -> (Vec<String>, Vec<String>) {
    let inbox = || "_INBOX.>".to_owned();
    let records = format!("KV_{RECORDS}");
    let results = format!("KV_{RESULTS}");
    let questions = format!("KV_{QUESTIONS}");
    let artefacts = format!("OBJ_{ARTEFACTS}");
    // Reading a stream: looking at it, at a message, and going through it with a reader of one's
    // own.
    let read = |stream: &str| {
        [
            format!("$JS.API.STREAM.INFO.{stream}"),
            format!("$JS.API.STREAM.MSG.GET.{stream}"),
            format!("$JS.API.DIRECT.GET.{stream}"),
            format!("$JS.API.DIRECT.GET.{stream}.>"),
            format!("$JS.API.CONSUMER.CREATE.{stream}"),
            format!("$JS.API.CONSUMER.CREATE.{stream}.>"),
            format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.>"),
            format!("$JS.API.CONSUMER.DELETE.{stream}.>"),
        ]
    };
    let look = |stream: &str| format!("$JS.API.STREAM.INFO.{stream}");
    match role {
        Role::Admin => (vec![">".to_owned()], vec![">".to_owned()]),
        Role::Submitter => {
            let mut publish: Vec<String> =
                ["caliban.job.*", "caliban.ctl.*", "$JS.API.INFO", "$JS.FC.>"]
                    .map(str::to_owned)
                    .to_vec();
            publish.push(format!("$KV.{RECORDS}.>"));
            publish.push(format!("$KV.{QUESTIONS}.a.>"));
            for stream in [EVENTS, &records, &results, &questions, &artefacts] {
                publish.extend(read(stream));
            }
            publish.extend([
                look(JOBS),
                look(JOURNAL),
                format!("$JS.API.CONSUMER.INFO.{JOBS}.*"),
            ]);
            (publish, vec![inbox(), "caliban.live.*".to_owned()])
        }
        Role::Worker => {
            let mut publish: Vec<String> = [
                "caliban.jnl.*",
                "caliban.ev.*",
                "caliban.live.*",
                "$JS.API.INFO",
                "$JS.FC.>",
            ]
            .map(str::to_owned)
            .to_vec();
            publish.extend([
                format!("$KV.{RECORDS}.>"),
                format!("$KV.{RESULTS}.>"),
                format!("$KV.{QUESTIONS}.q.>"),
                format!("$O.{ARTEFACTS}.>"),
                format!("$JS.API.CONSUMER.INFO.{JOBS}.*"),
                format!("$JS.API.CONSUMER.MSG.NEXT.{JOBS}.*"),
                format!("$JS.ACK.{JOBS}.>"),
                look(JOBS),
                look(EVENTS),
            ]);
            for stream in [JOURNAL, &records, &results, &questions, &artefacts] {
                publish.extend(read(stream));
            }
            (publish, vec![inbox(), "caliban.ctl.*".to_owned()])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_pairs_of_a_user() {
        let (seed, public) = keys().unwrap();
        assert!(seed.starts_with("SU") && public.starts_with('U'));
        assert_eq!(
            crate::secret_in(&seed),
            seed.starts_with("SUA").then_some("NATS seed")
        );
    }

    #[test]
    fn a_submitter_writes_no_results_and_a_worker_answers_nothing() {
        let (submitter, _) = permissions(Role::Submitter);
        assert!(!submitter.iter().any(|subject| {
            subject.contains("$KV.caliban-results") || subject.contains("STREAM.DELETE")
        }));
        let (worker, _) = permissions(Role::Worker);
        assert!(!worker.iter().any(|subject| {
            subject.contains("caliban-questions.a") || subject.starts_with("caliban.job")
        }));
    }
}
