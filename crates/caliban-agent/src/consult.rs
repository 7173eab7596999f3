//! One question to a model beside the conversation: a classifier's verdict, a hook's opinion.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_model::{
    CancellationToken, CostLedger, Error, ErrorKind, Message, Provider, Purpose, Request,
};
use futures::future::BoxFuture;

use crate::event::Event;
use crate::listener::Listener;
use crate::reply::ask;

/// Who is asked and what it may cost.
#[derive(Debug, Clone)]
pub struct Consultant {
    pub provider: Arc<dyn Provider>,
    pub model: Arc<str>,
    pub purpose: Purpose,
    /// What the answer costs is the session's to pay.
    pub ledger: Arc<Mutex<CostLedger>>,
    pub max_tokens: u32,
    pub deadline: Duration,
}

/// Nobody watches a consultation.
pub(crate) struct Deaf;

impl Listener for Deaf {
    fn hear(&self, _: Event) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl Consultant {
    /// The answer's text. Every call made is paid for, whatever comes of it.
    pub async fn ask(
        &self,
        instruction: &str,
        question: &str,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        let failed =
            |kind, message: &str| Error::new(kind, self.provider.id(), &*self.model, message);
        let messages = vec![
            Arc::new(Message::system(instruction)),
            Arc::new(Message::user(question)),
        ];
        let mut request = Request::new(Arc::clone(&self.model), messages.into())
            .map_err(|error| failed(ErrorKind::Invalid, &error.to_string()))?;
        request.max_tokens = self.max_tokens;
        request.metadata.purpose = self.purpose;
        let asking = ask(&*self.provider, request, cancel, &Deaf);
        let Ok(call) = tokio::time::timeout(self.deadline, asking).await else {
            return Err(failed(ErrorKind::Timeout, "no answer in time"));
        };
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        for (origin, usage) in call.spent() {
            ledger.record(self.purpose, &origin.provider, &origin.model, usage);
        }
        match call.result {
            Ok(reply) => Ok(reply.message.text()),
            Err(broken) => Err(broken.error),
        }
    }
}
