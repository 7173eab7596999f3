//! Servers that live in the program that embeds this one: messages over channels.

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::mpsc;

use super::TransportError;

/// Both directions of a connection to a server, as JSON-RPC messages. How much waits in between
/// is bounded by the channels.
#[derive(Debug)]
pub struct Link {
    /// Messages for the server.
    pub outgoing: mpsc::Sender<Value>,
    /// Messages of the server.
    pub incoming: mpsc::Receiver<Value>,
}

/// A link as a transport of the SDK.
#[derive(Debug)]
pub(crate) struct Messages(pub(crate) Link);

impl Transport<RoleClient> for Messages {
    type Error = TransportError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        let outgoing = self.0.outgoing.clone();
        async move {
            let message =
                serde_json::to_value(message).map_err(|error| TransportError(error.to_string()))?;
            outgoing
                .send(message)
                .await
                .map_err(|_| TransportError("the program that serves it is gone".to_owned()))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.0.incoming.recv().await?;
            // What is no message is skipped, as on the other transports.
            if let Ok(message) = serde_json::from_value(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        self.0.incoming.close();
        Ok(())
    }
}
