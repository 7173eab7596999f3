//! Arguments that make a program run, load, write or send something else than its name says.

use super::Hazard;
use super::HazardKind::{self, LoadsCode, RunsCode, RunsProgram, SendsFile, Unknown, WritesFile};
use super::hazard_table::{self, Area};
use super::programs::{Program, listed};
use super::scripts;
use super::words::{Argument, Start};

pub(super) fn has_hazards(name: &str) -> bool {
    !hazard_table::of(name).is_empty() || special(name).is_some()
}

/// The hazards among these words, by word. A word that could become one counts as one.
pub(super) fn of(args: &[Argument]) -> Vec<Hazard> {
    let name = Program::of(args).name;
    let subcommand = Subcommand::of(name, args);
    let specs = hazard_table::of(name);
    // Behind this, `git` takes everything for names.
    let end = args
        .iter()
        .position(|arg| name == "git" && arg.as_literal() == Some("--"));
    let mut hazards = Vec::new();
    for (word, arg) in args.iter().enumerate().skip(1) {
        let specs = specs
            .iter()
            .filter(|spec| subcommand.covers(spec.area, word));
        // What a word could turn out to be: the worst of what there is.
        let mut could_be = None;
        let mut found = None;
        for (option, kind) in specs.flat_map(|spec| spec.options()) {
            could_be = match (could_be, kind) {
                (None | Some(RunsCode), RunsCode) => Some(RunsCode),
                _ => Some(Unknown),
            };
            if found.is_none() && matches(option, arg) {
                found = Some(kind);
            }
        }
        if found.is_none() && could_be_option(arg) && end.is_none_or(|end| word < end) {
            found = could_be;
        }
        hazards.extend(found.map(|what| Hazard { word, what }));
    }
    if let Some(special) = special(name) {
        for hazard in special(args) {
            if !hazards.iter().any(|known| known.word == hazard.word) {
                hazards.push(hazard);
            }
        }
        hazards.sort_by_key(|hazard| hazard.word);
    }
    hazards
}

/// Whether a word that is not fully known could turn out to be any option.
fn could_be_option(arg: &Argument) -> bool {
    if arg.is_literal() {
        return false;
    }
    // What follows a blank in its value would be words of their own.
    if arg.splits && arg.text.contains(['$', '`']) {
        return true;
    }
    match arg.start {
        Start::Unknown => true,
        // An option whose name is spelled out is what it seems to be.
        Start::Dash => !(arg.text.starts_with("--") && arg.text[..arg.known].contains('=')),
        Start::Other => false,
    }
}

/// Whether a word is the hazard that is spelled in the table.
fn matches(option: &str, arg: &Argument) -> bool {
    let word = arg.text.as_str();
    if option == "*" {
        return true;
    }
    if option == "@" {
        return !word.starts_with('-');
    }
    if let Some(part) = option.strip_prefix('~') {
        return word.contains(part);
    }
    if let Some(name) = option.strip_prefix("--") {
        // Programs accept the beginning of a long option for the whole.
        return word.strip_prefix("--").is_some_and(|word| {
            let word = word.split('=').next().unwrap_or_default();
            !word.is_empty() && name.starts_with(word)
        });
    }
    if option.ends_with(['=', ':', '+']) {
        return word.starts_with(option);
    }
    if let Some(name) = option.strip_prefix('-').filter(|name| !name.is_empty()) {
        let Some(letters) = word.strip_prefix('-') else {
            return false;
        };
        if name.len() == 1 {
            // Anywhere in a cluster; in the value of another option it is none, but who knows.
            return !letters.starts_with('-') && letters.contains(name);
        }
        let letters = letters.strip_prefix('-').unwrap_or(letters);
        return letters.split('=').next() == Some(name);
    }
    word == option
}

/// Where the subcommand of a program is, which decides what its options mean.
struct Subcommand<'a> {
    at: usize,
    name: &'a str,
}

impl<'a> Subcommand<'a> {
    fn of(program: &str, args: &'a [Argument]) -> Self {
        let mut at = 1;
        while let Some(arg) = args.get(at) {
            if arg.start != Start::Dash {
                break;
            }
            // These take the next word as their value.
            let with_value = match program {
                "git" => {
                    "-C -c --git-dir --work-tree --namespace --exec-path --config-env \
                     --super-prefix"
                }
                "gh" => "-R --repo --hostname",
                _ => "",
            };
            let has_value = listed(with_value, &arg.text);
            at += 1 + usize::from(has_value);
        }
        let name = args
            .get(at)
            .map(|arg| arg.text.as_str())
            .unwrap_or_default();
        Self { at, name }
    }

    fn covers(&self, area: Area, word: usize) -> bool {
        match area {
            Area::Anywhere => true,
            Area::BeforeSubcommand => word <= self.at,
            Area::Under(names) => word > self.at && listed(names, self.name),
        }
    }
}

type Special = fn(&[Argument]) -> Vec<Hazard>;

/// Programs whose hazards are not a matter of options.
fn special(name: &str) -> Option<Special> {
    Some(match name {
        "sed" | "gsed" => sed,
        "awk" | "gawk" | "mawk" | "nawk" => awk,
        "tar" | "bsdtar" => old_style_tar,
        "test" | "[" => test,
        "printf" => printf,
        "unset" => unset,
        "uniq" | "xxd" => second_operand,
        "sqlite3" => dot_commands,
        name if is_fetcher(name) => fetched_program,
        _ => return None,
    })
}

