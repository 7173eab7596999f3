//! Keeps tokens valid: hands them out, renews them in time, and never lets two processes use one
//! refresh token.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use url::Url;

use super::address;
use super::challenge::{bounded, missing_scopes};
use super::clock::Clock;
use super::lock::{Locks, Turn};
use super::login::Login;
use super::record::{Age, Key, Record, Tokens};
use super::sdk::{Negotiation, RenewalError};
use super::server::OauthServer;
use super::store::{StoreError, TokenStore};
use crate::authorization::{AuthError, Authorization};

/// Where a login stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginState {
    /// Nobody has logged in.
    Absent,
    /// There is a token that holds until then, or for good.
    Valid { until: Option<Timestamp> },
    /// The token has expired and will be renewed when it is needed.
    Renewable,
    /// Only a new login helps.
    Ended,
}

/// The logins to a set of servers. Processes that share the store and the locks get along.
#[derive(Debug, Clone)]
pub struct Oauth {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    servers: BTreeMap<String, OauthServer>,
    store: TokenStore,
    locks: Locks,
    clock: Clock,
    /// What was handed out last, by server: the store is only asked when that no longer does.
    handed_out: Mutex<HashMap<String, Tokens>>,
    /// What a server said when it refused a request, by server: where a login begins.
    challenges: Mutex<HashMap<String, String>>,
}

/// Why a token is renewed.
enum Occasion {
    /// It has expired or is about to.
    Age,
    /// The server did not want this one.
    Refusal(Option<String>),
}

impl Oauth {
    /// `locks` is a directory of this user's, the same for all processes.
    pub fn new(
        servers: BTreeMap<String, OauthServer>,
        store: TokenStore,
        locks: PathBuf,
        clock: Clock,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                servers,
                store,
                locks: Locks::new(locks),
                clock,
                handed_out: Mutex::default(),
                challenges: Mutex::default(),
            }),
        }
    }

    /// Where a server's login stands; nothing where it does without one. Asks nobody.
    pub async fn state(&self, server: &str) -> Result<Option<LoginState>, AuthError> {
        let Some(known) = self.inner.server(server) else {
            return Ok(None);
        };
        let key = Key::new(server, &known.url);
        let Some(record) = self.inner.load(&key).await? else {
            return Ok(Some(LoginState::Absent));
        };
        Ok(Some(match record.tokens {
            None => LoginState::Ended,
            Some(_) if !record.missed.is_empty() => LoginState::Ended,
            Some(tokens) => match (tokens.age(self.inner.now()), tokens.refresh.0) {
                (Age::Fresh | Age::Ripe, _) => LoginState::Valid {
                    until: tokens.expires_at,
                },
                (Age::Expired, Some(_)) => LoginState::Renewable,
                (Age::Expired, None) => LoginState::Ended,
            },
        }))
    }

    /// Finds the authorization server and prepares everything for the browser. `port` is where the
    /// browser comes back to, any free one when 0.
    pub async fn begin_login(&self, server: &str, port: u16) -> Result<Login, AuthError> {
        Box::pin(Login::begin(self.inner.clone(), server, port)).await
    }

    /// Forgets a login; whether there was one.
    pub async fn logout(&self, server: &str) -> Result<bool, AuthError> {
        let Some(known) = self.inner.server(server) else {
            return Ok(false);
        };
        let key = Key::new(server, &known.url);
        // Whoever renews it now would bring it back.
        let _turn = self.inner.turn(&key).await?;
        self.inner.forget_handed_out(server);
        let forgotten = self.inner.store.forget(&key).await;
        forgotten.map_err(|error| stored(&error))
    }
}

