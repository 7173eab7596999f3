//! The replies still to be given, in script order.

use std::sync::Arc;

use crate::ask::Ask;
use crate::script::{After, Reply};

#[derive(Debug)]
struct Slot {
    reply: Arc<Reply>,
    left: u32,
}

#[derive(Debug)]
pub(crate) struct Queue {
    slots: Vec<Slot>,
    after: After,
}

impl Queue {
    pub(crate) fn new(replies: Vec<Reply>, after: After) -> Self {
        let mut queue = Self {
            slots: Vec::with_capacity(replies.len()),
            after,
        };
        for reply in replies {
            queue.push(reply);
        }
        queue
    }

    pub(crate) fn push(&mut self, reply: Reply) {
        let left = uses(&reply);
        self.slots.push(Slot {
            reply: Arc::new(reply),
            left,
        });
    }

    /// The reply to this request; `None` when the script has none left for it.
    pub(crate) fn take(&mut self, ask: &Ask) -> Option<Arc<Reply>> {
        self.take_unused(ask).or_else(|| match self.after {
            After::Fail => None,
            After::RepeatLast => self
                .slots
                .iter()
                .rev()
                .find(|slot| fits(&slot.reply, ask))
                .map(|slot| slot.reply.clone()),
            After::Cycle => {
                for slot in &mut self.slots {
                    slot.left = uses(&slot.reply);
                }
                self.take_unused(ask)
            }
        })
    }

    fn take_unused(&mut self, ask: &Ask) -> Option<Arc<Reply>> {
        let slot = self
            .slots
            .iter_mut()
            .find(|slot| slot.left > 0 && fits(&slot.reply, ask))?;
        slot.left -= 1;
        Some(slot.reply.clone())
    }
}

fn uses(reply: &Reply) -> u32 {
    reply.times.unwrap_or(1)
}

fn fits(reply: &Reply, ask: &Ask) -> bool {
    reply
        .when
        .as_ref()
        .is_none_or(|condition| ask.matches(condition))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Api;
    use crate::script::Match;

    fn ask(text: &str) -> Ask {
        let body = format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#);
        Ask::from_body(Api::OpenAiChat, body.as_bytes()).unwrap()
    }

    fn model(queue: &mut Queue, text: &str) -> Option<String> {
        queue.take(&ask(text)).and_then(|reply| reply.model.clone())
    }

    fn replies() -> Vec<Reply> {
        vec![
            Reply::text("").model("plain").times(2),
            Reply::text("").model("cat").when(Match::last_user("cat")),
            Reply::text("").model("last"),
        ]
    }

    #[test]
    fn conditions_skip_and_order_holds() {
        let mut queue = Queue::new(replies(), After::Fail);
        let order: Vec<_> = ["x", "x", "dog", "cat", "cat"]
            .map(|t| model(&mut queue, t))
            .into();
        let expected = ["plain", "plain", "last", "cat"].map(|m| Some(m.to_owned()));
        assert_eq!(order[..4], expected);
        assert_eq!(order[4], None);
        queue.push(Reply::text("").model("pushed"));
        assert_eq!(model(&mut queue, "x").as_deref(), Some("pushed"));
    }

    #[test]
    fn the_end_of_the_script_is_configurable() {
        let mut cycle = Queue::new(
            vec![Reply::text("").model("a"), Reply::text("").model("b")],
            After::Cycle,
        );
        let seen: Vec<_> = (0..4).filter_map(|_| model(&mut cycle, "x")).collect();
        assert_eq!(seen, ["a", "b", "a", "b"]);
        let mut repeat = Queue::new(replies(), After::RepeatLast);
        let seen: Vec<_> = (0..5).filter_map(|_| model(&mut repeat, "x")).collect();
        assert_eq!(seen, ["plain", "plain", "last", "last", "last"]);
    }
}
