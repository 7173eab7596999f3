//! Inline arrays, changed without disturbing how they are laid out or what is noted beside them.

use toml_edit::{Array, RawString, Value};

/// Appends a value in the layout of the last one.
pub(crate) fn push(array: &mut Array, value: impl Into<Value>) {
    let mut value = value.into();
    let comma = array.trailing_comma();
    let Some(last) = array
        .len()
        .checked_sub(1)
        .and_then(|last| array.get_mut(last))
    else {
        array.push(value);
        return;
    };
    let prefix = text(last.decor().prefix()).to_owned();
    let Some((_, indent)) = prefix.rsplit_once('\n') else {
        array.push(value);
        return;
    };
    // What follows the last value belongs to it, and a comma now comes between.
    let remark = if comma {
        let trailing = text(Some(array.trailing())).to_owned();
        let (remark, rest) = split_remark(&trailing);
        array.set_trailing(rest);
        remark.to_owned()
    } else {
        let suffix = text(last.decor().suffix()).to_owned();
        last.decor_mut().set_suffix("");
        let (remark, rest) = split_remark(&suffix);
        if array.trailing().as_str().is_none_or(str::is_empty) {
            array.set_trailing(rest);
        }
        remark.to_owned()
    };
    value.decor_mut().set_prefix(format!("{remark}\n{indent}"));
    value.decor_mut().set_suffix("");
    array.push_formatted(value);
}

/// Removes a value, but not a remark that follows its predecessor on the same line.
pub(super) fn remove(array: &mut Array, index: usize) -> Value {
    let removed = array.remove(index);
    let (remark, _) = split_remark(text(removed.decor().prefix()));
    if !remark.is_empty() {
        if let Some(next) = array.get_mut(index) {
            let prefix = format!("{remark}{}", text(next.decor().prefix()));
            next.decor_mut().set_prefix(prefix);
        } else {
            let trailing = format!("{remark}{}", text(Some(array.trailing())));
            let end = if trailing.contains('\n') { "" } else { "\n" };
            array.set_trailing(trailing + end);
        }
    }
    removed
}

/// The comment that ends the current line, and the rest.
fn split_remark(space: &str) -> (&str, &str) {
    let end = space.find('\n').unwrap_or(space.len());
    let (line, rest) = space.split_at(end);
    if line.contains('#') {
        (line, rest)
    } else {
        ("", space)
    }
}

pub(super) fn text(raw: Option<&RawString>) -> &str {
    raw.and_then(RawString::as_str).unwrap_or_default()
}
