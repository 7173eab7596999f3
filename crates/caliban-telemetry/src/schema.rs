//! The messages that collectors take, with the numbers and names of their fields.

use crate::data::{Attributes, Context, Record, Span, SpanKind, Value, nanoseconds};
use crate::instruments::{Histogram, Metric, Points, Temporality};
use crate::tree::{Field, Message, Node};

/// Who tells it, as it stands above everything that is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    pub(crate) resource: Attributes,
    pub(crate) version: &'static str,
}

/// The name under which all of it was made.
const SCOPE: &str = "caliban";
/// How names of logs begin.
const PREFIX: &str = "caliban.";
/// The state of a span that failed.
const FAILED: u32 = 2;

impl Source {
    /// The three layers above what is sent, which all signals have in common.
    fn around(&self, name: [&'static str; 3], nodes: Vec<Node>) -> Message {
        let scope = Message::new([
            (1, "name", Node::Text(SCOPE.to_owned())),
            (2, "version", Node::Text(self.version.to_owned())),
        ]);
        let inner = Message::new([
            (1, "scope", Node::Message(scope)),
            (2, name[2], Node::Repeated(nodes)),
        ]);
        let resource = Message::new([attributes(1, &self.resource)]);
        let outer = Message::new([
            (1, "resource", Node::Message(resource)),
            (2, name[1], Node::Repeated(vec![Node::Message(inner)])),
        ]);
        Message::new([(1, name[0], Node::Repeated(vec![Node::Message(outer)]))])
    }

    pub(crate) fn spans(&self, spans: &[Span]) -> Message {
        let spans = spans.iter().map(|span| Node::Message(of_span(span)));
        self.around(["resourceSpans", "scopeSpans", "spans"], spans.collect())
    }

    pub(crate) fn records(&self, records: &[Record]) -> Message {
        let records = records
            .iter()
            .map(|record| Node::Message(of_record(record)));
        let names = ["resourceLogs", "scopeLogs", "logRecords"];
        self.around(names, records.collect())
    }

    pub(crate) fn metrics(&self, metrics: &[Metric]) -> Message {
        let metrics = metrics
            .iter()
            .map(|metric| Node::Message(of_metric(metric)));
        let names = ["resourceMetrics", "scopeMetrics", "metrics"];
        self.around(names, metrics.collect())
    }
}

fn of_span(span: &Span) -> Message {
    let kind = match span.kind {
        SpanKind::Internal => 1,
        SpanKind::Client => 3,
    };
    let mut fields = ids([1, 2], span.context);
    if let Some(parent) = span.parent {
        fields.push((4, "parentSpanId", Node::Id(parent.to_vec())));
    }
    fields.extend([
        (5, "name", Node::Text(span.name.clone())),
        (6, "kind", Node::Number(kind)),
        (7, "startTimeUnixNano", Node::Fixed(nanoseconds(span.began))),
        (8, "endTimeUnixNano", Node::Fixed(nanoseconds(span.ended))),
        attributes(9, &span.attributes),
    ]);
    if let Some(error) = &span.error {
        let status = Message::new([
            (2, "message", Node::Text(error.clone())),
            (3, "code", Node::Number(FAILED)),
        ]);
        fields.push((15, "status", Node::Message(status)));
    }
    Message(fields)
}

fn of_record(record: &Record) -> Message {
    let at = nanoseconds(record.at);
    let name = format!("{PREFIX}{}", record.name);
    let mut fields = vec![
        (1, "timeUnixNano", Node::Fixed(at)),
        (2, "severityNumber", Node::Number(record.severity.number())),
        (
            3,
            "severityText",
            Node::Text(record.severity.text().to_owned()),
        ),
        (
            5,
            "body",
            Node::Message(of_value(&Value::Text(name.clone()))),
        ),
        attributes(6, &record.attributes),
    ];
    if let Some(context) = record.context {
        fields.extend(ids([9, 10], context));
    }
    fields.push((11, "observedTimeUnixNano", Node::Fixed(at)));
    fields.push((12, "eventName", Node::Text(name)));
    Message(fields)
}

fn ids(numbers: [u32; 2], context: Context) -> Vec<Field> {
    vec![
        (numbers[0], "traceId", Node::Id(context.trace.to_vec())),
        (numbers[1], "spanId", Node::Id(context.span.to_vec())),
    ]
}

fn of_metric(metric: &Metric) -> Message {
    let temporality = match metric.temporality {
        Temporality::Delta => 1,
        Temporality::Cumulative => 2,
    };
    let times = [
        (
            2,
            "startTimeUnixNano",
            Node::Fixed(nanoseconds(metric.since)),
        ),
        (3, "timeUnixNano", Node::Fixed(nanoseconds(metric.until))),
    ];
    let data = match &metric.points {
        Points::Sums(sums) => {
            let points = sums.iter().map(|(of, sum)| {
                let mut fields = times.to_vec();
                fields.push((4, "asDouble", Node::Double(*sum)));
                fields.push(attributes(7, of));
                Node::Message(Message(fields))
            });
            let sum = Message::new([
                (1, "dataPoints", Node::Repeated(points.collect())),
                (2, "aggregationTemporality", Node::Number(temporality)),
                (3, "isMonotonic", Node::Bool(true)),
            ]);
            (7, "sum", Node::Message(sum))
        }
        Points::Counts(counts) => {
            let points = counts.iter().map(|(of, count)| {
                let mut fields = times.to_vec();
                let count = i64::try_from(*count).unwrap_or(i64::MAX);
                fields.push((6, "asInt", Node::SignedFixed(count)));
                fields.push(attributes(7, of));
                Node::Message(Message(fields))
            });
            let sum = Message::new([
                (1, "dataPoints", Node::Repeated(points.collect())),
                (2, "aggregationTemporality", Node::Number(temporality)),
                (3, "isMonotonic", Node::Bool(true)),
            ]);
            (7, "sum", Node::Message(sum))
        }
        Points::Histograms(histograms) => {
            let points = histograms.iter().map(|(of, histogram)| {
                let mut fields = times.to_vec();
                fields.extend(of_histogram(histogram));
                fields.push(attributes(9, of));
                Node::Message(Message(fields))
            });
            let histogram = Message::new([
                (1, "dataPoints", Node::Repeated(points.collect())),
                (2, "aggregationTemporality", Node::Number(temporality)),
            ]);
            (9, "histogram", Node::Message(histogram))
        }
    };
    Message::new([
        (1, "name", Node::Text(metric.name.to_owned())),
        (2, "description", Node::Text(metric.description.to_owned())),
        (3, "unit", Node::Text(metric.unit.to_owned())),
        data,
    ])
}

fn of_histogram(histogram: &Histogram) -> Vec<Field> {
    vec![
        (4, "count", Node::Fixed(histogram.count())),
        (5, "sum", Node::Double(histogram.sum)),
        (
            6,
            "bucketCounts",
            Node::PackedFixed(histogram.buckets.clone()),
        ),
        (
            7,
            "explicitBounds",
            Node::PackedDouble(histogram.bounds.to_vec()),
        ),
        (11, "min", Node::Double(histogram.least)),
        (12, "max", Node::Double(histogram.most)),
    ]
}

fn attributes(number: u32, attributes: &Attributes) -> Field {
    let pairs = attributes.0.iter().map(|(name, value)| {
        Node::Message(Message::new([
            (1, "key", Node::Text(name.to_string())),
            (2, "value", Node::Message(of_value(value))),
        ]))
    });
    (number, "attributes", Node::Repeated(pairs.collect()))
}

fn of_value(value: &Value) -> Message {
    let field = match value {
        Value::Text(text) => (1, "stringValue", Node::Text(text.clone())),
        Value::Truth(truth) => (2, "boolValue", Node::Bool(*truth)),
        Value::Whole(number) => (3, "intValue", Node::Int(*number)),
        Value::Fraction(number) => (4, "doubleValue", Node::Double(number.0)),
        Value::Texts(texts) => {
            let texts = texts.iter();
            let texts = texts.map(|text| Node::Message(of_value(&Value::Text(text.clone()))));
            let values = Message::new([(1, "values", Node::Repeated(texts.collect()))]);
            (5, "arrayValue", Node::Message(values))
        }
    };
    Message::new([field])
}
