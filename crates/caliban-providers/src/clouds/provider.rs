//! A provider that serves the models of several makers, each in the family of its maker.

use std::collections::BTreeSet;
use std::sync::Arc;

use caliban_model::{
    CancellationToken, Capabilities, Error, ErrorKind, EventStream, ModelInfo, Provider,
    ProviderKind, RateCard, Request, capabilities,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::adapter::Adapter;
use crate::sight::Blind;
use crate::wiretap::Wiretap;

/// A platform, with one adapter for each family it serves.
#[derive(Debug)]
pub(crate) struct Platform {
    kind: ProviderKind,
    /// For Claude's models.
    claude: Adapter,
    /// For all others.
    others: Adapter,
    /// Asked for once in a session.
    listed: OnceCell<Vec<ModelInfo>>,
}

impl Platform {
    pub(crate) fn new(kind: ProviderKind, claude: Adapter, others: Adapter) -> Self {
        Self {
            kind,
            claude,
            others,
            listed: OnceCell::new(),
        }
    }

    /// The same with another way with images for models that cannot see, and with somebody who
    /// listens.
    pub(crate) fn attended(self, blind: Blind, tap: Option<&Arc<dyn Wiretap>>) -> Self {
        let attended = |adapter: Adapter| adapter.seeing(blind).tapped(tap);
        Self {
            claude: attended(self.claude),
            others: attended(self.others),
            ..self
        }
    }

    fn adapter(&self, model: &str) -> &Adapter {
        if is_claude(model) {
            &self.claude
        } else {
            &self.others
        }
    }

    /// The lists of both; where neither can be had, the models whose prices are known: who may use
    /// models may often not list them. Who is nobody there is told.
    async fn list(&self) -> Result<Vec<ModelInfo>, Error> {
        let (claude, others) = futures::join!(self.claude.models(), self.others.models());
        let mut models = Vec::new();
        for list in [claude, others] {
            match list {
                Ok(list) => models.extend(list),
                Err(error) if error.kind == ErrorKind::Auth && error.status.is_none() => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        if models.is_empty() {
            models = self.known();
        }
        let mut seen = BTreeSet::new();
        models.retain(|model| seen.insert(model.id.clone()));
        Ok(models)
    }

    fn known(&self) -> Vec<ModelInfo> {
        let card = RateCard::builtin();
        let names = card.models(self.kind.as_str());
        names
            .map(|name| {
                let rate = card.lookup(self.kind.as_str(), name);
                ModelInfo {
                    id: name.to_owned(),
                    context_window: rate.and_then(|rate| rate.context_window),
                    max_output: rate.and_then(|rate| rate.max_output),
                }
            })
            .collect()
    }
}

/// Whether a name, an id or an ARN is that of one of Claude's models. A profile whose ARN hides its
/// model counts as one: that is what they are made for.
pub(crate) fn is_claude(model: &str) -> bool {
    model.contains("claude") || model.contains("application-inference-profile/")
}

impl Provider for Platform {
    fn id(&self) -> &str {
        self.kind.as_str()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        capabilities(self.kind.as_str(), model)
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> EventStream {
        self.adapter(&request.model).stream(request, cancel)
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        async move {
            let listed = self.listed.get_or_try_init(|| self.list()).await;
            listed.cloned()
        }
        .boxed()
    }
}
