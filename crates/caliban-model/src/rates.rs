//! The rate card: what a million tokens cost, from embedded data and an optional override.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::OnceLock;

use rust_decimal::Decimal;
use serde_json::{Map, Value};

use crate::{Usage, base_model};

/// Prices of all known models.
#[derive(Debug, Clone)]
pub struct RateCard {
    as_of: Cow<'static, str>,
    /// Later entries win, so that overrides can be appended.
    entries: Vec<Entry>,
}

/// A price under the names it is found by. A line of the built-in table is read when it is asked
/// for: a run asks for one or two of two hundred.
#[derive(Debug, Clone)]
struct Entry {
    provider: Cow<'static, str>,
    model: Cow<'static, str>,
    from: Option<Cow<'static, str>>,
    line: &'static str,
    rate: OnceLock<Option<Rate>>,
}

impl Entry {
    fn listed(line: &'static str) -> Option<Self> {
        let (provider, rest) = line.split_once(',')?;
        let (model, rest) = rest.split_once(',')?;
        let (_, from) = rest.rsplit_once(',')?;
        Some(Self {
            provider: Cow::Borrowed(provider),
            model: Cow::Borrowed(model),
            from: (!from.is_empty()).then_some(Cow::Borrowed(from)),
            line,
            rate: OnceLock::new(),
        })
    }

    fn given(rate: Rate) -> Self {
        Self {
            provider: rate.provider.clone(),
            model: rate.model.clone(),
            from: rate.from.clone(),
            line: "",
            rate: OnceLock::from(Some(rate)),
        }
    }

    fn rate(&self) -> Option<&Rate> {
        self.rate.get_or_init(|| parse_line(self.line)).as_ref()
    }
}

/// Prices in USD per million tokens, and the sizes that providers publish beside them.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    pub provider: Cow<'static, str>,
    /// A model's full or base name; `*` is every model of the provider.
    pub model: Cow<'static, str>,
    /// The day from which it counts, as `2026-01-31`; always where there is none.
    pub from: Option<Cow<'static, str>>,
    pub input: Decimal,
    pub output: Decimal,
    /// Cache prices that are not published are charged like plain input.
    pub cache_read: Option<Decimal>,
    pub cache_write_5m: Option<Decimal>,
    pub cache_write_1h: Option<Decimal>,
    pub tier: Option<Tier>,
    pub context_window: Option<u64>,
    pub max_output: Option<u64>,
    pub vision: bool,
    pub thinking: bool,
}

/// Prompts above a size cost a multiple, the whole request included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tier {
    /// Prompt tokens above which the tier applies.
    pub above: u64,
    pub input_factor: Decimal,
    pub output_factor: Decimal,
}

/// An override that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RateCardError(String);

impl RateCard {
    /// The prices this build ships with.
    pub fn builtin() -> &'static Self {
        static CARD: OnceLock<RateCard> = OnceLock::new();
        CARD.get_or_init(|| parse_embedded(include_str!("../data/rates.csv")))
    }

    /// The built-in prices with those of a YAML document over them. Two forms are understood: a
    /// list of entries with `provider` and `model`, and a map of providers to models to prices;
    /// either may stand under a `rates` key beside `as_of`.
    pub fn with_overrides(yaml: &str) -> Result<Self, RateCardError> {
        let document: Value = serde_saphyr::from_str(yaml)
            .map_err(|error| RateCardError(format!("not valid YAML: {error}")))?;
        let mut card = Self::builtin().clone();
        if let Some(as_of) = document.get("as_of").and_then(Value::as_str) {
            card.as_of = Cow::Owned(as_of.to_owned());
        }
        let mut own = parse_overrides(document.get("rates").unwrap_or(&document))?;
        // The later price of a model wins once it counts.
        own.sort_by(|one, other| one.from.cmp(&other.from));
        card.entries.extend(own.into_iter().map(Entry::given));
        Ok(card)
    }

    /// The prices of a day, such as `2026-01-31`: what counts only later is not among them. What
    /// was paid is written down when it is paid, so an old session keeps its price.
    #[must_use]
    pub fn on(mut self, day: &str) -> Self {
        let counts = |entry: &Entry| entry.from.as_deref().is_none_or(|from| from <= day);
        self.entries.retain(counts);
        self
    }

    /// The day the prices were collected.
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// The models of a provider whose prices are known, each once, in the order of their names.
    pub fn models<'a>(&'a self, provider: &str) -> impl Iterator<Item = &'a str> {
        let own = self.entries.iter();
        let own = own.filter(|entry| entry.provider == provider);
        let names = own.map(|entry| &*entry.model).filter(|name| *name != "*");
        names.collect::<BTreeSet<&str>>().into_iter()
    }

    /// What a call cost: what its provider charges by its own word, or else by these prices.
    pub fn price(&self, provider: &str, model: &str, usage: &Usage) -> Option<Decimal> {
        let listed = || self.lookup(provider, model).map(|rate| rate.cost(usage));
        usage.charged.or_else(listed)
    }

    /// The price of a model: its exact name first, then its base name, then `*`.
    pub fn lookup(&self, provider: &str, model: &str) -> Option<&Rate> {
        let find = |name: &str| {
            let mut latest = self.entries.iter().rev();
            latest
                .find(|entry| entry.provider == provider && entry.model == name)
                .and_then(Entry::rate)
        };
        find(model)
            .or_else(|| find(base_model(model)))
            .or_else(|| find("*"))
    }
}

