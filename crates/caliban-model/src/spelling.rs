//! The name somebody probably meant.

/// The most letters of a name that are compared.
const LETTERS: usize = 64;

/// How many letters must be added, left out, replaced or swapped to make one name of the other.
pub fn slips(left: &str, right: &str) -> usize {
    strsim::osa_distance(left, right)
}

/// The nearest of the known names, unless none is near: at most a third of the letters may differ,
/// and neither case nor separators count.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = letters(name);
    known
        .into_iter()
        .map(|known| (slips(&name, &letters(known)), known))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= name.chars().count().div_ceil(3))
        .map(|(_, known)| known)
}

fn letters(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    letters.flat_map(char::to_lowercase).take(LETTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["PreToolUse", "PostToolUse", "Stop"];
        assert_eq!(nearest("PreToolUses", known), Some("PreToolUse"));
        assert_eq!(nearest("pre_tool_use", known), Some("PreToolUse"));
        assert_eq!(nearest("Stpo", known), Some("Stop"));
        assert_eq!(nearest("Banana", known), None);
        assert_eq!(nearest("", known), None);
    }
}
