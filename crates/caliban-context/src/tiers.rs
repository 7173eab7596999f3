//! What is told before a conversation, tier by tier, for people.

use std::fmt::Write as _;
use std::path::Path;

use crate::section::Tag;

/// A line for each tier, then one for each file of the walk through the project and each rule, with
/// their estimated sizes. Each file is its tag, where it is and how many tokens it takes.
pub fn tiers<'a>(files: impl IntoIterator<Item = (Tag, &'a Path, u64)>) -> String {
    let files: Vec<(Tag, &Path, u64)> = files.into_iter().collect();
    let of = |tag: Tag| files.iter().filter(move |file| file.0 == tag);
    let mut text = String::new();
    let mut row = |name: &str, path: &Path, tokens: u64| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<8} {} ({tokens} tokens)", path.display());
    };
    for (_, path, tokens) in of(Tag::GlobalClaudeMd) {
        row("global", path, *tokens);
    }
    // The tier is all of its files; it is called by the nearest.
    if let Some((_, nearest, _)) = of(Tag::ProjectClaudeMd).next_back() {
        let tokens = of(Tag::ProjectClaudeMd).map(|file| file.2).sum();
        row("project", nearest, tokens);
    }
    for (_, path, tokens) in of(Tag::AutoMemoryIndex) {
        row("auto", path, *tokens);
    }
    for (_, path, tokens) in of(Tag::ProjectClaudeMd) {
        row("walk", path, *tokens);
    }
    for (_, path, tokens) in of(Tag::ProjectRule) {
        row("rule", path, *tokens);
    }
    let total: u64 = files.iter().map(|file| file.2).sum();
    let _ = writeln!(text, "total    {total} tokens, about");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_come_first_and_then_their_files() {
        let text = tiers([
            (Tag::GlobalClaudeMd, Path::new("/h/CLAUDE.md"), 4),
            (Tag::ProjectClaudeMd, Path::new("/w/CLAUDE.md"), 10),
            (Tag::ProjectClaudeMd, Path::new("/w/sub/CLAUDE.md"), 2),
            (Tag::ProjectRule, Path::new("/w/.caliban/rules/a.md"), 1),
            (Tag::AutoMemoryIndex, Path::new("/d/MEMORY.md"), 3),
        ]);
        assert_eq!(
            text,
            "global   /h/CLAUDE.md (4 tokens)\n\
             project  /w/sub/CLAUDE.md (12 tokens)\n\
             auto     /d/MEMORY.md (3 tokens)\n\
             walk     /w/CLAUDE.md (10 tokens)\n\
             walk     /w/sub/CLAUDE.md (2 tokens)\n\
             rule     /w/.caliban/rules/a.md (1 tokens)\n\
             total    20 tokens, about\n"
        );
        assert_eq!(tiers([]), "total    0 tokens, about\n");
    }
}
