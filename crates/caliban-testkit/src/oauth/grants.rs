//! Clients, codes and tokens, and who may have which.

use std::collections::{HashMap, HashSet};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::{Hit, Rotation};

#[derive(Debug, Default)]
pub(super) struct Grants {
    clients: HashMap<String, Client>,
    codes: HashMap<String, Code>,
    /// Valid access tokens with their scopes.
    pub(super) access: HashMap<String, String>,
    /// Valid refresh tokens with the client and scopes they were issued for.
    pub(super) refresh: HashMap<String, (String, String)>,
    spent: HashSet<String>,
    pub(super) replays: usize,
    serial: u64,
}

#[derive(Debug)]
struct Client {
    secret: Option<String>,
    /// Nothing where any loopback address will do.
    redirect_uris: Option<Vec<String>>,
}

#[derive(Debug)]
struct Code {
    client: String,
    redirect_uri: String,
    challenge: String,
    resource: String,
    scope: String,
}

/// What a token request gets.
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    pub(super) scope: String,
}

impl Grants {
    pub(super) fn add_client(&mut self, id: &str, secret: Option<&str>) {
        let client = Client {
            secret: secret.map(str::to_owned),
            redirect_uris: None,
        };
        self.clients.insert(id.to_owned(), client);
    }

    pub(super) fn register(&mut self, redirect_uris: Vec<String>) -> String {
        let id = self.name("client");
        let client = Client {
            secret: None,
            redirect_uris: Some(redirect_uris),
        };
        self.clients.insert(id.clone(), client);
        id
    }

    /// A code for a client that asks as it must.
    pub(super) fn authorize(&mut self, hit: &Hit, resource: &str) -> Result<String, &'static str> {
        let parameter = |name: &str| hit.parameter(name).unwrap_or_default().to_owned();
        let (client, redirect_uri) = (parameter("client_id"), parameter("redirect_uri"));
        let known = self.clients.get(&client).ok_or("unknown client")?;
        match &known.redirect_uris {
            Some(uris) if !uris.contains(&redirect_uri) => return Err("redirect_uri"),
            None if !redirect_uri.starts_with("http://127.0.0.1:") => return Err("redirect_uri"),
            Some(_) | None => {}
        }
        if parameter("response_type") != "code" {
            return Err("response_type");
        }
        if parameter("code_challenge_method") != "S256" || parameter("code_challenge").is_empty() {
            return Err("PKCE");
        }
        if parameter("state").len() < 16 {
            return Err("state");
        }
        if parameter("resource") != resource {
            return Err("resource");
        }
        let code = Code {
            client,
            redirect_uri,
            challenge: parameter("code_challenge"),
            resource: parameter("resource"),
            scope: parameter("scope"),
        };
        let name = self.name("code");
        self.codes.insert(name.clone(), code);
        Ok(name)
    }

    /// Tokens for a token request, or the error code of OAuth.
    pub(super) fn issue(&mut self, hit: &Hit, rotation: Rotation) -> Result<Issued, &'static str> {
        let client = self.authenticate(hit)?;
        match hit.parameter("grant_type") {
            Some("authorization_code") => {
                let code = hit.parameter("code").ok_or("invalid_request")?;
                let code = self.codes.remove(code).ok_or("invalid_grant")?;
                let verifier = hit.parameter("code_verifier").unwrap_or_default();
                let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
                let is_right = code.client == client
                    && code.challenge == challenge
                    && hit.parameter("redirect_uri") == Some(&code.redirect_uri)
                    && hit.parameter("resource") == Some(&code.resource);
                if !is_right {
                    return Err("invalid_grant");
                }
                Ok(self.tokens(client, code.scope, rotation))
            }
            Some("refresh_token") => {
                let token = hit.parameter("refresh_token").unwrap_or_default();
                if self.spent.contains(token) {
                    self.replays += 1;
                    self.refresh.clear();
                    self.access.clear();
                    return Err("invalid_grant");
                }
                let (owner, scope) = self.refresh.get(token).cloned().ok_or("invalid_grant")?;
                if owner != client {
                    return Err("invalid_grant");
                }
                match rotation {
                    Rotation::Replace => {
                        self.refresh.remove(token);
                        self.spent.insert(token.to_owned());
                        Ok(self.tokens(client, scope, rotation))
                    }
                    Rotation::Keep | Rotation::NoRefreshTokens => {
                        Ok(self.tokens(client, scope, Rotation::NoRefreshTokens))
                    }
                }
            }
            _ => Err("unsupported_grant_type"),
        }
    }

    /// The client of a token request, by its form or by basic authentication.
    fn authenticate(&self, hit: &Hit) -> Result<String, &'static str> {
        let basic = hit
            .authorization
            .as_deref()
            .and_then(|value| value.strip_prefix("Basic "))
            .and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok())
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let (id, secret) = match basic.as_deref().and_then(|text| text.split_once(':')) {
            Some((id, secret)) => (id.to_owned(), Some(secret.to_owned())),
            None => (
                hit.parameter("client_id").unwrap_or_default().to_owned(),
                hit.parameter("client_secret").map(str::to_owned),
            ),
        };
        let client = self.clients.get(&id).ok_or("invalid_client")?;
        if client.secret.is_some() && client.secret != secret {
            return Err("invalid_client");
        }
        Ok(id)
    }

    fn tokens(&mut self, client: String, scope: String, rotation: Rotation) -> Issued {
        let access = self.name("access");
        self.access.insert(access.clone(), scope.clone());
        let refresh = match rotation {
            Rotation::Replace | Rotation::Keep => {
                let refresh = self.name("refresh");
                self.refresh
                    .insert(refresh.clone(), (client, scope.clone()));
                Some(refresh)
            }
            Rotation::NoRefreshTokens => None,
        };
        Issued {
            access,
            refresh,
            scope,
        }
    }

    fn name(&mut self, kind: &str) -> String {
        self.serial += 1;
        format!("{kind}-{}", self.serial)
    }
}
