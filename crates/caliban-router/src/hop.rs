//! The ends of a hop, and what a prompt cache loses by it.

use caliban_model::{CacheSupport, Origin, Request};

use crate::route::{Route, Seat};

/// One end of a hop: who it is, and how its cache is told what to keep.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) origin: Origin,
    cache: CacheSupport,
}

impl End {
    pub(crate) fn new(origin: Origin, route: Option<&Route>) -> Self {
        let cache = match route.map(|route| &route.seat) {
            Some(Seat::Connected(provider)) => provider.capabilities(&origin.model).cache,
            Some(Seat::Vacant { .. }) | None => CacheSupport::None,
        };
        Self { origin, cache }
    }

    /// The marks that a request would have had here and does not have there.
    pub(crate) fn cleared_by(&self, to: &Self, request: &Request) -> u32 {
        match (self.cache, to.cache) {
            (CacheSupport::Explicit(most), CacheSupport::None | CacheSupport::Automatic) => {
                u32::try_from(request.cache_marks(most)).unwrap_or(u32::MAX)
            }
            (CacheSupport::Explicit(_), CacheSupport::Explicit(_))
            | (CacheSupport::None | CacheSupport::Automatic, _) => 0,
        }
    }
}
