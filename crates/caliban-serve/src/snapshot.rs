//! What a tab is by now, for a reader whose place in the stream is gone.

use std::sync::Arc;

use caliban_model::Message;
use serde_json::{Value, json};

use crate::blobs;
use crate::encode::Encoder;
use crate::view::TabView;

/// Bytes of messages in a snapshot; the oldest are left out.
const LONGEST: usize = 2 * 1024 * 1024;

/// Some of the messages, from one on.
#[derive(Debug)]
pub struct MessagePage {
    pub messages: Vec<Value>,
    /// The message after them, where there is one.
    pub next: Option<usize>,
}

/// The messages from one on: so many, and so many bytes, but one at least.
pub(crate) fn page(
    messages: &[Arc<Message>],
    from: usize,
    most: usize,
    encoder: &Encoder,
) -> MessagePage {
    let (mut bytes, mut shown) = (0, Vec::new());
    for (place, message) in messages.iter().enumerate().skip(from) {
        let Some(mut frame) = encoder.message(message) else {
            continue;
        };
        blobs::shorten(&mut frame);
        bytes += frame.to_string().len();
        if shown.len() == most || (bytes > LONGEST && !shown.is_empty()) {
            return MessagePage {
                messages: shown,
                next: Some(place),
            };
        }
        shown.push(frame);
    }
    MessagePage {
        messages: shown,
        next: None,
    }
}

/// The event that takes the place of everything before it.
pub(crate) fn event(view: &TabView, messages: &[Arc<Message>], encoder: &Encoder) -> Value {
    let (mut bytes, mut shown) = (0, Vec::new());
    let mut omitted = 0;
    for mut frame in messages
        .iter()
        .rev()
        .filter_map(|message| encoder.message(message))
    {
        blobs::shorten(&mut frame);
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
