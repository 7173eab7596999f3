//! The pseudo-terminal and the program behind it.

use std::env;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::io::ioctl_fionbio;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use super::driver::TerminalOptions;
use crate::counting;

/// A started program, our end of its terminal, and how the terminal was set before it ran.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) master: OwnedFd,
    pub(super) before: Termios,
}

/// Starts a program as the leader of a session whose terminal this is. Both ends are closed on
/// `exec` from the beginning, so no program started elsewhere keeps the terminal alive.
pub(super) fn start(options: &TerminalOptions) -> io::Result<Started> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    resize(&master, options.size)?;
    let slave = File::from(ioctl_tiocgptpeer(&master, flags)?);
    let before = tcgetattr(&slave)?;
    ioctl_fionbio(&master, true)?;
    // `setsid` becomes the program: it has the same process, and the terminal on its standard input
    // as the controlling one.
    // Whoever runs the tests in the background ignores interrupts; the program must not.
    let child = Command::new(found("env"))
        .arg("--default-signal")
        .arg(found("setsid"))
        .args(["--ctty", "--"])
        .arg(&options.program)
        .args(&options.args)
        .env_clear()
        .envs(counting())
        .envs(options.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&options.cwd)
        .stdin(Stdio::from(slave.try_clone()?))
        .stdout(Stdio::from(slave.try_clone()?))
        .stderr(Stdio::from(slave))
        .spawn()?;
    Ok(Started {
        child,
        master,
        before,
    })
}

/// Sets the size, which tells the program.
pub(super) fn resize(master: impl AsFd, (cols, rows): (u16, u16)) -> io::Result<()> {
    let size = Winsize {
        ws_row: rows,
        ws_col: cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(tcsetwinsize(master, size)?)
}

/// The path of our own search, since the program's environment may have none.
fn found(program: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .unwrap_or_else(|| Path::new("/usr/bin").join(program))
}

/// What of a terminal's settings differs, in words; nothing if it is set as before.
pub(super) fn changed(before: &Termios, after: &Termios) -> Vec<String> {
    let flags = [
        (
            format!("{:?}", before.input_modes),
            format!("{:?}", after.input_modes),
        ),
        (
            format!("{:?}", before.output_modes),
            format!("{:?}", after.output_modes),
        ),
        (
            format!("{:?}", before.control_modes),
            format!("{:?}", after.control_modes),
        ),
        (
            format!("{:?}", before.local_modes),
            format!("{:?}", after.local_modes),
        ),
        (
            format!("{:?}", before.special_codes),
            format!("{:?}", after.special_codes),
        ),
    ];
    flags
        .into_iter()
        .filter(|(before, after)| before != after)
        .map(|(before, after)| format!("{before} became {after}"))
        .collect()
}
