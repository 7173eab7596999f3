//! Variables in the settings of a server: `${NAME}` and `${NAME:-default}`.

use std::fmt;
use std::sync::Arc;

/// Where variables are looked up. Passed in, so that nothing here reads the real environment.
#[derive(Clone)]
pub struct Variables(Lookup);

type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

impl Variables {
    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(lookup))
    }

    pub fn get(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Variables")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExpandError {
    #[error(
        "`{field}` needs the variable `{name}`, which is not set; set it or write `${{{name}:-default}}`"
    )]
    Missing { field: String, name: String },
    #[error("`{field}` has a `${{` without a valid name and a closing brace")]
    Syntax { field: String },
}

/// Puts the values of variables into `text`, which is the value of `field`. What a variable
/// holds is taken as it is and not expanded again.
pub(crate) fn expand(
    text: &str,
    field: &str,
    variables: &Variables,
) -> Result<String, ExpandError> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        result.push_str(before);
        let syntax = || ExpandError::Syntax {
            field: field.to_owned(),
        };
        let (inside, after) = after.split_once('}').ok_or_else(syntax)?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            return Err(syntax());
        }
        // As in a shell, `:-` also stands in for an empty value.
        let value = variables
            .get(name)
            .filter(|value| default.is_none() || !value.is_empty())
            .or_else(|| default.map(str::to_owned))
            .ok_or_else(|| ExpandError::Missing {
                field: field.to_owned(),
                name: name.to_owned(),
            })?;
        result.push_str(&value);
        rest = after;
    }
    result.push_str(rest);
    Ok(result)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn variables() -> Variables {
        Variables::new(|name| match name {
            "A" => Some("one".to_owned()),
            "NESTED" => Some("${A}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[rstest]
    #[case("plain $A {A}", "plain $A {A}")]
    #[case("x${A}y${A}", "xoney".to_owned() + "one")]
    #[case("${NO:-two}/${A:-two}/${EMPTY:-two}/${NO:-}", "two/one/two/")]
    #[case("${NESTED}", "${A}")]
    #[case("[${EMPTY}]", "[]")]
    fn variables_are_put_in(#[case] text: &str, #[case] expected: impl Into<String>) {
        assert_eq!(expand(text, "f", &variables()), Ok(expected.into()));
    }

    #[test]
    fn a_missing_variable_is_named_with_its_field() {
        let error = expand("x ${TOKEN}", "headers.Authorization", &variables()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`headers.Authorization` needs the variable `TOKEN`, which is not set; set it or write `${TOKEN:-default}`"
        );
        for text in ["${A", "${}", "${A B}", "${1A}", "${:-x}"] {
            let error = expand(text, "f", &variables()).unwrap_err();
            assert!(matches!(error, ExpandError::Syntax { .. }), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_expanded_or_refused(text in "[$\\{\\}A:\\-x ]{0,40}") {
            if let Ok(expanded) = expand(&text, "f", &variables()) {
                let has_variable = text.contains("${");
                prop_assert!(has_variable || expanded == text);
            }
        }
    }
}
