//! What vi keys say, read but not done.

/// The most a count can say.
pub(crate) const MOST: usize = 9_999;

/// A whole command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) register: Option<char>,
    pub(crate) count: Option<usize>,
    pub(crate) deed: Deed,
}

impl Command {
    pub(crate) fn times(&self) -> usize {
        self.count.unwrap_or(1)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    Move(Motion),
    Operate(Operator, Reach),
    /// Makes the selection an object.
    Select(Object),
    /// One character for each.
    Replace(char),
    /// `~`: of the characters from here on.
    ToggleCase,
    Join,
    Put(Side),
    Undo,
    Redo,
    Repeat,
    Insert(Place),
    Overwrite,
    Visual(Shape),
    SwapEnds,
    Mark(char),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Delete,
    Change,
    Yank,
    ShiftRight,
    ShiftLeft,
    ToggleCase,
    Lower,
    Upper,
    /// `=`: there is nothing to format by.
    Format,
}

/// What an operator works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    Motion(Motion),
    Object(Object),
    /// The line, and as many as are counted.
    Lines,
    Selection,
    /// The lines that the selection touches.
    SelectedLines,
    /// As much as was selected when it was done first.
    AsMuch(Extent),
}

/// The size of a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Clusters(usize),
    Lines(usize),
}

/// Whether a text is a run of characters or whole lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Chars,
    Lines,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// Where inserting begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Here,
    After,
    LineStart,
    LineEnd,
    Above,
    Below,
    /// Where it ended last.
    Last,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Forth,
    Back,
}

impl Way {
    pub(crate) fn turned(self) -> Self {
        match self {
            Self::Forth => Self::Back,
            Self::Back => Self::Forth,
        }
    }
}

/// A repetition in the way it was, or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    Same,
    Turned,
}

impl Again {
    pub(crate) fn of(self, way: Way) -> Way {
        match self {
            Self::Same => way,
            Self::Turned => way.turned(),
        }
    }
}

/// Which words: those of letters or of signs, or everything between blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    Big,
}

/// A search for a character in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Find {
    pub(crate) what: char,
    pub(crate) way: Way,
    pub(crate) stop: Stop,
}

/// Where such a search stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    On,
    Before,
}

/// A search in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Search {
    pub(crate) what: String,
    pub(crate) way: Way,
    pub(crate) bounds: Bounds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bounds {
    Anywhere,
    WholeWord,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Motion {
    Left,
    Right,
    Up,
    Down,
    LineStart,
    FirstNonBlank,
    LineEnd,
    /// `gg`, or the line that is counted.
    FirstLine,
    /// `G`, or the line that is counted.
    LastLine,
    Word(Way, Size),
    WordEnd(Way, Size),
    Find(Find),
    FindAgain(Again),
    Bracket,
    Paragraph(Way),
    Sentence(Way),
    Search(Way, String),
    SearchAgain(Again),
    SearchWord(Way),
    Mark(char),
    MarkLine(char),
}

/// A part of the text by its structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) what: Structure,
    pub(crate) how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Inner,
    Around,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Structure {
    Word(Size),
    Quoted(char),
    Bracketed(char, char),
    Paragraph,
    Sentence,
    Tag,
}
