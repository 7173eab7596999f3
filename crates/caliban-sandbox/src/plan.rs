//! The filesystem that a confined program sees, as a list of mounts: made of the policy and a look
//! at the disk, and of nothing else.
//!
//! The deeper place wins, and at one place the stricter. A mount protects the place of a file and
//! not its name, so every directory between a writable one and a mount in it is mounted onto itself:
//! what is a mount cannot be moved away.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use caliban_permissions::credential_places;

use crate::disk::{Disk, Kind};
use crate::places::{Found, GIT_PLACES, MODULES, WORKTREE_PLACES};
use crate::policy::{Policy, Reading, UnixSockets};

/// The program that looks around before the command runs.
pub(crate) const PROGRAM: &str = "/run/caliban/caliban";
/// Where the way out is handed over.
pub(crate) const EGRESS: &str = "/run/caliban/egress";
/// Where the inner step leaves a mark that the program begins.
pub(crate) const BEGAN: &str = "/run/caliban/began";
/// Private caches of package managers.
pub(crate) const CACHES: &str = "/run/caliban/caches";
/// The home of cargo.
pub(crate) const CARGO: &str = "/run/caliban/cargo";

/// The most mounts of one plan. Each costs a third of a millisecond, and more the more there are:
/// so many take most of a second.
const MAX_MOUNTS: usize = 600;

/// How many submodules can be worked in; where there are more, all of them are read-only, since
/// each takes several mounts.
const MAX_MODULES: usize = 16;

/// What programs need to start where only a list may be read.
const SYSTEM: [&str; 19] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/ssl",
];
/// Files of the kernel that the superuser may write without any right of a superuser.
const KERNEL: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];
/// What of `/run` programs need.
const RUN: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];
/// Where temporary files are; commands of a session see those of the session.
pub(crate) const TEMPORARY: [(&str, &str); 2] = [("/tmp", "tmp"), ("/var/tmp", "var-tmp")];

/// One step in making a filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mount {
    ReadOnly(PathBuf),
    Writable(PathBuf),
    /// A directory of its own, empty at the beginning.
    Fresh,
    /// An empty directory that cannot be written.
    Hidden,
    /// An empty file that cannot be written.
    Blank,
    Devices,
    Processes,
}

/// Who wants a mount; of two at one place the later in this order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Keeps a directory in its place.
    Pin,
    System,
    /// Visible again although it lies in what is not.
    Returned,
    /// Nobody confined changes it, or sees it.
    Protected,
    /// The operator lets programs write it.
    Root,
    /// The operator forbids it.
    Denied,
}

/// A filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// What is mounted where, in this order.
    pub mounts: Vec<(PathBuf, Mount)>,
    /// What must be there for that: places in the session's own temporary directory.
    pub made: Vec<(PathBuf, Shape)>,
}

/// What a mount needs at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Directory,
    File,
}

/// What a plan is made of besides the policy.
#[derive(Debug, Clone)]
pub(crate) struct Fittings<'a> {
    /// The session's own directory.
    pub private: &'a Path,
    /// The executable that is the inner helper.
    pub program: &'a Path,
    /// Private caches of this workspace.
    pub caches: &'a Path,
    /// What is shown read-only of the user's package caches, and where.
    pub packages: &'a [(PathBuf, PathBuf)],
    /// Where the way out is handed over, if there is one.
    pub egress: Option<&'a Path>,
    /// Where the mark is seen that the program begins.
    pub began: Option<&'a Path>,
    pub processes: Processes,
}

/// What programs see of `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processes {
    /// Their own.
    Own,
    /// The machine's, which cannot be helped in some containers.
    TheMachines,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(
        "it would take {0} mounts, and {MAX_MOUNTS} are the limit: there are too many protected places or sockets; list in `sandbox.filesystem.allow_write` only the directories that are worked in, or in `sandbox.filesystem.deny_write` one above those that are not"
    )]
    TooMany(usize),
    #[error(
        "`{}` and what follows cannot be looked through for protected places, there is too much of it; remove what fills it, or list in `sandbox.filesystem.allow_write` only the directories that are worked in",
        .0.display()
    )]
    Unseen(PathBuf),
}

