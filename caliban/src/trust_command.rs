//! `caliban trust`: which workspaces may run programs and loosen rules.

use std::path::{Path, PathBuf};

use caliban_harness::{Process, locations, workspace};
use caliban_settings::{RouterSource, TrustStore, WorkspaceFiles, find_router_file, project_of};

use crate::args::TrustArgs;
use crate::console::Console;
use crate::exit::Failure;

pub(crate) fn run(
    args: &TrustArgs,
    named: Option<&Path>,
    router_file: Option<&Path>,
    process: &Process,
    console: &mut Console,
) -> Result<(), Failure> {
    let locations = locations(process);
    let store = TrustStore::new(locations.workspace_trust());
    let failed = |error: caliban_settings::TrustError| Failure::Runtime(error.to_string());
    if args.list {
        for (path, _) in store.list() {
            console.write(&format!("{}\n", path.display()))?;
        }
        return Ok(());
    }
    // Given after the command or, as for every command, before it.
    let path = args.path.as_deref().or(named);
    if args.revoke {
        // A workspace that is gone can still be forgotten.
        let path = path.unwrap_or(Path::new("."));
        let path = project_of(path, &locations);
        let message = if store.revoke(&path).map_err(failed)? {
            format!("`{}` is no longer trusted\n", path.display())
        } else {
            format!("`{}` was not trusted\n", path.display())
        };
        return console.write(&message);
    }
    let started_in = workspace(path, process)?;
    let path = project_of(&started_in, &locations);
    let router = find_router_file(router_file, &process.environment, &started_in, &locations)
        .filter(|found| found.source == RouterSource::Project)
        .map(|found| found.path);
    let files = WorkspaceFiles::read(&path, router.as_deref()).starting_in(&started_in);
    store.grant(&files).map_err(failed)?;
    let mut message = format!("`{}` is trusted", path.display());
    let programs = files.programs();
    let covered: Vec<String> = files
        .paths()
        .chain(programs.iter().map(PathBuf::as_path))
        .map(|file| format!("  {}", file.display()))
        .chain(
            files
                .plugins()
                .map(|plugins| format!("  {}, with everything in it", plugins.display())),
        )
        .collect();
    if covered.is_empty() {
        message.push_str("; it has no settings of its own yet\n");
    } else {
        message.push_str(" with these files as they are now; a change needs trust anew:\n");
        message.push_str(&covered.join("\n"));
        message.push('\n');
    }
    console.write(&message)
}
