//! What rules can be about: the tools there are, and what is asked about like one.

use caliban_model::{Argument, BUILT_IN, BuiltInTool, Effect};

/// Not a tool: what MCP servers want to know of the user.
const ELICIT: BuiltInTool = BuiltInTool {
    name: "Elicit",
    argument: Argument::Text("server"),
    effect: Effect::Session,
    fields: &["server"],
};

/// Everything that a rule can name besides the tools of MCP servers.
pub(crate) fn all() -> impl Iterator<Item = &'static BuiltInTool> {
    BUILT_IN.iter().chain([&ELICIT])
}

pub(crate) fn known(name: &str) -> Option<&'static BuiltInTool> {
    all().find(|tool| tool.name == name)
}

pub(crate) fn argument(tool: &str) -> Argument {
    known(tool).map_or(Argument::None, |tool| tool.argument)
}

pub(crate) fn is_editor(tool: &str) -> bool {
    known(tool).is_some_and(BuiltInTool::edits)
}

/// The known name closest to a misspelled one.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    all()
        .map(|tool| {
            (
                distance(&tool.name.to_lowercase(), &name.to_lowercase()),
                tool.name,
            )
        })
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, name)| name)
}

fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut previous = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = previous + usize::from(a != *b);
            previous = row[j + 1];
            row[j + 1] = substituted.min(previous + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_names_have_a_nearest_one() {
        assert_eq!(nearest("bash"), Some("Bash"));
        assert_eq!(nearest("Wrte"), Some("Write"));
        assert_eq!(nearest("Frobnicate"), None);
    }
}
