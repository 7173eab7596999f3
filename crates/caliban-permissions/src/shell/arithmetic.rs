//! Arithmetic, in which the shell evaluates values as expressions again, subscripts and the
//! commands in them included. Provable is only what uses numbers.

use super::refusal::excerpt;
use super::state::State;
use super::{Refusal, variables};

/// Accepts an expression of numbers, operators and variables; that the variables hold numbers is
/// decided when the whole line is known.
pub(super) fn check(state: &mut State, expression: &str) -> Result<(), Refusal> {
    let refusal = || Refusal::Arithmetic {
        expression: excerpt(expression),
    };
    let mut rest = expression;
    while let Some(c) = rest.chars().next() {
        if variables::is_name_start(c) {
            let (name, after) = split(rest, variables::is_name_part);
            variables::check(name)?;
            let sign = after.trim_start();
            if sign.starts_with('=') && !sign.starts_with("==") {
                state.assign_number(name);
            }
            state.use_number(name, &excerpt(expression));
            rest = after;
        } else if c.is_ascii_digit() {
            // With a base (`16#ff`) or a prefix (`0xff`) letters are digits.
            rest = split(rest, |c| c.is_ascii_alphanumeric() || c == '#').1;
        } else if c == '$' {
            rest = after_dollar(&rest[1..]).ok_or_else(refusal)?;
        } else if c.is_ascii_whitespace() || "+-*/%<>=!&|^~?:,()".contains(c) {
            rest = &rest[1..];
        } else {
            return Err(refusal());
        }
    }
    Ok(())
}

/// What follows the dollar's sign: a count or status is a number and done with, the name of a
/// variable is left in place.
fn after_dollar(rest: &str) -> Option<&str> {
    if let Some(rest) = rest.strip_prefix(['#', '?']) {
        return Some(rest);
    }
    if let Some(inside) = rest.strip_prefix("{#") {
        let (name, after) = split(inside, variables::is_name_part);
        let after = after
            .strip_prefix("[@]")
            .or_else(|| after.strip_prefix("[*]"))
            .unwrap_or(after);
        return after.strip_prefix('}').filter(|_| variables::is_name(name));
    }
    // `${name}` is accepted in the form `$name` only.
    rest.starts_with(variables::is_name_start).then_some(rest)
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}
