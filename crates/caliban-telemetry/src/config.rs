//! What is exported, where to and how, as the environment and the settings say.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use caliban_settings::Settings;
use caliban_settings::variables::{Environment, VariableError, names};
use url::Url;

use crate::bodies::Place;
use crate::data::{Attributes, Context};
use crate::instruments::Temporality;
use crate::traces::Traces;

/// How often metrics are sent, and what happened, unless it is said.
const METRICS: Duration = Duration::from_mins(1);
const LOGS: Duration = Duration::from_secs(5);
/// How long a collector may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often the program that prints headers is asked.
const REFRESH: Duration = Duration::from_mins(5);

/// A kind of thing that is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Metrics,
    Logs,
    Traces,
}

impl Signal {
    pub(crate) const ALL: [Self; 3] = [Self::Metrics, Self::Logs, Self::Traces];

    /// In the names of variables.
    fn word(self) -> &'static str {
        match self {
            Self::Metrics => "METRICS",
            Self::Logs => "LOGS",
            Self::Traces => "TRACES",
        }
    }

    fn exporter_variable(self) -> &'static str {
        match self {
            Self::Metrics => names::OTEL_METRICS_EXPORTER,
            Self::Logs => names::OTEL_LOGS_EXPORTER,
            Self::Traces => names::OTEL_TRACES_EXPORTER,
        }
    }

    /// Behind the address of a collector that takes all signals.
    fn path(self) -> &'static str {
        match self {
            Self::Metrics => "v1/metrics",
            Self::Logs => "v1/logs",
            Self::Traces => "v1/traces",
        }
    }

    /// The method that takes it.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Self::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
            Self::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        }
    }
}

/// How a collector is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Grpc,
    HttpProtobuf,
    HttpJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
}

/// A collector, for one signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collector {
    pub(crate) url: Url,
    pub(crate) protocol: Protocol,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) timeout: Duration,
    pub(crate) compression: Compression,
}

/// Where a signal goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Collector(Box<Collector>),
    /// The standard error.
    Console,
}

/// The files that prove who is who.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Certificates {
    pub(crate) authority: Option<PathBuf>,
    pub(crate) own: Option<(PathBuf, PathBuf)>,
}

/// What of the contents of a session is exported; nothing unless it is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) prompts: bool,
    pub(crate) tool_details: bool,
    pub(crate) tool_content: bool,
}

/// What metrics say beside what they count: each session apart unless that is too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Included {
    pub(crate) session: bool,
    pub(crate) version: bool,
}

impl Included {
    /// The attributes of all metrics of a session.
    pub(crate) fn attributes(self, session: &str) -> Attributes {
        let session = self.session.then(|| session.to_owned());
        let version = self.version.then_some(env!("CARGO_PKG_VERSION"));
        Attributes::default()
            .with_known("session.id", session)
            .with_known("app.version", version)
    }
}

impl Contents {
    /// A name that a user chose.
    pub(crate) fn name(self, name: &str) -> String {
        if self.tool_details {
            name.to_owned()
        } else {
            "custom".to_owned()
        }
    }
}

/// A program that prints headers, and how often it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadersHelper {
    pub(crate) command: String,
    pub(crate) refresh: Duration,
}

/// Everything that is exported.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub(crate) targets: Vec<(Signal, Target)>,
    pub(crate) certificates: Certificates,
    pub(crate) contents: Contents,
    pub(crate) temporality: Temporality,
    pub(crate) included: Included,
    pub(crate) metrics_every: Duration,
    pub(crate) logs_every: Duration,
    pub(crate) helper: Option<HeadersHelper>,
    pub(crate) resource: Attributes,
    pub(crate) parent: Option<Context>,
    /// Where calls go as they are; nowhere unless it is said.
    pub(crate) bodies: Option<Place>,
}

impl Config {
    /// Whether somebody wants calls as they are sent and answered.
    pub fn wants_bodies(&self) -> bool {
        self.bodies.is_some()
    }

    /// The traces of a session that is exported so.
    pub fn traces(&self) -> Traces {
        Traces::new(self.parent)
    }
}

/// Whether anything is exported.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// Nobody wants it.
    Off,
    /// It is wanted and cannot be: this is missing.
    Nowhere(String),
    On(Box<Config>),
}

