//! Who hears the events of a run.

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::event::Event;

/// Hears events, in order. The run waits until an event was taken in, so a listener that makes
/// things durable does so before they count as told.
pub trait Listener: Send + Sync {
    fn hear(&self, event: Event) -> BoxFuture<'_, ()>;
}

impl Listener for mpsc::Sender<Event> {
    fn hear(&self, event: Event) -> BoxFuture<'_, ()> {
        async move {
            // A face that has gone away hears nothing; stopping the run is the driver's to do.
            let _ = self.send(event).await;
        }
        .boxed()
    }
}
