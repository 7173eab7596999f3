//! In whose name we commit what an agent left.

/// Fixed, so that nobody takes such a commit for a person's.
pub(crate) const OURS: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "caliban"),
    ("GIT_AUTHOR_EMAIL", "caliban@localhost"),
    ("GIT_COMMITTER_NAME", "caliban"),
    ("GIT_COMMITTER_EMAIL", "caliban@localhost"),
];
