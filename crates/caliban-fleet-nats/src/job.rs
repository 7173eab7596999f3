//! What a job is: everything a worker is told, and nothing that is a secret.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::secret::secret_in;

/// The version of [`JobSpec`]; a worker refuses any other.
pub const SPEC_VERSION: u32 = 1;
/// The most that a job may weigh, as JSON. What is larger belongs into the repository.
pub const LARGEST_SPEC: usize = 256 * 1024;
/// The longest name of a pool.
const LONGEST_POOL: usize = 32;

/// The id of a job. Whoever submits makes it, so that submitting again is the same job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(Uuid);

impl JobId {
    /// A new one; later ones sort behind earlier ones.
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }
}

impl Default for JobId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for JobId {
    type Err = JobError;

    fn from_str(text: &str) -> Result<Self, JobError> {
        let id = Uuid::parse_str(text).map_err(|_| JobError::Id(text.to_owned()))?;
        Ok(Self(id))
    }
}

/// The name of those workers that may take a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pool(String);

impl Pool {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Pool {
    type Err = JobError;

    /// Letters, digits, `-` and `_`: a pool is a part of the names of subjects.
    fn from_str(text: &str) -> Result<Self, JobError> {
        let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
        if text.is_empty() || text.len() > LONGEST_POOL || !text.chars().all(is_plain) {
            return Err(JobError::Pool(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Pool {
    type Error = JobError;

    fn try_from(text: String) -> Result<Self, JobError> {
        text.parse()
    }
}

impl From<Pool> for String {
    fn from(pool: Pool) -> Self {
        pool.0
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Where the files come from that a job works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repo {
    pub remote: String,
    /// The whole hash.
    pub commit: String,
}

/// How changed files come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Publish {
    /// A branch of the remote.
    Branch,
    /// A git bundle among the artefacts.
    Bundle,
    /// A patch among the artefacts.
    Patch,
}

/// What becomes of a call that would be asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnQuestion {
    /// It is denied, and the model goes on.
    #[default]
    Deny,
    /// It waits until somebody answers.
    Park,
    /// The job fails.
    Fail,
}

/// Where a job ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Dollars, as a decimal number.
    pub usd: Option<String>,
    pub turns: Option<u32>,
    /// Seconds of one attempt.
    pub wall: Option<u64>,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    pub v: u32,
    pub job: JobId,
    pub pool: Pool,
    /// Without one, the job works in an empty directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<Repo>,
    pub prompt: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A permission mode; the worker takes the stricter of this and its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Rules that deny. There are no others: a job cannot allow itself anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    #[serde(default)]
    pub on_question: OnQuestion,
    #[serde(default)]
    pub budget: Budget,
    pub publish: Publish,
    /// A job that was not begun by then fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Who submitted it, for people.
    pub by: String,
    pub submitted: Timestamp,
}

/// Why a text or an object is no job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    #[error("`{0}` is not the id of a job, which is a UUID")]
    Id(String),
    #[error("`{0}` is not the name of a pool: at most 32 letters, digits, `-` and `_`")]
    Pool(String),
    #[error("`{0}` is not a whole commit hash of 40 or 64 digits")]
    Commit(String),
    #[error(
        "the job is {0} bytes long and may be {LARGEST_SPEC}; put the rest into the repository"
    )]
    TooLarge(usize),
    #[error(
        "the {place} seems to contain a secret ({kind}); secrets stay with the workers, in their \
         environment or keyring"
    )]
    Secret {
        place: &'static str,
        kind: &'static str,
    },
    #[error("the job has version {0}, and this program knows {SPEC_VERSION}: upgrade the workers")]
    Version(u32),
    #[error("the job cannot be read: {0}")]
    Unreadable(String),
    #[error("the prompt is empty")]
    NoPrompt,
}

impl JobSpec {
    /// A job that asks for nothing but its prompt.
    pub fn new(pool: Pool, prompt: &str, by: &str, submitted: Timestamp) -> Self {
        Self {
            v: SPEC_VERSION,
            job: JobId::new(),
            pool,
            repo: None,
            prompt: prompt.to_owned(),
            model: None,
            mode: None,
            deny: Vec::new(),
            on_question: OnQuestion::default(),
            budget: Budget::default(),
            publish: Publish::Patch,
            deadline: None,
            traceparent: None,
            by: by.to_owned(),
            submitted,
        }
    }

