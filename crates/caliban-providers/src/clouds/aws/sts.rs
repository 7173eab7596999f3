//! Keys for a role, from AWS's token service.

use jiff::Timestamp;
use secrecy::SecretString;

use super::profile::Profile;
use super::sign::{Keys, Scope, sign};
use crate::clouds::fetch::{Fetched, form, parse};
use crate::clouds::kept::Lease;
use crate::clouds::surroundings::{Surroundings, read};

const VERSION: (&str, &str) = ("Version", "2011-06-15");
const SESSION: &str = "caliban";

/// A role that is taken on.
#[derive(Debug)]
pub(crate) struct Role {
    arn: String,
    session: String,
    external_id: Option<String>,
    seconds: Option<String>,
    /// The file that proves who asks, where no keys do.
    token_file: Option<String>,
}

impl Role {
    pub(super) fn of_environment(surroundings: &Surroundings) -> Option<Self> {
        Some(Self {
            arn: surroundings.variable("AWS_ROLE_ARN")?.to_owned(),
            session: surroundings
                .variable("AWS_ROLE_SESSION_NAME")
                .unwrap_or(SESSION)
                .to_owned(),
            external_id: None,
            seconds: None,
            token_file: Some(
                surroundings
                    .variable("AWS_WEB_IDENTITY_TOKEN_FILE")?
                    .to_owned(),
            ),
        })
    }

    pub(super) fn web(profile: Profile<'_>) -> Option<Self> {
        let token_file = profile.get("web_identity_token_file")?.to_owned();
        Some(Self {
            token_file: Some(token_file),
            ..Self::of_profile(profile)?
        })
    }

    pub(super) fn of_profile(profile: Profile<'_>) -> Option<Self> {
        let text = |key: &str| profile.get(key).map(str::to_owned);
        Some(Self {
            arn: text("role_arn")?,
            session: text("role_session_name").unwrap_or_else(|| SESSION.to_owned()),
            external_id: text("external_id"),
            seconds: text("duration_seconds"),
            token_file: None,
        })
    }

    fn fields<'a>(&'a self, action: &'a str) -> Vec<(&'a str, &'a str)> {
        let mut fields = vec![
            ("Action", action),
            VERSION,
            ("RoleArn", &self.arn),
            ("RoleSessionName", &self.session),
        ];
        fields.extend(self.external_id.as_deref().map(|id| ("ExternalId", id)));
        fields.extend(self.seconds.as_deref().map(|it| ("DurationSeconds", it)));
        fields
    }
}

/// With the keys of another.
pub(super) async fn assume(
    surroundings: &Surroundings,
    region: &str,
    keys: &Keys,
    role: &Role,
) -> Result<Lease<Keys>, String> {
    let mut request = form(url(surroundings, region)?, &role.fields("AssumeRole"))?;
    let scope = Scope {
        service: "sts",
        region,
        at: Timestamp::now(),
    };
    sign(&mut request, keys, &scope)?;
    let answer = surroundings.fetcher.send(request).await?;
    credentials(&answer, role)
}

/// With a token of somebody whom the account trusts.
pub(super) async fn with_web_identity(
    surroundings: &Surroundings,
    region: &str,
    role: &Role,
) -> Result<Lease<Keys>, String> {
    let path = role.token_file.as_deref().unwrap_or_default();
    let token = read(path.as_ref()).await?;
    let token = token.ok_or_else(|| format!("there is no token in `{path}`"))?;
    let mut fields = role.fields("AssumeRoleWithWebIdentity");
    fields.push(("WebIdentityToken", token.trim()));
    let request = form(url(surroundings, region)?, &fields)?;
    let answer = surroundings.fetcher.send(request).await?;
    credentials(&answer, role)
}

fn url(surroundings: &Surroundings, region: &str) -> Result<url::Url, String> {
    match surroundings.variable("AWS_ENDPOINT_URL_STS") {
        Some(endpoint) => parse(endpoint),
        None => parse(&format!("https://sts.{region}.{}/", super::domain(region))),
    }
}

fn credentials(answer: &Fetched, role: &Role) -> Result<Lease<Keys>, String> {
    let text = answer.text();
    let field = |name: &str| element(&text, name).map(str::to_owned);
    let keys = answer.is_success().then(|| {
        Some(Keys {
            id: field("AccessKeyId")?,
            secret: field("SecretAccessKey")?.into(),
            token: field("SessionToken").map(SecretString::from),
        })
    });
    let Some(value) = keys.flatten() else {
        let said = field("Message").unwrap_or_else(|| answer.complaint());
        return Err(format!("the role `{}` was refused: {said}", role.arn));
    };
    Ok(Lease {
        value,
        expires: field("Expiration").and_then(|text| text.parse().ok()),
    })
}

/// The text of the first element of this name. The documents are small and flat, and keys need no
/// unescaping.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_in_answers_and_refusals() {
        let answer = "<R><Credentials><AccessKeyId>ASIA</AccessKeyId>\n<SessionToken> a+/= </SessionToken></Credentials></R>";
        assert_eq!(element(answer, "AccessKeyId"), Some("ASIA"));
        assert_eq!(element(answer, "SessionToken"), Some("a+/="));
        assert_eq!(element(answer, "Message"), None);
    }
}
