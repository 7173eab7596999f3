//! Keys of a machine: those of a container, or of the instance it runs on.

use reqwest::Method;
use url::{Host, Url};

use super::credentials::printed_keys;
use super::sign::Keys;
use crate::clouds::fetch::{Fetched, METADATA_TRIES, check_private, get, parse, request};
use crate::clouds::kept::Lease;
use crate::clouds::surroundings::{Surroundings, read};
use crate::transport::HttpRequest;

const CONTAINERS: &str = "http://169.254.170.2";
const INSTANCES: &str = "http://169.254.169.254";
const TOKEN: &str = "x-aws-ec2-metadata-token";

/// The keys of a container; nothing where this is none.
pub(super) async fn container(surroundings: &Surroundings) -> Result<Option<Lease<Keys>>, String> {
    let relative = surroundings.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let full = surroundings.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    let url = match (relative, full) {
        (Some(path), _) => parse(&format!("{CONTAINERS}{path}"))?,
        (None, Some(url)) => {
            let url = parse(url)?;
            check_near(&url)?;
            url
        }
        (None, None) => return Ok(None),
    };
    let token = match surroundings.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(path) => read(path.as_ref()).await?,
        None => surroundings
            .variable("AWS_CONTAINER_AUTHORIZATION_TOKEN")
            .map(str::to_owned),
    };
    let header = token.as_ref().map(|token| ("authorization", token.trim()));
    let headers: Vec<(&'static str, &str)> = header.into_iter().collect();
    let answer = ask(surroundings, || get(url.clone(), &headers)).await?;
    match printed_keys(&answer.text()) {
        Some(keys) if answer.is_success() => Ok(Some(keys)),
        Some(_) | None => Err(format!(
            "the container has no keys ({})",
            answer.complaint()
        )),
    }
}

/// The addresses a container's agent may have.
fn check_near(url: &Url) -> Result<(), String> {
    let is_agent = match url.host() {
        Some(Host::Ipv4(address)) => {
            matches!(address.octets(), [169, 254, 170, 2 | 23])
        }
        Some(Host::Ipv6(address)) => address.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23],
        Some(Host::Domain(_)) | None => false,
    };
    if is_agent { Ok(()) } else { check_private(url) }
}

/// The keys of the instance.
pub(super) async fn instance(surroundings: &Surroundings) -> Result<Lease<Keys>, String> {
    if surroundings.is_on("AWS_EC2_METADATA_DISABLED") {
        return Err("neither variables nor files hold any".to_owned());
    }
    let base = surroundings
        .variable("AWS_EC2_METADATA_SERVICE_ENDPOINT")
        .unwrap_or(INSTANCES)
        .trim_end_matches('/')
        .to_owned();
    let nobody = |reason: String| {
        format!(
            "neither variables nor files hold any, and this is no instance that does ({reason})"
        )
    };
    let place = |path: &str| parse(&format!("{base}/latest/{path}"));
    let lifetime = [("x-aws-ec2-metadata-token-ttl-seconds", "21600")];
    let token = ask(surroundings, || {
        request(Method::PUT, place("api/token")?, &lifetime, Vec::new())
    });
    let token = token.await.map_err(nobody)?;
    if !token.is_success() {
        return Err(nobody(token.complaint()));
    }
    let token = token.text();
    let headers = [(TOKEN, token.as_str())];
    let roles = "meta-data/iam/security-credentials/";
    let role = ask(surroundings, || get(place(roles)?, &headers)).await?;
    let name = role.text();
    let name = name.lines().next().unwrap_or_default();
    if !role.is_success() || name.is_empty() {
        return Err(nobody("it has no role".to_owned()));
    }
    let path = format!("{roles}{}", super::sign::encoded(name));
    let keys = ask(surroundings, || get(place(&path)?, &headers)).await?;
    match printed_keys(&keys.text()) {
        Some(found) if keys.is_success() => Ok(found),
        Some(_) | None => Err(nobody(keys.complaint())),
    }
}

/// Asks twice at most.
async fn ask(
    surroundings: &Surroundings,
    request: impl Fn() -> Result<HttpRequest, String>,
) -> Result<Fetched, String> {
    let mut reason = String::new();
    for _ in 0..METADATA_TRIES {
        match surroundings.fetcher.nearby(request()?).await {
            Ok(answer) if answer.status < 500 => return Ok(answer),
            Ok(answer) => reason = answer.complaint(),
            Err(failure) => reason = failure,
        }
    }
    Err(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_containers_agent_is_near() {
        for (url, is_near) in [
            ("http://169.254.170.23/v1/credentials", true),
            ("http://[fd00:ec2::23]/v1", true),
            ("http://127.0.0.1:9/x", true),
            ("https://agent.example/x", true),
            ("http://169.254.169.254/x", false),
            ("http://agent.example/x", false),
        ] {
            assert_eq!(check_near(&parse(url).unwrap()).is_ok(), is_near, "{url}");
        }
    }
}
