//! The tools of an agent over its life: those it always has, and those of a source that may
//! change between two turns.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;

use crate::registry::{Entry, Registry};
use crate::tool::Tool;

/// Where tools come from that come and go: servers that connect late, tools that wait to be
/// looked up.
pub trait ToolSource: Send + Sync + Debug {
    /// Grows whenever [`tools`](Self::tools) would answer differently.
    fn generation(&self) -> u64;

    /// What the model is offered at this moment.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// A tool that is not offered but may be called all the same: one that waits to be looked
    /// up, or one of a server that is still connecting, which is waited for within a bound of
    /// the source.
    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>>;
}

/// All tools of an agent. A source never takes the name of a tool that is always there.
#[derive(Debug, Clone, Default)]
pub struct Toolbox {
    fixed: Arc<Registry>,
    source: Option<Arc<dyn ToolSource>>,
    latest: Arc<Mutex<Option<Latest>>>,
}

/// What was put together last, and of which generation it is.
#[derive(Debug)]
struct Latest {
    generation: u64,
    registry: Arc<Registry>,
}

impl Toolbox {
    pub fn new(fixed: Registry, source: Option<Arc<dyn ToolSource>>) -> Self {
        Self {
            fixed: Arc::new(fixed),
            source,
            latest: Arc::default(),
        }
    }

    /// The tools that the model is offered now.
    pub fn current(&self) -> Arc<Registry> {
        let Some(source) = &self.source else {
            return Arc::clone(&self.fixed);
        };
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = source.generation();
        match &*latest {
            Some(known) if known.generation == generation => Arc::clone(&known.registry),
            Some(_) | None => {
                let registry = Arc::new(self.fixed.with(source.tools()));
                *latest = Some(Latest {
                    generation,
                    registry: Arc::clone(&registry),
                });
                registry
            }
        }
    }

    /// The same source with fewer tools that are always there.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        let keep: Arc<dyn Fn(&str) -> bool + Send + Sync> = Arc::new(keep);
        let source = self.source.clone().map(|source| {
            let keep = Keep(Arc::clone(&keep));
            Arc::new(FilteredSource { source, keep }) as Arc<dyn ToolSource>
        });
        Self::new(self.fixed.filtered(&*keep), source)
    }

    /// The same with these in the place of those of their names, and beside the others.
    #[must_use]
    pub fn with(&self, tools: &[Arc<dyn Tool>]) -> Self {
        let is_new = |name: &str| tools.iter().any(|tool| tool.spec().name == name);
        let others = self.fixed.filtered(|name| !is_new(name));
        Self::new(others.with(tools.iter().cloned()), self.source.clone())
    }

    /// The tool that a call means.
    pub(crate) async fn find(&self, name: &str) -> Option<Entry> {
        if let Some(entry) = self.current().entry(name) {
            return Some(entry.clone());
        }
        let tool = self.source.as_ref()?.find(name).await?;
        (self.fixed.get(name).is_none()).then(|| Entry::new(tool))
    }
}

impl From<Registry> for Toolbox {
    fn from(fixed: Registry) -> Self {
        Self::new(fixed, None)
    }
}

/// A source of which only some tools may be used.
#[derive(Debug)]
struct FilteredSource {
    source: Arc<dyn ToolSource>,
    keep: Keep,
}

struct Keep(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl Debug for Keep {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Keep")
    }
}

impl ToolSource for FilteredSource {
    fn generation(&self) -> u64 {
        self.source.generation()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.source.tools();
        tools.retain(|tool| (self.keep.0)(&tool.spec().name));
        tools
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>> {
        if (self.keep.0)(name) {
            self.source.find(name)
        } else {
            Box::pin(std::future::ready(None))
        }
    }
}
