//! Where blocks end. Only whole lines decide that, so it does not matter in which pieces a text
//! arrives.

use std::ops::Range;

use super::lines::{Content, Fence, Item, Look, indent, info, is_undecided, is_underline, look};
use crate::highlight::{LexState, advance};
use crate::languages::Language;

/// Bytes that one line may have; a longer one is read in parts of this length.
const LINE: usize = 8 * 1_024;
/// Bytes that a block may have before it is ended by force: this much is laid out anew whenever
/// something is added.
const BLOCK: usize = 16 * 1_024;
/// Lines of code that are laid out together.
const CODE: usize = 64;

/// A part of the text that is laid out by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    pub(super) gap: Gap,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Anything that the parser takes apart.
    Flow,
    /// An item of a list, with its number where the list has numbers.
    Item {
        number: Option<u64>,
    },
    Code(Code),
}

/// Lines of a code block, without what opens and closes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Code {
    /// What was said of it; only the first part of a block says it again.
    pub(super) info: Option<String>,
    pub(super) language: Option<Language>,
    /// What the part before this one left open.
    pub(super) state: LexState,
    /// Columns that the block as a whole is indented by.
    pub(super) indent: usize,
}

/// Whether an empty row stands before a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    None,
    Row,
}

/// Reads a text from the beginning and finds its blocks.
#[derive(Debug, Clone, Default)]
pub(super) struct Finder {
    /// Where the line begins that was not read yet.
    at: usize,
    /// Up to where that line was searched for its end.
    searched: usize,
    line: Line,
    open: Option<Open>,
    before: Before,
    list: Option<List>,
}

/// Whether a line is one, or the rest of one that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Line {
    #[default]
    Begins,
    GoesOn,
}

/// What is before the block that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Before {
    /// The beginning of the text, or the part of a block that was ended by force.
    #[default]
    Nothing,
    Block,
    Code,
    BlankLine,
}

/// A list that goes on if its next item does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct List {
    mark: u8,
    next: Option<u64>,
}

#[derive(Debug, Clone)]
struct Open {
    start: usize,
    /// The end of its last line that is not blank.
    end: usize,
    gap: Gap,
    sort: Sort,
}

#[derive(Debug, Clone)]
enum Sort {
    Paragraph,
    Quote,
    Indented,
    Item {
        number: Option<u64>,
        blank: Blank,
    },
    Code {
        fence: Fence,
        code: Code,
        lines: usize,
        /// What the lines so far leave open.
        state: LexState,
    },
}

/// Whether the last line was blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blank {
    No,
    Yes,
}

impl Finder {
    /// Reads the lines that are complete.
    pub(super) fn read(&mut self, source: &str, blocks: &mut Vec<Block>) {
        while let Some(end) = self.line_end(source) {
            self.take(source, end, blocks);
        }
    }

    /// Reads the rest, complete or not, and ends what is open.
    pub(super) fn finish(&mut self, source: &str, blocks: &mut Vec<Block>) {
        if self.at < source.len() {
            self.take(source, source.len(), blocks);
        }
        self.close(blocks);
    }

    /// The blocks that there would be if the text ended here. An unfinished line that is nothing
    /// but marks waits until it says what it is, and so does a table without its second line.
    pub(super) fn preview(&self, source: &str) -> Vec<Block> {
        let mut ahead = self.clone();
        let mut blocks = Vec::new();
        if self.may_be_table(source) {
            return blocks;
        }
        let rest = source.get(self.at..).unwrap_or_default();
        if !rest.is_empty() && !self.waits(source, rest) {
            ahead.take(source, source.len(), &mut blocks);
        }
        ahead.close(&mut blocks);
        blocks
    }

    /// Whether there is the first line of what may become a table, and no more.
    fn may_be_table(&self, source: &str) -> bool {
        let Some(Open {
            sort: Sort::Paragraph,
            start,
            end,
            ..
        }) = &self.open
        else {
            return false;
        };
        let text = source.get(*start..*end).unwrap_or_default();
        text.starts_with('|') && text.bytes().filter(|byte| *byte == b'\n').count() == 1
    }

