//! Where AWS's keys come from, in the order in which AWS's own tools look.

use std::sync::Arc;
use std::time::Duration;

use caliban_model::{Error, Freshness, Origin};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::machine;
use super::profile::{Profile, Profiles};
use super::sign::Keys;
use super::sso;
use super::sts::{self, Role};
use crate::clouds::kept::{Kept, Lease};
use crate::clouds::surroundings::{Surroundings, no_login};

/// How long finding keys may take altogether.
const CHAIN_LIMIT: Duration = Duration::from_mins(1);
/// How long a program that prints keys may run, and one that logs in.
const PROGRAM_LIMIT: Duration = Duration::from_mins(1);
const LOGIN_LIMIT: Duration = Duration::from_mins(3);
/// How many profiles may lead to each other.
const MAX_SOURCES: usize = 5;

/// Keys of one account.
#[derive(Debug)]
pub(crate) struct Chain {
    surroundings: Arc<Surroundings>,
    /// Named in the configuration, before every variable.
    profile: Option<String>,
    region: String,
    kept: Kept<Keys>,
}

impl Chain {
    pub(crate) fn new(
        surroundings: Arc<Surroundings>,
        profile: Option<String>,
        region: String,
    ) -> Self {
        Self {
            kept: Kept::new(surroundings.refresh.early),
            surroundings,
            profile,
            region,
        }
    }

    pub(crate) async fn keys(&self, freshness: Freshness, origin: &Origin) -> Result<Keys, Error> {
        self.kept
            .get(freshness, self.fetch(freshness, origin))
            .await
    }

    /// Looks everywhere; where that is in vain and a program logs in, once more after it.
    async fn fetch(&self, freshness: Freshness, origin: &Origin) -> Result<Lease<Keys>, Error> {
        let command = self.surroundings.refresh.command.as_ref();
        if freshness == Freshness::Cached || command.is_none() {
            match (self.look().await, command) {
                (Ok(found), _) => return Ok(found),
                (Err(reason), None) => return Err(self.none(origin, &reason)),
                (Err(_), Some(_)) => {}
            }
        }
        if let Some(command) = command {
            let login = self.surroundings.run(command.clone(), LOGIN_LIMIT).await;
            login.map_err(|reason| {
                let message = format!("`aws_auth_refresh_command` failed: {reason}");
                no_login(
                    origin,
                    message,
                    "run the command yourself and see what it says",
                )
            })?;
        }
        let found = self.look().await;
        found.map_err(|reason| self.none(origin, &reason))
    }

    fn none(&self, origin: &Origin, reason: &str) -> Error {
        let message = format!("no usable AWS credentials: {reason}");
        let remedy = match self.profile_name() {
            Some(name) => format!("run `aws sso login --profile {name}`, or set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`"),
            None => "run `aws configure` or `aws sso login`, or set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`".to_owned(),
        };
        no_login(origin, message, &remedy)
    }

    fn profile_name(&self) -> Option<&str> {
        let named = self.profile.as_deref();
        named.or_else(|| self.surroundings.variable("AWS_PROFILE"))
    }

    async fn look(&self) -> Result<Lease<Keys>, String> {
        match timeout(CHAIN_LIMIT, self.chain()).await {
            Ok(found) => found,
            Err(_) => Err(format!("nothing within {} s", CHAIN_LIMIT.as_secs())),
        }
    }

    async fn chain(&self) -> Result<Lease<Keys>, String> {
        let surroundings = &*self.surroundings;
        if let Some(line) = &surroundings.refresh.export {
            let printed = surroundings.run(line.clone(), PROGRAM_LIMIT).await;
            let printed =
                printed.map_err(|reason| format!("`aws_credential_export` failed: {reason}"))?;
            return printed_keys(&printed)
                .ok_or_else(|| "`aws_credential_export` printed no credentials".to_owned());
        }
        if self.profile.is_none()
            && let Some(keys) = of_environment(surroundings)
        {
            return Ok(keys);
        }
        let profiles = Profiles::load(surroundings).await?;
        let name = self.profile_name().unwrap_or("default");
        let profile = profiles.profile(name);
        if profile.is_none()
            && let Some(name) = self.profile_name()
        {
            return Err(format!("there is no profile `{name}`"));
        }
        if let Some(profile) = profile
            && profile.get("role_arn").is_some()
            && profile.get("web_identity_token_file").is_none()
        {
            return self.assumed(profile, MAX_SOURCES).await;
        }
        if let Some(role) = Role::of_environment(surroundings).or_else(|| Role::web(profile?)) {
            return sts::with_web_identity(surroundings, &self.region, &role).await;
        }
        if let Some(profile) = profile
            && let Some(found) = self.of_profile(profile).await?
        {
            return Ok(found);
        }
        if let Some(found) = machine::container(surroundings).await? {
            return Ok(found);
        }
        machine::instance(surroundings).await
    }

