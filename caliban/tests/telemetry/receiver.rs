//! Collectors: one of ours that understands telemetry by its official classes and all that a client
//! may do, and one that somebody else made.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A collector that runs.
pub(crate) struct Receiver {
    child: Child,
    out: std::cell::RefCell<BufReader<ChildStdout>>,
    grpc: u64,
    http: u64,
}

/// What a collector took, one object for each message.
pub(crate) struct Told(pub(crate) Vec<Value>);

impl Receiver {
    /// Nothing where the classes are not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::of("receiver.py")
    }

    /// The collector of the package `oteltest`. It knows no compression over HTTP, and takes the
    /// digits of ids in JSON for base64.
    pub(crate) fn foreign() -> Option<Self> {
        Self::of("foreign.py")
    }

    fn of(script: &str) -> Option<Self> {
        let Some(python) = std::env::var_os("CALIBAN_TEST_PYTHON") else {
            eprintln!("skipped: CALIBAN_TEST_PYTHON is not set; run `cargo xtask test`");
            return None;
        };
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/telemetry");
        let mut child = Command::new(python)
            .arg(scripts.join(script))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let ports: Value = serde_json::from_str(&line).unwrap();
        Some(Self {
            child,
            out: std::cell::RefCell::new(out),
            grpc: ports["grpc"].as_u64().unwrap(),
            http: ports["http"].as_u64().unwrap(),
        })
    }

    pub(crate) fn url(&self, protocol: &str) -> String {
        let port = match protocol {
            "grpc" => self.grpc,
            _ => self.http,
        };
        format!("http://127.0.0.1:{port}")
    }

    /// Everything it took; it takes nothing more.
    pub(crate) fn told(mut self) -> Told {
        // What was answered was printed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let lines = self.out.get_mut().lines();
        Told(
            lines
                .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
                .collect(),
        )
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Told {
    fn of<'a>(&'a self, path: [&'a str; 3]) -> impl Iterator<Item = &'a Value> {
        let outer = self
            .0
            .iter()
            .flat_map(move |line| list(&line["body"][path[0]]));
        let inner = outer.flat_map(move |outer| list(&outer[path[1]]));
        inner.flat_map(move |inner| list(&inner[path[2]]))
    }

    pub(crate) fn metrics(&self) -> impl Iterator<Item = &Value> {
        self.of(["resourceMetrics", "scopeMetrics", "metrics"])
    }

    pub(crate) fn spans(&self) -> impl Iterator<Item = &Value> {
        self.of(["resourceSpans", "scopeSpans", "spans"])
    }

    pub(crate) fn events<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        let records = self.of(["resourceLogs", "scopeLogs", "logRecords"]);
        records.filter(move |record| attribute(record, "event.name") == Some(name))
    }

    pub(crate) fn signals(&self) -> BTreeSet<&str> {
        let lines = self.0.iter();
        lines.filter_map(|line| line["signal"].as_str()).collect()
    }

    pub(crate) fn metric_names(&self) -> BTreeSet<String> {
        let names = self.metrics().filter_map(|metric| metric["name"].as_str());
        names.map(ToOwned::to_owned).collect()
    }

    /// The sum of a metric over the points that have these attributes.
    pub(crate) fn sum(&self, name: &str, of: &[(&str, &str)]) -> f64 {
        let points = self
            .metrics()
            .filter(|metric| metric["name"] == name)
            .flat_map(points);
        let fitting = points.filter(|point| {
            of.iter()
                .all(|(name, value)| attribute(point, name) == Some(value))
        });
        fitting
            .map(|point| match &point["asInt"] {
                Value::String(text) => text.parse::<f64>().unwrap(),
                _ => point["asDouble"].as_f64().unwrap(),
            })
            .sum()
    }

    pub(crate) fn text(&self) -> String {
        self.0.iter().map(ToString::to_string).collect()
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn points(metric: &Value) -> &[Value] {
    list(&metric["sum"]["dataPoints"])
}

pub(crate) fn attribute<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    let attributes = list(&of["attributes"]).iter();
    let mut found = attributes.filter(|attribute| attribute["key"] == name);
    found.next()?["value"]["stringValue"].as_str()
}

/// Hexadecimal digits as the official classes print bytes.
pub(crate) fn base64(digits: &str) -> String {
    use base64::Engine as _;
    let bytes: Vec<u8> = (0..digits.len())
        .step_by(2)
        .map(|place| u8::from_str_radix(&digits[place..place + 2], 16).unwrap())
        .collect();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
