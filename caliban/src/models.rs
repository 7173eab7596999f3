//! `caliban models`: what every provider that is configured offers, what it costs and who uses it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use caliban_harness::options::ModelOptions;
use caliban_harness::provider::KeySource;
use caliban_harness::routes::{Asked, Routes, Vacancies};
use caliban_harness::{Configuration, provider};
use caliban_model::{
    Capabilities, ModelInfo, Provider, ProviderKind, Rate, RateCard, ToolSupport, base_model,
};
use caliban_settings::variables::names;
use futures::future::join_all;
use rust_decimal::prelude::ToPrimitive;
use serde::Serialize;
use tokio::time::timeout;

use crate::args::ModelsArgs;
use crate::console::{Console, note};
use crate::exit::Failure;

/// How long one of several providers may take to tell what it offers.
const PATIENCE: Duration = Duration::from_secs(10);

/// A model of a provider.
#[derive(Debug, Serialize)]
struct Offer {
    id: String,
    provider: ProviderName,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output: Option<u64>,
    /// Nothing where the price is not known.
    price: Option<PriceList>,
    capabilities: Abilities,
    /// The routes that lead to it.
    routes: Vec<String>,
}

type ProviderName = &'static str;

/// In USD per million tokens.
#[derive(Debug, Serialize)]
struct PriceList {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    /// As it is shown.
    #[serde(skip)]
    text: String,
}

impl PriceList {
    fn of(rate: &Rate) -> Self {
        Self {
            input: rate.input.to_f64(),
            output: rate.output.to_f64(),
            cache_read: rate.cache_read.and_then(|price| price.to_f64()),
            cache_write: rate.cache_write_5m.and_then(|price| price.to_f64()),
            text: format!("${} in, ${} out", rate.input, rate.output),
        }
    }
}

#[derive(Debug, Serialize)]
struct Abilities {
    tools: &'static str,
    vision: bool,
    thinking: bool,
    structured_output: bool,
}

impl Abilities {
    fn of(capabilities: &Capabilities) -> Self {
        Self {
            tools: match capabilities.tools {
                ToolSupport::None => "none",
                ToolSupport::Basic => "basic",
                ToolSupport::Parallel => "parallel",
            },
            vision: capabilities.vision,
            thinking: capabilities.thinking,
            structured_output: capabilities.structured_output,
        }
    }

    fn words(&self) -> String {
        let mut words = Vec::new();
        if self.tools != "none" {
            words.push("tools");
        }
        for (has, word) in [(self.vision, "vision"), (self.thinking, "thinking")] {
            if has {
                words.push(word);
            }
        }
        words.join(" ")
    }
}

/// Where a route leads.
struct Way {
    id: String,
    provider: String,
    model: String,
}

pub(crate) async fn list(
    args: &ModelsArgs,
    options: &ModelOptions,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let ways = ways(options, configuration);
    let named = args.provider.kind().or(options.provider);
    let is_chosen = named.is_some()
        || options.model.is_some()
        || configuration
            .environment()
            .text(names::CALIBAN_PROVIDER)
            .is_some();
    let chosen = provider::kind(named, options.model.as_deref(), configuration)?;
    let kinds = if is_chosen {
        vec![chosen]
    } else {
        configured(chosen, &ways, configuration)
    };
    let rates = caliban_harness::rates(configuration.environment())?;
    let mut offers = Vec::new();
    if let [only] = kinds.as_slice() {
        let provider = provider::connect(*only, &[], configuration)?;
        let models = provider.models().await?;
        offers.extend(offered(*only, &*provider, models, &rates, &ways));
    } else {
        let asked = kinds.iter().map(|kind| ask(*kind, configuration));
        for (kind, answer) in kinds.iter().zip(join_all(asked).await) {
            match answer {
                Ok((provider, models)) => {
                    offers.extend(offered(*kind, &*provider, models, &rates, &ways));
                }
                Err(reason) => note(&format!("warning: {kind}: {reason}")),
            }
        }
        if offers.is_empty() {
            return Err(Failure::Runtime("nobody says what they offer".to_owned()));
        }
    }
    if args.json {
        let json = serde_json::to_string_pretty(&offers)
            .map_err(|error| Failure::Runtime(error.to_string()))?;
        return console.write(&format!("{json}\n"));
    }
    for offer in offers {
        console.put(&line(&offer))?;
    }
    console.flush()
}

