//! How a terminal is entered and left.

/// What is drawn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Surface {
    /// The alternate screen.
    Fullscreen,
    /// The main screen below what is on it.
    Inline,
}

/// Whether the mouse is the program's or the terminal's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MouseCapture {
    On,
    Off,
}

/// What puts a terminal into the state that the surface needs. All of it is undone by `LEAVE`.
pub fn enter(surface: Surface, mouse: MouseCapture) -> Vec<u8> {
    // The title, and modes that may have been set before.
    let mut bytes = b"\x1b[22;2t\x1b[?1007s\x1b[?2027s".to_vec();
    match surface {
        // Every screen has keyboard flags of its own, so the screen is changed before they are.
        Surface::Fullscreen => bytes.extend_from_slice(b"\x1b[?1049h\x1b[?7l"),
        Surface::Inline => {}
    }
    // Keys that are told apart, bracketed paste, focus, changes of the colour scheme.
    bytes.extend_from_slice(b"\x1b[>1u\x1b[?2004h\x1b[?1004h\x1b[?2031h");
    match (mouse, surface) {
        (MouseCapture::On, Surface::Fullscreen | Surface::Inline) => {
            bytes.extend_from_slice(CAPTURE);
        }
        // The wheel as arrows, where there is nothing else that it could move.
        (MouseCapture::Off, Surface::Fullscreen) => bytes.extend_from_slice(RELEASE),
        (MouseCapture::Off, Surface::Inline) => {}
    }
    bytes
}

const CAPTURE: &[u8] = b"\x1b[?1002h\x1b[?1006h";
const RELEASE: &[u8] = b"\x1b[?1006l\x1b[?1002l\x1b[?1007h";

/// From the main screen to the alternate one, and back to where it was. Each screen has keyboard
/// flags of its own; there are never two that `LEAVE` would have to take back.
pub const OVER: &[u8] = b"\x1b[<u\x1b[?1049h\x1b[?7l\x1b[>1u";
pub const BACK: &[u8] = b"\x1b[<u\x1b[?1049l\x1b[>1u";

impl MouseCapture {
    /// What changes to this in a terminal that was entered already.
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            Self::On => CAPTURE,
            Self::Off => RELEASE,
        }
    }
}

/// Leaves the terminal as it was found, whichever surface was entered and wherever in a frame it
/// was left. Written without knowing more, from a panic too.
///
/// It begins with the end of whatever string or synchronised frame is open. The cursor is saved
/// before the scroll region is reset, which moves it, and again before the alternate screen is left:
/// on the main screen that would otherwise bring back a place that was saved by somebody else.
pub const LEAVE: &[u8] = b"\x1b\\\x1b[?2026l\x1b]8;;\x1b\\\x1b[m\
\x1b[?1006l\x1b[?1002l\x1b[?1004l\x1b[?2004l\x1b[?2031l\x1b[>4m\x1b[<u\
\x1b7\x1b[r\x1b8\x1b[?7h\x1b7\x1b[?1049l\x1b[?1007r\x1b[?2027r\x1b[23;2t\x1b[?25h";

/// Asks the terminal what it can. Nobody waits for the answers: they are inputs, whenever they
/// come. The last is answered by every terminal, and mostly last.
pub const PROBES: &[u8] =
    b"\x1b[?2026$p\x1b[?2027$p\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b[?u\x1b[>q\x1b[c";

/// Asks where the cursor is; `Decoder::expect_cursor` is to be told.
pub const CURSOR_QUERY: &[u8] = b"\x1b[6n";
