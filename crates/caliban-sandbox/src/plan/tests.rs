use super::*;
use crate::disk::tests::Listed;
use crate::policy::{LinkedGit, Policy, Surroundings};
use rstest::rstest;

fn policy() -> Policy {
    let surroundings = Surroundings {
        roots: &["/w".into()],
        home: Path::new("/home/me"),
        own: &[
            "/home/me/.config/caliban".into(),
            "/home/me/.cache/caliban".into(),
        ],
        variables: &[],
    };
    Policy::new(&caliban_settings::Sandbox::default(), &surroundings).unwrap()
}

fn plan(policy: &Policy, disk: &Listed) -> Plan {
    let fittings = Fittings {
        private: Path::new("/private"),
        program: Path::new("/usr/bin/caliban"),
        caches: Path::new("/private/caches"),
        packages: &[],
        egress: None,
        began: None,
        processes: Processes::Own,
    };
    let found = Found::look(policy, &Found::default(), disk);
    Plan::new(policy, &found, &fittings, disk).unwrap()
}

/// What is seen at a path: the last mount at or above it.
fn seen<'a>(plan: &'a Plan, path: &str) -> &'a Mount {
    let path = Path::new(path);
    let mut at = plan.mounts.iter().rev();
    let (_, mount) = at.find(|(place, _)| path.starts_with(place)).unwrap();
    mount
}

fn same(path: &str) -> Mount {
    Mount::ReadOnly(path.into())
}

fn writable(path: &str) -> Mount {
    Mount::Writable(path.into())
}

#[test]
fn without_lists_the_workspace_is_written_and_secrets_are_gone() {
    let disk = Listed::new(&[
        "/w/src/",
        "/w/.git/hooks/",
        "/w/.git/config",
        "/w/.git/info/attributes",
        "/home/me/.ssh/",
        "/home/me/.netrc",
        "/home/me/.config/caliban/",
        "/proc/sys/",
        "/tmp/",
        "/run/",
    ]);
    let plan = plan(&policy(), &disk);
    assert_eq!(seen(&plan, "/etc/passwd"), &same("/"));
    assert_eq!(seen(&plan, "/w/src/x"), &writable("/w"));
    assert_eq!(seen(&plan, "/home/me/.ssh/id"), &Mount::Hidden);
    assert_eq!(seen(&plan, "/home/me/.netrc"), &Mount::Blank);
    assert_eq!(seen(&plan, "/home/me/.config/caliban/x"), &Mount::Hidden);
    assert_eq!(
        seen(&plan, "/proc/sys/kernel/core_pattern"),
        &same("/proc/sys")
    );
    assert_eq!(seen(&plan, "/tmp/x"), &writable("/private/tmp"));
    assert_eq!(seen(&plan, "/run/docker.sock"), &Mount::Fresh);
    assert_eq!(seen(&plan, "/w/.git/index"), &writable("/w/.git"));
    assert_eq!(seen(&plan, "/w/.git/hooks/x"), &same("/w/.git/hooks"));
    assert_eq!(seen(&plan, "/w/.git/config"), &same("/w/.git/config"));
    // Both directories above it stay in their places.
    assert!(
        plan.mounts
            .contains(&("/w/.git/info".into(), writable("/w/.git/info")))
    );
    let depths: Vec<usize> = plan
        .mounts
        .iter()
        .map(|(it, _)| it.components().count())
        .collect();
    assert!(depths.is_sorted());
}

#[test]
fn a_root_that_holds_secrets_does_not_show_them() {
    let disk = Listed::new(&["/home/me/.ssh/", "/home/me/.cache/caliban/tree/"]);
    let policy = Policy {
        roots: vec!["/home/me".into(), "/home/me/.cache/caliban/tree".into()],
        ..policy()
    };
    let plan = plan(&policy, &disk);
    assert_eq!(seen(&plan, "/home/me/x"), &writable("/home/me"));
    assert_eq!(seen(&plan, "/home/me/.ssh/id"), &Mount::Hidden);
    assert_eq!(seen(&plan, "/home/me/.cache/caliban/x"), &Mount::Hidden);
    let tree = "/home/me/.cache/caliban/tree";
    assert_eq!(seen(&plan, tree), &writable(tree));
    // Nobody may put another directory in the place of the one above a secret.
    assert_eq!(seen(&plan, "/home/me/.cache"), &writable("/home/me/.cache"));
}

