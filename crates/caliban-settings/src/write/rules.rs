//! The ordered list `permissions.rules`, in either of its two layouts.

use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::array::{self, text};
use super::error::ShapeError;
use super::values::{Layout, to_json};
use crate::types::{RuleAction, RuleSpec};

/// A rule's fields as they are written.
fn fields(rule: &RuleSpec) -> impl Iterator<Item = (&'static str, String)> {
    let text = |value: &Option<String>| value.clone();
    [
        ("pattern", Some(rule.pattern.clone())),
        ("action", Some(rule.action.to_string())),
        ("comment", text(&rule.comment)),
        ("reason", text(&rule.reason)),
        ("expires_at", rule.expires_at.map(|time| time.to_string())),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key, value?)))
}

/// What became of a rule that was to be appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It is now the last rule.
    Added,
    /// The same pattern stood there with another action, comment or reason. Of two rules with one
    /// pattern only the first counts, so that one was changed where it is.
    Changed,
    AlreadyThere,
}

/// Which rules to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleRef {
    /// All with exactly this pattern.
    Pattern(String),
    /// The one at this place (from 0), if it still has this pattern.
    At { index: usize, pattern: String },
}

pub(crate) fn append(document: &mut DocumentMut, rule: &RuleSpec) -> Result<Appended, ShapeError> {
    let mut list = List::open(document)?;
    let Some(there) = list
        .entries_mut()
        .into_iter()
        .find(|entry| is_about(*entry, rule))
    else {
        list.push(rule);
        return Ok(Appended::Added);
    };
    let mut outcome = Appended::AlreadyThere;
    for (key, value) in fields(rule) {
        if field(there, key) != Some(value.clone()) {
            super::values::put(there, key, Item::Value(value.into()));
            outcome = Appended::Changed;
        }
    }
    // A reason for denying does not explain an allow.
    if outcome == Appended::Changed && rule.reason.is_none() && rule.action != RuleAction::Deny {
        there.remove("reason");
    }
    Ok(outcome)
}

/// Adds a rule that denies or asks before the first that is less strict, which would decide
/// before it. One that stands behind is moved.
pub(crate) fn object(document: &mut DocumentMut, rule: &RuleSpec) -> Result<Appended, ShapeError> {
    let outcome = append(document, rule)?;
    let mut list = List::open(document)?;
    let position = |list: &mut List<'_>, is_meant: &dyn Fn(&dyn TableLike) -> bool| {
        let entries = list.entries_mut();
        entries.into_iter().position(|entry| is_meant(entry))
    };
    let at = position(&mut list, &|entry| is_about(entry, rule));
    let first = position(&mut list, &|entry| {
        let action = field(entry, "action");
        RuleAction::STRICTEST_FIRST
            .iter()
            .any(|other| *other < rule.action && action.as_deref() == Some(other.as_str()))
    });
    let (Some(at), Some(first)) = (at, first) else {
        return Ok(outcome);
    };
    if at < first {
        return Ok(outcome);
    }
    let mut order: Vec<usize> = (0..list.len()).filter(|index| *index != at).collect();
    order.insert(first, at);
    list.reorder(&order);
    Ok(match outcome {
        Appended::AlreadyThere => Appended::Changed,
        Appended::Added | Appended::Changed => outcome,
    })
}

/// Puts rules before all others, in their order. Rules that already stand there word for word are
/// moved, not doubled.
pub(crate) fn prepend(document: &mut DocumentMut, rules: &[RuleSpec]) -> Result<(), ShapeError> {
    let mut list = List::open(document)?;
    let mut order = Vec::new();
    for rule in rules {
        let found = list.entries_mut().into_iter().position(|entry| {
            is_about(entry, rule) && field(entry, "action").as_deref() == Some(rule.action.as_str())
        });
        let index = found.unwrap_or_else(|| {
            list.push(rule);
            list.len() - 1
        });
        if !order.contains(&index) {
            order.push(index);
        }
    }
    let rest: Vec<usize> = (0..list.len())
        .filter(|index| !order.contains(index))
        .collect();
    order.extend(rest);
    list.reorder(&order);
    Ok(())
}