impl Plan {
    pub(crate) fn new(
        policy: &Policy,
        found: &Found,
        fittings: &Fittings<'_>,
        disk: &dyn Disk,
    ) -> Result<Self, PlanError> {
        if let Some(unseen) = &found.unseen {
            return Err(PlanError::Unseen(unseen.clone()));
        }
        let mut draft = Draft {
            policy,
            disk,
            wanted: BTreeMap::new(),
        };
        draft.system(fittings);
        draft.secrets();
        draft.roots(found);
        draft.denied();
        draft.sockets();
        draft.drop_covered();
        draft.pin();
        draft.ordered(fittings)
    }
}

struct Draft<'a> {
    policy: &'a Policy,
    disk: &'a dyn Disk,
    wanted: BTreeMap<PathBuf, (Rank, Mount)>,
}

impl Draft<'_> {
    fn want(&mut self, place: PathBuf, rank: Rank, mount: Mount) {
        match self.wanted.get(&place) {
            Some((there, _)) if *there > rank => {}
            Some(_) | None => {
                self.wanted.insert(place, (rank, mount));
            }
        }
    }

    /// Shows something of the disk at its own place, if it is there.
    fn show(&mut self, path: &Path, rank: Rank) {
        if let Some(real) = self.disk.resolve(path) {
            self.want(path.to_owned(), rank, Mount::ReadOnly(real));
        }
    }

    /// The same for one of several. What lies in another is seen with it; where that is a link it
    /// cannot be mounted, and what it leads to is shown in its own place.
    fn show_beside(&mut self, path: &Path, rank: Rank, shown: &[&Path]) {
        let is_within = |path: &Path| {
            shown
                .iter()
                .any(|above| path != *above && path.starts_with(above))
        };
        if !is_within(path) {
            return self.show(path, rank);
        }
        if let Some(real) = self.disk.resolve(path)
            && !is_within(&real)
        {
            self.show(&real, rank);
        }
    }

    fn system(&mut self, fittings: &Fittings<'_>) {
        match &self.policy.reading {
            Reading::Everything => {
                let all = Mount::ReadOnly("/".into());
                self.want("/".into(), Rank::System, all);
            }
            Reading::Only(list) => {
                self.want("/".into(), Rank::System, Mount::Hidden);
                let system = SYSTEM.map(PathBuf::from);
                let shown: Vec<&Path> = system.iter().chain(list).map(PathBuf::as_path).collect();
                for path in &system {
                    self.show_beside(path, Rank::System, &shown);
                }
                for path in list {
                    self.show_beside(path, Rank::Returned, &shown);
                }
            }
        }
        self.want("/dev".into(), Rank::System, Mount::Devices);
        match fittings.processes {
            Processes::Own => self.want("/proc".into(), Rank::System, Mount::Processes),
            Processes::TheMachines => self.show(Path::new("/proc"), Rank::System),
        }
        for path in KERNEL {
            self.show(Path::new(path), Rank::Protected);
        }
        self.want("/run".into(), Rank::System, Mount::Fresh);
        for path in RUN {
            self.show(Path::new(path), Rank::Returned);
        }
        for (place, name) in TEMPORARY {
            let own = Mount::Writable(fittings.private.join(name));
            self.want(place.into(), Rank::System, own);
        }
        let is_temporary = |path: &Path| TEMPORARY.iter().any(|(it, _)| path.starts_with(it));
        // Where people work is seen, though it lies among temporary files.
        if self.policy.reading == Reading::Everything {
            let policy = self.policy;
            for place in policy.places.iter().chain([&policy.home]) {
                if is_temporary(place) {
                    self.show(place, Rank::Returned);
                }
            }
        }
        let program = Mount::ReadOnly(fittings.program.to_owned());
        self.want(PROGRAM.into(), Rank::Returned, program);
        let caches = Mount::Writable(fittings.caches.to_owned());
        self.want(CACHES.into(), Rank::Returned, caches);
        for (from, to) in fittings.packages {
            self.want(to.clone(), Rank::Returned, Mount::ReadOnly(from.clone()));
        }
        if let Some(mark) = fittings.began {
            let mark = Mount::Writable(mark.to_owned());
            self.want(BEGAN.into(), Rank::Returned, mark);
        }
        if let Some(socket) = fittings.egress {
            let way = Mount::ReadOnly(socket.to_owned());
            self.want(EGRESS.into(), Rank::Returned, way);
        }
    }

    /// Hides credentials and what is ours, but for what of it is shown.
    fn secrets(&mut self) {
        let home = &self.policy.home;
        let places = credential_places().map(|place| home.join(place));
        for path in places.chain(self.policy.own.iter().cloned()) {
            self.hide(&path, Rank::Protected);
        }
        for path in self.policy.returned() {
            self.show(path, Rank::Returned);
        }
    }

    fn hide(&mut self, path: &Path, rank: Rank) {
        let Some(real) = self.disk.resolve(path) else {
            return;
        };
        let mount = match self.disk.kind(&real) {
            Some(Kind::Directory) => Mount::Hidden,
            Some(Kind::File | Kind::Special) => Mount::Blank,
            Some(Kind::Link) | None => return,
        };
        self.want(real, rank, mount);
    }

    fn roots(&mut self, found: &Found) {
        for root in &self.policy.roots {
            self.want(root.clone(), Rank::Root, Mount::Writable(root.clone()));
        }
        for place in &found.places {
            self.fix(place, Rank::Protected);
        }
        for git in &found.git {
            self.want(git.clone(), Rank::Pin, Mount::Writable(git.clone()));
            self.fix_all(git, &GIT_PLACES);
        }
        self.modules(&found.git, &found.modules);
        for linked in &self.policy.linked {
            let (common, own) = (&linked.common, &linked.directory);
            self.want(common.clone(), Rank::Root, Mount::Writable(common.clone()));
            self.fix_all(common, &GIT_PLACES);
            self.want(own.clone(), Rank::Root, Mount::Writable(own.clone()));
            self.fix_all(own, &WORKTREE_PLACES);
            if own != common {
                // Those of another worktree.
                self.fix_all(common, &[MODULES]);
            }
            let of_own = found.linked.iter().filter(|it| it.starts_with(own));
            let modules: Vec<PathBuf> = of_own.cloned().collect();
            self.modules(std::slice::from_ref(own), &modules);
        }
    }

    /// Submodules can be worked in like any repository.
    fn modules(&mut self, git: &[PathBuf], modules: &[PathBuf]) {
        if modules.len() > MAX_MODULES {
            for git in git {
                self.fix_all(git, &[MODULES]);
            }
            return;
        }
        for module in modules {
            self.want(module.clone(), Rank::Pin, Mount::Writable(module.clone()));
            self.fix_all(module, &GIT_PLACES);
        }
    }

    fn fix_all(&mut self, directory: &Path, names: &[&str]) {
        for name in names {
            self.fix(&directory.join(name), Rank::Protected);
        }
    }

    /// Makes what is at a path read-only. A link cannot be mounted: what it leads to is, and that it
    /// still leads there is looked at afterwards.
    fn fix(&mut self, path: &Path, rank: Rank) {
        let Some(real) = self.disk.resolve(path) else {
            return;
        };
        if self.disk.kind(path) == Some(Kind::Link)
            && !self.policy.roots.iter().any(|root| real.starts_with(root))
        {
            return;
        }
        // What is not seen is not written either.
        let is_hidden = matches!(
            self.wanted.get(&real),
            Some((there, Mount::Hidden | Mount::Blank)) if *there >= rank
        );
        if !is_hidden {
            self.want(real.clone(), rank, Mount::ReadOnly(real));
        }
    }

    fn denied(&mut self) {
        for path in &self.policy.fixed {
            self.fix(path, Rank::Denied);
        }
        for path in &self.policy.hidden {
            self.hide(path, Rank::Denied);
        }
    }

    /// Who may connect to a socket is not a matter of who may write it, so those of others are
    /// hidden one by one, unless they may be reached.
    fn sockets(&mut self) {
        for socket in self.disk.sockets() {
            let Some(real) = self.disk.resolve(&socket) else {
                continue;
            };
            if self.disk.kind(&real) != Some(Kind::Special) {
                continue;
            }
            let is_ours = self.policy.own.iter().any(|own| real.starts_with(own));
            match self.policy.sockets {
                UnixSockets::Masked if !real.starts_with("/run") => {
                    self.want(real, Rank::Denied, Mount::Blank);
                }
                UnixSockets::Visible if real.starts_with("/run") && !is_ours => {
                    self.want(real.clone(), Rank::Returned, Mount::ReadOnly(real));
                }
                UnixSockets::Masked | UnixSockets::Visible => {}
            }
        }
    }

    /// Leaves out what nobody could see, and what is so already.
    fn drop_covered(&mut self) {
        let mut kept: BTreeMap<PathBuf, (Rank, Mount)> = BTreeMap::new();
        // What is above comes first.
        for (place, (rank, mount)) in std::mem::take(&mut self.wanted) {
            if !is_covered(&kept, &place, rank, &mount) {
                kept.insert(place, (rank, mount));
            }
        }
        self.wanted = kept;
    }

    /// Keeps every directory between a writable one and a mount in it where it is.
    fn pin(&mut self) {
        let mut pins = Vec::new();
        for place in self.wanted.keys() {
            let mut between = Vec::new();
            for above in place.ancestors().skip(1) {
                match self.wanted.get(above) {
                    None => between.push(above),
                    Some((_, Mount::Writable(from))) => {
                        for directory in between {
                            // It lies beneath: that is how it was found.
                            if let Ok(rest) = directory.strip_prefix(above) {
                                pins.push((directory.to_owned(), from.join(rest)));
                            }
                        }
                        break;
                    }
                    Some(_) => break,
                }
            }
        }
        for (place, from) in pins {
            self.want(place, Rank::Pin, Mount::Writable(from));
        }
    }

    fn ordered(self, fittings: &Fittings<'_>) -> Result<Plan, PlanError> {
        let mut mounts: Vec<(PathBuf, Mount)> = self
            .wanted
            .into_iter()
            .map(|(place, (_, mount))| (place, mount))
            .collect();
        if mounts.len() > MAX_MOUNTS {
            return Err(PlanError::TooMany(mounts.len()));
        }
        mounts.sort_by_key(|(place, _)| place.components().count());
        let made = made(&mounts, fittings);
        Ok(Plan { mounts, made })
    }
}

