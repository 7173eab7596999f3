//! The name somebody probably meant.

/// The nearest of the known names, unless none is near.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |name: &str| -> Vec<char> {
        let letters = name.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
        letters.flat_map(char::to_lowercase).take(64).collect()
    };
    let name = letters(name);
    known
        .into_iter()
        .map(|known| (distance(&name, &letters(known)), known))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= name.len().div_ceil(3))
        .map(|(_, known)| known)
}

/// How many letters must be added, removed or replaced to make one of the other.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let replaced = above[column] + usize::from(a != b);
            let shorter = above[column + 1].min(current[column]) + 1;
            current.push(replaced.min(shorter));
        }
        above = current;
    }
    above.last().copied().unwrap_or_default()
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
