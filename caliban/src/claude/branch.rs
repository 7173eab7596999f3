//! Which rows of a transcript are its conversation: each names the one before it, so a conversation
//! that was taken up again at an earlier place lies beside the one that was left there.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::transcript::text;

/// The rows of the branch that ends with the row `up_to`, or with the last that says anything, in
/// the order of the file. Nothing if there is no such row.
pub(super) fn branch(rows: Vec<Value>, up_to: Option<&str>) -> Option<Vec<Value>> {
    let end = match up_to {
        Some(_) => rows
            .iter()
            .position(|row| says(row) && text(row, "uuid").as_deref() == up_to)?,
        None => rows.iter().rposition(says)?,
    };
    let kept = match chain(&rows, end) {
        Some(chain) => with_siblings(&rows, chain, end),
        // Where rows do not say what they follow, each follows the one before it.
        None => (0..=end).collect(),
    };
    let kept = rows
        .into_iter()
        .enumerate()
        .filter(|(index, row)| kept.contains(index) && says(row));
    Some(kept.map(|(_, row)| row).collect())
}

/// Whether a row is a message of the main conversation.
fn says(row: &Value) -> bool {
    let is_message = matches!(row["type"].as_str(), Some("user" | "assistant"));
    is_message && row["isSidechain"].as_bool() != Some(true)
}

/// The row `end` and all that it follows; nothing where that cannot be told.
fn chain(rows: &[Value], end: usize) -> Option<HashSet<usize>> {
    let ids = rows.iter().enumerate();
    let ids: HashMap<&str, usize> = ids
        .filter_map(|(index, row)| Some((row["uuid"].as_str()?, index)))
        .collect();
    let mut chain = HashSet::new();
    let mut at = end;
    while chain.insert(at) {
        match rows.get(at)?.get("parentUuid")? {
            Value::Null => return Some(chain),
            parent => at = *ids.get(parent.as_str()?)?,
        }
    }
    // It bites its own tail.
    None
}

/// Calls that were made side by side fork a chain: each result follows its own call, and what comes
/// next follows one of them.
fn with_siblings(rows: &[Value], mut kept: HashSet<usize>, end: usize) -> HashSet<usize> {
    let before = || rows.iter().enumerate().take(end + 1);
    let answers: HashSet<&str> = before()
        .filter(|(index, row)| kept.contains(index) && row["type"] == "assistant")
        .filter_map(|(_, row)| row["message"]["id"].as_str())
        .collect();
    let same_answer = before().filter(|(_, row)| {
        let id = row["message"]["id"].as_str();
        says(row) && row["type"] == "assistant" && id.is_some_and(|id| answers.contains(id))
    });
    kept.extend(same_answer.map(|(index, _)| index));
    let calls: HashSet<&str> = before()
        .filter(|(index, _)| kept.contains(index))
        .flat_map(|(_, row)| blocks(row, "tool_use"))
        .filter_map(|call| call["id"].as_str())
        .collect();
    let answered: HashSet<&str> = before()
        .filter(|(index, _)| kept.contains(index))
        .flat_map(|(_, row)| results(row))
        .collect();
    let lost = before().filter(|(index, row)| {
        let mut ids = results(row).peekable();
        !kept.contains(index)
            && says(row)
            && ids.peek().is_some()
            && ids.all(|id| calls.contains(id) && !answered.contains(id))
    });
    let lost: Vec<usize> = lost.map(|(index, _)| index).collect();
    kept.extend(lost);
    kept
}

fn blocks<'r>(row: &'r Value, kind: &'static str) -> impl Iterator<Item = &'r Value> {
    let content = row["message"]["content"].as_array();
    let blocks = content.into_iter().flatten();
    blocks.filter(move |block| block["type"] == kind)
}

/// The calls whose results a row holds.
fn results(row: &Value) -> impl Iterator<Item = &str> {
    blocks(row, "tool_result").filter_map(|result| result["tool_use_id"].as_str())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn row(kind: &str, id: &str, parent: Option<&str>, content: &Value) -> Value {
        json!({
            "type": kind,
            "uuid": id,
            "parentUuid": parent,
            "message": {"role": kind, "content": content},
        })
    }

    fn ids(rows: Vec<Value>, up_to: Option<&str>) -> Option<Vec<String>> {
        let kept = branch(rows, up_to)?;
        Some(kept.iter().filter_map(|row| text(row, "uuid")).collect())
    }

    /// Two answers to what was asked twice at the same place, with a row of another kind between.
    fn forked() -> Vec<Value> {
        vec![
            row("user", "u1", None, &json!("root")),
            row("assistant", "a1", Some("u1"), &json!([])),
            row("user", "u2", Some("a1"), &json!("left")),
            row("assistant", "a2", Some("u2"), &json!([])),
            row("attachment", "x", Some("a1"), &json!([])),
            row("user", "u3", Some("x"), &json!("right")),
            row("assistant", "a3", Some("u3"), &json!([])),
        ]
    }

    #[rstest]
    #[case(None, Some(&["u1", "a1", "u3", "a3"][..]))]
    #[case(Some("a2"), Some(&["u1", "a1", "u2", "a2"][..]))]
    #[case(Some("a1"), Some(&["u1", "a1"][..]))]
    #[case(Some("x"), None)]
    #[case(Some("nobody"), None)]
    fn one_branch_is_the_conversation(#[case] up_to: Option<&str>, #[case] kept: Option<&[&str]>) {
        let kept = kept.map(|kept| kept.iter().map(|&id| id.to_owned()).collect::<Vec<_>>());
        assert_eq!(ids(forked(), up_to), kept);
    }

    #[test]
    fn calls_side_by_side_keep_their_results() {
        let call = |id: &str| json!([{"type": "tool_use", "id": id, "name": "Read", "input": {}}]);
        let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": ""}]);
        let mut rows = vec![
            row("user", "u1", None, &json!("root")),
            row("assistant", "a1", Some("u1"), &call("t1")),
            row("assistant", "a2", Some("a1"), &call("t2")),
            row("user", "r1", Some("a1"), &result("t1")),
            row("user", "r2", Some("a2"), &result("t2")),
            row("assistant", "a3", Some("r1"), &json!([])),
        ];
        for (index, id) in [(1, "m1"), (2, "m1"), (5, "m2")] {
            rows[index]["message"]["id"] = json!(id);
        }
        let all = ["u1", "a1", "a2", "r1", "r2", "a3"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(ids(rows, None), Some(all));
    }

    #[rstest]
    #[case::no_parent_is_named(|rows: &mut Vec<Value>| {
        for row in rows { row.as_object_mut().unwrap().remove("parentUuid"); }
    })]
    #[case::a_parent_is_missing(|rows: &mut Vec<Value>| { rows.remove(0); })]
    #[case::a_circle(|rows: &mut Vec<Value>| rows[0]["parentUuid"] = json!("a3"))]
    fn where_the_chain_is_not_told_everything_is_kept(#[case] harm: fn(&mut Vec<Value>)) {
        let mut rows = forked();
        harm(&mut rows);
        let said = rows.iter().filter(|row| says(row)).count();
        assert_eq!(ids(rows, None).map(|kept| kept.len()), Some(said));
    }
}
