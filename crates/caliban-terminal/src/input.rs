//! What a terminal tells a program.

use crate::key::{Key, KeyCode, Modifiers};
use crate::report::Report;

/// One thing that came from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Key(Key),
    /// Pasted text: lines end with `\n`, and tabs are its only control characters.
    Paste(String),
    Mouse(Mouse),
    Focus(Focus),
    /// An answer to a question that the program has asked, or a change it wished to hear of.
    Report(Report),
    /// What was pasted beyond so many bytes is lost; the part before has been given.
    PasteTooLong {
        limit: usize,
    },
}

/// Whether the window has the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Focus {
    Gained,
    Lost,
}

/// Something done with the mouse; columns and rows are counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mouse {
    pub kind: MouseKind,
    pub column: u16,
    pub row: u16,
    pub modifiers: Modifiers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MouseKind {
    Down(Button),
    Up(Button),
    Drag(Button),
    WheelUp,
    WheelDown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Button {
    Left,
    Middle,
    Right,
}

/// As many arrows in one read are the wheel of a terminal that translates it (mode 1007).
const WHEEL_ARROWS: usize = 3;

/// Makes runs of arrows the wheel that they are, where the mouse is not captured. To be called with
/// the inputs of one read: nobody presses an arrow three times in that time.
pub fn fold_wheel(inputs: &mut [Input]) {
    let Some(kind) = inputs.first().and_then(wheel_of) else {
        return;
    };
    if inputs.len() >= WHEEL_ARROWS && inputs.iter().all(|input| wheel_of(input) == Some(kind)) {
        let wheel = Input::Mouse(Mouse {
            kind,
            column: 0,
            row: 0,
            modifiers: Modifiers::NONE,
        });
        inputs.fill(wheel);
    }
}

fn wheel_of(input: &Input) -> Option<MouseKind> {
    match input {
        Input::Key(key) if *key == Key::plain(KeyCode::Up) => Some(MouseKind::WheelUp),
        Input::Key(key) if *key == Key::plain(KeyCode::Down) => Some(MouseKind::WheelDown),
        Input::Key(_)
        | Input::Paste(_)
        | Input::Mouse(_)
        | Input::Focus(_)
        | Input::Report(_)
        | Input::PasteTooLong { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn arrows(codes: &[KeyCode]) -> Vec<Input> {
        codes
            .iter()
            .map(|code| Input::Key(Key::plain(*code)))
            .collect()
    }

    #[rstest]
    #[case(&[KeyCode::Up; 3], Some(MouseKind::WheelUp))]
    #[case(&[KeyCode::Down; 5], Some(MouseKind::WheelDown))]
    #[case(&[KeyCode::Down; 2], None)]
    #[case(&[KeyCode::Up, KeyCode::Up, KeyCode::Down], None)]
    #[case(&[KeyCode::Left; 4], None)]
    #[case(&[], None)]
    fn many_arrows_at_once_are_the_wheel(
        #[case] codes: &[KeyCode],
        #[case] wheel: Option<MouseKind>,
    ) {
        let mut inputs = arrows(codes);
        fold_wheel(&mut inputs);
        assert_eq!(inputs.len(), codes.len());
        let kinds = inputs.iter().map(|input| match input {
            Input::Mouse(mouse) => Some(mouse.kind),
            _ => None,
        });
        assert!(kinds.into_iter().all(|kind| kind == wheel));
    }
}
