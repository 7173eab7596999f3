//! Checks of this machine: files, directories and programs.

use std::io;
use std::path::{Path, PathBuf};

use caliban_fleet::Places;
use caliban_harness::{Configuration, HAS_SECRET_STORE, LaunchError, LoginPlace};

use super::report::Row;
use crate::fleet::fleet_row;

pub(super) fn settings(loaded: &Result<Configuration, LaunchError>) -> Row {
    const NAME: &str = "settings";
    let configuration = match loaded {
        Ok(configuration) => configuration,
        Err(failure) => {
            return Row::fail(NAME, failure.to_string())
                .with(["the other checks are made without settings".to_owned()]);
        }
    };
    let files = configuration.loaded.files.iter();
    let row = match files.filter(|file| file.loaded).count() {
        0 => Row::warn(NAME, "no scope files found; every key has its default"),
        count => Row::pass(NAME, format!("{count} scope file(s) loaded")),
    };
    let router = configuration.router.iter();
    let warnings = router.flat_map(|router| &router.warnings);
    row.warned(
        configuration
            .loaded
            .warnings
            .iter()
            .chain(warnings)
            .cloned(),
    )
}

/// Agents in the background, and the daemon that supervises them.
pub(super) fn agents(configuration: &Configuration) -> Row {
    const NAME: &str = "agents";
    let places = Places::new(&configuration.locations, &configuration.workspace);
    if places.runtime.exists()
        && let Err(error) = places.check_runtime()
    {
        return Row::fail(NAME, error.to_string());
    }
    match fleet_row(&places) {
        Ok(told) => Row::pass(NAME, told),
        Err(problem) => Row::fail(NAME, problem),
    }
}

fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Nowhere if they are switched off.
pub(super) fn checkpoint_store(store: Option<&caliban_checkpoints::Store>) -> Row {
    const NAME: &str = "checkpoint_store";
    let Some(checkpoints) = store else {
        return Row::skip(
            NAME,
            "`CALIBAN_CHECKPOINT_DISABLED` switches checkpoints off",
        );
    };
    let path = checkpoints.directory();
    match usable(path) {
        Ok(Presence::There) => {}
        Ok(Presence::ToBeMade) | Err(_) => return self::store(NAME, path),
    }
    let survey = match checkpoints.survey() {
        Ok(survey) => survey,
        Err(error) => return Row::fail(NAME, error.to_string()),
    };
    let held = format!(
        "{} (writable): {} of {} here keep {} KiB of at most {} KiB",
        path.display(),
        counted(survey.checkpoints, "checkpoint"),
        counted(survey.sessions, "session"),
        survey.kept.div_ceil(1024),
        survey.most.div_ceil(1024),
    );
    if let [first, ..] = survey.interrupted.as_slice() {
        return Row::warn(
            NAME,
            format!("{held}; a rewind of `{first}` was interrupted, its next run finishes it"),
        );
    }
    if survey.damaged > 0 {
        let damaged = survey.damaged;
        return Row::warn(
            NAME,
            format!("{held}; {damaged} are damaged, and what they kept cannot be brought back"),
        );
    }
    Row::pass(NAME, held)
}

pub(super) fn session_store(path: &Path) -> Row {
    store("session_store", path)
}

fn store(name: &'static str, path: &Path) -> Row {
    match usable(path) {
        Ok(Presence::There) => Row::pass(name, format!("{} (writable)", path.display())),
        Ok(Presence::ToBeMade) => Row::pass(
            name,
            format!("{} (writable), made when it is needed", path.display()),
        ),
        Err(problem) => Row::fail(name, problem),
    }
}

/// Where logins to MCP servers are kept, and keys are looked for.
pub(super) fn secret_store(place: &LoginPlace) -> Row {
    const NAME: &str = "secret_store";
    match place {
        LoginPlace::SecretStore => Row::pass(NAME, "the desktop's secret store"),
        LoginPlace::File(path) => {
            let why = if HAS_SECRET_STORE {
                "this desktop has no secret store"
            } else {
                "this build uses no secret store (feature `keyring`)"
            };
            Row::pass(NAME, format!("{}, private; {why}", path.display()))
        }
    }
}

