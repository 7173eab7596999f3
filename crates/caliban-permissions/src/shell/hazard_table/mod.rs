//! The table of hazardous arguments.
//!
//! `-x` is a letter in a cluster of options, `--long` also its abbreviations, `-word` an option
//! with one or two dashes, `word=`, `word:` and `word+` the beginning of a word, `~part` a part
//! of one, `@` every operand, `*` every argument, anything else a whole word. What an interpreter is
//! told to run or load is code.

mod development;
mod everyday;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::HazardKind::{self, LoadsCode, RunsCode, RunsProgram, SendsFile, WritesFile};

/// The hazards of some programs; each field is a list of words.
pub(super) struct Spec {
    programs: &'static str,
    pub(super) area: Area,
    runs: &'static str,
    code: &'static str,
    loads: &'static str,
    writes: &'static str,
    sends: &'static str,
}

/// Where in the command the options mean this.
#[derive(Debug, Clone, Copy)]
pub(super) enum Area {
    Anywhere,
    /// Up to the subcommand.
    BeforeSubcommand,
    /// After one of these subcommands.
    Under(&'static str),
}

/// The specifications of a program.
pub(super) fn of(program: &str) -> &'static [&'static Spec] {
    static BY_PROGRAM: LazyLock<HashMap<&str, Vec<&Spec>>> = LazyLock::new(|| {
        let mut by_program: HashMap<&str, Vec<&Spec>> = HashMap::new();
        for spec in everyday::SPECS.iter().chain(development::SPECS) {
            for program in spec.programs.split_whitespace() {
                by_program.entry(program).or_default().push(spec);
            }
        }
        by_program
    });
    BY_PROGRAM.get(program).map_or(&[], Vec::as_slice)
}

impl Spec {
    /// The arguments and what they do.
    pub(super) fn options(&self) -> impl Iterator<Item = (&'static str, HazardKind)> {
        [
            (self.runs, RunsProgram),
            (self.code, RunsCode),
            (self.loads, LoadsCode),
            (self.writes, WritesFile),
            (self.sends, SendsFile),
        ]
        .into_iter()
        .flat_map(|(options, kind)| options.split_whitespace().map(move |option| (option, kind)))
    }
}

const NONE: Spec = Spec {
    programs: "",
    area: Area::Anywhere,
    runs: "",
    code: "",
    loads: "",
    writes: "",
    sends: "",
};
