//! The two steps between a guardian and a confined program, both this very executable: the outer
//! starts bubblewrap with arguments that nobody can read, the inner looks around, closes what
//! mounts cannot, and becomes the program.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rustix::fs::{Access, MemfdFlags, access, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Resource, getpid, getppid, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, no_new_privs,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use crate::carry;
use crate::environment::proxied;
use crate::filter::{self, Sockets};
use crate::landlock;
use crate::plan::{BEGAN, EGRESS, PROGRAM};

/// The first argument that makes the program the outer step.
pub const CONFINE_ARGUMENT: &str = "__confine";
/// The first argument that makes the program the inner step.
pub const INNER_ARGUMENT: &str = "__inner";

/// The variable that carries what bubblewrap is told, or what Landlock allows. It is gone before
/// the program begins, which could read it otherwise.
pub(crate) const CONFINEMENT: &str = "CALIBAN_CONFINEMENT";

/// How the inner step says that it found itself unconfined, or could not be.
pub(crate) const NOT_IN_FORCE: &str = "caliban: the sandbox is not in force: ";
/// What shells answer when a program cannot be started, and when there is none.
const CANNOT_START: u8 = 126;
const NOT_FOUND: u8 = 127;
/// The highest id that the inner step has in a namespace of its own.
const FIRST_IDS: i32 = 4;
/// Nobody has this address, and asking for the way to it sends nothing.
const NOBODY: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

/// What the inner step is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Bubblewrap has confined it, with a way out or without.
    Namespaces(Way),
    /// Landlock confines it.
    Landlock,
}

/// Whether there is a way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    None,
    Proxy,
}

impl Task {
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Self::Namespaces(Way::None) => "namespaces",
            Self::Namespaces(Way::Proxy) => "namespaces+proxy",
            Self::Landlock => "landlock",
        }
    }

    fn read(argument: &OsStr) -> Option<Self> {
        let all = [
            Self::Namespaces(Way::None),
            Self::Namespaces(Way::Proxy),
            Self::Landlock,
        ];
        all.into_iter().find(|task| argument == task.argument())
    }
}

/// Starts bubblewrap in this process's place, with the arguments in the variable and then the inner
/// step with `args`, which are those after [`CONFINE_ARGUMENT`].
pub fn confine_main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let packed = std::env::var_os(CONFINEMENT).unwrap_or_default();
    let Some(mut words) = carry::unpack(&packed).filter(|words| !words.is_empty()) else {
        return refuse(&"nothing says how to confine");
    };
    let bwrap = words.remove(0);
    let file = match unnamed_file(&words) {
        Ok(file) => file,
        Err(error) => return refuse(&error),
    };
    let error = Command::new(&bwrap)
        .arg("--args")
        .arg(file.as_raw_fd().to_string())
        .args(["--", PROGRAM, INNER_ARGUMENT])
        .args(args)
        .env_remove(CONFINEMENT)
        .exec();
    refuse(&format!("`{}` cannot be started: {error}", bwrap.display()))
}

/// A file that only this process and the one that takes its place have: unlike arguments and
/// variables, what it holds can be read by nobody else.
fn unnamed_file(words: &[OsString]) -> io::Result<File> {
    // It stays open for the program that takes over, which closes it.
    let mut file = File::from(memfd_create("arguments", MemfdFlags::empty())?);
    for word in words {
        file.write_all(word.as_bytes())?;
        file.write_all(b"\0")?;
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Becomes the program that `args` name, which are those after [`INNER_ARGUMENT`], once it is sure
/// that it is confined.
pub fn inner_main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let task = args.next().and_then(|argument| Task::read(&argument));
    let (Some(task), Some(program)) = (task, args.next()) else {
        return refuse(&"nothing says what to run");
    };
    let mut command = Command::new(&program);
    command.args(args).env_remove(CONFINEMENT);
    let sockets = match task {
        Task::Namespaces(way) => {
            if let Err(problem) = look_around() {
                return refuse(&problem);
            }
            match way {
                Way::None => {}
                Way::Proxy => match hand_out() {
                    Ok(port) => {
                        command.envs(proxied(port));
                    }
                    Err(error) => return refuse(&format!("there is no way out: {error}")),
                },
            }
            Sockets::Namespaced
        }
        Task::Landlock => {
            if let Err(problem) = give_up_rights() {
                return refuse(&problem);
            }
            let packed = std::env::var_os(CONFINEMENT).unwrap_or_default();
            let restricted = match carry::unpack(&packed) {
                Some(words) => landlock::restrict(&words),
                None => Err("nothing says what is allowed".to_owned()),
            };
            if let Err(problem) = restricted {
                return refuse(&problem);
            }
            Sockets::LocalOnly
        }
    };
    // What a program had in memory is not left on the disk.
    let mut core = getrlimit(Resource::Core);
    (core.current, core.maximum) = (Some(0), Some(0));
    let _ = setrlimit(Resource::Core, core);
    if let Err(error) = filter::apply(sockets) {
        return refuse(&error);
    }
    match task {
        // From here on whatever happens is the program's doing.
        Task::Namespaces(_) => {
            if let Err(error) = std::fs::write(BEGAN, b"1") {
                return refuse(&error);
            }
        }
        Task::Landlock => {}
    }
    let error = command.exec();
    say(&format!(
        "caliban: `{}` cannot be started: {error}",
        program.display()
    ));
    ExitCode::from(match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_START,
    })
}

