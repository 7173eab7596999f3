//! Keys become commands. The keys so far are read anew with each that comes; there is no state but
//! them.

use caliban_terminal::{Key, KeyCode};

use crate::keys::With;
use crate::vi::command::{
    Again, Command, Deed, Find, How, MOST, Motion, Object, Operator, Place, Reach, Shape, Side,
    Size, Stop, Structure, Way,
};

/// Why keys are no command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// They may become one.
    More(Waiting),
    /// They never will.
    Bad,
}

/// What is waited for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Key,
    /// What is searched for, as far as it is written.
    Search(Way, String),
}

/// Whether something is selected: some keys mean another thing then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selecting {
    Yes,
    No,
}

type Read<T> = Result<T, Unread>;

pub(crate) fn read(keys: &[Key], selecting: Selecting) -> Read<Command> {
    let mut keys = Keys(keys.iter());
    let mut register = None;
    let mut count = None;
    let first = loop {
        let key = keys.next()?;
        match key.code {
            KeyCode::Char('"') => register = Some(keys.register()?),
            KeyCode::Char(c @ '1'..='9') => count = Some(digit(count, c)),
            KeyCode::Char(c @ '0') if count.is_some() => count = Some(digit(count, c)),
            _ => break key,
        }
    };
    let (deed, second) = match selecting {
        Selecting::No => keys.deed(first)?,
        Selecting::Yes => (keys.selected_deed(first)?, None),
    };
    let count = match (count, second) {
        (Some(first), Some(second)) => Some((first * second).min(MOST)),
        (first, second) => first.or(second),
    };
    Ok(Command {
        register,
        count,
        deed,
    })
}

fn digit(count: Option<usize>, c: char) -> usize {
    let digit = c.to_digit(10).map_or(0, |digit| digit as usize);
    (count.unwrap_or(0) * 10 + digit).min(MOST)
}

/// The letter a key has among the commands.
fn letter(key: Key) -> Option<char> {
    match key.code {
        KeyCode::Char(' ') | KeyCode::Right => Some('l'),
        KeyCode::Char(c) => Some(c),
        KeyCode::Left | KeyCode::Backspace => Some('h'),
        KeyCode::Up => Some('k'),
        KeyCode::Down => Some('j'),
        KeyCode::Home => Some('0'),
        KeyCode::End => Some('$'),
        KeyCode::Delete => Some('x'),
        KeyCode::Enter
        | KeyCode::Tab
        | KeyCode::BackTab
        | KeyCode::Insert
        | KeyCode::Esc
        | KeyCode::PageUp
        | KeyCode::PageDown
        | KeyCode::F(_) => None,
    }
}

/// The operator a key begins, where it is one letter.
fn operator(c: char) -> Option<Operator> {
    Some(match c {
        'd' => Operator::Delete,
        'c' => Operator::Change,
        'y' => Operator::Yank,
        '>' => Operator::ShiftRight,
        '<' => Operator::ShiftLeft,
        '=' => Operator::Format,
        _ => return None,
    })
}

/// The operator after a `g`.
fn g_operator(c: char) -> Option<Operator> {
    Some(match c {
        '~' => Operator::ToggleCase,
        'u' => Operator::Lower,
        'U' => Operator::Upper,
        _ => return None,
    })
}

struct Keys<'a>(std::slice::Iter<'a, Key>);