/// Removes rules and says how many. The document is unchanged when there are none.
pub(crate) fn remove(document: &mut DocumentMut, which: &RuleRef) -> Result<usize, ShapeError> {
    let before = document.clone();
    let mut list = List::open(document)?;
    let matches: Vec<usize> = match which {
        RuleRef::Pattern(pattern) => list
            .entries_mut()
            .into_iter()
            .enumerate()
            .filter(|(_, entry)| field(*entry, "pattern").as_deref() == Some(pattern))
            .map(|(index, _)| index)
            .collect(),
        RuleRef::At { index, pattern } => {
            let moved = || ShapeError::Moved {
                index: *index,
                pattern: pattern.clone(),
            };
            let entry = list
                .entries_mut()
                .into_iter()
                .nth(*index)
                .ok_or_else(moved)?;
            if field(entry, "pattern").as_deref() != Some(pattern) {
                return Err(moved());
            }
            vec![*index]
        }
    };
    let mut orphans = String::new();
    for index in matches.iter().rev() {
        orphans = list.remove(*index) + &orphans;
    }
    if matches.is_empty() {
        *document = before;
    } else if !orphans.is_empty() {
        let trailing = text(Some(document.trailing())).to_owned();
        document.set_trailing(orphans + &trailing);
    }
    Ok(matches.len())
}

/// Two rules are about the same when one of them could never be reached beside the other.
fn is_about(entry: &dyn TableLike, rule: &RuleSpec) -> bool {
    field(entry, "pattern").as_deref() == Some(&rule.pattern)
        && field(entry, "expires_at") == rule.expires_at.map(|time| time.to_string())
}

fn field(entry: &dyn TableLike, key: &str) -> Option<String> {
    match to_json(entry.get(key)?) {
        serde_json::Value::String(text) => Some(text),
        _ => None,
    }
}

