//! The system calls that confined programs may not make: ways to the kernel and the machine that
//! no mount and no namespace closes. A list of what is denied, since developers' programs call
//! everything else, and denials are errors, which programs can handle.

use libc::c_long;
use seccompiler::sock_filter;

/// Which kinds of sockets may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Those of a network that has its own namespace.
    Namespaced,
    /// None that leave the machine: there is no namespace to hold them.
    LocalOnly,
}

/// The kernel's name of this machine's native calls. Calls of other kinds are denied.
#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xC000_00B7;
#[cfg(target_arch = "riscv64")]
const NATIVE: u32 = 0xC000_00F3;

/// Numbers from here on are calls of another kind that the kernel calls native too.
const FOREIGN: u32 = 0x4000_0000;

/// Where the kernel shows a call to a filter.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The low half of an argument, which is all that the calls below look at.
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const LOAD: u16 = 0x20;
const EQUALS: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const HAS_BITS: u16 = 0x45;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7FFF_0000;
const fn fail(error: i32) -> u32 {
    0x0005_0000 | error.unsigned_abs()
}

/// Flags that ask for namespaces.
const NAMESPACES: u32 = 0x7E02_0080;
/// The same of `clone`, whose lowest byte is a signal.
const CLONE_NAMESPACES: u32 = 0x7E02_0000;
/// Types into another terminal, or pastes into the console.
const TERMINAL_INPUT: [u32; 2] = [0x5412, 0x541C];

/// What is denied whatever its arguments are.
const DENIED: &[c_long] = &[
    // Keyrings have no namespace of their own for sessions.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Large parts of the kernel that few programs need and many exploits do.
    libc::SYS_bpf,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // Files without names and mounts.
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    // The machine.
    libc::SYS_acct,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
];

/// Denies the calls above to this thread and all it starts, for good.
pub(crate) fn apply(sockets: Sockets) -> Result<(), seccompiler::Error> {
    seccompiler::apply_filter(&program(sockets))
}

/// The filter. Each call is a block of its own: it is entered on the number and ends in a verdict,
/// so no jump leaves it.
fn program(sockets: Sockets) -> Vec<sock_filter> {
    let mut program = vec![
        step(LOAD, ARCHITECTURE),
        jump(EQUALS, NATIVE, 1, 0),
        step(RETURN, fail(libc::EPERM)),
        step(LOAD, NUMBER),
        jump(AT_LEAST, FOREIGN, 0, 1),
        step(RETURN, fail(libc::EPERM)),
    ];
    for number in DENIED {
        block(&mut program, *number, &[step(RETURN, fail(libc::EPERM))]);
    }
    block(&mut program, libc::SYS_socket, &of_socket(sockets));
    block(&mut program, libc::SYS_ioctl, &of_ioctl());
    block(&mut program, libc::SYS_unshare, &without(0, NAMESPACES));
    block(&mut program, libc::SYS_clone, &without(0, CLONE_NAMESPACES));
    // Its flags are in memory, where no filter can look. Programs know what to do without it.
    block(
        &mut program,
        libc::SYS_clone3,
        &[step(RETURN, fail(libc::ENOSYS))],
    );
    program.push(step(RETURN, ALLOW));
    program
}

fn of_socket(sockets: Sockets) -> Vec<sock_filter> {
    let families: &[i32] = match sockets {
        Sockets::Namespaced => &[
            libc::AF_UNIX,
            libc::AF_INET,
            libc::AF_INET6,
            libc::AF_NETLINK,
        ],
        Sockets::LocalOnly => &[libc::AF_UNIX, libc::AF_NETLINK],
    };
    let mut body = vec![step(LOAD, argument(0))];
    for family in families {
        body.push(jump(EQUALS, family.unsigned_abs(), 0, 1));
        body.push(step(RETURN, ALLOW));
    }
    body.push(step(RETURN, fail(libc::EAFNOSUPPORT)));
    body
}

fn of_ioctl() -> Vec<sock_filter> {
    let mut body = vec![step(LOAD, argument(1))];
    for request in TERMINAL_INPUT {
        body.push(jump(EQUALS, request, 0, 1));
        body.push(step(RETURN, fail(libc::EPERM)));
    }
    body.push(step(RETURN, ALLOW));
    body
}