    /// The job as it is sent, once it is known to be one.
    pub fn encode(&self) -> Result<Vec<u8>, JobError> {
        self.check()?;
        let bytes =
            serde_json::to_vec(self).map_err(|error| JobError::Unreadable(error.to_string()))?;
        if bytes.len() > LARGEST_SPEC {
            return Err(JobError::TooLarge(bytes.len()));
        }
        Ok(bytes)
    }

    /// Stands for what is to be done, whoever asks for it and whenever.
    pub fn digest(&self) -> String {
        let what = Self {
            by: String::new(),
            submitted: Timestamp::UNIX_EPOCH,
            deadline: None,
            traceparent: None,
            ..self.clone()
        };
        // Only a map with keys that are no texts could fail, and there is none.
        let text = serde_json::to_vec(&what).unwrap_or_default();
        crate::hex(&Sha256::digest(&text))
    }

    /// A job that somebody sent, held to everything that [`encode`](Self::encode) demands: who
    /// sends need not be this program.
    pub fn decode(bytes: &[u8]) -> Result<Self, JobError> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        if bytes.len() > LARGEST_SPEC {
            return Err(JobError::TooLarge(bytes.len()));
        }
        let unreadable = |error: serde_json::Error| JobError::Unreadable(error.to_string());
        let Version { v } = serde_json::from_slice(bytes).map_err(unreadable)?;
        if v != SPEC_VERSION {
            return Err(JobError::Version(v));
        }
        let spec: Self = serde_json::from_slice(bytes).map_err(unreadable)?;
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), JobError> {
        if self.prompt.trim().is_empty() {
            return Err(JobError::NoPrompt);
        }
        if let Some(repo) = &self.repo {
            let is_hash = matches!(repo.commit.len(), 40 | 64)
                && repo.commit.chars().all(|char| char.is_ascii_hexdigit());
            if !is_hash {
                return Err(JobError::Commit(repo.commit.clone()));
            }
        }
        let remote = self.repo.as_ref().map(|repo| repo.remote.as_str());
        let places = [
            ("prompt", Some(self.prompt.as_str())),
            ("address of the repository", remote),
        ];
        for (place, text) in places {
            if let Some(kind) = text.and_then(secret_in) {
                return Err(JobError::Secret { place, kind });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn spec() -> JobSpec {
        JobSpec::new(
            "default".parse().unwrap(),
            "say hello",
            "me@here",
            Timestamp::UNIX_EPOCH,
        )
    }

    #[test]
    fn a_job_comes_back_as_it_was_sent() {
        let sent = spec();
        assert_eq!(JobSpec::decode(&sent.encode().unwrap()).unwrap(), sent);
    }

    #[test]
    fn a_job_is_known_by_what_is_to_be_done() {
        let once = spec();
        let again = JobSpec {
            by: "you@there".to_owned(),
            submitted: Timestamp::now(),
            deadline: Some(Timestamp::now()),
            ..once.clone()
        };
        assert_eq!(once.digest(), again.digest());
        let other = JobSpec {
            prompt: "say goodbye".to_owned(),
            ..once.clone()
        };
        assert_ne!(once.digest(), other.digest());
    }

    #[test]
    fn what_is_no_job_is_refused_on_both_sides() {
        let refused = |change: fn(&mut JobSpec)| {
            let mut spec = spec();
            change(&mut spec);
            let bytes = serde_json::to_vec(&spec).unwrap();
            let error = JobSpec::decode(&bytes).unwrap_err();
            if spec.v == SPEC_VERSION {
                assert_eq!(spec.encode().unwrap_err(), error);
            }
            error.to_string()
        };
        assert!(refused(|spec| spec.v = 2).contains("version 2"));
        assert!(refused(|spec| spec.prompt = " ".to_owned()).contains("empty"));
        assert!(refused(|spec| spec.prompt = "x".repeat(LARGEST_SPEC)).contains("may be 262144"));
        let key = refused(|spec| spec.prompt = format!("use ghp_{}", "a".repeat(36)));
        assert!(key.contains("secret (GitHub token)"), "{key}");
        let repo = |remote: &str, commit: &str| {
            Some(Repo {
                remote: remote.to_owned(),
                commit: commit.to_owned(),
            })
        };
        let mut with = spec();
        with.repo = repo("https://host/x", "HEAD");
        assert!(matches!(with.encode(), Err(JobError::Commit(_))));
        with.repo = repo("https://me:hunter2@host/x", &"a".repeat(40));
        assert!(matches!(with.encode(), Err(JobError::Secret { .. })));
        assert!(JobSpec::decode(b"{\"v\":1,\"shell\":\"rm\"}").is_err());
        assert!("a.b".parse::<Pool>().is_err() && "a*".parse::<Pool>().is_err());
    }
}
