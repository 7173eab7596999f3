//! One registry of sessions for applications. A tab is a session with a queue, idempotent requests,
//! questions and a numbered stream that readers hear at their own pace. Nothing here knows how a
//! wish arrives or how a line leaves: [`Registry::submit`] takes wishes, a [`Reader`] hears tabs.

mod answer;
mod blobs;
mod client;
mod content;
mod delta;
mod encode;
mod host;
mod ledger;
mod limits;
mod lines;
mod log;
mod partial;
mod reader;
mod registry;
mod request;
mod schema;
mod scope;
mod snapshot;
mod tab;
mod told;
mod view;

pub use answer::{
    Closed, Code, Done, Heard, Hello, Opened, Problem, PromptView, Reply, Sent, SentState, Settled,
    Tabs,
};
pub use blobs::Blob;
pub use client::{Client, MayEnd, Output};
pub use content::{Content, ContentBlock, ImageSource, MediaType};
pub use encode::Frames;
pub use host::{HostedSession, News, Saved, SessionHost, SessionWanted, Unopened, Wanted};
pub use limits::Limits;
pub use lines::{Line, LineDecoder};
pub use reader::Reader;
pub use registry::{Pending, Registry, ShutDown};
pub use request::{
    Action, Answer, Cancel, Close, Decision, Effort, Events, HelloWish, Id, Malformed, Open, Purge,
    Queue, Request, Scope, Send, Set, Shutdown, TabsWish, Wish, read,
};
pub use schema::lines_schema;
pub use snapshot::MessagePage;
pub use told::Told;
pub use view::{Context, Last, QuestionView, TabState, TabView};

/// The version of the line protocol. What a reader does not know it may pass over.
pub const PROTOCOL: u32 = 1;