/// The script of `sed`, which may run commands and write files, is read.
fn sed(args: &[Argument]) -> Vec<Hazard> {
    let has_option = |arg: &Argument| {
        arg.text.starts_with("-e") || arg.text.starts_with("--expression") || is_cluster(arg, 'e')
    };
    let mut hazards = Vec::new();
    let mut expects_script = !args.iter().skip(1).any(has_option);
    let mut after_option = false;
    for (word, arg) in args.iter().enumerate().skip(1) {
        let script = if after_option {
            Some(arg.text.as_str())
        } else if has_option(arg) {
            let attached = arg
                .text
                .strip_prefix("--expression=")
                .or_else(|| arg.text.strip_prefix("-e"))
                .filter(|script| !script.is_empty());
            after_option = attached.is_none();
            attached.or(Some(""))
        } else if expects_script && arg.start != Start::Dash {
            expects_script = false;
            Some(arg.text.as_str())
        } else {
            None
        };
        if after_option && !has_option(arg) {
            after_option = false;
        }
        if let Some(script) = script
            && (!arg.is_literal() || !scripts::is_harmless_sed(script))
        {
            hazards.push(Hazard {
                word,
                what: RunsProgram,
            });
        }
    }
    hazards
}

fn awk(args: &[Argument]) -> Vec<Hazard> {
    let mut skip = false;
    for (word, arg) in args.iter().enumerate().skip(1) {
        if std::mem::take(&mut skip) {
            continue;
        }
        if arg.start == Start::Dash {
            skip = matches!(arg.text.as_str(), "-F" | "-v");
            continue;
        }
        return match arg.as_literal() {
            Some(script) if scripts::is_harmless_awk(script) => Vec::new(),
            _ => vec![Hazard {
                word,
                what: RunsProgram,
            }],
        };
    }
    Vec::new()
}

/// `tar cIf program …`: options without a dash.
fn old_style_tar(args: &[Argument]) -> Vec<Hazard> {
    let Some(first) = args.get(1).filter(|arg| arg.start != Start::Dash) else {
        return Vec::new();
    };
    let what = match first.as_literal() {
        Some(letters) if letters.contains(['I', 'F']) => RunsProgram,
        Some(letters) if letters.contains(['C', 'P']) => WritesFile,
        Some(_) => return Vec::new(),
        None => Unknown,
    };
    vec![Hazard { word: 1, what }]
}

/// `-v name[subscript]` evaluates the subscript.
fn test(args: &[Argument]) -> Vec<Hazard> {
    let pairs = args.windows(2).enumerate().skip(1);
    pairs
        .filter(|(_, pair)| match (&pair[0], &pair[1]) {
            (option, name) if matches!(option.as_literal(), Some("-v" | "-R")) => {
                !name.is_literal() || name.text.contains('[')
            }
            (option, name) => option.start == Start::Unknown && name.start == Start::Unknown,
        })
        .map(|(word, _)| Hazard {
            word: word + 1,
            what: RunsProgram,
        })
        .collect()
}

/// The first word could be `-v` and a name with a subscript.
fn printf(args: &[Argument]) -> Vec<Hazard> {
    match args.get(1) {
        Some(first) if first.start == Start::Unknown => vec![Hazard {
            word: 1,
            what: Unknown,
        }],
        _ => Vec::new(),
    }
}

fn unset(args: &[Argument]) -> Vec<Hazard> {
    let subscripts = args.iter().enumerate().skip(1);
    subscripts
        .filter(|(_, arg)| !arg.is_literal() || arg.text.contains('['))
        .map(|(word, _)| Hazard {
            word,
            what: RunsProgram,
        })
        .collect()
}

/// The second operand is the file that is written.
fn second_operand(args: &[Argument]) -> Vec<Hazard> {
    let operands = args.iter().enumerate().skip(1);
    operands
        .filter(|(_, arg)| arg.start != Start::Dash)
        .skip(1)
        .map(|(word, _)| Hazard {
            word,
            what: WritesFile,
        })
        .collect()
}

/// Behind the database, an operand that begins with a dot is a command of `sqlite3` itself.
fn dot_commands(args: &[Argument]) -> Vec<Hazard> {
    let operands = args.iter().enumerate().skip(1);
    operands
        .filter(|(_, arg)| arg.start != Start::Dash)
        .skip(1)
        .filter(|(_, arg)| match arg.as_literal() {
            Some(text) => text.trim_start().starts_with('.'),
            None => arg.known == 0 || arg.text.starts_with('.') || arg.splits,
        })
        .map(|(word, _)| Hazard {
            word,
            what: RunsProgram,
        })
        .collect()
}

/// What follows the program that is fetched and run are arguments of that program.
fn fetched_program(args: &[Argument]) -> Vec<Hazard> {
    let at = Subcommand::of(Program::of(args).name, args).at;
    let inner = args.get(at..).unwrap_or_default();
    // One that fetches another may run anything.
    if is_fetcher(Program::of(inner).name) {
        let words = at + 1..args.len();
        let what = RunsProgram;
        return words.map(|word| Hazard { word, what }).collect();
    }
    of(inner)
        .into_iter()
        .map(|hazard| Hazard {
            word: hazard.word + at,
            ..hazard
        })
        .collect()
}

fn is_fetcher(name: &str) -> bool {
    matches!(name, "npx" | "bunx" | "uvx" | "pipx")
}

fn is_cluster(arg: &Argument, letter: char) -> bool {
    arg.text.starts_with('-') && !arg.text.starts_with("--") && arg.text.contains(letter)
}

impl HazardKind {
    /// Whether what follows the argument is run.
    pub(super) fn runs(self) -> bool {
        match self {
            RunsProgram | RunsCode | LoadsCode | Unknown => true,
            WritesFile | SendsFile => false,
        }
    }
}
