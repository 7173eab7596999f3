//! Notices a model that makes the same call over and over and learns nothing from it.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::tool::ToolOutput;

/// Counts turns whose calls and results are the same as those of the turn before.
#[derive(Debug, Default)]
pub(crate) struct Repetition {
    last: Option<u64>,
    times: u32,
}

impl Repetition {
    /// Notes a turn and returns how often in a row it has now happened. A call whose result
    /// differs, such as a poll of a running job, is progress.
    pub(crate) fn note<'a>(
        &mut self,
        calls: impl Iterator<Item = (&'a str, &'a Value, &'a ToolOutput)>,
    ) -> u32 {
        let mut hasher = DefaultHasher::new();
        for (name, input, output) in calls {
            name.hash(&mut hasher);
            input.to_string().hash(&mut hasher);
            output.text().hash(&mut hasher);
        }
        let turn = hasher.finish();
        if self.last.replace(turn) == Some(turn) {
            self.times += 1;
        } else {
            self.times = 1;
        }
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_same_call_with_the_same_result_counts() {
        let mut repetition = Repetition::default();
        let input = json!({"a": 1});
        let same = ToolOutput::ok("x");
        let other = ToolOutput::ok("y");
        let mut turn = |output| repetition.note([("T", &input, output)].into_iter());
        assert_eq!(turn(&same), 1);
        assert_eq!(turn(&same), 2);
        assert_eq!(turn(&other), 1);
        assert_eq!(turn(&same), 1);
    }
}
