//! What a call may read that no argument of it names.

use std::path::PathBuf;
use std::sync::Arc;

use caliban_agent::{OpenReading, ReadGuard, ToolCall};
use caliban_permissions::{Judge, Reader, Regime};
use caliban_settings::PermissionMode;

use super::{Gate, MAX_PENDING, lock};
use crate::sandbox::WithoutHidden;

impl Gate {
    /// What a call may read that no argument names: what the rules open in this mode, and what
    /// somebody has consented to for this call.
    pub(crate) fn reader(&self, consented: Vec<PathBuf>) -> Arc<dyn ReadGuard> {
        self.reader_by(self.judge.load_full(), consented)
    }

    pub(super) fn reader_by(
        &self,
        judge: Arc<Judge>,
        consented: Vec<PathBuf>,
    ) -> Arc<dyn ReadGuard> {
        let rules: Arc<dyn ReadGuard> = match self.regime() {
            Regime::Disabled | Regime::Rules(PermissionMode::BypassPermissions) => {
                OpenReading::shared()
            }
            Regime::Rules(mode) => {
                Arc::new(Reader::new(judge, mode, self.parts.auto_allow, consented))
            }
        };
        match &self.parts.sandbox {
            Some(sandbox) => Arc::new(WithoutHidden {
                sandbox: Arc::clone(sandbox),
                rules,
            }),
            None => rules,
        }
    }

    /// Remembers the files that a call was judged by until it begins: by then their names may
    /// lead elsewhere.
    pub(super) fn consent(&self, call: &ToolCall, files: Vec<PathBuf>) {
        if files.is_empty() {
            return;
        }
        let mut consented = lock(&self.consented);
        if consented.len() >= MAX_PENDING {
            // Of calls that were cancelled before they began.
            consented.clear();
        }
        consented.insert(Arc::clone(&call.id), files);
    }
}
