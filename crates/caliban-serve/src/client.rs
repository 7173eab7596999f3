//! One application that is connected: its lines in, replies and what it hears out. The bytes are
//! somebody else's.

use std::collections::VecDeque;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::FuturesUnordered;

use crate::answer::{Code, Done, Problem, Reply};
use crate::reader::Reader;
use crate::registry::{Listen, Registry};
use crate::request::{Id, Malformed, Wish, read};
use crate::told::Told;

/// Requests without an answer; a client that is further ahead waits.
const UNANSWERED: usize = 256;

/// What a client is sent next.
#[derive(Debug)]
pub enum Output {
    Reply(Box<Reply>),
    Told(Vec<Told>),
    /// It asked for the end of everything, and this was the answer.
    Goodbye(Box<Reply>),
}

type Answered = (Id, Option<Listen>, bool, Result<Done, Problem>);

/// A connection.
pub struct Client {
    registry: Registry,
    reader: Reader,
    unanswered: FuturesUnordered<BoxFuture<'static, Answered>>,
    complaints: VecDeque<Reply>,
    may_end: MayEnd,
}

/// Whether a client may end everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayEnd {
    Yes,
    /// Others are there as well, and who runs the server decides.
    No,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut client = formatter.debug_struct("Client");
        client.field("reader", &self.reader).finish_non_exhaustive()
    }
}

impl Client {
    pub fn new(registry: Registry, may_end: MayEnd) -> Self {
        Self {
            registry,
            reader: Reader::default(),
            unanswered: FuturesUnordered::new(),
            complaints: VecDeque::new(),
            may_end,
        }
    }

    /// Whether another line may be submitted.
    pub fn has_room(&self) -> bool {
        self.unanswered.len() + self.complaints.len() < UNANSWERED
    }

    /// Takes a line. What comes of it is told by [`next`](Self::next).
    pub async fn submit(&mut self, line: &str) {
        match read(line) {
            Ok(None) => {}
            Ok(Some(request)) => {
                let id = request.id.clone();
                let is_last = matches!(request.wish, Wish::Shutdown(_));
                if is_last && self.may_end == MayEnd::No {
                    let reason = "only who runs the server ends it";
                    let error = Problem::new(Code::Refused, reason);
                    let re = Some(id);
                    return self.complaints.push_back(Reply::Error { re, error });
                }
                let pending = self.registry.submit(request).await;
                let (answer, listen) = (pending.answer, pending.listen);
                let answered = async move { (id, listen, is_last, answer.await) };
                self.unanswered.push(answered.boxed());
            }
            Err(malformed) => self.complain(malformed),
        }
    }

    /// A line that could not be used.
    pub fn complain(&mut self, Malformed { id, reason }: Malformed) {
        self.complaints.push_back(Reply::Error {
            re: id,
            error: Problem::new(Code::BadRequest, reason),
        });
    }

    /// What is sent next. Replies come before what is heard, and an opening is answered before
    /// anything of its tab is told.
    pub async fn next(&mut self) -> Output {
        match self.rest().await {
            Some(output) => output,
            // Until somebody asks for something.
            None => std::future::pending().await,
        }
    }

    /// The same; nothing once everything was sent and nothing can come unasked.
    pub async fn rest(&mut self) -> Option<Output> {
        if let Some(complaint) = self.complaints.pop_front() {
            return Some(Output::Reply(Box::new(complaint)));
        }
        let has_feeds = !self.reader.is_over();
        tokio::select! {
            biased;
            Some((id, listen, is_last, answer)) = self.unanswered.next() => {
                if let (Some(Listen { tab, from }), Ok(_)) = (listen, &answer) {
                    // Who joins a tab again goes on where it is.
                    if from.is_some() || !self.reader.hears(&tab) {
                        self.reader.listen(&tab, from);
                    }
                }
                let reply = Box::new(Reply::new(id, answer));
                Some(if is_last { Output::Goodbye(reply) } else { Output::Reply(reply) })
            }
            Some(told) = self.reader.next(), if has_feeds => Some(Output::Told(told)),
            else => None,
        }
    }
}
