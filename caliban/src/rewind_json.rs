//! What `caliban rewind --json` prints.

use caliban_checkpoints::{Action, History, Image, Kind, Manifest, Plan, Restored};
use caliban_harness::Rewinder;
use serde_json::{Value, json};

/// The prompts that can be gone back to, the latest first, as the list for people has them.
pub(crate) fn points(history: &History) -> Value {
    let standing = history.standing();
    let prompts = history.checkpoints.iter().map(|(index, manifest)| {
        let is_taken_back = manifest.kind != Kind::Rewind && !standing.contains(index);
        (*index, point(*index, manifest, is_taken_back))
    });
    let damaged = history.damaged.iter().map(|(index, problem)| {
        let point = json!({"prompt_index": index, "kind": "damaged", "problem": problem});
        (*index, point)
    });
    let start = json!({
        "prompt_index": 0,
        "kind": "start",
        "title": "before the first prompt",
        "changed": 0,
        "partial": false,
        "taken_back": false,
    });
    let mut points: Vec<(u32, Value)> = prompts.chain(damaged).chain([(0, start)]).collect();
    points.sort_by_key(|(index, _)| std::cmp::Reverse(*index));
    points.into_iter().map(|(_, point)| point).collect()
}

fn point(index: u32, manifest: &Manifest, is_taken_back: bool) -> Value {
    json!({
        "prompt_index": index,
        "kind": manifest.kind,
        "title": manifest.title,
        "created_at": manifest.created_at,
        "changed": manifest.entries.len(),
        "lines": manifest.lines,
        "partial": manifest.partial,
        "taken_back": is_taken_back,
        "rewound_to": manifest.rewound_to,
    })
}

/// What a rewind would do.
pub(crate) fn preview(rewinder: &Rewinder, plan: &Plan) -> Value {
    let actions = plan.actions.iter().map(|action| {
        json!({
            "path": action.path.to_string_lossy(),
            "action": deed(action),
            "diff": rewinder.difference(action),
        })
    });
    let mut told = left(plan);
    told["would_restore"] = actions.collect();
    told
}

/// What a rewind did.
pub(crate) fn outcome(plan: &Plan, restored: &Restored) -> Value {
    let done = restored.done.iter().map(|path| path.to_string_lossy());
    let failed = restored.failed.iter().map(|failed| {
        let path = failed.path.to_string_lossy();
        json!({"path": path, "why": failed.why})
    });
    let mut told = left(plan);
    told["restored"] = done.map(Value::from).collect();
    told["failed"] = failed.collect();
    told["checkpoint"] = json!(restored.checkpoint);
    told
}

/// What stays as it is, and why.
fn left(plan: &Plan) -> Value {
    let conflicts = plan.conflicts.iter().map(|conflict| {
        let path = conflict.path.to_string_lossy();
        json!({"path": path, "why": conflict.why})
    });
    let lost = plan.lost.iter();
    let lost = lost.map(|lost| json!({"path": lost.path, "why": lost.why}));
    let moved = plan.moved.as_ref();
    json!({
        "to": plan.to,
        "conflicts": conflicts.collect::<Value>(),
        "lost": lost.collect::<Value>(),
        "unseen": plan.shortfalls,
        "git": moved.map(|moved| json!({"then": moved.then, "now": moved.now})),
    })
}

fn deed(action: &Action) -> &'static str {
    match (&action.now, &action.then) {
        (_, Image::Absent) => "remove",
        (Image::Absent, _) => "create",
        (_, _) => "change",
    }
}
