//! What can be taken back, what would be and what was, as people read it.

use std::fmt::Write as _;

use caliban_checkpoints::{Kind, Manifest, Plan, Restored};

use crate::rewinding::Rewinder;

/// Bytes of differences after which only names follow.
const DIFFERENCES: usize = 1 << 20;

/// The prompts that can be gone back to, the latest first.
pub fn points(history: &caliban_checkpoints::History) -> String {
    let mut text = String::new();
    let standing = history.standing();
    for (index, manifest) in history.checkpoints.iter().rev() {
        let kind = match manifest.kind {
            Kind::Rewind => "",
            _ if !standing.contains(index) => " (taken back)",
            Kind::Files => "",
            Kind::Plan => " (plan)",
            Kind::Cleared => " (contents cleared)",
        };
        let at = manifest.created_at.strftime("%Y-%m-%d %H:%M");
        let title = shown(&manifest.title);
        let changes = changes(manifest);
        let _ = writeln!(text, "{index:>4}  {at}  {changes:<22}{kind}  {title}");
    }
    for (index, problem) in history.damaged.iter().rev() {
        let _ = writeln!(text, "{index:>4}  damaged: {}", shown(problem));
    }
    text.push_str("   0  before the first prompt\n");
    text
}

/// How many paths a prompt changed, and how many lines.
pub fn changes(manifest: &Manifest) -> String {
    let lines = manifest.lines.map_or_else(String::new, |lines| {
        format!(" +{} -{}", lines.added, lines.removed)
    });
    match manifest.entries.len() {
        // It was interrupted, and whoever goes back first finds out.
        0 if manifest.partial => "not known yet".to_owned(),
        0 => "no changes".to_owned(),
        count => format!("{count} changed{lines}"),
    }
}

/// What a rewind would do to the files, in full.
pub fn preview(rewinder: &Rewinder, plan: &Plan) -> String {
    differences(rewinder, plan) + &remainder(plan)
}

/// The paths that would change, with their differences as far as there is room.
pub fn differences(rewinder: &Rewinder, plan: &Plan) -> String {
    let mut text = String::new();
    for action in &plan.actions {
        let path = action.path.to_string_lossy();
        let _ = writeln!(text, "would restore {}", shown(&path));
        if text.len() > DIFFERENCES {
            continue;
        }
        if let Some(difference) = rewinder.difference(action) {
            text.push_str(&harmless(&difference, '\n'));
        }
    }
    text
}

/// What a restore leaves as it is, and why.
pub fn remainder(plan: &Plan) -> String {
    let mut text = String::new();
    for conflict in &plan.conflicts {
        let path = conflict.path.to_string_lossy();
        let _ = writeln!(text, "left alone {}: {}", shown(&path), conflict.why);
    }
    for lost in &plan.lost {
        let (path, why) = (shown(&lost.path), shown(&lost.why));
        let _ = writeln!(text, "cannot bring back {path}: {why}");
    }
    if let Some(moved) = &plan.moved {
        let (then, now) = (shown(&moved.then), shown(&moved.now));
        let _ = writeln!(
            text,
            "git was at {then} and is at {now}: what was committed stays, and the files differ from it"
        );
    }
    for shortfall in &plan.shortfalls {
        let _ = writeln!(text, "not everything was seen: {}", shown(shortfall));
    }
    text
}

/// What was done.
pub fn outcome(restored: &Restored) -> String {
    let mut text = String::new();
    for path in &restored.done {
        let _ = writeln!(text, "restored {}", shown(&path.to_string_lossy()));
    }
    for failed in &restored.failed {
        let (path, why) = (failed.path.to_string_lossy(), shown(&failed.why));
        let _ = writeln!(text, "not restored {}: {why}", shown(&path));
    }
    if restored.checkpoint.is_none() {
        text.push_str("nothing to restore\n");
    }
    text
}

/// Where the conversation goes on.
pub fn conversation(to: u32) -> String {
    match to {
        0 => "the conversation begins anew\n".to_owned(),
        to => format!("the conversation goes on after prompt {to}\n"),
    }
}

/// Names and titles may hold anything; on a terminal they stay on their line.
fn shown(text: &str) -> String {
    harmless(text, ' ')
}

fn harmless(text: &str, but: char) -> String {
    let seen = |it: char| {
        if it.is_control() && it != but && it != '\t' {
            '\u{fffd}'
        } else {
            it
        }
    };
    text.chars().map(seen).collect()
}
