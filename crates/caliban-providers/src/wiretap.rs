//! Listening to calls as they are sent and answered, byte for byte, for who asks for that.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use caliban_model::Origin;
use reqwest::Response;

/// The most of an answer that is kept for a listener.
const LONGEST: usize = 8 << 20;

/// Hears calls.
pub trait Wiretap: Send + Sync + Debug {
    /// A call is sent; what comes back names it.
    fn sent(&self, origin: &Origin, body: &[u8]) -> u64;

    /// Its answer has ended, or nobody reads on.
    fn answered(&self, call: u64, origin: &Origin, status: u16, body: &[u8]);
}

/// An answer that is listened to. It goes along with the response and tells when that is let go.
#[derive(Debug, Clone)]
pub(crate) struct Heard(Arc<Mutex<Answer>>);

#[derive(Debug)]
struct Answer {
    tap: Arc<dyn Wiretap>,
    call: u64,
    origin: Origin,
    status: u16,
    body: Vec<u8>,
}

impl Heard {
    /// Listens to an answer from here on.
    pub(crate) fn listen(
        response: &mut Response,
        tap: &Arc<dyn Wiretap>,
        call: u64,
        origin: &Origin,
    ) {
        let answer = Answer {
            tap: Arc::clone(tap),
            call,
            origin: origin.clone(),
            status: response.status().as_u16(),
            body: Vec::new(),
        };
        let heard = Self(Arc::new(Mutex::new(answer)));
        response.extensions_mut().insert(heard);
    }

    /// A piece of an answer came, whether or not anybody listens.
    pub(crate) fn piece(response: &Response, piece: &Bytes) {
        let Some(Self(answer)) = response.extensions().get::<Self>() else {
            return;
        };
        let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        let room = LONGEST.saturating_sub(answer.body.len());
        answer.body.extend(piece.iter().take(room));
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let Self {
            tap,
            call,
            origin,
            status,
            body,
        } = self;
        tap.answered(*call, origin, *status, body);
    }
}