/// Whether a mount would change nothing for those who see what is above it.
fn is_covered(
    kept: &BTreeMap<PathBuf, (Rank, Mount)>,
    place: &Path,
    rank: Rank,
    mount: &Mount,
) -> bool {
    let hides = matches!(mount, Mount::Hidden | Mount::Blank);
    let above = || {
        place
            .ancestors()
            .skip(1)
            .filter_map(|above| kept.get(above))
    };
    // What the operator forbids holds for all that is in it.
    let is_forbidden = above().any(|over| match over {
        (Rank::Denied, Mount::Hidden) => true,
        (Rank::Denied, Mount::ReadOnly(_)) => !hides,
        _ => false,
    });
    let mut nearest = above().filter(|(rank, _)| *rank != Rank::Pin);
    is_forbidden
        || match nearest.next() {
            Some((Rank::Protected, Mount::Hidden)) => !matches!(rank, Rank::Root | Rank::Returned),
            Some((Rank::Protected, Mount::ReadOnly(_))) => !hides && rank <= Rank::Protected,
            // Nothing of the disk is there but what is put there.
            Some((Rank::System, Mount::Writable(_) | Mount::Fresh | Mount::Hidden)) => {
                matches!(rank, Rank::Pin | Rank::Protected | Rank::Denied)
            }
            Some(_) | None => false,
        }
}

/// The places in the session's own temporary directories that mounts need.
fn made(mounts: &[(PathBuf, Mount)], fittings: &Fittings<'_>) -> Vec<(PathBuf, Shape)> {
    let mut made = Vec::new();
    for (temporary, name) in TEMPORARY {
        let own = fittings.private.join(name);
        for (place, mount) in mounts {
            let Ok(rest) = place.strip_prefix(temporary) else {
                continue;
            };
            // A mount of the disk brings along what is in it.
            let is_in_another = mounts.iter().any(|(other, mount)| {
                place != other
                    && place.starts_with(other)
                    && other.starts_with(temporary)
                    && other != Path::new(temporary)
                    && !matches!(mount, Mount::Writable(from) if from.starts_with(&own))
            });
            if rest.as_os_str().is_empty() || is_in_another {
                continue;
            }
            let shape = match mount {
                Mount::ReadOnly(from) if from.is_file() => Shape::File,
                _ => Shape::Directory,
            };
            made.push((own.join(rest), shape));
        }
    }
    made
}

#[cfg(test)]
mod tests;
