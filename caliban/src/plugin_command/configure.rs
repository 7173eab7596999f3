//! What plugins want to know from their users.

use std::fmt::Write as _;
use std::io::BufRead;

use caliban_harness::Configuration;
use caliban_harness::plugins::{PluginSet, Values};
use caliban_plugins::{Package, UserOption};

use crate::console::Console;
use crate::exit::Failure;

pub(super) fn run(
    name: &str,
    given: &[String],
    unset: &[String],
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let set = PluginSet::all(configuration);
    let package = set
        .found
        .iter()
        .filter(|found| found.name == name)
        .find_map(|found| found.package());
    let package = package.ok_or_else(|| {
        Failure::NoInput(format!(
            "there is no plugin `{name}`; `caliban plugin list` shows those there are"
        ))
    })?;
    let values = Values::new(configuration);
    if given.is_empty() && unset.is_empty() {
        return console.write(&listed(package, &values));
    }
    for key in unset {
        values.unset(package.name(), option(package, key)?)?;
    }
    for given in given {
        let (key, value) = match given.split_once('=') {
            Some((key, value)) => (key, value.to_owned()),
            // Not on a command line, which others can see.
            None => (given.as_str(), line()?),
        };
        values.set(package.name(), option(package, key)?, &value)?;
    }
    console.write(&format!("`{name}` is told from the next session on\n"))
}

fn option<'a>(package: &'a Package, key: &str) -> Result<&'a UserOption, Failure> {
    let mut options = package.manifest.options.iter();
    options.find(|option| option.key == key).ok_or_else(|| {
        Failure::Usage(format!(
            "`{}` does not ask for `{key}`; `caliban plugin configure {0}` lists what it asks for",
            package.name()
        ))
    })
}

fn line() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut text)
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

fn listed(package: &Package, values: &Values<'_>) -> String {
    let options = &package.manifest.options;
    if options.is_empty() {
        return format!("`{}` asks for nothing\n", package.name());
    }
    let mut text = String::new();
    for option in options {
        let value = values.get(package.name(), option);
        let shown = match value {
            None if option.is_required => "not set, and needed".to_owned(),
            None => "not set".to_owned(),
            Some(_) if option.is_sensitive => "set, a secret".to_owned(),
            Some(value) => value,
        };
        let about = option.description.as_ref().or(option.title.as_ref());
        let about = about.map_or_else(String::new, |about| format!("  ({about})"));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}: {shown}{about}", option.key);
    }
    text
}
