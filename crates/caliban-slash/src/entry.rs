//! What is known of a command.

use crate::action::Action;

/// A command that belongs to the program.
#[derive(Debug)]
pub struct Entry {
    pub name: &'static str,
    /// Other names; lists do not show them.
    pub aliases: &'static [&'static str],
    pub category: Category,
    /// What may be written after the name.
    pub arguments: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What may be completed after the name.
    pub completes: Completes,
    pub asks: Asks,
    pub does: Does,
}

/// What stands after a name and is known before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completes {
    Nothing,
    Words(&'static [&'static str]),
    /// The models of the provider that answers.
    Models,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// The program itself, at no cost.
    Nobody,
    /// A model, which costs.
    Model,
}

/// Where a command works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Wherever a prompt can be sent.
    Anywhere,
    /// Where there is a screen.
    Screen,
    /// Nowhere in this version.
    Nowhere,
}

/// What comes of a command, and where.
#[derive(Debug)]
pub enum Does {
    /// It works wherever a prompt can be sent. What is written after the name says what exactly;
    /// the error says how to write it.
    Act(fn(&str) -> Result<Action, String>),
    /// It needs a screen; without one this is what serves instead.
    NeedsScreen { instead: &'static str },
    /// The part that it belongs to is not there yet; this is what serves instead.
    Missing {
        part: &'static str,
        instead: &'static str,
    },
}

/// Where a command stands in lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    General,
    Session,
    Model,
    Permissions,
    Usage,
    Memory,
    Extensions,
    Output,
    Diagnostics,
}

impl Category {
    pub const ALL: [Self; 9] = [
        Self::General,
        Self::Session,
        Self::Model,
        Self::Permissions,
        Self::Usage,
        Self::Memory,
        Self::Extensions,
        Self::Output,
        Self::Diagnostics,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::General => "General",
            Self::Session => "Session",
            Self::Model => "Model and keys",
            Self::Permissions => "Permissions and plan",
            Self::Usage => "Usage and context",
            Self::Memory => "Memory",
            Self::Extensions => "Configuration and extensions",
            Self::Output => "Output",
            Self::Diagnostics => "Diagnostics",
        }
    }
}

impl Entry {
    pub fn place(&self) -> Place {
        match self.does {
            Does::Act(_) => Place::Anywhere,
            Does::NeedsScreen { .. } => Place::Screen,
            Does::Missing { .. } => Place::Nowhere,
        }
    }

    /// Whether it works where there is no screen.
    pub fn works_anywhere(&self) -> bool {
        self.place() == Place::Anywhere
    }

    /// How it is written.
    pub fn usage(&self) -> String {
        if self.arguments.is_empty() {
            format!("/{}", self.name)
        } else {
            format!("/{} {}", self.name, self.arguments)
        }
    }
}
