//! What a failure leads to, in one table: whether the same route is tried again, whether another
//! one is, and what it says about the health of the route.

use std::time::Duration;

use caliban_model::{Error, ErrorKind, RetryAdvice};

/// A server that asks for a longer wait than this is left for another route, if there is one.
pub(crate) const SOON: Duration = Duration::from_secs(5);

/// What follows from a failure of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consequence {
    pub again: Again,
    pub next: Next,
    pub health: Health,
}

/// Whether the same route is tried once more while another one is left. Where none is, the
/// patience of the retries alone decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    No,
    Once,
    /// Once, if the server does not ask for a long wait.
    OnceIfSoon,
}

/// Whether another route is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Yes,
    /// Only one whose window is known to be larger.
    IfLarger,
    /// Only where the route says so: another vendor's answer would hide what has to be mended.
    IfAskedFor(Escape),
    No,
}

/// Failures that do not lead to another route unless the route lists them in `fallback_on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Escape {
    Auth,
    Billing,
    Filtered,
}

/// What a failure says about the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It counts for the breaker.
    Failure,
    /// The route rests as long as the server asked for, and is not ill.
    Rests,
    /// It will not work in this process.
    Dead,
    /// Nothing: it was about the request.
    Unchanged,
}

impl Escape {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Billing => "billing",
            Self::Filtered => "filtered",
        }
    }
}

/// The table.
pub fn consequence(kind: &ErrorKind) -> Consequence {
    let of = |again, next, health| Consequence {
        again,
        next,
        health,
    };
    match kind {
        ErrorKind::RateLimited => of(Again::OnceIfSoon, Next::Yes, Health::Rests),
        ErrorKind::Overloaded | ErrorKind::Server | ErrorKind::Network | ErrorKind::Malformed => {
            of(Again::Once, Next::Yes, Health::Failure)
        }
        // It has cost its time already.
        ErrorKind::Timeout => of(Again::No, Next::Yes, Health::Failure),
        ErrorKind::TooLong { .. } => of(Again::No, Next::IfLarger, Health::Unchanged),
        ErrorKind::Unavailable => of(Again::No, Next::Yes, Health::Dead),
        ErrorKind::Auth => of(Again::No, Next::IfAskedFor(Escape::Auth), Health::Unchanged),
        ErrorKind::Billing => of(
            Again::No,
            Next::IfAskedFor(Escape::Billing),
            Health::Unchanged,
        ),
        ErrorKind::Filtered => of(
            Again::No,
            Next::IfAskedFor(Escape::Filtered),
            Health::Unchanged,
        ),
        ErrorKind::Invalid | ErrorKind::Cancelled | ErrorKind::Mismatch => {
            of(Again::No, Next::No, Health::Unchanged)
        }
    }
}

/// What follows from this failure: the server's word on trying again counts.
pub(crate) fn follows(error: &Error) -> Consequence {
    let mut consequence = consequence(&error.kind);
    match (error.advice, &error.kind) {
        // The server or its certificate will not do, however often it is asked.
        (RetryAdvice::GiveUp, ErrorKind::Network) => {
            consequence.again = Again::No;
            consequence.health = Health::Dead;
        }
        (RetryAdvice::GiveUp, _) => consequence.again = Again::No,
        (RetryAdvice::ByKind | RetryAdvice::Retry, _) => {}
    }
    consequence
}

impl Again {
    /// Whether the route is worth another attempt after this failure.
    pub(crate) fn allows(self, error: &Error) -> bool {
        match self {
            Self::No => false,
            Self::Once => true,
            Self::OnceIfSoon => error.retry_after.is_none_or(|wait| wait <= SOON),
        }
    }
}

/// The short name of a kind, as reports and records have it.
pub fn kind_name(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::RateLimited => "rate_limited",
        ErrorKind::Overloaded => "overloaded",
        ErrorKind::Server => "server",
        ErrorKind::Network => "network",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Malformed => "malformed",
        ErrorKind::TooLong { .. } => "too_long",
        ErrorKind::Auth => "auth",
        ErrorKind::Billing => "billing",
        ErrorKind::Filtered => "filtered",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Invalid => "invalid",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::Mismatch => "mismatch",
    }
}

/// Every kind once, for tables.
pub const KINDS: [ErrorKind; 14] = [
    ErrorKind::RateLimited,
    ErrorKind::Overloaded,
    ErrorKind::Server,
    ErrorKind::Network,
    ErrorKind::Timeout,
    ErrorKind::Malformed,
    ErrorKind::TooLong { limit: None },
    ErrorKind::Auth,
    ErrorKind::Billing,
    ErrorKind::Filtered,
    ErrorKind::Unavailable,
    ErrorKind::Invalid,
    ErrorKind::Cancelled,
    ErrorKind::Mismatch,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The list is a promise: whoever changes it changes what people pay for.
    #[test]
    fn which_failures_lead_to_another_route_is_pinned() {
        let of = |wanted: fn(Next) -> bool| -> Vec<&str> {
            KINDS
                .iter()
                .filter(|kind| wanted(consequence(kind).next))
                .map(kind_name)
                .collect()
        };
        assert_eq!(
            of(|next| next == Next::Yes),
            [
                "rate_limited",
                "overloaded",
                "server",
                "network",
                "timeout",
                "malformed",
                "unavailable"
            ]
        );
        assert_eq!(of(|next| next == Next::IfLarger), ["too_long"]);
        assert_eq!(
            of(|next| matches!(next, Next::IfAskedFor(_))),
            ["auth", "billing", "filtered"]
        );
        assert_eq!(
            of(|next| next == Next::No),
            ["invalid", "cancelled", "mismatch"]
        );
    }

    #[test]
    fn a_server_that_will_not_do_is_not_asked_again() {
        let mut error = Error::new(ErrorKind::Network, "p", "m", "certificate");
        assert_eq!(follows(&error).health, Health::Failure);
        error.advice = RetryAdvice::GiveUp;
        assert_eq!(follows(&error).health, Health::Dead);
        assert_eq!(follows(&error).next, Next::Yes);
        assert!(!follows(&error).again.allows(&error));
    }

    #[test]
    fn a_long_wait_is_not_waited_for_while_there_is_another_route() {
        let mut error = Error::new(ErrorKind::RateLimited, "p", "m", "slow down");
        assert!(follows(&error).again.allows(&error));
        error.retry_after = Some(SOON);
        assert!(follows(&error).again.allows(&error));
        error.retry_after = Some(SOON + Duration::from_millis(1));
        assert!(!follows(&error).again.allows(&error));
    }
}