impl Rate {
    /// What this usage costs, in USD, exactly.
    pub fn cost(&self, usage: &Usage) -> Decimal {
        let (input_factor, output_factor) = match self.tier {
            Some(tier) if usage.total_input() > tier.above => {
                (tier.input_factor, tier.output_factor)
            }
            Some(_) | None => (Decimal::ONE, Decimal::ONE),
        };
        let input = Decimal::from(usage.input) * self.input
            + Decimal::from(usage.cache_read) * self.cache_read.unwrap_or(self.input)
            + Decimal::from(usage.cache_write_5m) * self.cache_write_5m.unwrap_or(self.input)
            + Decimal::from(usage.cache_write_1h)
                * self
                    .cache_write_1h
                    .or(self.cache_write_5m)
                    .unwrap_or(self.input);
        let output = Decimal::from(usage.output) * self.output;
        (input * input_factor + output * output_factor) / Decimal::from(1_000_000)
    }

    /// What the same tokens would have cost more without a cache, at the prices of short prompts;
    /// nothing where no cache took part.
    pub fn saved(&self, usage: &Usage) -> Option<Decimal> {
        if usage.cache_read == 0 && usage.cache_write() == 0 {
            return None;
        }
        let cheaper = |tokens: u64, price: Option<Decimal>| {
            Decimal::from(tokens) * (self.input - price.unwrap_or(self.input))
        };
        let long_write = self.cache_write_1h.or(self.cache_write_5m);
        let saved = cheaper(usage.cache_read, self.cache_read)
            + cheaper(usage.cache_write_5m, self.cache_write_5m)
            + cheaper(usage.cache_write_1h, long_write);
        Some(saved / Decimal::from(1_000_000))
    }
}

/// Reads our own data; a line that does not parse has no price, and a test reads every line.
fn parse_embedded(csv: &'static str) -> RateCard {
    let mut card = RateCard {
        as_of: Cow::Borrowed(""),
        entries: Vec::new(),
    };
    let is_entry = |line: &&str| !line.starts_with('#') && !line.starts_with("provider,");
    for line in csv.lines().filter(is_entry) {
        if let Some(date) = line.strip_prefix("as_of,") {
            card.as_of = Cow::Borrowed(date);
        } else {
            card.entries.extend(Entry::listed(line));
        }
    }
    card
}

fn parse_line(line: &'static str) -> Option<Rate> {
    let fields: Vec<&'static str> = line.split(',').collect();
    let [
        provider,
        model,
        input,
        output,
        cache_read,
        short_write,
        long_write,
        window,
        max_output,
        vision,
        thinking,
        _tools,
        tier_above,
        tier_input,
        tier_output,
        from,
    ] = fields[..]
    else {
        return None;
    };
    let price = |field: &str| Decimal::from_str(field).ok();
    Some(Rate {
        provider: Cow::Borrowed(provider),
        model: Cow::Borrowed(model),
        from: (!from.is_empty()).then_some(Cow::Borrowed(from)),
        input: price(input)?,
        output: price(output)?,
        cache_read: price(cache_read),
        cache_write_5m: price(short_write),
        cache_write_1h: price(long_write),
        tier: match (tier_above.parse(), price(tier_input), price(tier_output)) {
            (Ok(above), Some(input_factor), Some(output_factor)) => Some(Tier {
                above,
                input_factor,
                output_factor,
            }),
            _ => None,
        },
        context_window: window.parse().ok(),
        max_output: max_output.parse().ok(),
        vision: vision == "yes",
        thinking: thinking == "yes",
    })
}