/// Denied with one of these bits in an argument.
fn without(index: u32, bits: u32) -> Vec<sock_filter> {
    vec![
        step(LOAD, argument(index)),
        jump(HAS_BITS, bits, 0, 1),
        step(RETURN, fail(libc::EPERM)),
        step(RETURN, ALLOW),
    ]
}

fn block(program: &mut Vec<sock_filter>, number: c_long, body: &[sock_filter]) {
    // Numbers of calls fit, and so do the few steps of a block.
    let (Ok(number), Ok(length)) = (u32::try_from(number), u8::try_from(body.len())) else {
        return;
    };
    program.push(jump(EQUALS, number, 0, length));
    program.extend_from_slice(body);
}

fn step(code: u16, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// What the kernel would say of a call.
    fn verdict(program: &[sock_filter], architecture: u32, number: u32, args: [u64; 3]) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = &program[at];
            at += 1;
            match step.code {
                LOAD => {
                    loaded = match step.k {
                        NUMBER => number,
                        ARCHITECTURE => architecture,
                        offset => {
                            let index = usize::try_from((offset - 16) / 8).unwrap();
                            u32::try_from(args[index] & 0xFFFF_FFFF).unwrap()
                        }
                    }
                }
                RETURN => return step.k,
                code => {
                    let holds = match code {
                        EQUALS => loaded == step.k,
                        AT_LEAST => loaded >= step.k,
                        HAS_BITS => loaded & step.k != 0,
                        other => panic!("{other}"),
                    };
                    at += usize::from(if holds { step.jt } else { step.jf });
                }
            }
        }
    }

    #[rstest]
    #[case::an_ordinary_call(libc::SYS_openat, [0; 3], ALLOW)]
    #[case::a_key(libc::SYS_keyctl, [0; 3], fail(libc::EPERM))]
    #[case::a_ring(libc::SYS_io_uring_setup, [0; 3], fail(libc::EPERM))]
    #[case::a_path_socket(libc::SYS_socket, [1, 1, 0], ALLOW)]
    #[case::a_socket(libc::SYS_socket, [2, 1, 0], ALLOW)]
    #[case::to_the_host_of_a_machine(libc::SYS_socket, [40, 1, 0], fail(libc::EAFNOSUPPORT))]
    #[case::of_the_kernels_ciphers(libc::SYS_socket, [38, 5, 0], fail(libc::EAFNOSUPPORT))]
    #[case::typing(libc::SYS_ioctl, [0, 0x5412, 0], fail(libc::EPERM))]
    #[case::typing_with_high_bits(libc::SYS_ioctl, [0, 0xFFFF_FFFF_0000_5412, 0], fail(libc::EPERM))]
    #[case::a_size(libc::SYS_ioctl, [0, 0x5413, 0], ALLOW)]
    #[case::a_namespace(libc::SYS_unshare, [0x1000_0000, 0, 0], fail(libc::EPERM))]
    #[case::files_apart(libc::SYS_unshare, [0x400, 0, 0], ALLOW)]
    #[case::a_fork(libc::SYS_clone, [0x0120_0011, 0, 0], ALLOW)]
    #[case::a_fork_in_a_namespace(libc::SYS_clone, [0x1000_0011, 0, 0], fail(libc::EPERM))]
    #[case::a_newer_fork(libc::SYS_clone3, [0; 3], fail(libc::ENOSYS))]
    fn calls_are_judged(#[case] number: c_long, #[case] args: [u64; 3], #[case] expected: u32) {
        let program = program(Sockets::Namespaced);
        let number = u32::try_from(number).unwrap();
        assert_eq!(verdict(&program, NATIVE, number, args), expected);
    }

    #[test]
    fn calls_of_another_kind_are_denied() {
        let program = program(Sockets::Namespaced);
        assert_eq!(verdict(&program, 0x4000_0003, 5, [0; 3]), fail(libc::EPERM));
        let foreign = FOREIGN | 0x101;
        assert_eq!(
            verdict(&program, NATIVE, foreign, [0; 3]),
            fail(libc::EPERM)
        );
    }

    #[test]
    fn without_a_namespace_no_socket_leaves_the_machine() {
        let program = program(Sockets::LocalOnly);
        let socket = u32::try_from(libc::SYS_socket).unwrap();
        for family in [2, 10] {
            let verdict = verdict(&program, NATIVE, socket, [family, 1, 0]);
            assert_eq!(verdict, fail(libc::EAFNOSUPPORT));
        }
        assert_eq!(verdict(&program, NATIVE, socket, [1, 1, 0]), ALLOW);
    }
}
