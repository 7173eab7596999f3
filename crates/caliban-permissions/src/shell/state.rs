//! What is known about the line as a whole while it is read: its commands, the budgets, and the
//! facts that hold only if they hold everywhere.

use std::collections::HashSet;
use std::mem;

use super::{Command, MAX_COMMANDS, MAX_DEPTH, MAX_WORDS, Refusal, Script};

#[derive(Debug, Default)]
pub(super) struct State {
    commands: Vec<Command>,
    counted: usize,
    words: usize,
    depth: usize,
    /// Programs that were started, wrapped ones included.
    programs: usize,
    poison: Option<String>,
    numbers: Numbers,
}

/// Variables whose value is used in arithmetic, where the shell would run commands in it. Which
/// values a variable gets is known only after the whole line.
#[derive(Debug, Default)]
struct Numbers {
    used: Vec<(String, String)>,
    assigned: HashSet<String>,
    tainted: HashSet<String>,
}

/// The place of a command in the script, taken before its words are read, so that commands stay
/// in the order of the source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot(usize);

impl State {
    pub(super) fn reserve(&mut self) -> Result<Slot, Refusal> {
        self.count_command()?;
        self.commands.push(Command::default());
        Ok(Slot(self.commands.len() - 1))
    }

    pub(super) fn fill(&mut self, slot: Slot, command: Command) {
        if let Some(place) = self.commands.get_mut(slot.0) {
            *place = command;
        }
    }

    /// How many commands there are so far.
    pub(super) fn commands(&self) -> usize {
        self.commands.len()
    }

    /// The one command that came after so many, if it was one.
    pub(super) fn only_after(&self, before: usize) -> Option<&Command> {
        match self.commands.get(before..) {
            Some([only]) => Some(only),
            Some(_) | None => None,
        }
    }

    /// A place that turned out not to be a command's own, such as that of a function's name.
    pub(super) fn vacate(&mut self, slot: Slot) {
        if slot.0 < self.commands.len() {
            self.commands.remove(slot.0);
        }
    }

    pub(super) fn count_command(&mut self) -> Result<(), Refusal> {
        self.counted += 1;
        if self.counted > MAX_COMMANDS {
            return Err(Refusal::TooManyCommands);
        }
        Ok(())
    }

    pub(super) fn count_program(&mut self) {
        self.programs += 1;
    }

    pub(super) fn count_words(&mut self, words: usize) -> Result<(), Refusal> {
        self.words += words;
        if self.words > MAX_WORDS {
            return Err(Refusal::TooManyWords);
        }
        Ok(())
    }

    pub(super) fn enter(&mut self) -> Result<(), Refusal> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Refusal::TooDeep);
        }
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Reads commands apart from those of the line: the inner ones of a wrapper.
    pub(super) fn apart(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), Refusal>,
    ) -> Result<Vec<Command>, Refusal> {
        let outer = mem::take(&mut self.commands);
        self.enter()?;
        read(self)?;
        self.leave();
        Ok(mem::replace(&mut self.commands, outer))
    }

    /// The program changes what others mean, so it is provable only alone.
    pub(super) fn poison(&mut self, program: &str) {
        self.poison.get_or_insert_with(|| program.to_owned());
    }

    pub(super) fn use_number(&mut self, name: &str, expression: &str) {
        self.numbers
            .used
            .push((name.to_owned(), expression.to_owned()));
    }

    pub(super) fn assign_number(&mut self, name: &str) {
        self.numbers.assigned.insert(name.to_owned());
    }

    pub(super) fn assign_text(&mut self, name: &str) {
        self.numbers.tainted.insert(name.to_owned());
    }

    pub(super) fn finish(self) -> Result<Script, Refusal> {
        if let Some(program) = self.poison
            && self.programs > 1
        {
            return Err(Refusal::Poison { program });
        }
        let Numbers {
            used,
            assigned,
            tainted,
        } = self.numbers;
        for (name, expression) in used {
            if tainted.contains(&name) || !assigned.contains(&name) {
                return Err(Refusal::Arithmetic { expression });
            }
        }
        Ok(Script {
            commands: self.commands,
        })
    }
}
