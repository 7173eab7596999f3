//! Every failure at every place of an answer, on every platform, with another route behind it: who
//! is asked how often and in which order, what is told, and what is paid. Nothing is enumerated by
//! hand: what must hold is checked for each cell.

use std::process::Command;

use caliban_testkit::{After, BlockingServer, ErrorKind, Fault, Reply, Script, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Ran, run};
use crate::{Cloud, token};

/// What the other route costs: 70 tokens at a dollar and 5 at five dollars a million.
const OTHER: f64 = 0.000_095;

#[derive(Debug, Clone, Copy)]
enum Platform {
    BedrockClaude,
    BedrockOthers,
    VertexClaude,
    VertexGemini,
    AzureResponses,
    AzureChat,
    Foundry,
}

impl Platform {
    fn provider(self) -> &'static str {
        match self {
            Self::BedrockClaude | Self::BedrockOthers => "bedrock",
            Self::VertexClaude | Self::VertexGemini => "vertex",
            Self::AzureResponses | Self::AzureChat | Self::Foundry => "azure",
        }
    }

    fn model(self) -> &'static str {
        match self {
            Self::BedrockClaude | Self::VertexClaude | Self::Foundry => "claude-sonnet-4-6",
            Self::BedrockOthers => "nova-pro",
            Self::VertexGemini => "gemini-3.8-flash",
            Self::AzureResponses => "gpt-5.5",
            Self::AzureChat => "gpt-4.1",
        }
    }

    fn command(self, cloud: &Cloud) -> Command {
        let of_platform = match self {
            Self::BedrockClaude | Self::BedrockOthers => cloud.signed(),
            Self::VertexClaude | Self::VertexGemini => cloud.vertex(),
            Self::AzureResponses | Self::Foundry => cloud.azure(),
            Self::AzureChat => {
                let mut command = cloud.azure();
                command.env("AZURE_OPENAI_API_VERSION", "2024-10-21");
                command
            }
        };
        // Which route is taken is said by the file alone.
        let mut command = cloud.command();
        for (name, value) in of_platform.get_envs() {
            command.env(name, value.unwrap());
        }
        command
    }
}

/// Where in an answer it happens.
#[derive(Debug, Clone, Copy)]
enum Position {
    BeforeTheStart,
    AfterTheStart,
    InContent,
}

impl Position {
    /// The events of a call that have come by then.
    fn events(self, platform: Platform) -> usize {
        match (self, platform) {
            (Self::BeforeTheStart, _) => 0,
            (Self::AfterTheStart, _) | (Self::InContent, Platform::VertexGemini) => 1,
            (Self::InContent, Platform::AzureChat) => 2,
            (Self::InContent, Platform::AzureResponses) => 4,
            (
                Self::InContent,
                Platform::BedrockClaude
                | Platform::BedrockOthers
                | Platform::VertexClaude
                | Platform::Foundry,
            ) => 3,
        }
    }
}

/// A platform that fails, and a provider of our own behind it.
struct Cell {
    platform: Platform,
    cloud: Cloud,
    other: BlockingServer,
}

impl Cell {
    fn new(platform: Platform, fault: &Fault) -> Self {
        let usage = |input, output| Usage {
            input,
            output,
            ..Usage::default()
        };
        // A call that is taken back must not be made.
        let void = Reply::tool("Read", json!({"file_path": "note.txt"}))
            .usage(usage(1_000, 50))
            .with_fault(fault.clone());
        let script =
            Script::new([void])
                .after(After::RepeatLast)
                .document("POST", "/token", token("t"));
        let other = Script::new([Reply::text("from the other").usage(usage(70, 5))]);
        let cell = Self {
            platform,
            cloud: Cloud::new(script),
            other: BlockingServer::start(other.after(After::RepeatLast)).unwrap(),
        };
        cell.cloud.config(&format!(
            "[[router.route]]\nid = 'cloud'\npurpose = 'main_loop'\nprovider = '{}'\nmodel = '{}'\n\
             [[router.route]]\nid = 'other'\npurpose = 'main_loop'\nprovider = 'anthropic'\n\
             model = 'claude-haiku-4-5'\n",
            platform.provider(),
            platform.model(),
        ));
        cell
    }