    fn waits(&self, source: &str, rest: &str) -> bool {
        if self.line == Line::GoesOn {
            return false;
        }
        match &self.open {
            Some(Open {
                sort: Sort::Code { fence, .. },
                ..
            }) => {
                let text = rest.trim();
                !text.is_empty() && text.bytes().all(|byte| byte == fence.mark)
            }
            Some(Open {
                sort: Sort::Paragraph,
                start,
                end,
                ..
            }) => {
                is_undecided(rest)
                    || source
                        .get(*start..*end)
                        .is_some_and(|text| text.starts_with('|'))
            }
            Some(_) | None => is_undecided(rest),
        }
    }

    /// The end of the next line, its newline included.
    fn line_end(&mut self, source: &str) -> Option<usize> {
        let limit = source.len().min(self.at + LINE);
        let from = self.searched.max(self.at);
        // Bytes, since a limit may be within a character; a newline never is.
        let found = source
            .as_bytes()
            .get(from..limit)?
            .iter()
            .position(|byte| *byte == b'\n');
        if let Some(found) = found {
            return Some(from + found + 1);
        }
        self.searched = limit;
        (source.len() >= self.at + LINE).then(|| source.floor_char_boundary(limit))
    }

    fn take(&mut self, source: &str, end: usize, blocks: &mut Vec<Block>) {
        let start = std::mem::replace(&mut self.at, end);
        let line = &source[start..end];
        let next = if line.ends_with('\n') {
            Line::Begins
        } else {
            Line::GoesOn
        };
        match std::mem::replace(&mut self.line, next) {
            Line::Begins => self.whole(start, line, blocks),
            Line::GoesOn => self.go_on(line, end),
        }
        let too_long = self
            .open
            .as_ref()
            .is_some_and(|open| end - open.start > BLOCK);
        if too_long {
            self.cut(end, blocks);
        }
    }

    /// The rest of a line belongs to whatever the line belongs to.
    fn go_on(&mut self, line: &str, end: usize) {
        match &mut self.open {
            Some(open) => {
                open.end = end;
                if let Sort::Code { code, state, .. } = &mut open.sort {
                    read_code(line, code, state);
                }
            }
            None => self.begin(end - line.len(), line, Sort::Paragraph),
        }
    }

    fn whole(&mut self, start: usize, line: &str, blocks: &mut Vec<Block>) {
        let end = start + line.len();
        let looks = look(line);
        let Some(open) = &mut self.open else {
            self.start(start, line, looks, blocks);
            return;
        };
        let goes_on = match &mut open.sort {
            Sort::Code {
                fence,
                code,
                lines,
                state,
            } => {
                if fence.is_closed_by(line) {
                    self.close(blocks);
                    self.before = Before::Code;
                    return;
                }
                read_code(line, code, state);
                *lines += 1;
                open.end = end;
                if *lines >= CODE {
                    self.cut(end, blocks);
                }
                return;
            }
            Sort::Paragraph => match looks {
                Look::Text => true,
                Look::Rule => is_underline(line),
                Look::Blank | Look::Fence(_) | Look::Heading | Look::Quote => false,
                Look::Item(item) => !interrupts(item),
            },
            Sort::Quote => match looks {
                Look::Quote | Look::Text => true,
                Look::Blank | Look::Fence(_) | Look::Heading | Look::Rule | Look::Item(_) => false,
            },
            Sort::Indented => match looks {
                Look::Blank => return,
                Look::Text => indent(line) >= 4,
                Look::Fence(_) | Look::Heading | Look::Rule | Look::Quote | Look::Item(_) => false,
            },
            Sort::Item { blank, .. } => match looks {
                Look::Blank => {
                    *blank = Blank::Yes;
                    return;
                }
                _ if indent(line) >= 2 => {
                    *blank = Blank::No;
                    true
                }
                Look::Text => *blank == Blank::No,
                Look::Fence(_) | Look::Heading | Look::Rule | Look::Quote | Look::Item(_) => false,
            },
        };
        if goes_on {
            open.end = end;
            let ends = matches!(open.sort, Sort::Paragraph) && is_underline(line);
            if ends {
                self.close(blocks);
            }
            return;
        }
        self.close(blocks);
        self.start(start, line, looks, blocks);
    }