impl Keys<'_> {
    fn next(&mut self) -> Read<Key> {
        self.0.next().copied().ok_or(Unread::More(Waiting::Key))
    }

    fn letter(&mut self) -> Read<char> {
        letter(self.next()?).ok_or(Unread::Bad)
    }

    /// A character that is meant as itself.
    fn character(&mut self) -> Read<char> {
        let key = self.next()?;
        match (key.code, With::of(key)) {
            (KeyCode::Char(c), With::Nothing | With::Shift) => Ok(c),
            (KeyCode::Enter, _) => Ok('\n'),
            (KeyCode::Tab, _) => Ok('\t'),
            _ => Err(Unread::Bad),
        }
    }

    fn register(&mut self) -> Read<char> {
        match self.character()? {
            c @ ('a'..='z' | 'A'..='Z' | '0' | '"' | '+' | '*' | '_') => Ok(c),
            _ => Err(Unread::Bad),
        }
    }

    fn mark(&mut self) -> Read<char> {
        self.character().and_then(|c| match c {
            'a'..='z' => Ok(c),
            _ => Err(Unread::Bad),
        })
    }

    /// A command, and the count within it.
    fn deed(&mut self, first: Key) -> Read<(Deed, Option<usize>)> {
        if With::of(first) == With::Ctrl {
            return match first.code {
                KeyCode::Char('r') => Ok((Deed::Redo, None)),
                _ => Err(Unread::Bad),
            };
        }
        let c = letter(first).ok_or(Unread::Bad)?;
        if let Some(operator) = operator(c) {
            return self.reach(operator, c, None);
        }
        let motion = |operator, motion| Deed::Operate(operator, Reach::Motion(motion));
        let deed = match c {
            'x' => motion(Operator::Delete, Motion::Right),
            'X' => motion(Operator::Delete, Motion::Left),
            'D' => motion(Operator::Delete, Motion::LineEnd),
            's' => motion(Operator::Change, Motion::Right),
            'C' => motion(Operator::Change, Motion::LineEnd),
            'S' => Deed::Operate(Operator::Change, Reach::Lines),
            'Y' => Deed::Operate(Operator::Yank, Reach::Lines),
            'r' => Deed::Replace(self.character()?),
            'R' => Deed::Overwrite,
            '~' => Deed::ToggleCase,
            'J' => Deed::Join,
            'p' => Deed::Put(Side::After),
            'P' => Deed::Put(Side::Before),
            'u' => Deed::Undo,
            '.' => Deed::Repeat,
            'i' => Deed::Insert(Place::Here),
            'a' => Deed::Insert(Place::After),
            'I' => Deed::Insert(Place::LineStart),
            'A' => Deed::Insert(Place::LineEnd),
            'o' => Deed::Insert(Place::Below),
            'O' => Deed::Insert(Place::Above),
            'v' => Deed::Visual(Shape::Chars),
            'V' => Deed::Visual(Shape::Lines),
            'm' => Deed::Mark(self.mark()?),
            'g' => return self.g_deed(),
            c => Deed::Move(self.motion(c)?),
        };
        Ok((deed, None))
    }

    fn g_deed(&mut self) -> Read<(Deed, Option<usize>)> {
        let c = self.letter()?;
        if let Some(operator) = g_operator(c) {
            return self.reach(operator, c, Some('g'));
        }
        let deed = match c {
            'i' => Deed::Insert(Place::Last),
            c => Deed::Move(g_motion(c)?),
        };
        Ok((deed, None))
    }

    /// What an operator works on. Its own letter again means the line.
    fn reach(
        &mut self,
        operator: Operator,
        own: char,
        prefix: Option<char>,
    ) -> Read<(Deed, Option<usize>)> {
        let mut count = None;
        let c = loop {
            let key = self.next()?;
            match key.code {
                KeyCode::Char(c @ '1'..='9') => count = Some(digit(count, c)),
                KeyCode::Char(c @ '0') if count.is_some() => count = Some(digit(count, c)),
                _ => break letter(key).ok_or(Unread::Bad)?,
            }
        };
        let reach = match c {
            c if c == own => Reach::Lines,
            'i' => Reach::Object(self.object(How::Inner)?),
            'a' => Reach::Object(self.object(How::Around)?),
            'g' => match self.letter()? {
                // `gugu` is `guu`.
                c if c == own && prefix.is_some() => Reach::Lines,
                c => Reach::Motion(g_motion(c)?),
            },
            c => Reach::Motion(self.motion(c)?),
        };
        Ok((Deed::Operate(operator, reach), count))
    }

    fn selected_deed(&mut self, first: Key) -> Read<Deed> {
        let c = letter(first).ok_or(Unread::Bad)?;
        let on = |operator| Ok(Deed::Operate(operator, Reach::Selection));
        let on_lines = |operator| Ok(Deed::Operate(operator, Reach::SelectedLines));
        match c {
            'd' | 'x' => on(Operator::Delete),
            'c' | 's' => on(Operator::Change),
            'y' => on(Operator::Yank),
            '~' => on(Operator::ToggleCase),
            'u' => on(Operator::Lower),
            'U' => on(Operator::Upper),
            '>' => on_lines(Operator::ShiftRight),
            '<' => on_lines(Operator::ShiftLeft),
            '=' => on_lines(Operator::Format),
            'D' | 'X' => on_lines(Operator::Delete),
            'C' | 'S' | 'R' => on_lines(Operator::Change),
            'Y' => on_lines(Operator::Yank),
            'J' => Ok(Deed::Join),
            'p' => Ok(Deed::Put(Side::After)),
            'P' => Ok(Deed::Put(Side::Before)),
            'r' => self.character().map(Deed::Replace),
            'o' | 'O' => Ok(Deed::SwapEnds),
            'v' => Ok(Deed::Visual(Shape::Chars)),
            'V' => Ok(Deed::Visual(Shape::Lines)),
            'm' => self.mark().map(Deed::Mark),
            'i' => self.object(How::Inner).map(Deed::Select),
            'a' => self.object(How::Around).map(Deed::Select),
            'g' => {
                let c = self.letter()?;
                match g_operator(c) {
                    Some(operator) => on(operator),
                    None => g_motion(c).map(Deed::Move),
                }
            }
            c => self.motion(c).map(Deed::Move),
        }
    }

    fn motion(&mut self, c: char) -> Read<Motion> {
        Ok(match c {
            'h' => Motion::Left,
            'l' => Motion::Right,
            'k' => Motion::Up,
            'j' => Motion::Down,
            '0' => Motion::LineStart,
            '^' => Motion::FirstNonBlank,
            '$' => Motion::LineEnd,
            'G' => Motion::LastLine,
            'w' => Motion::Word(Way::Forth, Size::Small),
            'W' => Motion::Word(Way::Forth, Size::Big),
            'b' => Motion::Word(Way::Back, Size::Small),
            'B' => Motion::Word(Way::Back, Size::Big),
            'e' => Motion::WordEnd(Way::Forth, Size::Small),
            'E' => Motion::WordEnd(Way::Forth, Size::Big),
            'f' => self.find(Way::Forth, Stop::On)?,
            'F' => self.find(Way::Back, Stop::On)?,
            't' => self.find(Way::Forth, Stop::Before)?,
            'T' => self.find(Way::Back, Stop::Before)?,
            ';' => Motion::FindAgain(Again::Same),
            ',' => Motion::FindAgain(Again::Turned),
            '%' => Motion::Bracket,
            '{' => Motion::Paragraph(Way::Back),
            '}' => Motion::Paragraph(Way::Forth),
            '(' => Motion::Sentence(Way::Back),
            ')' => Motion::Sentence(Way::Forth),
            '/' => self.search(Way::Forth)?,
            '?' => self.search(Way::Back)?,
            'n' => Motion::SearchAgain(Again::Same),
            'N' => Motion::SearchAgain(Again::Turned),
            '*' => Motion::SearchWord(Way::Forth),
            '#' => Motion::SearchWord(Way::Back),
            '`' => Motion::Mark(self.mark()?),
            '\'' => Motion::MarkLine(self.mark()?),
            _ => return Err(Unread::Bad),
        })
    }

    fn find(&mut self, way: Way, stop: Stop) -> Read<Motion> {
        let what = self.character()?;
        Ok(Motion::Find(Find { what, way, stop }))
    }

    fn search(&mut self, way: Way) -> Read<Motion> {
        let mut what = String::new();
        for key in self.0.by_ref() {
            match (key.code, With::of(*key)) {
                (KeyCode::Enter, _) => return Ok(Motion::Search(way, what)),
                (KeyCode::Char(c), With::Nothing | With::Shift) => what.push(c),
                _ => {}
            }
        }
        Err(Unread::More(Waiting::Search(way, what)))
    }

    fn object(&mut self, how: How) -> Read<Object> {
        let what = match self.character()? {
            'w' => Structure::Word(Size::Small),
            'W' => Structure::Word(Size::Big),
            quote @ ('"' | '\'' | '`') => Structure::Quoted(quote),
            '(' | ')' | 'b' => Structure::Bracketed('(', ')'),
            '[' | ']' => Structure::Bracketed('[', ']'),
            '{' | '}' | 'B' => Structure::Bracketed('{', '}'),
            '<' | '>' => Structure::Bracketed('<', '>'),
            'p' => Structure::Paragraph,
            's' => Structure::Sentence,
            't' => Structure::Tag,
            _ => return Err(Unread::Bad),
        };
        Ok(Object { what, how })
    }
}

/// The motion after a `g`.
fn g_motion(c: char) -> Read<Motion> {
    match c {
        'g' => Ok(Motion::FirstLine),
        'e' => Ok(Motion::WordEnd(Way::Back, Size::Small)),
        'E' => Ok(Motion::WordEnd(Way::Back, Size::Big)),
        _ => Err(Unread::Bad),
    }
}