/// Whether the trace that the environment names is the one a run belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ambient {
    /// Something else began this run and waits for it.
    Counts,
    /// A person did.
    Ignored,
}

impl Wish {
    /// Reads what is wanted. Without a wish nothing but a few switches is looked at.
    pub fn read(
        environment: &Environment,
        settings: &Settings,
        ambient: Ambient,
    ) -> Result<Self, VariableError> {
        let wanted = match environment.text(names::CALIBAN_ENABLE_TELEMETRY) {
            Some(_) => environment.is_on(names::CALIBAN_ENABLE_TELEMETRY),
            None => settings.enable_telemetry == Some(true),
        };
        let vetoes = [
            names::DISABLE_TELEMETRY,
            names::DO_NOT_TRACK,
            names::OTEL_SDK_DISABLED,
        ];
        if !wanted || vetoes.iter().any(|name| environment.is_on(name)) {
            return Ok(Self::Off);
        }
        let reading = Reading(environment);
        let mut targets = Vec::new();
        let mut missing = None;
        for signal in Signal::ALL {
            for found in reading.targets(signal)? {
                match found {
                    Found::Target(target) => targets.push((signal, target)),
                    Found::None => {}
                    Found::NoAddress => missing = Some(signal),
                }
            }
        }
        if targets.is_empty() {
            return Ok(match missing {
                None => Self::Off,
                Some(_) => Self::Nowhere(format!(
                    "telemetry is on and has nowhere to go; set `{}`",
                    names::OTEL_EXPORTER_OTLP_ENDPOINT
                )),
            });
        }
        Ok(Self::On(Box::new(Config {
            targets,
            certificates: reading.certificates(),
            contents: Contents {
                prompts: environment.is_on(names::OTEL_LOG_USER_PROMPTS),
                tool_details: environment.is_on(names::OTEL_LOG_TOOL_DETAILS),
                tool_content: environment.is_on(names::OTEL_LOG_TOOL_CONTENT),
            },
            temporality: reading.temporality()?,
            included: Included {
                session: environment
                    .text(names::OTEL_METRICS_INCLUDE_SESSION_ID)
                    .is_none()
                    || environment.is_on(names::OTEL_METRICS_INCLUDE_SESSION_ID),
                version: environment.is_on(names::OTEL_METRICS_INCLUDE_VERSION),
            },
            metrics_every: reading.duration(names::OTEL_METRIC_EXPORT_INTERVAL, METRICS)?,
            logs_every: reading.duration(names::OTEL_LOGS_EXPORT_INTERVAL, LOGS)?,
            helper: reading.helper(settings)?,
            resource: reading.resource(),
            parent: match ambient {
                Ambient::Counts => environment
                    .text("TRACEPARENT")
                    .and_then(|text| Context::parse(&text)),
                Ambient::Ignored => None,
            },
            bodies: reading.bodies()?,
        })))
    }
}

/// What was found for a signal.
enum Found {
    Target(Target),
    None,
    /// It shall go to a collector, and nobody says which.
    NoAddress,
}

struct Reading<'a>(&'a Environment);

