//! The messages of a conversation, checked as they are added and cheap to hand on.

use std::ops::Deref;
use std::sync::Arc;

use crate::{Block, InvalidRequest, Message, Role};

/// Messages, oldest first. A copy shares the list until one of the two adds to it, so that a
/// request costs the same however long the conversation is.
#[derive(Debug, Clone, Default)]
pub struct Messages {
    list: Arc<Vec<Arc<Message>>>,
    system_len: usize,
    /// What the first message that is out of place would be refused for.
    fault: Option<InvalidRequest>,
}

impl Messages {
    pub fn push(&mut self, message: Arc<Message>) {
        let index = self.list.len();
        if message.role == Role::System {
            let is_text = |block: &Block| matches!(block, Block::Text { .. });
            if index > self.system_len {
                self.fault
                    .get_or_insert(InvalidRequest::MisplacedSystem { index });
            } else if message.content.iter().all(is_text) {
                self.system_len += 1;
            } else {
                self.system_len += 1;
                self.fault
                    .get_or_insert(InvalidRequest::SystemNotText { index });
            }
        }
        Arc::make_mut(&mut self.list).push(message);
    }

    /// Where the system messages end.
    pub fn system_len(&self) -> usize {
        self.system_len
    }

    /// Whether the messages are a conversation: system messages lead and hold text only, and at
    /// least one other message follows.
    pub fn check(&self) -> Result<(), InvalidRequest> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None if self.list.len() == self.system_len => Err(InvalidRequest::Empty),
            None => Ok(()),
        }
    }
}

impl Deref for Messages {
    type Target = [Arc<Message>];

    fn deref(&self) -> &[Arc<Message>] {
        &self.list
    }
}

impl FromIterator<Arc<Message>> for Messages {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        let mut all = Self::default();
        for message in messages {
            all.push(message);
        }
        all
    }
}

impl From<Vec<Arc<Message>>> for Messages {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        messages.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_does_not_see_what_is_added_later() {
        let mut messages = Messages::from(vec![Arc::new(Message::user("a"))]);
        let copy = messages.clone();
        assert!(Arc::ptr_eq(&copy.list, &messages.list));
        messages.push(Arc::new(Message::assistant("b")));
        assert_eq!((copy.len(), messages.len()), (1, 2));
    }

    #[test]
    fn the_first_fault_is_the_one_that_is_told() {
        let system = || Arc::new(Message::system("s"));
        let user = || Arc::new(Message::user("u"));
        let late: Messages = [user(), system(), user(), system()].into_iter().collect();
        assert_eq!(
            late.check(),
            Err(InvalidRequest::MisplacedSystem { index: 1 })
        );
        assert_eq!(late.system_len(), 0);
        let mut alone: Messages = [system(), system()].into_iter().collect();
        assert_eq!(alone.check(), Err(InvalidRequest::Empty));
        alone.push(user());
        assert_eq!((alone.check(), alone.system_len()), (Ok(()), 2));
    }
}