pub(super) fn workspace(path: &Path) -> Row {
    const NAME: &str = "workspace";
    if let Err(error) = std::fs::read_dir(path) {
        return Row::fail(NAME, format!("{} cannot be read: {error}", path.display()));
    }
    match try_writing(path) {
        Ok(()) => Row::pass(NAME, format!("{} (writable)", path.display())),
        Err(error) => Row::warn(
            NAME,
            format!(
                "{} cannot be written, so files cannot be changed: {error}",
                path.display()
            ),
        ),
    }
}

/// A program that is found where the shell would find it.
pub(super) fn program(name: &'static str, path: Option<&str>) -> Row {
    let directories = path.map(std::env::split_paths).into_iter().flatten();
    let mut candidates = directories
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)));
    match candidates.find(|candidate| is_executable(candidate)) {
        Some(found) => Row::pass(name, found.display().to_string()),
        None => Row::warn(name, "not found on PATH"),
    }
}

/// The shell that commands run in.
pub(super) fn shell() -> Row {
    const NAME: &str = "bash";
    let is_there = |path: &str| is_executable(Path::new(path));
    match (is_there("/bin/bash"), is_there("/bin/sh")) {
        (true, _) => Row::pass(NAME, "/bin/bash"),
        (false, true) => Row::warn(NAME, "there is no /bin/bash; commands run in /bin/sh"),
        (false, false) => Row::warn(
            NAME,
            "there is neither /bin/bash nor /bin/sh to run commands in",
        ),
    }
}

/// Whether a directory is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    There,
    ToBeMade,
}

/// Whether a directory can be written, or made and then written. It is not made, and what is tried
/// leaves no trace.
fn usable(path: &Path) -> Result<Presence, String> {
    let problem = |found: &Path, error: &dyn std::fmt::Display| {
        let below = if found == path {
            String::new()
        } else {
            format!(" (in {})", found.display())
        };
        format!("{} cannot be used: {error}{below}", path.display())
    };
    let Some(existing) = nearest_existing(path) else {
        return Err(problem(path, &"none of its parents exist"));
    };
    if !existing.is_dir() {
        return Err(problem(&existing, &"not a directory"));
    }
    try_writing(&existing).map_err(|error| problem(&existing, &error))?;
    Ok(if existing == path {
        Presence::There
    } else {
        Presence::ToBeMade
    })
}

/// A link that leads nowhere counts: nothing can be made in its place.
fn nearest_existing(path: &Path) -> Option<PathBuf> {
    path.ancestors()
        .find(|ancestor| ancestor.symlink_metadata().is_ok())
        .map(Path::to_owned)
}

fn try_writing(directory: &Path) -> io::Result<()> {
    tempfile::tempfile_in(directory).map(drop)
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_tried_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(usable(root), Ok(Presence::There));
        assert_eq!(usable(&root.join("a/b")), Ok(Presence::ToBeMade));
        assert_eq!(std::fs::read_dir(root).unwrap().count(), 0);
        std::fs::write(root.join("file"), "").unwrap();
        for path in [root.join("file"), root.join("file/below/it")] {
            let problem = usable(&path).unwrap_err();
            assert!(problem.contains("ot a directory"), "{problem}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_is_no_place() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert!(usable(&link).is_err());
        assert!(usable(&link.join("below")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn only_what_can_be_executed_is_found() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("git");
        std::fs::write(&file, "").unwrap();
        let look = || program("git", folder.path().to_str());
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(look(), Row::warn("git", "not found on PATH"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(look(), Row::pass("git", file.display().to_string()));
        assert_eq!(program("git", None), Row::warn("git", "not found on PATH"));
    }
}