/// The routes of a run; none where they cannot be made out.
fn ways(options: &ModelOptions, configuration: &Configuration) -> Vec<Way> {
    let asked = Asked {
        options,
        continued: options,
        budget: None,
    };
    let Ok(routes) = Routes::compile(&asked, Vacancies::Shown, configuration) else {
        return Vec::new();
    };
    let way = |route: &caliban_router::Route| Way {
        id: route.id.to_string(),
        provider: route.provider_name().to_owned(),
        model: route.model.to_string(),
    };
    routes.table.routes().iter().map(way).collect()
}

/// The provider of a run, and all that have a key, an address, a block of their own or a route.
fn configured(
    chosen: ProviderKind,
    ways: &[Way],
    configuration: &Configuration,
) -> Vec<ProviderKind> {
    let is_configured = |kind: ProviderKind| {
        let has_key = matches!(
            provider::key_source(kind, configuration),
            Ok(source) if !matches!(source, KeySource::Absent)
        );
        has_key
            || provider::base_url(kind, configuration).is_some()
            || configuration.provider_block(kind).is_some()
            || ways
                .iter()
                .any(|way| way.provider == kind.as_str() && kind != chosen)
    };
    let mut kinds: Vec<ProviderKind> = ProviderKind::ALL
        .into_iter()
        .filter(|kind| is_configured(*kind))
        .collect();
    if kinds.is_empty() {
        kinds.push(chosen);
    }
    kinds
}

async fn ask(
    kind: ProviderKind,
    configuration: &Configuration,
) -> Result<(Arc<dyn Provider>, Vec<ModelInfo>), String> {
    let provider = provider::connect(kind, &[], configuration);
    let provider = provider.map_err(|error| error.to_string())?;
    let models = match timeout(PATIENCE, provider.models()).await {
        Ok(models) => models.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    Ok((provider, models))
}

fn offered(
    kind: ProviderKind,
    provider: &dyn Provider,
    models: Vec<ModelInfo>,
    rates: &RateCard,
    ways: &[Way],
) -> Vec<Offer> {
    let offer = |model: ModelInfo| {
        let known = provider.capabilities(&model.id);
        let price = rates.lookup(kind.as_str(), &model.id);
        let leads_here = |way: &&Way| {
            way.provider == kind.as_str()
                && (way.model == model.id || base_model(&way.model) == base_model(&model.id))
        };
        Offer {
            provider: kind.as_str(),
            context_window: model.context_window.or(known.context_window),
            max_output: model.max_output.or(known.max_output),
            price: price.map(PriceList::of),
            capabilities: Abilities::of(&known),
            routes: ways
                .iter()
                .filter(leads_here)
                .map(|way| way.id.clone())
                .collect(),
            id: model.id,
        }
    };
    models.into_iter().map(offer).collect()
}

/// Columns with tabs between them; the name comes first.
fn line(offer: &Offer) -> String {
    let mut line = format!("{}\t{}", offer.id, offer.provider);
    let window = offer.context_window;
    let window = window.map_or_else(String::new, |tokens| format!("{tokens} tokens"));
    let price = offer
        .price
        .as_ref()
        .map_or_else(|| "price not known".to_owned(), |price| price.text.clone());
    // Writing to a string does not fail.
    let _ = write!(line, "\t{window}\t{price}\t{}", offer.capabilities.words());
    if !offer.routes.is_empty() {
        let _ = write!(line, "\t{}", offer.routes.join(", "));
    }
    line.push('\n');
    line
}