    fn ask(&self) -> Told {
        let ran = run(self
            .platform
            .command(&self.cloud)
            .args(["-p", "hi", "--output-format", "stream-json"])
            .args(["--include-partial-messages"])
            .env("ANTHROPIC_BASE_URL", self.other.url())
            .env("ANTHROPIC_API_KEY", "test-key")
            .env("CALIBAN_IDLE_TIMEOUT_MS", "2000"));
        Told {
            frames: ran
                .stdout
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            asked: (self.cloud.calls().len(), self.other.model_requests().len()),
            ran,
        }
    }
}

/// What came of a cell.
struct Told {
    ran: Ran,
    frames: Vec<Value>,
    /// How often the platform and the other were asked.
    asked: (usize, usize),
}

impl Told {
    fn of(&self, subtype: &str) -> Vec<&Value> {
        let frames = self.frames.iter();
        frames.filter(|frame| frame["subtype"] == subtype).collect()
    }

    fn cost(&self) -> f64 {
        self.result()["total_cost_usd"].as_f64().unwrap()
    }

    fn result(&self) -> &Value {
        self.frames.last().unwrap()
    }

    /// Another route has answered, and it is told once and whole.
    fn hopped(&self, cell: &Cell) {
        assert_eq!(self.ran.code, Some(0), "{:?}", self.ran);
        assert_eq!(self.result()["result"], "from the other", "{:?}", self.ran);
        let [hop] = self.of("fallback_model")[..] else {
            panic!("{:?}", self.ran);
        };
        let details = &hop["details"];
        let from = format!("{}/{}", cell.platform.provider(), cell.platform.model());
        let expected = [
            ("route_id", "other"),
            ("purpose", "main_loop"),
            ("kind", "fallback"),
            ("from", &from),
            ("to", "anthropic/claude-haiku-4-5"),
        ];
        for (name, value) in expected {
            assert_eq!(details[name], value, "{hop}");
        }
        assert_eq!(details["markers_cleared"], 0, "{hop}");
        let reason = details["reason"].as_str().unwrap();
        assert!(reason.starts_with(&from.replace('/', " (")), "{reason}");
        assert!(self.cost() >= OTHER, "{:?}", self.ran);
        let made = self
            .frames
            .iter()
            .any(|frame| frame["type"] == "tool_result");
        assert!(!made, "a call that was taken back was made: {:?}", self.ran);
    }
}

#[rstest]
fn the_other_answers_for_what_passes(
    #[values(
        Platform::BedrockClaude,
        Platform::BedrockOthers,
        Platform::VertexClaude,
        Platform::VertexGemini,
        Platform::AzureResponses,
        Platform::AzureChat,
        Platform::Foundry
    )]
    platform: Platform,
) {
    for fault in [
        Fault::status(429),
        Fault::status(500),
        Fault::status(503),
        Fault::HtmlBody { status: 502 },
        Fault::ResetBeforeHeaders,
        Fault::Garbage,
    ] {
        let cell = Cell::new(platform, &fault);
        let told = cell.ask();
        assert_eq!(told.asked, (2, 1), "{fault:?} {:?}", told.ran);
        told.hopped(&cell);
        assert_eq!(told.of("api_retry").len(), 1, "{fault:?} {:?}", told.ran);
        assert!(told.of("superseded").is_empty(), "{fault:?} {:?}", told.ran);
        // Nothing was read, so nothing is paid.
        assert!(
            (told.cost() - OTHER).abs() < 1e-9,
            "{fault:?} {:?}",
            told.ran
        );
    }
    for fault in [
        Fault::status(429).retry_after("600"),
        Fault::status_of(404, ErrorKind::ModelNotFound),
    ] {
        let cell = Cell::new(platform, &fault);
        let told = cell.ask();
        assert_eq!(told.asked, (1, 1), "{fault:?} {:?}", told.ran);
        told.hopped(&cell);
        assert!(told.of("api_retry").is_empty(), "{fault:?} {:?}", told.ran);
    }
}

