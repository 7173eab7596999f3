//! What hooks have to say about calls, kept until the turn of the calls ends.

use std::sync::{Arc, Mutex, PoisonError};

/// Texts by the id of the call they are about.
#[derive(Debug, Default)]
pub struct Remarks(Mutex<Vec<(Arc<str>, String)>>);

impl Remarks {
    pub fn add(&self, call: &Arc<str>, texts: impl IntoIterator<Item = String>) {
        let remarks = texts.into_iter().map(|text| (Arc::clone(call), text));
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(remarks);
    }

    /// Takes what was said about these calls, in the order it was said.
    pub fn take(&self, calls: &[Arc<str>]) -> Option<String> {
        let mut remarks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let about_these = remarks.extract_if(.., |(call, _)| calls.contains(call));
        let texts: Vec<String> = about_these.map(|(_, text)| text).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_taken_once_and_with_its_call_only() {
        let remarks = Remarks::default();
        let [first, second]: [Arc<str>; 2] = ["a".into(), "b".into()];
        remarks.add(&first, ["one".to_owned()]);
        remarks.add(&second, ["other".to_owned()]);
        remarks.add(&first, ["two".to_owned()]);
        assert_eq!(
            remarks.take(&[Arc::clone(&first)]).as_deref(),
            Some("one\n\ntwo")
        );
        assert_eq!(remarks.take(&[first]), None);
        assert_eq!(remarks.take(&[second]).as_deref(), Some("other"));
    }
}