fn parse_overrides(rates: &Value) -> Result<Vec<Rate>, RateCardError> {
    match rates {
        Value::Array(entries) => entries.iter().map(parse_entry).collect(),
        Value::Object(providers) => {
            let mut parsed = Vec::new();
            for (provider, models) in providers {
                let Value::Object(models) = models.get("models").unwrap_or(models) else {
                    continue;
                };
                for (model, prices) in models {
                    let Value::Object(prices) = prices else {
                        return Err(RateCardError(format!(
                            "{provider}/{model}: expected a map of prices"
                        )));
                    };
                    parsed.push(parse_prices(provider, model, prices)?);
                }
            }
            Ok(parsed)
        }
        _ => Err(RateCardError(
            "expected a list of rates or a map of providers".to_owned(),
        )),
    }
}

fn parse_entry(entry: &Value) -> Result<Rate, RateCardError> {
    let name = |key: &str| {
        entry
            .get(key)
            .and_then(Value::as_str)
            .ok_or_else(|| RateCardError(format!("an entry has no `{key}`: {entry}")))
    };
    let Value::Object(prices) = entry else {
        return Err(RateCardError(format!("expected a map, found {entry}")));
    };
    parse_prices(name("provider")?, name("model")?, prices)
}

fn parse_prices(
    provider: &str,
    model: &str,
    prices: &Map<String, Value>,
) -> Result<Rate, RateCardError> {
    let price = |key: &str| -> Result<Option<Decimal>, RateCardError> {
        let spellings = [
            key.to_owned(),
            format!("{key}_per_mtok"),
            format!("{key}_per_million"),
            format!("{key}_per_1m"),
        ];
        let Some(value) = spellings.iter().find_map(|name| prices.get(name)) else {
            return Ok(None);
        };
        // Through the number's text, so that 0.1 means 0.1 and not its binary neighbour.
        let text = match value {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            Value::Null => return Ok(None),
            other => other.to_string(),
        };
        Decimal::from_str(&text)
            .or_else(|_| Decimal::from_scientific(&text))
            .ok()
            .filter(|price| !price.is_sign_negative())
            .map(Some)
            .ok_or_else(|| {
                RateCardError(format!(
                    "{provider}/{model}: `{key}` is not a price: {value}"
                ))
            })
    };
    let required = |key: &str| {
        price(key)?.ok_or_else(|| RateCardError(format!("{provider}/{model}: no `{key}` price")))
    };
    let short_write = price("cache_write_5m")?.or(price("cache_write")?);
    let tier = match prices.get("tier") {
        None | Some(Value::Null) => None,
        Some(tier) => Some(parse_tier(tier).ok_or_else(|| {
            RateCardError(format!(
                "{provider}/{model}: `tier` needs `above`, `input_factor` and `output_factor`"
            ))
        })?),
    };
    let known = RateCard::builtin().lookup(provider, model);
    Ok(Rate {
        provider: Cow::Owned(provider.to_owned()),
        model: Cow::Owned(model.to_owned()),
        from: parse_day(provider, model, prices)?,
        input: required("input")?,
        output: required("output")?,
        cache_read: price("cache_read")?,
        cache_write_5m: short_write,
        cache_write_1h: price("cache_write_1h")?,
        tier,
        context_window: known.and_then(|rate| rate.context_window),
        max_output: known.and_then(|rate| rate.max_output),
        vision: known.is_none_or(|rate| rate.vision),
        thinking: known.is_none_or(|rate| rate.thinking),
    })
}

/// The day from which a price counts.
fn parse_day(
    provider: &str,
    model: &str,
    prices: &Map<String, Value>,
) -> Result<Option<Cow<'static, str>>, RateCardError> {
    let day = match prices.get("from") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(day)) => day.clone(),
        Some(other) => other.to_string(),
    };
    let is_day = day.len() == 10
        && day.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if is_day {
        Ok(Some(Cow::Owned(day)))
    } else {
        Err(RateCardError(format!(
            "{provider}/{model}: `from` is not a day such as 2026-01-31: {day}"
        )))
    }
}

