//! What the Messages API refuses about cache markers.

use serde_json::Value;

use crate::fault::{Rejection, Verdict, ensure};
use crate::json::{given, list, text};

const MAX_MARKERS: usize = 4;

/// Cache markers in the order of the hashed prefix: tools, system, messages, then the automatic one.
pub(super) fn check(body: &Value) -> Verdict {
    let mut found = Vec::new();
    for field in ["tools", "system"] {
        found.extend(
            list(body, field)
                .iter()
                .filter_map(|block| given(block, "cache_control")),
        );
    }
    for message in list(body, "messages") {
        for block in list(message, "content") {
            let marker = given(block, "cache_control");
            let thinks = matches!(text(block, "type"), Some("thinking" | "redacted_thinking"));
            ensure(marker.is_none() || !thinks, || {
                "messages: cache_control cannot be set on thinking blocks: Extra inputs are not permitted".into()
            })?;
            found.extend(
                list(block, "content")
                    .iter()
                    .filter_map(|inner| given(inner, "cache_control")),
            );
            found.extend(marker);
        }
    }
    found.extend(given(body, "cache_control"));
    ensure(found.len() <= MAX_MARKERS, || {
        format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {}.",
            found.len()
        )
    })?;
    let mut short = false;
    for marker in found {
        ensure(text(marker, "type") == Some("ephemeral"), || {
            "cache_control.type: Input should be 'ephemeral'".into()
        })?;
        match text(marker, "ttl") {
            None | Some("5m") => short = true,
            Some("1h") if short => {
                return Err(Rejection::invalid(
                    "cache_control: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
                ));
            }
            Some("1h") => {}
            Some(_) => {
                return Err(Rejection::invalid(
                    "cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn markers_are_counted_and_ordered() {
        let marked = |ttls: &[&str]| {
            let blocks: Vec<_> = ttls
                .iter()
                .map(|ttl| json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": ttl}}))
                .collect();
            json!({"messages": [{"role": "user", "content": blocks}]})
        };
        check(&marked(&["1h", "1h", "5m", "5m"])).unwrap();
        let found = |body: &Value| check(body).unwrap_err().message;
        assert_eq!(
            found(&marked(&["5m"; 5])),
            "A maximum of 4 blocks with cache_control may be provided. Found 5."
        );
        assert!(found(&marked(&["5m", "1h"])).contains("must not come after"));
        let thinking = json!({"messages": [{"role": "assistant", "content": [
            {"type": "thinking", "thinking": "t", "signature": "s", "cache_control": {"type": "ephemeral"}}]}]});
        assert!(found(&thinking).contains("thinking"));
    }
}
