//! Where a prompt is written: an editor of one text with undo, a kill ring, chips, history and vi keys.

mod acting;
mod atoms;
mod buffer;
mod draft;
mod editor;
mod finding;
mod history;
mod keys;
mod kill;
mod layout;
mod text;
mod undo;
mod vi;
mod words;
mod wrap;

pub use atoms::{Atom, ImageAtom, Piece, flatten};
pub use draft::DraftFile;
pub use editor::{Editor, Expanded, Inserted, Pressed, ViCommand, Word};
pub use history::{History, Hit};
pub use keys::KeySet;
pub use layout::{EditorRow, Layout, Look};
pub use vi::ViState;