impl Authorization for Oauth {
    fn token<'a>(
        &'a self,
        server: &'a str,
        url: &'a Url,
    ) -> BoxFuture<'a, Result<Option<String>, AuthError>> {
        async move {
            let Some(key) = self.inner.key(server, url)? else {
                return Ok(None);
            };
            let known = self.inner.handed_out().get(server).cloned();
            let now = self.inner.now();
            if let Some(tokens) = known.filter(|tokens| tokens.age(now) == Age::Fresh) {
                return Ok(Some(tokens.access));
            }
            let Some(record) = self.inner.load(&key).await? else {
                return Ok(None);
            };
            let Some(tokens) = record.tokens else {
                return Err(ended(server));
            };
            let age = tokens.age(now);
            let can_renew = tokens.refresh.0.is_some();
            match (age, can_renew) {
                (Age::Fresh, _) | (Age::Ripe, false) => {}
                (Age::Expired, false) => {
                    return Err(needs_login(server, "the token has expired"));
                }
                (Age::Ripe | Age::Expired, true) => {
                    match (self.inner.renewed(server, key, Occasion::Age).await, age) {
                        (Ok(access), _) => return Ok(Some(access)),
                        // The token still holds; whoever comes next tries again.
                        (Err(AuthError::Renewal { .. }), Age::Ripe) => {}
                        (Err(error), _) => return Err(error),
                    }
                }
            }
            let access = tokens.access.clone();
            self.inner.handed_out().insert(server.to_owned(), tokens);
            Ok(Some(access))
        }
        .boxed()
    }

    fn refused<'a>(
        &'a self,
        server: &'a str,
        url: &'a Url,
        www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, AuthError>> {
        async move {
            let Some(key) = self.inner.key(server, url)? else {
                return Ok(None);
            };
            if let Some(challenge) = www_authenticate.and_then(bounded) {
                lock(&self.inner.challenges).insert(server.to_owned(), challenge);
            }
            let missing = www_authenticate.and_then(|header| missing_scopes(header, url));
            // Whatever comes next is not answered with this token.
            let refused = self.inner.handed_out().remove(server);
            if let Some(missing) = missing {
                return Err(self.inner.lacks(server, &key, missing).await?);
            }
            let occasion = Occasion::Refusal(refused.map(|tokens| tokens.access));
            self.inner.renewed(server, key, occasion).await.map(Some)
        }
        .boxed()
    }
}

impl Inner {
    pub(super) fn server(&self, name: &str) -> Option<&OauthServer> {
        self.servers.get(name)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) async fn load(&self, key: &Key) -> Result<Option<Record>, AuthError> {
        self.store.load(key).await.map_err(|error| stored(&error))
    }

    pub(super) async fn save(&self, key: &Key, record: Record) -> Result<(), AuthError> {
        let saved = self.store.save(key, record).await;
        saved.map_err(|error| stored(&error))
    }

    /// The right to change a login.
    pub(super) async fn turn(&self, key: &Key) -> Result<Turn, AuthError> {
        let taken = self.locks.take(key).await;
        taken.map_err(|error| AuthError::Store {
            reason: format!("the logins cannot be locked: {error}"),
        })
    }