/// Landlock leaves a superuser its rights, by which it reads what other processes keep to
/// themselves. They are given up for good, with those that programs could bring.
fn give_up_rights() -> Result<(), String> {
    let failed = |error: rustix::io::Errno| format!("rights cannot be given up: {error}");
    set_no_new_privs(true).map_err(failed)?;
    let have = capabilities(None).map_err(failed)?;
    let has_any = !(have.effective | have.permitted | have.inheritable).is_empty();
    for right in CapabilitySet::all().iter() {
        if capability_is_in_bounding_set(right).unwrap_or(false)
            && let Err(error) = remove_capability_from_bounding_set(right)
            // Who has none gains none by a program either.
            && has_any
        {
            return Err(failed(error));
        }
    }
    if has_any {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        };
        set_capabilities(None, sets).map_err(failed)?;
    }
    let left = capabilities(None).map_err(failed)?;
    if !(left.effective | left.permitted | left.inheritable).is_empty() {
        return Err("it has rights of a superuser".to_owned());
    }
    if !matches!(no_new_privs(), Ok(true)) {
        return Err("programs could gain rights".to_owned());
    }
    let above = getppid().map_or(1, |pid| pid.as_raw_nonzero().get());
    if File::open(format!("/proc/{above}/environ")).is_ok() {
        return Err("the variables of other processes can be read".to_owned());
    }
    Ok(())
}

/// Makes sure from within that bubblewrap did what it was told: a broken one, or another program
/// of its name, would start everything as well.
fn look_around() -> Result<(), String> {
    let rights = capabilities(None).map_err(|error| format!("rights cannot be read: {error}"))?;
    if !rights.effective.is_empty() || !rights.permitted.is_empty() {
        return Err("it has rights of a superuser".to_owned());
    }
    if !matches!(no_new_privs(), Ok(true)) {
        return Err("programs could gain rights".to_owned());
    }
    if access("/", Access::WRITE_OK).is_ok() {
        return Err("the disk can be written".to_owned());
    }
    if getpid().as_raw_nonzero().get() > FIRST_IDS {
        return Err("other processes can be reached".to_owned());
    }
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0));
    if socket.is_ok_and(|socket| socket.connect(NOBODY).is_ok()) {
        return Err("the network is open".to_owned());
    }
    Ok(())
}

/// Opens a port in the network of the sandbox, and hands it to those outside: a socket belongs to
/// the network it was made in, so whoever accepts there speaks with those in here.
fn hand_out() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let stream = UnixStream::connect(PathBuf::from(EGRESS))?;
    let sockets = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    if !message.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(io::Error::other("the socket does not fit in a message"));
    }
    sendmsg(
        &stream,
        &[IoSlice::new(b"1")],
        &mut message,
        SendFlags::empty(),
    )?;
    Ok(port)
}

fn refuse(problem: &dyn std::fmt::Display) -> ExitCode {
    say(&format!("{NOT_IN_FORCE}{problem}"));
    ExitCode::from(CANNOT_START)
}

fn say(message: &str) {
    // Nobody may be listening any more.
    let _ = writeln!(io::stderr(), "{message}");
}
