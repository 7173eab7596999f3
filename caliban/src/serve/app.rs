//! `caliban serve app`: sessions for an application, as lines of JSON over standard input and
//! output, or over a socket that several programs of the user reach at once.

mod link;
#[cfg(unix)]
mod socket;
mod stdio;

use caliban_harness::{Process, RunOptions};
use caliban_model::CancellationToken;
use caliban_serve::Frames;

use super::host::Roots;
use super::registry::registry;
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
    let registry = registry(&args.registry, frames, Roots::Anywhere, options, process);
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