    /// What a profile holds or names itself; nothing where it says nothing about keys.
    async fn of_profile(&self, profile: Profile<'_>) -> Result<Option<Lease<Keys>>, String> {
        if sso::is_configured(profile) {
            return sso::keys(&self.surroundings, profile).await.map(Some);
        }
        if let Some(keys) = fixed(profile) {
            return Ok(Some(keys));
        }
        let Some(line) = profile.get("credential_process") else {
            return Ok(None);
        };
        let printed = self.surroundings.run(line.to_owned(), PROGRAM_LIMIT).await;
        let printed = printed.map_err(|reason| format!("`credential_process`: {reason}"))?;
        match printed_keys(&printed) {
            Some(keys) => Ok(Some(keys)),
            None => Err("`credential_process` printed no credentials".to_owned()),
        }
    }

    /// The keys of a role that a profile takes on, with those of another profile.
    fn assumed<'a>(
        &'a self,
        profile: Profile<'a>,
        left: usize,
    ) -> BoxFuture<'a, Result<Lease<Keys>, String>> {
        async move {
            if profile.get("mfa_serial").is_some() {
                return Err(format!(
                    "profile `{}` asks for a second factor, which nobody can type here: use `credential_process`",
                    profile.name
                ));
            }
            let surroundings = &*self.surroundings;
            let source = match (profile.get("source_profile"), profile.get("credential_source")) {
                (Some(_), _) if left == 0 => {
                    return Err(format!("profile `{}` leads in a circle", profile.name));
                }
                (Some(name), _) => {
                    let source = profile.other(name);
                    let source = source.ok_or_else(|| format!("there is no profile `{name}`"))?;
                    let is_itself = source.name == profile.name;
                    if source.get("role_arn").is_some() && !is_itself {
                        self.assumed(source, left - 1).await?
                    } else {
                        let own = match fixed(source) {
                            Some(own) => Some(own),
                            None => self.of_profile(source).await?,
                        };
                        own.ok_or_else(|| format!("profile `{name}` holds no keys"))?
                    }
                }
                (None, Some("Environment")) => of_environment(surroundings)
                    .ok_or("the environment holds no keys to take the role with")?,
                (None, Some("EcsContainer")) => machine::container(surroundings)
                    .await?
                    .ok_or("this is no container that has keys")?,
                (None, Some("Ec2InstanceMetadata")) => machine::instance(surroundings).await?,
                (None, Some(other)) => return Err(format!("`credential_source = {other}` is not known")),
                (None, None) => {
                    return Err(format!(
                        "profile `{}` names a role, and neither `source_profile` nor `credential_source`",
                        profile.name
                    ));
                }
            };
            let role = Role::of_profile(profile).ok_or("the role has no name")?;
            let region = profile.get("region").unwrap_or(&self.region);
            sts::assume(surroundings, region, &source.value, &role).await
        }
        .boxed()
    }
}

fn of_environment(surroundings: &Surroundings) -> Option<Lease<Keys>> {
    Some(Lease {
        value: Keys {
            id: surroundings.variable("AWS_ACCESS_KEY_ID")?.to_owned(),
            secret: surroundings.variable("AWS_SECRET_ACCESS_KEY")?.into(),
            token: surroundings
                .variable("AWS_SESSION_TOKEN")
                .map(SecretString::from),
        },
        expires: None,
    })
}

fn fixed(profile: Profile<'_>) -> Option<Lease<Keys>> {
    Some(Lease {
        value: Keys {
            id: profile.get("aws_access_key_id")?.to_owned(),
            secret: profile.get("aws_secret_access_key")?.into(),
            token: profile.get("aws_session_token").map(SecretString::from),
        },
        expires: None,
    })
}

/// Keys as JSON, under the names that everybody but single sign-on uses.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Printed {
    access_key_id: String,
    secret_access_key: String,
    #[serde(alias = "Token")]
    session_token: Option<String>,
    expiration: Option<Timestamp>,
}

/// Keys that a program or a machine tells, bare or below `Credentials`.
pub(super) fn printed_keys(text: &str) -> Option<Lease<Keys>> {
    let mut value: Value = serde_json::from_str(text.trim()).ok()?;
    if let Some(inner) = value.get_mut("Credentials") {
        value = inner.take();
    }
    let printed: Printed = serde_json::from_value(value).ok()?;
    Some(Lease {
        value: Keys {
            id: printed.access_key_id,
            secret: printed.secret_access_key.into(),
            token: printed.session_token.map(SecretString::from),
        },
        expires: printed.expiration,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    #[test]
    fn printed_keys_come_in_three_forms() {
        let expires = Some("2026-11-17T10:00:00Z".parse().unwrap());
        for text in [
            r#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"S","SessionToken":"T","Expiration":"2026-11-17T10:00:00Z"}"#,
            r#"{"Credentials":{"AccessKeyId":"A","SecretAccessKey":"S","SessionToken":"T","Expiration":"2026-11-17T11:00:00+01:00"}}"#,
            r#"{"Code":"Success","AccessKeyId":"A","SecretAccessKey":"S","Token":"T","Expiration":"2026-11-17T10:00:00Z"}"#,
        ] {
            let keys = printed_keys(text).unwrap();
            assert_eq!(keys.value.id, "A");
            assert_eq!(keys.value.token.unwrap().expose_secret(), "T");
            assert_eq!(keys.expires, expires);
        }
        assert!(printed_keys("{}").is_none());
        assert!(printed_keys("sso login first").is_none());
    }
}