impl Reading<'_> {
    /// A variable of one signal, else the one for all.
    fn of(&self, signal: Signal, all: &str) -> Option<(String, String)> {
        let own = all.replacen("OTLP_", &format!("OTLP_{}_", signal.word()), 1);
        [own, all.to_owned()]
            .into_iter()
            .find_map(|name| Some((name.clone(), self.0.text(&name)?)))
    }

    /// Where a signal goes: to one place, or to several with commas between.
    fn targets(&self, signal: Signal) -> Result<Vec<Found>, VariableError> {
        let name = signal.exporter_variable();
        let exporters = self.0.text(name).unwrap_or_else(|| "otlp".to_owned());
        let mut words: Vec<&str> = exporters.split(',').map(str::trim).collect();
        words.sort_unstable();
        words.dedup();
        let found = words.iter().map(|word| match *word {
            "none" if words.len() == 1 => Ok(Found::None),
            "console" => Ok(Found::Target(Target::Console)),
            "otlp" => self.collector(signal),
            _ => Err(wrong(name, "`otlp`, `console` or `none`", &exporters)),
        });
        found.collect()
    }

    fn collector(&self, signal: Signal) -> Result<Found, VariableError> {
        let protocol = match self.of(signal, names::OTEL_EXPORTER_OTLP_PROTOCOL) {
            None => Protocol::Grpc,
            Some((name, word)) => match word.trim() {
                "grpc" => Protocol::Grpc,
                "http/protobuf" => Protocol::HttpProtobuf,
                "http/json" => Protocol::HttpJson,
                _ => {
                    let expected = "`grpc`, `http/protobuf` or `http/json`";
                    return Err(wrong(&name, expected, &word));
                }
            },
        };
        let Some((name, address)) = self.of(signal, names::OTEL_EXPORTER_OTLP_ENDPOINT) else {
            return Ok(Found::NoAddress);
        };
        let url = Url::parse(address.trim())
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                wrong(
                    &name,
                    "an address such as `http://localhost:4317`",
                    &address,
                )
            })?;
        let is_own = name.contains(signal.word());
        let url = match protocol {
            Protocol::Grpc => with_path(url, signal.method()),
            Protocol::HttpProtobuf | Protocol::HttpJson if is_own => url,
            Protocol::HttpProtobuf | Protocol::HttpJson => {
                let path = format!("{}/{}", url.path().trim_end_matches('/'), signal.path());
                with_path(url, &path)
            }
        };
        let compression = match self.of(signal, names::OTEL_EXPORTER_OTLP_COMPRESSION) {
            None => Compression::None,
            Some((name, word)) => match word.trim() {
                "none" => Compression::None,
                "gzip" => Compression::Gzip,
                _ => return Err(wrong(&name, "`gzip` or `none`", &word)),
            },
        };
        let timeout = match self.of(signal, names::OTEL_EXPORTER_OTLP_TIMEOUT) {
            None => TIMEOUT,
            Some((name, text)) => parsed(&name, &text)?,
        };
        let headers = self
            .of(signal, names::OTEL_EXPORTER_OTLP_HEADERS)
            .map(|(_, text)| pairs(&text));
        Ok(Found::Target(Target::Collector(Box::new(Collector {
            url,
            protocol,
            headers: headers.unwrap_or_default(),
            timeout,
            compression,
        }))))
    }

    fn certificates(&self) -> Certificates {
        let path = |name| self.0.text(name).map(PathBuf::from);
        Certificates {
            authority: path(names::OTEL_EXPORTER_OTLP_CERTIFICATE),
            own: path(names::OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE)
                .zip(path(names::OTEL_EXPORTER_OTLP_CLIENT_KEY)),
        }
    }

    fn temporality(&self) -> Result<Temporality, VariableError> {
        let name = names::OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE;
        match self.0.text(name) {
            None => Ok(Temporality::Delta),
            Some(word) => match word.trim().to_lowercase().as_str() {
                "delta" | "lowmemory" => Ok(Temporality::Delta),
                "cumulative" => Ok(Temporality::Cumulative),
                _ => Err(wrong(name, "`delta`, `cumulative` or `lowmemory`", &word)),
            },
        }
    }

    fn duration(&self, name: &str, otherwise: Duration) -> Result<Duration, VariableError> {
        match self.0.text(name) {
            None => Ok(otherwise),
            Some(text) => parsed(name, &text),
        }
    }

    fn bodies(&self) -> Result<Option<Place>, VariableError> {
        let name = names::OTEL_LOG_RAW_API_BODIES;
        let text = self.0.text(name).unwrap_or_default();
        match text.trim() {
            "" | "0" | "false" => Ok(None),
            "1" | "true" => Ok(Some(Place::Logs)),
            other => match other.strip_prefix("file:") {
                Some(directory) if !directory.is_empty() => {
                    Ok(Some(Place::Directory(PathBuf::from(directory))))
                }
                Some(_) | None => Err(wrong(name, "`0`, `1` or `file:` and a directory", &text)),
            },
        }
    }

    fn helper(&self, settings: &Settings) -> Result<Option<HeadersHelper>, VariableError> {
        let own = self.0.text(names::CALIBAN_OTEL_HEADERS_HELPER);
        let Some(command) = own.or_else(|| settings.telemetry.otel_headers_helper.clone()) else {
            return Ok(None);
        };
        let refresh = match &settings.telemetry.otel_headers_refresh {
            None => REFRESH,
            Some(text) => parsed("telemetry.otel_headers_refresh", text)?,
        };
        Ok(Some(HeadersHelper { command, refresh }))
    }

    fn resource(&self) -> Attributes {
        let mut resource = Attributes::default()
            .with("service.name", "caliban")
            .with("service.version", env!("CARGO_PKG_VERSION"))
            .with("os.type", std::env::consts::OS)
            .with("host.arch", std::env::consts::ARCH);
        let given = self
            .0
            .text(names::OTEL_RESOURCE_ATTRIBUTES)
            .unwrap_or_default();
        for (name, value) in pairs(&given) {
            resource.0.insert(name.into(), value.into());
        }
        if let Some(name) = self.0.text(names::OTEL_SERVICE_NAME) {
            resource.set("service.name", name);
        }
        resource
    }
}