    /// A line where nothing is open.
    fn start(&mut self, start: usize, line: &str, looks: Look, blocks: &mut Vec<Block>) {
        if let Look::Item(item) = looks {
            let number = self.number(item);
            self.begin(
                start,
                line,
                Sort::Item {
                    number,
                    blank: Blank::No,
                },
            );
            self.list = Some(List {
                mark: item.mark,
                next: number.map(|number| number.saturating_add(1)),
            });
            return;
        }
        match looks {
            Look::Blank => {
                if self.before != Before::Nothing {
                    self.before = Before::BlankLine;
                }
                return;
            }
            Look::Fence(fence) => self.begin_code(start, line, fence),
            Look::Quote => self.begin(start, line, Sort::Quote),
            Look::Text if indent(line) >= 4 => self.begin(start, line, Sort::Indented),
            Look::Text => self.begin(start, line, Sort::Paragraph),
            Look::Heading | Look::Rule => {
                self.begin(start, line, Sort::Paragraph);
                self.close(blocks);
            }
            Look::Item(_) => {}
        }
        self.list = None;
    }

    /// The number of an item: that of the list it goes on with, or as written.
    fn number(&self, item: Item) -> Option<u64> {
        let written = item.number?;
        let next = self
            .list
            .filter(|list| list.mark == item.mark)
            .and_then(|list| list.next);
        Some(next.unwrap_or(written))
    }

    fn begin(&mut self, start: usize, line: &str, sort: Sort) {
        let gap = self.gap_before(&sort);
        self.open = Some(Open {
            start,
            end: start + line.len(),
            gap,
            sort,
        });
    }

    fn begin_code(&mut self, start: usize, line: &str, fence: Fence) {
        let said = info(line);
        let word = said.split([' ', ',', '{']).next().unwrap_or_default();
        let sort = Sort::Code {
            fence,
            code: Code {
                info: (!said.is_empty()).then(|| said.to_owned()),
                language: Language::named(word),
                state: LexState::default(),
                indent: fence.indent,
            },
            lines: 0,
            state: LexState::default(),
        };
        self.begin(start, line, sort);
        if let Some(open) = &mut self.open {
            open.start = open.end;
        }
    }

    fn gap_before(&self, sort: &Sort) -> Gap {
        match (self.before, sort) {
            (Before::Nothing, _) => Gap::None,
            (Before::BlankLine | Before::Code, _) | (Before::Block, Sort::Code { .. }) => Gap::Row,
            (Before::Block, Sort::Paragraph | Sort::Quote | Sort::Indented | Sort::Item { .. }) => {
                Gap::None
            }
        }
    }

    /// Ends what is open.
    fn close(&mut self, blocks: &mut Vec<Block>) {
        let Some(open) = self.open.take() else {
            return;
        };
        self.before = Before::Block;
        let kind = match open.sort {
            Sort::Paragraph | Sort::Quote => Kind::Flow,
            Sort::Indented => {
                self.before = Before::BlankLine;
                Kind::Flow
            }
            Sort::Item { number, blank } => {
                if blank == Blank::Yes {
                    self.before = Before::BlankLine;
                }
                Kind::Item { number }
            }
            Sort::Code { code, .. } => {
                self.before = Before::Code;
                Kind::Code(code)
            }
        };
        blocks.push(Block {
            range: open.start..open.end,
            kind,
            gap: open.gap,
        });
    }

    /// Ends a part of what is open and goes on with the next.
    fn cut(&mut self, end: usize, blocks: &mut Vec<Block>) {
        let Some(open) = self.open.clone() else {
            return;
        };
        self.close(blocks);
        self.before = Before::Nothing;
        if let Sort::Code {
            fence, code, state, ..
        } = open.sort
        {
            self.open = Some(Open {
                start: end,
                end,
                gap: Gap::None,
                sort: Sort::Code {
                    fence,
                    code: Code {
                        info: None,
                        state,
                        ..code
                    },
                    lines: 0,
                    state,
                },
            });
        }
    }
}

fn read_code(line: &str, code: &Code, state: &mut LexState) {
    if let Some(language) = code.language {
        advance(line.trim_end_matches('\n'), state, language);
    }
}

/// Whether an item may begin within a paragraph.
fn interrupts(item: Item) -> bool {
    item.content == Content::Some && matches!(item.number, None | Some(1))
}
