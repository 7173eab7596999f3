//! Sends agents of a session into the background, with the options of the session and no more
//! rights than it has at that moment.

use std::num::NonZeroU32;

use caliban_fleet::{Client, Places};
use caliban_harness::options::{Part, SessionOptions};
use caliban_harness::{Configuration, Fleet, Process, Rights, RunOptions, SystemPrompt, configure};
use caliban_permissions::{Gating, Latch, Regime};
use caliban_settings::PermissionMode;
use caliban_tools::{BackgroundHooks, BackgroundTask, Handover};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;

use super::seat::isolation;
use super::world::{limits, task, world};
use super::{fleet_row, starter};
use crate::exit::Failure;

/// The most turns an agent takes that another one asked for, as in the foreground.
const MAX_TURNS: u32 = 20;

/// The most bytes of a conversation that is moved: requests to the daemon have 10 MiB.
const MAX_HANDOVER: usize = 8 << 20;

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
        if let (Some((_, prompt)), None) = (&wanted.kind, &wanted.handover) {
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
        task.handover = wanted.handover.map(handover).transpose()?;
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

/// A conversation as it is written down with the task; an error where it is too long for that.
fn handover(from: Handover) -> Result<caliban_fleet::Handover, Failure> {
    let messages = from.messages.iter().map(serde_json::to_value);
    let messages: Vec<Value> = messages
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    let bytes: usize = messages.iter().map(|it| it.to_string().len()).sum();
    if bytes > MAX_HANDOVER {
        return Err(Failure::Runtime(format!(
            "its conversation has {bytes} bytes, and {MAX_HANDOVER} can be moved"
        )));
    }
    Ok(caliban_fleet::Handover {
        messages,
        provider: from.provider,
        model: from.model,
    })
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
