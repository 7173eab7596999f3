//! Metrics: what is added up between two exports.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::data::Attributes;

/// The most sets of attributes of one instrument; what comes beyond is added to one of its own.
const SETS: usize = 2_000;

/// An instrument, as a collector knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Instrument {
    Sessions,
    Cost,
    Tokens,
    LinesOfCode,
    EditDecisions,
    ActiveTime,
    Commits,
    PullRequests,
    Compactions,
    Hops,
    ClearedMarkers,
    HedgeLosses,
    HedgeLossTokens,
    HedgeLossCost,
    ModelTokens,
    ModelDuration,
    FirstChunk,
    AgentDuration,
    ToolDuration,
}

/// How an instrument counts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Counting {
    Whole,
    Fractions,
    Distribution(&'static [f64]),
}

/// The bounds that the conventions ask for, in tokens and in seconds.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const SECONDS: &[f64] = &[
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

impl Instrument {
    /// Name, unit, what it is, and how it counts.
    #[expect(clippy::too_many_lines, reason = "a table with a row for each")]
    fn described(self) -> (&'static str, &'static str, &'static str, Counting) {
        use Counting::{Distribution, Fractions, Whole};
        match self {
            Self::Sessions => ("caliban.session.count", "", "Sessions that began", Whole),
            Self::Cost => (
                "caliban.cost.usage",
                "USD",
                "What model calls cost",
                Fractions,
            ),
            Self::Tokens => (
                "caliban.token.usage",
                "tokens",
                "Tokens of model calls",
                Whole,
            ),
            Self::LinesOfCode => (
                "caliban.lines_of_code.count",
                "",
                "Lines that file tools added and removed",
                Whole,
            ),
            Self::EditDecisions => (
                "caliban.code_edit_tool.decision",
                "",
                "How calls of file tools were decided",
                Whole,
            ),
            Self::ActiveTime => (
                "caliban.active_time.total",
                "s",
                "Time that was worked",
                Fractions,
            ),
            Self::Commits => ("caliban.commit.count", "", "Commits that were made", Whole),
            Self::PullRequests => (
                "caliban.pull_request.count",
                "",
                "Pull requests that were made",
                Whole,
            ),
            Self::Compactions => (
                "caliban.compact.event",
                "",
                "Conversations that were shortened",
                Whole,
            ),
            Self::Hops => (
                "caliban.router.hop",
                "",
                "Changes of the route that answers",
                Whole,
            ),
            Self::ClearedMarkers => (
                "caliban.router.cache.markers_cleared",
                "",
                "Cache marks that a change of route made void",
                Whole,
            ),
            Self::HedgeLosses => (
                "caliban.router.hedge_loss",
                "",
                "Routes that lost a race and are paid",
                Whole,
            ),
            Self::HedgeLossTokens => (
                "caliban.router.hedge_loss.tokens",
                "tokens",
                "What routes that lost a race have read and written",
                Whole,
            ),
            Self::HedgeLossCost => (
                "caliban.router.hedge_loss.cost",
                "USD",
                "What routes that lost a race cost",
                Fractions,
            ),
            Self::ModelTokens => (
                "gen_ai.client.token.usage",
                "{token}",
                "Tokens of a model call",
                Distribution(TOKENS),
            ),
            Self::ModelDuration => (
                "gen_ai.client.operation.duration",
                "s",
                "Time of a model call",
                Distribution(SECONDS),
            ),
            Self::FirstChunk => (
                "gen_ai.client.operation.time_to_first_chunk",
                "s",
                "Time until a model's answer begins",
                Distribution(SECONDS),
            ),
            Self::AgentDuration => (
                "gen_ai.invoke_agent.duration",
                "s",
                "Time of a prompt",
                Distribution(SECONDS),
            ),
            Self::ToolDuration => (
                "gen_ai.execute_tool.duration",
                "s",
                "Time of a tool call",
                Distribution(SECONDS),
            ),
        }
    }
}

/// Whether a point tells what was added since the last one or since the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Temporality {
    #[default]
    Delta,
    Cumulative,
}

/// How often values fell between bounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Histogram {
    pub(crate) bounds: &'static [f64],
    /// One more than bounds.
    pub(crate) buckets: Vec<u64>,
    pub(crate) sum: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            buckets: vec![0; bounds.len() + 1],
            sum: 0.0,
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
        }
    }

    fn add(&mut self, value: f64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        if let Some(bucket) = self.buckets.get_mut(place) {
            *bucket += 1;
        }
        self.sum += value;
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }

    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// What an instrument came to, for each set of attributes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Points {
    Counts(BTreeMap<Attributes, u64>),
    Sums(BTreeMap<Attributes, f64>),
    Histograms(BTreeMap<Attributes, Histogram>),
}