fn parse_tier(tier: &Value) -> Option<Tier> {
    let factor = |key: &str| Decimal::from_str(&tier.get(key)?.to_string()).ok();
    Some(Tier {
        above: tier.get("above")?.as_u64()?,
        input_factor: factor("input_factor")?,
        output_factor: factor("output_factor")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rust_decimal::dec;

    fn usage(input: u64, output: u64) -> Usage {
        Usage {
            input,
            output,
            ..Usage::default()
        }
    }

    #[test]
    fn every_line_of_the_card_is_understood() {
        let lines = include_str!("../data/rates.csv")
            .lines()
            .filter(|line| {
                !line.starts_with('#')
                    && !line.starts_with("as_of,")
                    && !line.starts_with("provider,")
            })
            .count();
        let entries = &RateCard::builtin().entries;
        assert_eq!(entries.len(), lines);
        assert!(entries.iter().all(|entry| entry.rate().is_some()));
        assert_eq!(RateCard::builtin().as_of(), "2026-11-15");
    }

    #[test]
    fn each_bucket_is_priced_once() {
        let rate = RateCard::builtin()
            .lookup("anthropic", "claude-sonnet-4-6")
            .unwrap();
        let usage = Usage {
            input: 1_000,
            cache_read: 10_000,
            cache_write_5m: 2_000,
            cache_write_1h: 1_000,
            output: 500,
            reasoning: 200,
            estimated: false,
            charged: None,
        };
        // 0.003 + 0.003 + 0.0075 + 0.006 + 0.0075
        assert_eq!(rate.cost(&usage), dec!(0.027));
    }

    #[test]
    fn a_prompt_above_the_threshold_costs_the_multiple() {
        let rate = RateCard::builtin().lookup("openai", "gpt-5.5").unwrap();
        assert_eq!(rate.cost(&usage(272_000, 1_000)), dec!(1.39));
        assert_eq!(rate.cost(&usage(272_001, 1_000)), dec!(2.765010));
    }

    #[test]
    fn names_are_found_exactly_then_by_base_then_by_wildcard() {
        let card = RateCard::builtin();
        assert!(
            card.lookup("anthropic", "claude-sonnet-4-5-20250929")
                .is_some()
        );
        assert_eq!(
            card.lookup("ollama", "anything:7b").unwrap().input,
            Decimal::ZERO
        );
        assert!(card.lookup("anthropic", "claude-sonnet-4-7").is_none());
    }

    #[test]
    fn overrides_come_as_a_list_or_as_a_map() {
        let list = "as_of: '2027-01-01'\nrates:\n  - provider: openai\n    model: house-model\n    input: 0.1\n    output: 0.2\n";
        let map = "openai:\n  house-model:\n    input_per_mtok: 0.1\n    output_per_mtok: '0.2'\n    tier: {above: 10, input_factor: 2, output_factor: 1.5}\n";
        let card = RateCard::with_overrides(list).unwrap();
        assert_eq!(card.as_of(), "2027-01-01");
        assert_eq!(
            card.lookup("openai", "house-model").unwrap().input,
            dec!(0.1)
        );
        let card = RateCard::with_overrides(map).unwrap();
        let rate = card.lookup("openai", "house-model").unwrap();
        assert_eq!(rate.output, dec!(0.2));
        assert_eq!(rate.tier.unwrap().output_factor, dec!(1.5));
        // The rest of the card still stands.
        assert!(card.lookup("anthropic", "claude-sonnet-4-6").is_some());
    }

    #[test]
    fn a_price_counts_from_its_day() {
        let yaml = "
- {provider: openai, model: m, input: 3, output: 0, from: 2027-01-01}
- {provider: openai, model: m, input: 1, output: 0}
- {provider: openai, model: m, input: 2, output: 0, from: 2026-06-01}
";
        let card = RateCard::with_overrides(yaml).unwrap();
        let price = |day: &str| card.clone().on(day).lookup("openai", "m").unwrap().input;
        assert_eq!(price("2026-05-31"), dec!(1));
        assert_eq!(price("2026-06-01"), dec!(2));
        assert_eq!(price("2027-02-01"), dec!(3));
        let bad = RateCard::with_overrides("openai: {m: {input: 1, output: 1, from: soon}}");
        assert_eq!(
            bad.unwrap_err().to_string(),
            "openai/m: `from` is not a day such as 2026-01-31: soon"
        );
    }

    #[test]
    fn a_bad_override_names_the_entry() {
        let missing = RateCard::with_overrides("openai: {m: {input: 1}}").unwrap_err();
        assert_eq!(missing.to_string(), "openai/m: no `output` price");
        let negative = RateCard::with_overrides("openai: {m: {input: -1, output: 1}}").unwrap_err();
        assert_eq!(negative.to_string(), "openai/m: `input` is not a price: -1");
        assert!(RateCard::with_overrides("[: bad").is_err());
    }
}