#[rstest]
fn a_break_is_taken_back_and_paid_for(
    #[values(
        Platform::BedrockClaude,
        Platform::BedrockOthers,
        Platform::VertexClaude,
        Platform::VertexGemini,
        Platform::AzureResponses,
        Platform::AzureChat,
        Platform::Foundry
    )]
    platform: Platform,
    #[values(Position::BeforeTheStart, Position::AfterTheStart, Position::InContent)]
    position: Position,
) {
    let after_events = position.events(platform);
    let kind = ErrorKind::Overloaded;
    for fault in [
        Fault::ResetMidStream { after_events },
        Fault::CloseMidStream { after_events },
        Fault::TruncatedEvent { after_events },
        Fault::MalformedEvent { after_events },
        Fault::ErrorEvent { after_events, kind },
    ] {
        let cell = Cell::new(platform, &fault);
        let told = cell.ask();
        // A connection that ends may take the second request with it, unheard.
        let (cloud, other) = told.asked;
        assert!((1..=2).contains(&cloud), "{fault:?} {:?}", told.ran);
        assert_eq!(other, 1, "{fault:?} {:?}", told.ran);
        told.hopped(&cell);
        assert_eq!(told.of("api_retry").len(), 1, "{fault:?} {:?}", told.ran);
        // What was shown of the first answer is declared void before the second begins, and paid.
        match position {
            Position::BeforeTheStart | Position::AfterTheStart => {}
            Position::InContent => {
                assert_eq!(told.of("superseded").len(), 1, "{fault:?} {:?}", told.ran);
                assert!(told.cost() > OTHER, "{fault:?} {:?}", told.ran);
            }
        }
    }
}

#[rstest]
fn what_has_to_be_mended_touches_no_other_route(
    #[values(
        Platform::BedrockClaude,
        Platform::BedrockOthers,
        Platform::VertexClaude,
        Platform::VertexGemini,
        Platform::AzureResponses,
        Platform::AzureChat,
        Platform::Foundry
    )]
    platform: Platform,
) {
    for (fault, most) in [
        // A login is renewed once.
        (Fault::status(401), 2),
        (Fault::status(403), 2),
        (Fault::status_of(400, ErrorKind::InvalidRequest), 1),
    ] {
        let cell = Cell::new(platform, &fault);
        let told = cell.ask();
        assert_eq!(told.ran.code, Some(1), "{fault:?} {:?}", told.ran);
        let (cloud, other) = told.asked;
        assert!(cloud <= most && other == 0, "{fault:?} {:?}", told.asked);
        assert!(told.of("fallback_model").is_empty(), "{fault:?}");
        assert_eq!(told.result()["subtype"], "error", "{fault:?}");
        assert!(told.cost().abs() < 1e-12, "{fault:?}");
    }
}

/// Whoever does not hang up after the end of an answer has taken nothing away.
#[rstest]
fn a_stall_after_the_end_is_none(
    #[values(
        Platform::BedrockClaude,
        Platform::BedrockOthers,
        Platform::VertexClaude,
        Platform::VertexGemini,
        Platform::AzureResponses,
        Platform::AzureChat,
        Platform::Foundry
    )]
    platform: Platform,
) {
    let fault = Fault::StallMidStream { after_events: 99 };
    let cell = Cell::new(platform, &fault);
    let script = Script::new([Reply::text("all of it").with_fault(fault)]);
    let cell = Cell {
        cloud: Cloud {
            server: BlockingServer::start(script.document("POST", "/token", token("t"))).unwrap(),
            ..cell.cloud
        },
        ..cell
    };
    let told = cell.ask();
    assert_eq!(told.result()["result"], "all of it", "{:?}", told.ran);
    assert_eq!(told.asked, (1, 0));
}