enum List<'a> {
    /// `[[permissions.rules]]`
    Tables(&'a mut ArrayOfTables),
    /// `rules = [{ … }, … ]`
    Inline(&'a mut Array),
}

impl<'a> List<'a> {
    /// Finds or creates the list. As soon as it has entries the older lists are ignored, so they
    /// are moved into it first.
    fn open(document: &'a mut DocumentMut) -> Result<Self, ShapeError> {
        let item = document.entry("permissions").or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let layout = if item.is_inline_table() {
            Layout::Inline
        } else {
            Layout::Section
        };
        let permissions = item
            .as_table_like_mut()
            .ok_or_else(|| ShapeError::NotATable("permissions".into()))?;
        let empty = match permissions.get("rules") {
            None | Some(Item::None) => {
                let list = match layout {
                    Layout::Section => Item::ArrayOfTables(ArrayOfTables::new()),
                    Layout::Inline => Item::Value(Array::new().into()),
                };
                permissions.insert("rules", list);
                true
            }
            Some(Item::ArrayOfTables(tables)) => tables.is_empty(),
            Some(Item::Value(Value::Array(array))) => array.is_empty(),
            Some(_) => return Err(ShapeError::NotRules("permissions.rules".into())),
        };
        let older = if empty {
            take_buckets(permissions)?
        } else {
            Vec::new()
        };
        let mut list = match permissions.get_mut("rules") {
            Some(Item::ArrayOfTables(tables)) => Self::Tables(tables),
            Some(Item::Value(Value::Array(array))) => {
                if array.iter().any(|entry| !entry.is_inline_table()) {
                    return Err(ShapeError::NotRules("permissions.rules".into()));
                }
                Self::Inline(array)
            }
            _ => return Err(ShapeError::NotRules("permissions.rules".into())),
        };
        for (rule, remarks) in older {
            list.push(&rule);
            list.annotate_last(&remarks);
        }
        Ok(list)
    }

    fn len(&self) -> usize {
        match self {
            Self::Tables(tables) => tables.len(),
            Self::Inline(array) => array.len(),
        }
    }

    fn entries_mut(&mut self) -> Vec<&mut dyn TableLike> {
        match self {
            Self::Tables(tables) => tables
                .iter_mut()
                .map(|table| table as &mut dyn TableLike)
                .collect(),
            Self::Inline(array) => array
                .iter_mut()
                .filter_map(Value::as_inline_table_mut)
                .map(|table| table as &mut dyn TableLike)
                .collect(),
        }
    }

    fn push(&mut self, rule: &RuleSpec) {
        match self {
            Self::Tables(tables) => {
                let mut table = Table::new();
                for (key, value) in fields(rule) {
                    table.insert(key, Item::Value(value.into()));
                }
                tables.push(table);
            }
            Self::Inline(array) => {
                let mut table = InlineTable::new();
                for (key, value) in fields(rule) {
                    table.insert(key, value.into());
                }
                array::push(array, table);
            }
        }
    }

    fn annotate_last(&mut self, remarks: &[String]) {
        if remarks.is_empty() {
            return;
        }
        let lines = remarks.join("\n");
        match self {
            Self::Tables(tables) => {
                let last = tables.len().checked_sub(1);
                if let Some(table) = last.and_then(|last| tables.get_mut(last)) {
                    table.decor_mut().set_prefix(format!("\n{lines}\n"));
                }
            }
            Self::Inline(array) => {
                let last = array.len().checked_sub(1);
                if let Some(value) = last.and_then(|last| array.get_mut(last)) {
                    value.decor_mut().set_prefix(format!("\n{lines}\n"));
                }
            }
        }
    }

    /// Removes an entry with the comment on it. Returns comments that stood apart from it, when
    /// nothing follows that they could stay with.
    fn remove(&mut self, index: usize) -> String {
        match self {
            Self::Tables(tables) => {
                let removed = tables.remove(index);
                let prefix = text(removed.decor().prefix());
                let apart = prefix.rfind("\n\n").map_or("", |end| &prefix[..=end]);
                if !apart.contains('#') {
                    return String::new();
                }
                match tables.get_mut(index) {
                    Some(next) => {
                        let own = match next.decor().prefix() {
                            Some(prefix) => prefix.as_str().unwrap_or_default(),
                            None => "\n",
                        };
                        let prefix = format!("{apart}{own}");
                        next.decor_mut().set_prefix(prefix);
                        String::new()
                    }
                    None => apart.to_owned(),
                }
            }
            Self::Inline(array) => {
                array::remove(array, index);
                String::new()
            }
        }
    }

    fn reorder(&mut self, order: &[usize]) {
        if order.is_sorted() {
            return;
        }
        match self {
            Self::Tables(tables) => {
                let first = tables.iter().filter_map(Table::position).min();
                let mut sorted = ArrayOfTables::new();
                for mut table in order.iter().filter_map(|index| tables.get(*index)).cloned() {
                    // Tables are written by position before order; without one, a table follows
                    // its predecessor.
                    table.set_position(if sorted.is_empty() { first } else { None });
                    sorted.push(table);
                }
                **tables = sorted;
            }
            Self::Inline(array) => {
                let values: Vec<Value> = order
                    .iter()
                    .filter_map(|index| array.get(*index))
                    .cloned()
                    .collect();
                // Only what is said moves; the layout of each place stays.
                for (place, mut value) in array.iter_mut().zip(values) {
                    *value.decor_mut() = place.decor().clone();
                    *place = value;
                }
            }
        }
    }
}

/// Takes the three older lists out, strictest first, each pattern with the comments on it.
fn take_buckets(
    permissions: &mut dyn TableLike,
) -> Result<Vec<(RuleSpec, Vec<String>)>, ShapeError> {
    let mut rules = Vec::new();
    for action in RuleAction::STRICTEST_FIRST {
        let key = action.as_str();
        let not_patterns = || ShapeError::NotRules(format!("permissions.{key}"));
        let patterns = match permissions.get(key) {
            None => continue,
            Some(item) => item.as_array().ok_or_else(not_patterns)?,
        };
        if patterns.is_empty() {
            continue;
        }
        let mut remarks = permissions
            .key(key)
            .map(|key| comments(text(key.leaf_decor().prefix())))
            .unwrap_or_default();
        let start = rules.len();
        for pattern in patterns {
            let prefix = text(pattern.decor().prefix());
            // The rest of a line belongs to the value before the comma.
            let (tail, own) = prefix.split_at(prefix.find('\n').unwrap_or(prefix.len()));
            match rules[start..].last_mut() {
                Some((_, previous)) => Vec::extend(previous, comments(tail)),
                None => remarks.extend(comments(tail)),
            }
            remarks.extend(comments(own));
            remarks.extend(comments(text(pattern.decor().suffix())));
            let pattern = pattern.as_str().ok_or_else(not_patterns)?;
            rules.push((RuleSpec::new(pattern, action), std::mem::take(&mut remarks)));
        }
        if let Some((_, last)) = rules.last_mut() {
            last.extend(comments(text(Some(patterns.trailing()))));
        }
        permissions.remove(key);
    }
    Ok(rules)
}

fn comments(space: &str) -> Vec<String> {
    let lines = space.lines().map(str::trim);
    lines
        .filter(|line| line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}
