//! What a tab is by now, for a reader whose place in the stream is gone.

use std::sync::Arc;

use caliban_model::Message;
use serde_json::{Value, json};

use crate::encode::Encoder;
use crate::view::TabView;

/// Bytes of messages in a snapshot; the oldest are left out.
const LONGEST: usize = 2 * 1024 * 1024;

/// The event that takes the place of everything before it.
pub(crate) fn event(view: &TabView, messages: &[Arc<Message>], encoder: &Encoder) -> Value {
    let (mut bytes, mut shown) = (0, Vec::new());
    let mut omitted = 0;
    for frame in messages
        .iter()
        .rev()
        .filter_map(|message| encoder.message(message))
    {
        bytes += frame.to_string().len();
        if bytes > LONGEST {
            omitted += 1;
        } else {
            shown.push(frame);
        }
    }
    shown.reverse();
    let mut event = json!({"type": "snapshot", "tab": view, "messages": shown});
    if omitted > 0 {
        event["omitted"] = omitted.into();
    }
    event
}