fn with_path(mut url: Url, path: &str) -> Url {
    url.set_path(path);
    url
}

fn wrong(name: &str, expected: &str, value: &str) -> VariableError {
    VariableError {
        name: name.to_owned(),
        expected: expected.to_owned(),
        value: value.to_owned(),
    }
}

/// A time: a bare number is in milliseconds.
fn parsed(name: &str, text: &str) -> Result<Duration, VariableError> {
    let expected = "a time such as `5000`, `500ms`, `60s` or `5m`";
    let failed = || wrong(name, expected, text);
    let trimmed = text.trim();
    let end = trimmed.find(|char: char| !char.is_ascii_digit());
    let (digits, unit) = trimmed.split_at(end.unwrap_or(trimmed.len()));
    let number: u64 = digits.parse().map_err(|_| failed())?;
    let millis = match unit {
        "" | "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => None,
    };
    let millis = millis.filter(|millis| *millis > 0);
    millis.map(Duration::from_millis).ok_or_else(failed)
}

/// Names and values between commas, as the standard writes them: with `%` before what would be
/// misread.
pub(crate) fn pairs(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let name = name.trim().to_owned();
        (!name.is_empty()).then(|| (name, decoded(value.trim())))
    });
    pairs.collect()
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut place = 0;
    while let Some(byte) = bytes.get(place) {
        let digits = text.get(place + 1..place + 3);
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (byte, escaped) {
            (b'%', Some(escaped)) => {
                out.push(escaped);
                place += 3;
            }
            (byte, _) => {
                out.push(*byte);
                place += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let variables: BTreeMap<String, String> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Environment::new(move |name| variables.get(name).cloned())
    }

    fn read(variables: &[(&str, &str)]) -> Result<Wish, VariableError> {
        let environment = environment(variables);
        Wish::read(&environment, &Settings::default(), Ambient::Counts)
    }

    fn urls(wish: Wish) -> Vec<String> {
        let Wish::On(config) = wish else {
            panic!("nothing is exported: {wish:?}");
        };
        let targets = config.targets.iter().map(|(_, target)| match target {
            Target::Collector(collector) => collector.url.to_string(),
            Target::Console => "console".to_owned(),
        });
        targets.collect()
    }

    const ON: (&str, &str) = ("CALIBAN_ENABLE_TELEMETRY", "1");
    const AT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317");

    #[rstest]
    #[case::not_asked_for(&[AT])]
    #[case::switched_off(&[("CALIBAN_ENABLE_TELEMETRY", "0"), AT])]
    #[case::vetoed(&[ON, AT, ("DISABLE_TELEMETRY", "1")])]
    #[case::not_tracked(&[ON, AT, ("DO_NOT_TRACK", "1")])]
    #[case::sdk_off(&[ON, AT, ("OTEL_SDK_DISABLED", "true")])]
    #[case::none(&[ON, AT, ("OTEL_METRICS_EXPORTER", "none"), ("OTEL_LOGS_EXPORTER", "none"), ("OTEL_TRACES_EXPORTER", "none")])]
    fn nothing_is_exported(#[case] variables: &[(&str, &str)]) {
        assert_eq!(read(variables), Ok(Wish::Off));
    }

    #[test]
    fn without_an_address_it_is_told() {
        assert!(matches!(read(&[ON]), Ok(Wish::Nowhere(_))));
    }

    #[test]
    fn a_setting_switches_it_on() {
        let settings = Settings {
            enable_telemetry: Some(true),
            ..Settings::default()
        };
        let wish = Wish::read(&environment(&[AT]), &settings, Ambient::Counts).unwrap();
        assert_eq!(urls(wish).len(), 3);
    }

    #[test]
    fn addresses_are_put_together_as_the_standard_says() {
        let json = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/base/");
        let own = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://d/here");
        assert_eq!(
            urls(read(&[ON, json, base, own]).unwrap()),
            [
                "http://c:4318/base/v1/metrics",
                "http://d/here",
                "http://c:4318/base/v1/traces"
            ]
        );
        let grpc = urls(read(&[ON, AT]).unwrap());
        assert!(grpc[0].ends_with("MetricsService/Export"), "{grpc:?}");
    }

    #[rstest]
    #[case("OTEL_EXPORTER_OTLP_PROTOCOL", "smoke")]
    #[case("OTEL_METRICS_EXPORTER", "prometheus")]
    #[case("OTEL_METRICS_EXPORTER", "none,console")]
    #[case("OTEL_METRICS_EXPORTER", "otlp,,console")]
    #[case("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317")]
    #[case("OTEL_METRIC_EXPORT_INTERVAL", "soon")]
    #[case("OTEL_METRIC_EXPORT_INTERVAL", "0")]
    #[case("OTEL_EXPORTER_OTLP_TIMEOUT", "-1")]
    #[case("OTEL_EXPORTER_OTLP_COMPRESSION", "zip")]
    fn what_makes_no_sense_is_an_error(#[case] name: &str, #[case] value: &str) {
        let error = read(&[ON, AT, (name, value)]).unwrap_err();
        assert_eq!(error.name, name);
    }

    #[test]
    fn a_signal_may_go_to_several_places() {
        let both = ("OTEL_LOGS_EXPORTER", " otlp, console");
        let json = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        assert_eq!(
            urls(read(&[ON, AT, json, both]).unwrap()),
            [
                "http://c:4317/v1/metrics",
                "console",
                "http://c:4317/v1/logs",
                "http://c:4317/v1/traces"
            ]
        );
    }

    #[rstest]
    #[case(&[], "session.id")]
    #[case(&[("OTEL_METRICS_INCLUDE_SESSION_ID", "true"), ("OTEL_METRICS_INCLUDE_VERSION", "true")], "app.version session.id")]
    #[case(&[("OTEL_METRICS_INCLUDE_SESSION_ID", "false"), ("OTEL_METRICS_INCLUDE_VERSION", "0")], "")]
    fn metrics_say_which_session_unless_that_is_too_much(
        #[case] variables: &[(&str, &str)],
        #[case] expected: &str,
    ) {
        let wish = read(&[&[ON, AT], variables].concat());
        let Ok(Wish::On(config)) = wish else {
            panic!("nothing is exported");
        };
        let attributes = config.included.attributes("s");
        let names: Vec<&str> = attributes.0.keys().map(|name| &**name).collect();
        assert_eq!(names.join(" "), expected);
    }

    #[rstest]
    #[case("1500", 1_500)]
    #[case("1500ms", 1_500)]
    #[case("60s", 60_000)]
    #[case("5m", 300_000)]
    fn a_bare_number_is_in_milliseconds(#[case] text: &str, #[case] millis: u64) {
        assert_eq!(parsed("X", text), Ok(Duration::from_millis(millis)));
    }

    #[test]
    fn headers_are_read_as_the_standard_writes_them() {
        let headers = pairs("a=b, c = d%20e%2C ,broken,=x,f=g=h");
        let expected = [("a", "b"), ("c", "d e,"), ("f", "g=h")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers, expected.into());
    }

    #[test]
    fn a_resource_can_be_named() {
        let wish = read(&[
            ON,
            AT,
            ("OTEL_RESOURCE_ATTRIBUTES", "team=a,service.name=b"),
            ("OTEL_SERVICE_NAME", "c"),
        ]);
        let Ok(Wish::On(config)) = wish else {
            panic!("nothing is exported");
        };
        assert_eq!(config.resource.0.get("service.name"), Some(&"c".into()));
        assert_eq!(config.resource.0.get("team"), Some(&"a".into()));
    }
}