    fn handed_out(&self) -> MutexGuard<'_, HashMap<String, Tokens>> {
        lock(&self.handed_out)
    }

    /// The next token comes from the store.
    pub(super) fn forget_handed_out(&self, server: &str) {
        self.handed_out().remove(server);
    }

    /// What a server said last when it refused a request.
    pub(super) fn challenge(&self, server: &str) -> Option<String> {
        lock(&self.challenges).get(server).cloned()
    }

    /// Under what the login for a request is kept. A request to another origin than the server's
    /// gets no token, whoever asks for it.
    fn key(&self, server: &str, url: &Url) -> Result<Option<Key>, AuthError> {
        let Some(known) = self.server(server) else {
            return Ok(None);
        };
        let refuse = |reason: &str| AuthError::Address {
            server: server.to_owned(),
            address: address::shown(url.as_str()),
            reason: reason.to_owned(),
        };
        if let Some(objection) = address::objection(url) {
            return Err(refuse(objection));
        }
        if url.origin() != known.url.origin() {
            return Err(refuse("it is not where the token was issued for"));
        }
        Ok(Some(Key::new(server, &known.url)))
    }

    /// Remembers what a server missed, so that the next login asks for it.
    async fn lacks(
        &self,
        server: &str,
        key: &Key,
        missing: Vec<String>,
    ) -> Result<AuthError, AuthError> {
        let _turn = self.turn(key).await?;
        let reason = format!(
            "it wants the scopes `{}`",
            address::shown(&missing.join(" "))
        );
        if let Some(mut record) = self.load(key).await? {
            for scope in missing {
                if !record.missed.contains(&scope) {
                    record.missed.push(scope);
                }
            }
            record.saved_at = self.now();
            self.save(key, record).await?;
        }
        Ok(needs_login(server, &reason))
    }

    /// A renewed token, by a task of its own: a caller that loses patience between the server's
    /// answer and its safekeeping would lose the new refresh token with it.
    async fn renewed(
        self: &Arc<Self>,
        server: &str,
        key: Key,
        occasion: Occasion,
    ) -> Result<String, AuthError> {
        let (this, name) = (self.clone(), server.to_owned());
        let renewal = tokio::spawn(async move { this.renew(&name, &key, occasion).await });
        renewal.await.map_err(|error| AuthError::Renewal {
            server: server.to_owned(),
            reason: error.to_string(),
        })?
    }

    async fn renew(
        &self,
        server: &str,
        key: &Key,
        occasion: Occasion,
    ) -> Result<String, AuthError> {
        let Some(known) = self.server(server) else {
            return Err(needs_login(server, "it is not configured with OAuth"));
        };
        let _turn = self.turn(key).await?;
        // Somebody else may have renewed it while we waited.
        let Some(mut record) = self.load(key).await? else {
            return Err(needs_login(server, "nobody has logged in"));
        };
        let Some(tokens) = record.tokens.take() else {
            return Err(ended(server));
        };
        let is_another = match occasion {
            Occasion::Age => true,
            Occasion::Refusal(refused) => refused.as_ref() != Some(&tokens.access),
        };
        if is_another && tokens.age(self.now()) == Age::Fresh {
            return Ok(self.hand_out(server, tokens));
        }
        if tokens.refresh.0.is_none() {
            return Err(needs_login(server, "the server refuses the token"));
        }
        let failed = |reason: String| AuthError::Renewal {
            server: server.to_owned(),
            reason,
        };
        let challenge = self.challenge(server);
        let mut negotiation = Box::pin(Negotiation::open(known, challenge.as_deref()))
            .await
            .map_err(failed)?;
        let renewed = Box::pin(negotiation.refresh(&record, &tokens)).await;
        let (tokens, outcome) = match renewed {
            Ok(granted) => (Some(granted.tokens(self.now())), None),
            Err(RenewalError::Rejected) => (None, Some(ended(server))),
            Err(RenewalError::OtherIssuer) => {
                let reason = "its authorization server is another one now";
                (None, Some(needs_login(server, reason)))
            }
            Err(RenewalError::Failed(reason)) => return Err(failed(reason)),
        };
        record.tokens.clone_from(&tokens);
        record.saved_at = self.now();
        // The former refresh token is spent: what is not kept now is lost.
        self.save(key, record).await?;
        match (tokens, outcome) {
            (Some(tokens), _) => Ok(self.hand_out(server, tokens)),
            (None, outcome) => Err(outcome.unwrap_or_else(|| ended(server))),
        }
    }

    fn hand_out(&self, server: &str, tokens: Tokens) -> String {
        let access = tokens.access.clone();
        self.handed_out().insert(server.to_owned(), tokens);
        access
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn needs_login(server: &str, reason: &str) -> AuthError {
    AuthError::NeedsLogin {
        server: server.to_owned(),
        reason: reason.to_owned(),
    }
}

fn ended(server: &str) -> AuthError {
    needs_login(server, "the former login has ended")
}

fn stored(error: &StoreError) -> AuthError {
    AuthError::Store {
        reason: error.to_string(),
    }
}
