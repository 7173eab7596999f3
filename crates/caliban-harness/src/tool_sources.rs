//! Tools from several places as one.

use std::sync::Arc;

use caliban_agent::{Tool, ToolSource};
use futures::FutureExt;
use futures::future::BoxFuture;

/// Several sources; the first that knows a name has the tool.
#[derive(Debug)]
pub(crate) struct ToolSources(pub(crate) Vec<Arc<dyn ToolSource>>);

impl ToolSource for ToolSources {
    fn generation(&self) -> u64 {
        self.0.iter().map(|source| source.generation()).sum()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.iter().flat_map(|source| source.tools()).collect()
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>> {
        async move {
            for source in &self.0 {
                if let Some(tool) = source.find(name).await {
                    return Some(tool);
                }
            }
            None
        }
        .boxed()
    }
}
