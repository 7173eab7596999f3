//! Token counts of both formats. OpenAI's totals include their parts; ours never overlap.

use caliban_model::Usage;
use rust_decimal::Decimal;
use serde_json::Value;

/// The most that one call is believed to cost, in USD.
const LARGEST_CHARGE: Decimal = Decimal::ONE_THOUSAND;

/// Nothing where the server reports nothing, zeros included: some send zeros until the end.
pub(super) fn read(value: &Value) -> Option<Usage> {
    let prompt = count(value, &["prompt_tokens", "input_tokens"]);
    let output = count(value, &["completion_tokens", "output_tokens"]);
    if prompt == 0 && output == 0 {
        return None;
    }
    let details = part(value, &["prompt_tokens_details", "input_tokens_details"]);
    let cached = match count(details, &["cached_tokens"]) {
        0 => count(value, &["prompt_cache_hit_tokens"]),
        cached => cached,
    };
    let cache_read = cached.min(prompt);
    let cache_write = count(details, &["cache_write_tokens"]).min(prompt - cache_read);
    let ttl = part(details, &["cache_write_tokens_details"]);
    let cache_write_1h = count(ttl, &["ttl_12h_tokens"]).min(cache_write);
    let reasoning = part(
        value,
        &["completion_tokens_details", "output_tokens_details"],
    );
    Some(Usage {
        input: prompt - cache_read - cache_write,
        cache_read,
        cache_write_5m: cache_write - cache_write_1h,
        cache_write_1h,
        output,
        reasoning: count(reasoning, &["reasoning_tokens"]).min(output),
        estimated: false,
        charged: charged(value),
    })
}

/// What a gateway says that the call costs. With a key of one's own only its fee is in it, and the
/// rest stands beside it. What no call can cost is not believed.
fn charged(value: &Value) -> Option<Decimal> {
    let dollars = |value: &Value| {
        let text = value.as_number()?.to_string();
        let amount = text
            .parse()
            .or_else(|_| Decimal::from_scientific(&text))
            .ok();
        amount.filter(|amount| (Decimal::ZERO..=LARGEST_CHARGE).contains(amount))
    };
    let fee = dollars(value.get("cost")?)?;
    if value.get("is_byok") != Some(&Value::Bool(true)) {
        return Some(fee);
    }
    let rest = part(value, &["cost_details"]).get("upstream_inference_cost");
    rest.and_then(dollars).map(|rest| fee + rest)
}

fn count(value: &Value, names: &[&str]) -> u64 {
    names
        .iter()
        .find_map(|name| value.get(name)?.as_u64())
        .unwrap_or(0)
}

fn part<'a>(value: &'a Value, names: &[&str]) -> &'a Value {
    names
        .iter()
        .find_map(|name| value.get(name).filter(|part| part.is_object()))
        .unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rust_decimal::dec;
    use serde_json::json;

    #[test]
    fn buckets_are_disjoint() {
        let chat = json!({"prompt_tokens": 1200, "completion_tokens": 80, "total_tokens": 1280,
            "prompt_tokens_details": {"cached_tokens": 1000, "cache_write_tokens": 50},
            "completion_tokens_details": {"reasoning_tokens": 32}});
        assert_eq!(
            read(&chat),
            Some(Usage {
                input: 150,
                cache_read: 1000,
                cache_write_5m: 50,
                output: 80,
                reasoning: 32,
                ..Usage::default()
            })
        );
        let responses = json!({"input_tokens": 100, "output_tokens": 9,
            "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 40,
                "cache_write_tokens_details": {"ttl_30m_tokens": 10, "ttl_12h_tokens": 30}}});
        assert_eq!(
            read(&responses),
            Some(Usage {
                input: 50,
                cache_read: 10,
                cache_write_5m: 10,
                cache_write_1h: 30,
                output: 9,
                ..Usage::default()
            })
        );
    }

    #[test]
    fn a_charge_is_believed_where_it_can_be_one() {
        let read = |mut fields: Value| {
            fields["prompt_tokens"] = 9.into();
            super::read(&fields).unwrap().charged
        };
        assert_eq!(read(json!({"cost": 0.0125})), Some(dec!(0.0125)));
        assert_eq!(read(json!({"cost": 1.5e-7})), Some(dec!(0.00000015)));
        assert_eq!(read(json!({"cost": 0})), Some(dec!(0)));
        let own_key = json!({"cost": 0.001, "is_byok": true,
            "cost_details": {"upstream_inference_cost": 0.02}});
        assert_eq!(read(own_key), Some(dec!(0.021)));
        for nonsense in [
            json!(-1),
            json!(1e9),
            json!("1"),
            json!({"total": 1}),
            json!(null),
        ] {
            assert_eq!(read(json!({"cost": nonsense})), None);
        }
        assert_eq!(read(json!({"cost": 0.001, "is_byok": true})), None);
    }

    #[test]
    fn parts_larger_than_their_total_do_not_underflow() {
        let usage = read(&json!({"prompt_tokens": 5, "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": 9, "cache_write_tokens": 9},
            "completion_tokens_details": {"reasoning_tokens": 7}}))
        .unwrap();
        assert_eq!(usage.total_input(), 5);
        assert_eq!(usage.reasoning, 1);
    }

    #[test]
    fn zeros_and_nonsense_are_no_report() {
        for value in [
            json!(null),
            json!({}),
            json!({"prompt_tokens": 0}),
            json!({"prompt_tokens": "many"}),
            json!("x"),
        ] {
            assert_eq!(read(&value), None, "{value}");
        }
    }
}