#[test]
fn what_of_our_own_is_shown_can_be_read_and_nothing_beside_it() {
    let disk = Listed::new(&[
        "/home/me/.cache/caliban/tree/",
        "/home/me/.cache/caliban/keys/",
    ]);
    let tree = "/home/me/.cache/caliban/tree";
    let shown = Policy {
        shown: vec![tree.into()],
        ..policy()
    };
    let made = plan(&shown, &disk);
    assert_eq!(seen(&made, tree), &Mount::ReadOnly(tree.into()));
    assert_eq!(seen(&made, "/home/me/.cache/caliban/keys"), &Mount::Hidden);
    let denied = Policy {
        hidden: vec!["/home/me/.cache".into()],
        ..shown.clone()
    };
    assert_eq!(seen(&plan(&denied, &disk), tree), &Mount::Hidden);
    let listed = Policy {
        reading: Reading::Only(vec!["/opt".into()]),
        ..shown
    };
    assert_eq!(seen(&plan(&listed, &disk), tree), &Mount::Hidden);
}

#[test]
fn what_is_denied_wins_over_what_is_allowed() {
    let disk = Listed::new(&["/w/a/b/", "/w/secret/x", "/w/key", "/w/a/hidden/"]);
    let policy = Policy {
        roots: vec!["/w".into(), "/w/a/b".into(), "/w/secret".into()],
        fixed: vec!["/w/a".into(), "/w/absent".into()],
        hidden: vec!["/w/secret".into(), "/w/key".into(), "/w/a/hidden".into()],
        ..policy()
    };
    let plan = plan(&policy, &disk);
    assert_eq!(seen(&plan, "/w/a/b/x"), &same("/w/a"));
    assert_eq!(seen(&plan, "/w/a/hidden/x"), &Mount::Hidden);
    assert_eq!(seen(&plan, "/w/secret/x"), &Mount::Hidden);
    assert_eq!(seen(&plan, "/w/key"), &Mount::Blank);
    // Nothing is made for what is not there.
    assert!(
        !plan
            .mounts
            .iter()
            .any(|(place, _)| place.ends_with("absent"))
    );
}

#[test]
fn a_place_that_a_list_names_is_open() {
    let disk = Listed::new(&["/w/.vscode/x", "/w/.idea/x"]);
    let policy = Policy {
        roots: vec!["/w".into(), "/w/.vscode".into()],
        ..policy()
    };
    let plan = plan(&policy, &disk);
    assert_eq!(seen(&plan, "/w/.vscode/x"), &writable("/w/.vscode"));
    assert_eq!(seen(&plan, "/w/.idea/x"), &same("/w/.idea"));
}

#[test]
fn a_list_shows_nothing_else() {
    let disk = Listed::new(&["/usr/bin/", "/bin -> /usr/bin", "/data/x", "/home/me/.ssh/"]);
    let policy = Policy {
        reading: Reading::Only(vec!["/data".into()]),
        ..policy()
    };
    let plan = plan(&policy, &disk);
    assert_eq!(seen(&plan, "/srv"), &Mount::Hidden);
    assert_eq!(seen(&plan, "/bin/sh"), &same("/usr/bin"));
    assert_eq!(seen(&plan, "/data/x"), &same("/data"));
    assert!(!plan.mounts.iter().any(|(place, _)| place.ends_with(".ssh")));
}

#[test]
fn what_lies_in_a_listed_directory_is_mounted_once() {
    let disk = Listed::new(&[
        "/usr/share/zoneinfo/UTC",
        "/etc/localtime -> /usr/share/zoneinfo/UTC",
        "/etc/ssl -> /opt/ssl",
        "/etc/passwd",
        "/opt/ssl/",
    ]);
    let policy = Policy {
        reading: Reading::Only(vec!["/etc".into(), "/usr".into()]),
        ..policy()
    };
    let plan = plan(&policy, &disk);
    assert_eq!(seen(&plan, "/etc/localtime"), &same("/etc"));
    assert_eq!(seen(&plan, "/usr/share/zoneinfo/UTC"), &same("/usr"));
    assert_eq!(seen(&plan, "/etc/passwd"), &same("/etc"));
    assert_eq!(seen(&plan, "/opt/ssl/x"), &same("/opt/ssl"));
    assert_eq!(seen(&plan, "/opt/x"), &Mount::Hidden);
}

