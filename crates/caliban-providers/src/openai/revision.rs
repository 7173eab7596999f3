//! What a refusal teaches about a call: which field to leave out and which effort to lower.

use std::sync::LazyLock;

use caliban_model::{Effort, Error};
use regex::Regex;
use serde_json::{Map, Value};

use crate::adapter::Revision;

/// Whether the server refuses the request because of a field of this name, whatever its value.
pub(super) fn refuses_field(error: &Error, name: &str) -> bool {
    const OBJECTIONS: [&str; 8] = [
        "not support",
        "unsupported",
        "unrecognized",
        "unknown",
        "unexpected",
        "not permitted",
        "not allowed",
        "extra field",
    ];
    let text = error.message.to_ascii_lowercase();
    refuses_request(error)
        && text.contains(name)
        && OBJECTIONS.iter().any(|phrase| text.contains(phrase))
}

/// Whether the server refuses the request and mentions this name.
pub(super) fn mentions(error: &Error, name: &str) -> bool {
    refuses_request(error) && error.message.to_ascii_lowercase().contains(name)
}

fn refuses_request(error: &Error) -> bool {
    matches!(error.status, Some(400 | 422))
}

/// What to send instead of an effort the server does not take.
#[derive(Debug, PartialEq, Eq)]
enum Substitute {
    /// The next weaker level the server names.
    Weaker(&'static str),
    Omit,
}

/// Nothing if the refusal is not about the effort `sent`. Each answer is weaker than what was
/// sent, so revisions come to an end.
fn lower_effort(error: &Error, sent: &str) -> Option<Substitute> {
    static NAMED: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?is)supported values are:?(.*)").ok());
    let about_value = mentions(error, &format!("unsupported value: '{sent}'"));
    if !about_value && !refuses_field(error, "effort") {
        return None;
    }
    let supported = NAMED
        .as_ref()
        .and_then(|named| named.captures(&error.message)?.get(1))
        .map_or("", |list| list.as_str());
    let weaker = Effort::ALL
        .into_iter()
        .rev()
        .map(Effort::as_str)
        .skip_while(|name| *name != sent)
        .skip(1)
        .find(|name| supported.contains(&format!("'{name}'")));
    Some(weaker.map_or(Substitute::Omit, Substitute::Weaker))
}

/// Lowers the effort that stands in `field`, or drops it, if that is what was refused.
pub(super) fn weaken(fields: &mut Map<String, Value>, field: &str, error: &Error) -> Revision {
    let lowered = fields
        .get(field)
        .and_then(Value::as_str)
        .and_then(|effort| lower_effort(error, effort));
    match lowered {
        Some(Substitute::Weaker(effort)) => {
            fields.insert(field.to_owned(), effort.into());
            Revision::Resend
        }
        Some(Substitute::Omit) => {
            fields.shift_remove(field);
            Revision::Resend
        }
        None => Revision::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::ErrorKind;

    fn refusal(status: u16, message: &str) -> Error {
        Error::new(ErrorKind::Invalid, "openai", "m", message).with_status(status)
    }

    #[test]
    fn a_field_is_refused_by_name_not_for_its_value() {
        let unsupported = "Unsupported parameter: 'max_tokens' is not supported with this model.";
        assert!(refuses_field(&refusal(400, unsupported), "max_tokens"));
        assert!(!refuses_field(&refusal(500, unsupported), "max_tokens"));
        let too_large = "max_tokens is too large: 99999. This model allows at most 16384";
        assert!(!refuses_field(&refusal(400, too_large), "max_tokens"));
    }

    #[test]
    fn an_effort_is_lowered_to_what_the_server_names_or_left_out() {
        let named = "Unsupported value: 'max' is not supported with the 'gpt-5.4' model. Supported values are: 'none', 'low', 'medium', 'high', and 'xhigh'.";
        assert_eq!(
            lower_effort(&refusal(400, named), "max"),
            Some(Substitute::Weaker("xhigh"))
        );
        let none = "Unsupported value: 'none' is not supported with the 'o3' model. Supported values are: 'low', 'medium', and 'high'.";
        assert_eq!(
            lower_effort(&refusal(400, none), "none"),
            Some(Substitute::Omit)
        );
        let unknown = "Unrecognized request argument supplied: reasoning_effort";
        assert_eq!(
            lower_effort(&refusal(400, unknown), "low"),
            Some(Substitute::Omit)
        );
        assert_eq!(lower_effort(&refusal(400, "Invalid 'tools'"), "low"), None);
        assert_eq!(lower_effort(&refusal(429, unknown), "low"), None);
    }
}
