//! `caliban serve app`: sessions for an application, as lines of JSON over standard input and
//! output, or over a socket that several programs of the user reach at once.

mod link;
#[cfg(unix)]
mod socket;
mod stdio;

use caliban_harness::{Process, RunOptions};
use caliban_model::CancellationToken;
use caliban_serve::Frames;

use super::ground::{Ground, Roots};
use super::registry::{Lives, registry};
use crate::args::{AppArgs, FrameDialect, Listen};
use crate::console::Console;
use crate::exit::Failure;

pub(crate) async fn serve(
    args: &AppArgs,
    options: RunOptions,
    process: Process,
    cancel: &CancellationToken,
    console: Console,
) -> Result<(), Failure> {
    let frames = match args.frames {
        FrameDialect::Caliban => Frames::Caliban,
        FrameDialect::Claude => Frames::Claude,
    };
    let ground = Ground {
        options,
        process,
        roots: Roots::Anywhere,
    };
    let registry = registry(&args.registry, frames, Lives::Here, ground);
    match &args.listen {
        None => stdio::serve(registry, cancel, console).await,
        #[cfg(unix)]
        Some(Listen::Unix(path)) => socket::serve(registry, path, cancel).await,
        Some(_) => Err(Failure::Usage(
            "`serve app` listens at a socket: `--listen unix:PATH`; for an address, use `caliban \
             serve --listen`"
                .to_owned(),
        )),
    }
}