/// A metric as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) description: &'static str,
    pub(crate) temporality: Temporality,
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) points: Points,
}

/// All instruments of a session.
#[derive(Debug)]
pub(crate) struct Instruments {
    temporality: Temporality,
    since: Timestamp,
    points: BTreeMap<Instrument, Points>,
}

impl Instruments {
    pub(crate) fn new(temporality: Temporality, now: Timestamp) -> Self {
        Self {
            temporality,
            since: now,
            points: BTreeMap::new(),
        }
    }

    /// Counts something whole.
    pub(crate) fn count(&mut self, instrument: Instrument, of: Attributes, number: u64) {
        if number == 0 {
            return;
        }
        if let Points::Counts(counts) = self.points_of(instrument) {
            *slot(counts, of, || 0) += number;
        }
    }

    /// Adds a number with a fraction, or puts it where it falls.
    pub(crate) fn measure(&mut self, instrument: Instrument, of: Attributes, number: f64) {
        match self.points_of(instrument) {
            Points::Counts(_) => {}
            Points::Sums(sums) => *slot(sums, of, || 0.0) += number,
            Points::Histograms(histograms) => {
                let bounds = match instrument.described().3 {
                    Counting::Distribution(bounds) => bounds,
                    Counting::Whole | Counting::Fractions => &[],
                };
                slot(histograms, of, || Histogram::new(bounds)).add(number);
            }
        }
    }

    fn points_of(&mut self, instrument: Instrument) -> &mut Points {
        self.points
            .entry(instrument)
            .or_insert_with(|| match instrument.described().3 {
                Counting::Whole => Points::Counts(BTreeMap::new()),
                Counting::Fractions => Points::Sums(BTreeMap::new()),
                Counting::Distribution(_) => Points::Histograms(BTreeMap::new()),
            })
    }

    /// What there is to send.
    pub(crate) fn taken(&mut self, now: Timestamp) -> Vec<Metric> {
        let since = self.since;
        let temporality = self.temporality;
        let points = match temporality {
            Temporality::Delta => {
                self.since = now;
                std::mem::take(&mut self.points)
            }
            Temporality::Cumulative => self.points.clone(),
        };
        let metrics = points.into_iter().map(|(instrument, points)| {
            let (name, unit, description, _) = instrument.described();
            Metric {
                name,
                unit,
                description,
                temporality,
                since,
                until: now,
                points,
            }
        });
        metrics.collect()
    }
}

/// The place of a set of attributes, among not too many.
fn slot<T>(
    points: &mut BTreeMap<Attributes, T>,
    of: Attributes,
    new: impl FnOnce() -> T,
) -> &mut T {
    let of = if points.len() >= SETS && !points.contains_key(&of) {
        Attributes::default().with("otel.metric.overflow", true)
    } else {
        of
    };
    points.entry(of).or_insert_with(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn model(name: &str) -> Attributes {
        Attributes::default().with("model", name)
    }

    #[test]
    fn what_was_sent_is_not_sent_again_unless_all_is_wanted() {
        for (temporality, second) in [(Temporality::Delta, 0), (Temporality::Cumulative, 5)] {
            let mut instruments = Instruments::new(temporality, at(1));
            instruments.count(Instrument::Tokens, model("a"), 5);
            let first = instruments.taken(at(2));
            assert_eq!(first[0].since, at(1));
            assert_eq!(first[0].points, Points::Counts([(model("a"), 5)].into()));
            let again = instruments.taken(at(3));
            let sum: u64 = again
                .iter()
                .map(|metric| match &metric.points {
                    Points::Counts(counts) => counts.values().sum(),
                    Points::Sums(_) | Points::Histograms(_) => 0,
                })
                .sum();
            assert_eq!(sum, second);
        }
    }

    #[test]
    fn a_value_falls_into_the_bucket_that_its_bound_closes() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 2.0, 9.0] {
            histogram.add(value);
        }
        assert_eq!(histogram.buckets, [2, 2, 1]);
        assert_eq!((histogram.least, histogram.most), (0.5, 9.0));
        assert_eq!(histogram.count(), 5);
    }

    #[test]
    fn sets_of_attributes_are_bounded() {
        let mut instruments = Instruments::new(Temporality::Delta, at(1));
        for number in 0..SETS + 50 {
            instruments.count(Instrument::Tokens, model(&number.to_string()), 1);
        }
        let Points::Counts(counts) = &instruments.taken(at(2))[0].points else {
            panic!("tokens are counted");
        };
        assert_eq!(counts.len(), SETS + 1);
        assert_eq!(counts.values().sum::<u64>(), (SETS + 50) as u64);
    }
}
