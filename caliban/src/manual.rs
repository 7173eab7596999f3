//! `caliban completions` and `caliban man`: what shells and readers of manuals want to know about
//! the command line, made from its definition.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::{Cli, explained};
use crate::console::Console;
use crate::exit::Failure;

const NAME: &str = "caliban";

pub(crate) fn completions(shell: Shell, console: &mut Console) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    console.write(&String::from_utf8_lossy(&script))
}

/// The page of the program on standard output, or one for every command into a directory.
pub(crate) fn man(directory: Option<&Path>, console: &mut Console) -> Result<(), Failure> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        Man::new(explained())
            .render(&mut page)
            .map_err(|error| Failure::Runtime(error.to_string()))?;
        return console.write(&String::from_utf8_lossy(&page));
    };
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(explained(), directory))
        .map_err(|error| {
            Failure::Runtime(format!(
                "the manual cannot be written to `{}`: {error}",
                directory.display()
            ))
        })
}