#[test]
fn a_workspace_among_temporary_files_keeps_its_place() {
    let disk = Listed::new(&["/tmp/x/w/.envrc", "/tmp/x/home/.ssh/", "/tmp/other/"]);
    let policy = Policy {
        roots: vec!["/tmp/x/w".into()],
        home: "/tmp/x/home".into(),
        ..policy()
    };
    let plan = plan(&policy, &disk);
    assert_eq!(seen(&plan, "/tmp/other"), &writable("/private/tmp"));
    assert_eq!(seen(&plan, "/tmp/x/y"), &writable("/private/tmp/x"));
    assert_eq!(seen(&plan, "/tmp/x/w/a"), &writable("/tmp/x/w"));
    assert_eq!(seen(&plan, "/tmp/x/home/.ssh/id"), &Mount::Hidden);
    let made: Vec<&Path> = plan.made.iter().map(|(path, _)| path.as_path()).collect();
    let expected = ["/private/tmp/x", "/private/tmp/x/home", "/private/tmp/x/w"];
    assert_eq!(made, expected.map(Path::new));
}

#[test]
fn links_at_protected_names_protect_what_they_lead_to() {
    let disk = Listed::new(&[
        "/w/.vscode -> /w/shared",
        "/w/shared/",
        "/w/.idea -> /etc",
        "/etc/",
    ]);
    let plan = plan(&policy(), &disk);
    assert_eq!(seen(&plan, "/w/shared/x"), &same("/w/shared"));
    assert!(
        !plan
            .mounts
            .iter()
            .any(|(place, _)| place == Path::new("/etc"))
    );
}

#[test]
fn a_worktree_writes_its_own_part_of_the_repository() {
    let disk = Listed::new(&[
        "/w/.git",
        "/main/.git/hooks/",
        "/main/.git/config",
        "/main/.git/objects/",
        "/main/.git/worktrees/w/gitdir",
        "/main/.git/worktrees/w/index",
        "/main/.git/worktrees/other/",
    ]);
    let policy = Policy {
        linked: vec![LinkedGit {
            directory: "/main/.git/worktrees/w".into(),
            common: "/main/.git".into(),
        }],
        ..policy()
    };
    let plan = plan(&policy, &disk);
    let own = "/main/.git/worktrees/w";
    assert_eq!(seen(&plan, "/main/.git/objects/x"), &writable("/main/.git"));
    assert_eq!(seen(&plan, "/main/.git/hooks/x"), &same("/main/.git/hooks"));
    assert_eq!(
        seen(&plan, "/main/.git/worktrees/other"),
        &same("/main/.git/worktrees")
    );
    assert_eq!(seen(&plan, "/main/.git/worktrees/w/index"), &writable(own));
    let pointer = "/main/.git/worktrees/w/gitdir";
    assert_eq!(seen(&plan, pointer), &same(pointer));
    assert_eq!(seen(&plan, "/w/.git"), &same("/w/.git"));
}

#[rstest]
#[case(UnixSockets::Masked, Mount::Blank, Mount::Fresh)]
#[case(UnixSockets::Visible, same("/"), same("/run/docker.sock"))]
fn sockets_are_reached_only_where_they_may_be(
    #[case] sockets: UnixSockets,
    #[case] elsewhere: Mount,
    #[case] in_run: Mount,
) {
    let mut disk = Listed::new(&[
        "/var/lib/s",
        "/run/docker.sock",
        "/home/me/.config/caliban/s",
    ]);
    for path in [
        "/var/lib/s",
        "/run/docker.sock",
        "/home/me/.config/caliban/s",
    ] {
        disk.paths.insert(path.into(), Kind::Special);
        disk.sockets.push(path.into());
    }
    let policy = Policy {
        sockets,
        ..policy()
    };
    let plan = plan(&policy, &disk);
    assert_eq!(seen(&plan, "/var/lib/s"), &elsewhere);
    assert_eq!(seen(&plan, "/run/docker.sock"), &in_run);
    assert_eq!(seen(&plan, "/home/me/.config/caliban/s"), &Mount::Hidden);
}
