//! Sends agents of a session into the background, with the options of the session and no more
//! rights than it has at that moment.

use std::num::NonZeroU32;

use caliban_fleet::{Client, Places};
use caliban_harness::options::{Part, SessionOptions};
use caliban_harness::{Configuration, Fleet, Process, Rights, RunOptions, SystemPrompt, configure};
use caliban_permissions::{Gating, Latch, Regime};
use caliban_settings::PermissionMode;
use caliban_tools::{BackgroundHooks, BackgroundTask};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::seat::isolation;
use super::world::{limits, task, world};
use super::{fleet_row, starter};
use crate::exit::Failure;

/// The most turns an agent takes that another one asked for, as in the foreground.
const MAX_TURNS: u32 = 20;

/// A session's way to agents in the background. What is configured is read when it is needed.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) options: RunOptions,
    pub(crate) process: Process,
}

impl Sender {
    fn configured(&self) -> Result<(Configuration, Places), Failure> {
        let configuration = configure(&self.options, self.process.clone())?;
        let places = Places::new(&configuration.locations, &configuration.workspace);
        Ok((configuration, places))
    }

    /// The options of the agent: those of the session, narrowed.
    fn options(&self, wanted: &BackgroundTask, rights: Rights) -> RunOptions {
        let mut options = self.options.clone();
        options.session = SessionOptions::default();
        options.limits.max_turns = NonZeroU32::new(MAX_TURNS);
        options.answer = None;
        // What was sent away sends nobody away.
        options.tools.sub_agents = Part::Off;
        options.permissions.rules.splice(0..0, rights.rules);
        match rights.regime {
            Regime::Rules(mode) => {
                options.permissions.mode = Some(mode);
                options.permissions.gating = Gating::On;
                if mode != PermissionMode::BypassPermissions {
                    // What its parent has given up it does not get back.
                    options.permissions.latch = Latch::Absent;
                }
            }
            Regime::Disabled => {}
        }
        if wanted.hooks == BackgroundHooks::Managed {
            options.tools.hooks = Part::Off;
        }
        if let Some(model) = &wanted.model {
            options.model.model = Some(model.clone());
        }
        if let Some(tools) = &wanted.tools {
            let selection = &options.tools.selection;
            let kept = tools.iter().filter(|tool| selection.keeps(tool));
            let kept = kept.cloned().collect();
            options.tools.selection.only = Some(kept);
        }
        let without = wanted.without.iter().cloned();
        options.tools.selection.without.extend(without);
        if let Some((_, prompt)) = &wanted.kind {
            options.system = SystemPrompt::Extended(prompt.clone());
        }
        options
    }

    async fn send(&self, wanted: BackgroundTask, rights: Rights) -> Result<String, Failure> {
        let options = self.options(&wanted, rights);
        let (configuration, places) = self.configured()?;
        let configuration = &configuration;
        let label = wanted.description.clone();
        let mut task = task(&options, configuration, wanted.prompt, label)?;
        task.profile = wanted.kind.map(|(name, _)| name);
        if let Some(wish) = wanted.worktree {
            task.isolation = isolation(configuration, wish).await?;
        }
        let (world, limits) = (world(&options, configuration), limits(configuration)?);
        let starter = starter(configuration);
        let mut client = Client::find_or_start(&places, &starter).await?;
        let agent = client.spawn(task, world, limits).await?;
        Ok(agent.id.to_string())
    }
}

impl Fleet for Sender {
    fn start(&self, task: BackgroundTask, rights: Rights) -> BoxFuture<'_, Result<String, String>> {
        async move {
            let sent = Box::pin(self.send(task, rights)).await;
            sent.map_err(|failure| failure.to_string())
        }
        .boxed()
    }

    fn status(&self) -> String {
        let row = match self.configured() {
            Ok((_, places)) => fleet_row(&places),
            Err(failure) => Err(failure.to_string()),
        };
        row.unwrap_or_else(|problem| problem)
    }
}
