//! Workers for the sessions of a server.

use caliban_fleet::{AgentView, Client, Places, Served, Task};
use caliban_harness::{Configuration, RunOptions};

use super::starter;
use super::world::{described, limits, world};
use crate::exit::Failure;

/// How often the daemon is asked that goes at the very moment.
const ATTEMPTS: u32 = 3;

/// Has the daemon of the session's repository begin a worker for it.
pub(crate) async fn host(
    options: &RunOptions,
    configuration: &Configuration,
    label: String,
    served: Served,
) -> Result<(Places, AgentView), Failure> {
    let places = Places::new(&configuration.locations, &configuration.workspace);
    let task = Task {
        served: Some(served),
        ..described(options, configuration, String::new(), Some(label))?
    };
    let (world, limits) = (world(options, configuration), limits(configuration)?);
    let starter = starter(configuration);
    let mut attempt = 1;
    loop {
        let mut client = Client::find_or_start(&places, &starter).await?;
        let spawned = client.spawn(task.clone(), world.clone(), limits.clone());
        match spawned.await {
            Err(error) if error.is_gone() && attempt < ATTEMPTS => attempt += 1,
            spawned => return Ok((places, spawned?)),
        }
    }
}
