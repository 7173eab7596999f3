//! The ends of things: of history that was shortened, of a turn, of an answer that was cut off.

use caliban_agent::{CompactionReason, Outcome, RunTotals};
use caliban_model::{Message, Usage};
use serde_json::json;

use super::super::frame::{CompactMetadata, SystemBody};
use super::super::result::{Account, result, synthetic};
use super::{Audience, Emitted, Encoder, Remark, ShownAnswer, Synthetic, status};

impl Encoder {
    pub(super) fn compacted(&mut self, pre_tokens: u64, post_tokens: u64) -> Vec<Emitted> {
        let trigger = match self.now.compacting.take() {
            Some(CompactionReason::Asked) => "manual",
            Some(CompactionReason::Threshold | CompactionReason::TooLong) | None => "auto",
        };
        let boundary = SystemBody::CompactBoundary {
            compact_metadata: CompactMetadata {
                trigger,
                pre_tokens,
                post_tokens,
            },
        };
        let mut frames = vec![self.system(status(None)), self.system(boundary)];
        if let Some(summary) = self.now.summary.take() {
            frames.push(self.user(summary.into(), Synthetic::Yes, Audience::Client));
        }
        frames
    }

    /// The frames that end a turn, the result last but for the state.
    pub(super) fn end(&mut self, outcome: &Outcome, totals: &RunTotals) -> Vec<Emitted> {
        let mut frames = self.opened();
        if let Some((text, kind)) = synthetic(outcome) {
            let id = self.id();
            let content = json!({"type": "text", "text": text});
            let model = "<synthetic>".to_owned();
            let remark = Remark::Trouble(kind);
            frames.push(self.said(content, id, model, Usage::default(), None, remark));
        }
        let deferred = self.now.deferred.take();
        let deferred = deferred.filter(|_| *outcome == Outcome::Cancelled);
        if let Some(call) = &deferred {
            self.now.denials.retain(|denied| denied.id != call.id);
        }
        let account = Account {
            totals,
            before: &self.before,
            earlier_cost: self.earlier_cost,
            user_messages: self.now.user_messages,
            stop_reason: self.now.stop_reason.take(),
            denials: std::mem::take(&mut self.now.denials),
            deferred,
            aborted: if self.now.answer.in_tools {
                "aborted_tools"
            } else {
                "aborted_streaming"
            },
            session_id: self.session_id.clone(),
            uuid: (self.ids)(),
        };
        frames.push(Emitted {
            frame: result(outcome, account),
            to: Audience::Client,
        });
        self.before = totals.clone();
        frames.extend(self.state("idle"));
        frames
    }

    /// What was written of an answer, the end of its stream, and that it was cut off.
    pub(super) fn cut_off(&mut self, said: Option<&Message>, note: &Message) -> Vec<Emitted> {
        let mut frames = self.opened();
        let open = std::mem::take(&mut self.now.answer.open);
        if said.is_some() && !open.is_empty() {
            let ShownAnswer {
                id, model, usage, ..
            } = &self.now.answer;
            let (id, model, usage) = (id.clone(), model.clone(), *usage);
            let content = json!({"type": "text", "text": open});
            frames.push(self.said(content, id, model, usage, None, Remark::Aborted));
        }
        let usage = self.now.answer.usage;
        frames.extend(self.streamed(|stream, _| stream.stopped(None, usage)));
        let content = json!([{"type": "text", "text": note.text()}]);
        frames.push(self.user(content, Synthetic::No, Audience::Both));
        frames
    }
}
