//! Setting a fleet up: a configuration for its server, and the streams and pools on it.

use std::io;
use std::path::Path;

use caliban_fleet_nats::{Access, Layout, NatsBoard, Role, Roles, keys, public_key, server_file};
use caliban_settings::replace_private_file;

use crate::args::InitArgs;
use crate::console::{Console, note};
use crate::exit::Failure;

pub(super) async fn init(
    access: &Access,
    args: &InitArgs,
    console: &mut Console,
) -> Result<(), Failure> {
    let Some(directory) = &args.keys else {
        let layout = Layout {
            pools: args.pool.clone(),
            queue: args.queue,
            running: args.running,
            lease: args.lease,
            memory: Layout::default().memory.min(args.keep),
            keep: args.keep,
            replicas: args.replicas,
        };
        NatsBoard::provision(access, &layout).await?;
        let pools: Vec<&str> = args
            .pool
            .iter()
            .map(caliban_fleet_nats::Pool::as_str)
            .collect();
        return console.write(&format!("ready: {}\n", pools.join(", ")));
    };
    let key = |role: Role| public(directory, role);
    let roles = Roles {
        admin: key(Role::Admin)?,
        submitter: key(Role::Submitter)?,
        worker: key(Role::Worker)?,
    };
    let text = server_file(&roles, &args.store, &args.listen, &args.monitor);
    console.write(&text)?;
    note(&format!(
        "the keys are in {}; when the server runs: caliban fleet --key {}/admin.nk init --apply",
        directory.display(),
        directory.display()
    ));
    Ok(())
}

/// The public key of a role, whose seed is made where there is none.
fn public(directory: &Path, role: Role) -> Result<String, Failure> {
    let path = directory.join(format!("{}.nk", role.as_str()));
    let failed = |reason: String| Failure::Runtime(format!("`{}`: {reason}", path.display()));
    match std::fs::read_to_string(&path) {
        Ok(seed) => public_key(seed.trim()).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (seed, public) = keys().map_err(failed)?;
            std::fs::create_dir_all(directory).map_err(|error| failed(error.to_string()))?;
            replace_private_file(&path, format!("{seed}\n").as_bytes())
                .map_err(|error| failed(error.to_string()))?;
            Ok(public)
        }
        Err(error) => Err(failed(error.to_string())),
    }
}
