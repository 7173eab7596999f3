//! `caliban router test`: real requests for each route.

use std::sync::Arc;

use caliban_model::{
    Block, CancellationToken, Error, Image, ImageMime, ImageSource, Message, Request, Role,
    StreamEvent, ToolChoice, ToolSpec, Usage,
};
use caliban_router::{Route, Router, Seat};
use futures::StreamExt;
use serde_json::json;

use crate::console::Console;
use crate::exit::Failure;

const PROMPT: &str = "Answer with the word ok.";
const TOOL_PROMPT: &str = "Call the tool `ping` once, with `text` set to ok.";
const IMAGE_PROMPT: &str = "Name the colour of this image in one word.";
const OUTPUT_TOKENS: u32 = 8;
/// A call needs more words than an answer.
const CALL_TOKENS: u32 = 256;
/// A red square of eight pixels.
const RED: &str = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mP4z8CAFTEMLQkAKP8/wc53yE8AAAAASUVORK5CYII=";

/// Whether money may be spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    Missing,
}

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A word.
    Answer,
    /// Also a call and an image.
    Full,
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    Answer,
    Tool,
    Image,
}

impl Probe {
    /// Those that make sense for a route.
    fn of(extent: Extent, route: &Route) -> Vec<Self> {
        match (extent, &route.seat) {
            (Extent::Answer, _) | (Extent::Full, Seat::Vacant { .. }) => vec![Self::Answer],
            (Extent::Full, Seat::Connected(provider)) => {
                let can_see = provider.capabilities(&route.model).vision;
                let image = can_see.then_some(Self::Image);
                [Self::Answer, Self::Tool]
                    .into_iter()
                    .chain(image)
                    .collect()
            }
        }
    }

    fn prompt(self) -> &'static str {
        match self {
            Self::Answer => PROMPT,
            Self::Tool => TOOL_PROMPT,
            Self::Image => IMAGE_PROMPT,
        }
    }

    fn output_tokens(self) -> u32 {
        match self {
            Self::Answer | Self::Image => OUTPUT_TOKENS,
            Self::Tool => CALL_TOKENS,
        }
    }

    /// What it costs at most, by estimate.
    fn usage(self) -> Usage {
        Usage {
            output: u64::from(self.output_tokens()),
            ..Usage::estimate(self.prompt().len(), 0)
        }
    }

    fn request(self, route: &Route) -> Result<Request, String> {
        let mut content = vec![Block::Text {
            text: self.prompt().to_owned(),
            private: None,
        }];
        if self == Self::Image {
            content.push(Block::Image(Image {
                mime: ImageMime::Png,
                source: ImageSource::Base64 { data: RED.into() },
                dims: Some((8, 8)),
            }));
        }
        let messages = vec![Arc::new(Message::new(Role::User, content))];
        let request = Request::new(Arc::clone(&route.model), messages.into());
        let mut request = request.map_err(|error| error.to_string())?;
        request.max_tokens = self.output_tokens();
        if self == Self::Tool {
            request.tools = Arc::from(vec![ToolSpec {
                name: "ping".to_owned(),
                description: "Answers with what it is given.".to_owned(),
                input_schema: json!({
                    "type": "object",
                    "properties": {"text": {"type": "string"}},
                    "required": ["text"],
                }),
            }]);
            request.tool_choice = ToolChoice::Auto;
        }
        Ok(request)
    }
}

pub(crate) async fn run(
    named: &[String],
    extent: Extent,
    consent: Consent,
    router: &Router,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let table = router.table();
    for name in named {
        if table.route(name).is_none() {
            return Err(Failure::Usage(format!("no route has the id `{name}`")));
        }
    }
    let chosen: Vec<&Route> = table
        .routes()
        .iter()
        .filter(|route| named.is_empty() || named.iter().any(|name| **name == *route.id))
        .collect();
    for route in &chosen {
        let mut usage = Usage::default();
        for probe in Probe::of(extent, route) {
            usage += probe.usage();
        }
        let rate = router.rates().lookup(route.provider_name(), &route.model);
        let price = rate.map_or_else(
            || "an unknown price".to_owned(),
            |rate| format!("at most about ${}", rate.cost(&usage).round_dp(6)),
        );
        console.put(&format!("{}: {price}\n", route.id))?;
    }
    console.flush()?;
    if consent == Consent::Missing {
        return console.write("Nothing was sent. Pass `--yes` to send these requests.\n");
    }
    let mut failed = 0;
    for route in chosen {
        for probe in Probe::of(extent, route) {
            let line = match ask(route, probe, cancel).await {
                Ok(said) => format!("+ {}  {said}\n", route.id),
                Err(reason) => {
                    failed += 1;
                    format!("- {}  {reason}\n", route.id)
                }
            };
            console.write(&line)?;
        }
    }
    match failed {
        0 => Ok(()),
        1 => Err(Failure::Runtime("one route failed".to_owned())),
        more => Err(Failure::Runtime(format!("{more} requests failed"))),
    }
}

/// Asks without retries: what a first attempt meets is what was asked about.
async fn ask(route: &Route, probe: Probe, cancel: &CancellationToken) -> Result<String, String> {
    let provider = match &route.seat {
        Seat::Connected(provider) => provider,
        Seat::Vacant { reason, .. } => return Err(reason.clone()),
    };
    let mut events = provider.stream(probe.request(route)?, cancel.clone());
    let mut model = route.model.to_string();
    let mut called = None;
    while let Some(event) = events.next().await {
        match event.map_err(|error: Error| error.to_string())? {
            StreamEvent::Started { model: named } => model = named,
            StreamEvent::BlockEnded {
                block: Block::ToolUse { name, .. },
                ..
            } => called = Some(name),
            StreamEvent::Stopped { .. } => {
                return match (probe, called) {
                    (Probe::Answer, _) => Ok(format!("answered as {model}")),
                    (Probe::Image, _) => Ok("takes images".to_owned()),
                    (Probe::Tool, Some(name)) if name == "ping" => Ok("calls tools".to_owned()),
                    (Probe::Tool, Some(name)) => Err(format!("called `{name}`, which nobody offered")),
                    (Probe::Tool, None) => Err(
                        "made no tool call although it was told to: the server may need to be started with tools enabled".to_owned(),
                    ),
                };
            }
            _ => {}
        }
    }
    Err("the answer ended without saying so".to_owned())
}
