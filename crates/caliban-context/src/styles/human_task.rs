//! The marks by which the learning style leaves something to the user.

use std::ops::Range;

const MARK: &str = "TODO(human):";
/// The most marks reported of one text.
const MAX_TASKS: usize = 100;

/// A part of the work that was left to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HumanTask {
    /// What they are asked to do.
    pub prompt: String,
    /// Where the mark and its prompt are in the text, in bytes.
    pub range: Range<usize>,
}

/// Finds the marks in what the assistant said, in order. A mark without a prompt is none.
pub fn human_tasks(text: &str) -> Vec<HumanTask> {
    text.match_indices(MARK)
        .filter_map(|(start, _)| {
            let line = text[start..].lines().next()?;
            let line = &line[..line[MARK.len()..]
                .find(MARK)
                .map_or(line.len(), |next| next + MARK.len())];
            let prompt = line[MARK.len()..]
                .trim_end_matches("*/")
                .trim_end_matches("-->")
                .trim();
            (!prompt.is_empty()).then(|| HumanTask {
                prompt: prompt.to_owned(),
                range: start..start + line.trim_end().len(),
            })
        })
        .take(MAX_TASKS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn marks_are_found_with_their_prompts() {
        let text = "Done.\nTODO(human): choose a limit  \n// TODO(human): and é\nTODO(human):\nTODO(you): no\n/* TODO(human): x */";
        let tasks = human_tasks(text);
        let prompts: Vec<&str> = tasks.iter().map(|task| task.prompt.as_str()).collect();
        assert_eq!(prompts, ["choose a limit", "and é", "x"]);
        assert_eq!(&text[tasks[0].range.clone()], "TODO(human): choose a limit");
        assert_eq!(
            human_tasks(&"TODO(human): x\n".repeat(1000)).len(),
            MAX_TASKS
        );
    }

    proptest! {
        #[test]
        fn ranges_lie_in_the_text_and_do_not_overlap(text in "(TODO\\(human\\):| |é|x|\n|\r){0,20}") {
            let tasks = human_tasks(&text);
            for task in &tasks {
                prop_assert!(text[task.range.clone()].starts_with(MARK));
            }
            for pair in tasks.windows(2) {
                prop_assert!(pair[0].range.end <= pair[1].range.start);
            }
        }
    }
}
