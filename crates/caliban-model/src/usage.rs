//! Token counts in disjoint buckets, so that no token is priced twice.

use std::ops::AddAssign;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

/// What one or more model calls consumed. The input buckets never overlap; `reasoning` is a part
/// of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens neither read from nor written to a cache.
    pub input: u64,
    pub cache_read: u64,
    /// Written to the short-lived cache (5 minutes at Anthropic, 30 at OpenAI).
    pub cache_write_5m: u64,
    /// Written to the long-lived cache (1 hour at Anthropic, 12 at OpenAI).
    pub cache_write_1h: u64,
    /// All output tokens, reasoning included.
    pub output: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
    /// The provider reported nothing; these numbers are a guess from text length.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// What the provider itself says that it charges, in USD; it counts instead of our prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charged: Option<Decimal>,
}

impl Usage {
    /// Every input token, cached or not.
    pub fn total_input(&self) -> u64 {
        self.input + self.cache_read + self.cache_write()
    }

    pub fn cache_write(&self) -> u64 {
        self.cache_write_5m + self.cache_write_1h
    }

    /// What this has beyond `part`, bucket by bucket.
    #[must_use]
    pub fn beyond(&self, part: &Self) -> Self {
        Self {
            input: self.input.saturating_sub(part.input),
            cache_read: self.cache_read.saturating_sub(part.cache_read),
            cache_write_5m: self.cache_write_5m.saturating_sub(part.cache_write_5m),
            cache_write_1h: self.cache_write_1h.saturating_sub(part.cache_write_1h),
            output: self.output.saturating_sub(part.output),
            reasoning: self.reasoning.saturating_sub(part.reasoning),
            estimated: false,
            charged: self
                .charged
                .map(|whole| whole - part.charged.unwrap_or_default()),
        }
    }

    /// The usual rule of thumb for providers that report nothing: four bytes make a token.
    pub fn estimate(input_bytes: usize, output_bytes: usize) -> Self {
        let tokens = |bytes: usize| (bytes as u64).div_ceil(4);
        Self {
            input: tokens(input_bytes),
            output: tokens(output_bytes),
            estimated: true,
            ..Self::default()
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write_5m += other.cache_write_5m;
        self.cache_write_1h += other.cache_write_1h;
        self.output += other.output;
        self.reasoning += other.reasoning;
        self.estimated |= other.estimated;
        self.charged = match (self.charged, other.charged) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or_default() + other.unwrap_or_default()),
        };
    }
}
