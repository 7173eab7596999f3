//! OAuth for HTTP servers: discovery, login through the browser, tokens that are kept and renewed.
//! The SDK speaks the protocol; what is kept, where it may be sent and who may renew it is decided
//! here.

mod address;
mod callback;
mod challenge;
mod clock;
mod keeper;
mod lock;
mod login;
mod record;
mod sdk;
mod server;
mod store;
mod token_file;

pub use clock::Clock;
pub use keeper::{LoginState, Oauth};
pub use login::{LoggedIn, Login};
pub use server::{OauthServer, ServerError};
pub use store::{Keyring, KeyringUnavailable, TokenStore};
