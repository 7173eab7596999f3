//! The endpoints: metadata, registration, consent, tokens, and the way to the MCP server.

use serde_json::{Value, json};
use url::form_urlencoded;

use super::{Consent, Hit, Issuer, Shared, lock, mcp};
use crate::http::Request;

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            content_type: "application/json",
            headers: Vec::new(),
            body: body.to_string(),
        }
    }

    pub(super) fn empty(status: u16) -> Self {
        Self {
            status,
            content_type: "text/plain",
            headers: Vec::new(),
            body: String::new(),
        }
    }

    pub(super) fn with(mut self, name: &str, value: String) -> Self {
        self.headers.push((name.to_owned(), value));
        self
    }
}

/// An issuer that is not this server.
const STRANGER: &str = "https://stranger.example";

pub(super) async fn answer(request: &Request, shared: &Shared) -> Reply {
    let hit = hit(request);
    lock(&shared.hits).push(hit.clone());
    let behaviour = lock(&shared.behaviour).clone();
    let base = &shared.base;
    match (hit.method.as_str(), hit.path.as_str()) {
        ("GET", "/.well-known/oauth-protected-resource/mcp") => Reply::json(
            200,
            &json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}),
        ),
        ("GET", "/.well-known/oauth-authorization-server") => {
            let issuer = match behaviour.issuer {
                Issuer::OtherInMetadata => STRANGER,
                Issuer::Honest | Issuer::OtherInAnswer | Issuer::MissingInAnswer => base,
            };
            let token_endpoint = behaviour
                .token_endpoint
                .unwrap_or_else(|| format!("{base}/token"));
            Reply::json(
                200,
                &json!({
                    "issuer": issuer,
                    "authorization_endpoint": format!("{base}/authorize"),
                    "token_endpoint": token_endpoint,
                    "registration_endpoint": format!("{base}/register"),
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    "authorization_response_iss_parameter_supported": true,
                }),
            )
        }
        ("POST", "/register") => register(request, shared),
        ("GET", "/authorize") => authorize(&hit, shared, behaviour.consent, behaviour.issuer),
        ("POST", "/token") => {
            tokio::time::sleep(behaviour.token_delay).await;
            if let Some(status) = behaviour.token_failure {
                return Reply::empty(status);
            }
            let issued = lock(&shared.grants).issue(&hit, behaviour.rotation);
            match issued {
                Err(error) => Reply::json(400, &json!({"error": error})),
                Ok(issued) => {
                    let mut body = json!({
                        "access_token": issued.access,
                        "token_type": "Bearer",
                        "scope": issued.scope,
                    });
                    if let Some(refresh) = issued.refresh {
                        body["refresh_token"] = refresh.into();
                    }
                    if let Some(seconds) = behaviour.expires_in {
                        body["expires_in"] = seconds.into();
                    }
                    Reply::json(200, &body).with("Cache-Control", "no-store".to_owned())
                }
            }
        }
        (_, "/mcp") => guarded(&hit, request, shared, behaviour.required_scope.as_deref()),
        _ => Reply::empty(404),
    }
}

fn hit(request: &Request) -> Hit {
    let (path, query) = match request.path.split_once('?') {
        Some((path, query)) => (path, query.as_bytes()),
        None => (request.path.as_str(), &[][..]),
    };
    let is_form = request
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    let form = if is_form { &request.body[..] } else { query };
    Hit {
        method: request.method.clone(),
        path: path.to_owned(),
        parameters: form_urlencoded::parse(form).into_owned().collect(),
        authorization: request.header("authorization").map(str::to_owned),
    }
}

fn register(request: &Request, shared: &Shared) -> Reply {
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let uris: Vec<String> = asked["redirect_uris"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|uri| uri.as_str().map(str::to_owned))
        .collect();
    if uris.is_empty() {
        return Reply::json(400, &json!({"error": "invalid_redirect_uri"}));
    }
    let id = lock(&shared.grants).register(uris.clone());
    Reply::json(
        201,
        &json!({
            "client_id": id,
            "redirect_uris": uris,
            "token_endpoint_auth_method": "none",
        }),
    )
}

fn authorize(hit: &Hit, shared: &Shared, consent: Consent, issuer: Issuer) -> Reply {
    let resource = format!("{}/mcp", shared.base);
    let code = match lock(&shared.grants).authorize(hit, &resource) {
        Ok(code) => code,
        // A client that may not be trusted gets no redirect.
        Err(error) => return Reply::json(400, &json!({"error": error})),
    };
    let mut answer = form_urlencoded::Serializer::new(String::new());
    answer.append_pair("state", hit.parameter("state").unwrap_or_default());
    match consent {
        Consent::Given => answer.append_pair("code", &code),
        Consent::Denied => answer.append_pair("error", "access_denied"),
    };
    match issuer {
        Issuer::Honest | Issuer::OtherInMetadata => {
            answer.append_pair("iss", &shared.base);
        }
        Issuer::OtherInAnswer => {
            answer.append_pair("iss", STRANGER);
        }
        Issuer::MissingInAnswer => {}
    }
    let redirect_uri = hit.parameter("redirect_uri").unwrap_or_default();
    let location = format!("{redirect_uri}?{}", answer.finish());
    Reply::empty(302).with("Location", location)
}

/// The MCP server, for those who have a token.
fn guarded(hit: &Hit, request: &Request, shared: &Shared, required: Option<&str>) -> Reply {
    let token = hit
        .authorization
        .as_deref()
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or_default();
    let Some(scopes) = lock(&shared.grants).access.get(token).cloned() else {
        let error = if token.is_empty() {
            ""
        } else {
            "error=\"invalid_token\", "
        };
        return Reply::empty(401).with(
            "WWW-Authenticate",
            format!(
                "Bearer {error}resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"",
                shared.base
            ),
        );
    };
    if let Some(required) = required
        && !scopes.split(' ').any(|scope| scope == required)
    {
        return Reply::empty(403).with(
            "WWW-Authenticate",
            format!("Bearer error=\"insufficient_scope\", scope=\"{required}\""),
        );
    }
    if hit.method != "POST" {
        return Reply::empty(405);
    }
    mcp::answer(&request.body)
}
