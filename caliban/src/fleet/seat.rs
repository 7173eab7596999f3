//! Worktrees of agents in the background: wished for when an agent is asked for, taken by its
//! process, and ended when the agent is removed.

use caliban_fleet::{Isolation, Launch, TreeFiles, TreeWish};
use caliban_harness::{Configuration, Seat, SeatPlan, end_seat, kind_named, plan_seat};
use caliban_tools::GroundWish;

use super::Fleet;
use crate::args::{Apartness, IsolationArgs};
use crate::console::note;
use crate::exit::Failure;

/// A worktree as it is written down with the task: from the commit that is meant now.
pub(super) async fn isolation(
    configuration: &Configuration,
    wish: GroundWish,
) -> Result<Isolation, Failure> {
    let plan = plan_seat(configuration, wish).await.map_err(|error| {
        Failure::Runtime(format!("there is no worktree for the agent: {error}"))
    })?;
    Ok(Isolation::Worktree(TreeWish {
        base: plan.base,
        files: if plan.is_fresh {
            TreeFiles::Fresh
        } else {
            TreeFiles::All
        },
        sparse_paths: plan.sparse_paths,
        linked: plan.linked,
        name: plan.name,
    }))
}

/// Takes the worktree that an agent is to have; nothing where it works in its directory.
pub(super) async fn seat(
    work: &Launch,
    configuration: &Configuration,
) -> Result<Option<Seat>, Failure> {
    let (Isolation::Worktree(wish), Some(name)) = (&work.spec.task.isolation, work.spec.worktree())
    else {
        return Ok(None);
    };
    let plan = SeatPlan {
        base: wish.base.clone(),
        is_fresh: wish.files == TreeFiles::Fresh,
        sparse_paths: wish.sparse_paths.clone(),
        linked: wish.linked.clone(),
        name: wish.name.clone(),
    };
    let task = &work.spec.task;
    let purpose = task.label.as_deref().unwrap_or(&task.prompt);
    let id = work.spec.id.as_str();
    let taken = Seat::take(configuration, &name, plan, id, purpose).await;
    taken
        .map(Some)
        .map_err(|error| Failure::Runtime(format!("it has no worktree to work in: {error}")))
}

impl Fleet<'_> {
    /// Where an agent works, by the flags or by the profile that it is to be.
    pub(super) async fn isolation(&self, args: &IsolationArgs) -> Result<Isolation, Failure> {
        let wished = match (args.isolation, &args.base_ref) {
            (Some(Apartness::None), Some(_)) => {
                return Err(Failure::Usage(
                    "`--base-ref` is about a worktree: leave `--isolation none` out".to_owned(),
                ));
            }
            (Some(Apartness::None), None) => false,
            (Some(Apartness::Worktree), _) | (None, Some(_)) => true,
            (None, None) => self.profile_wants_worktree()?,
        };
        if !wished {
            return Ok(Isolation::None);
        }
        let wish = GroundWish {
            base_ref: args.base_ref.clone(),
            ..GroundWish::default()
        };
        isolation(self.configuration, wish).await
    }

    fn profile_wants_worktree(&self) -> Result<bool, Failure> {
        let Some(name) = &self.options.agent else {
            return Ok(false);
        };
        let kind = kind_named(name, self.options, self.configuration, None)?;
        Ok(kind.is_some_and(|kind| kind.isolation == caliban_tools::Isolation::Worktree))
    }

    /// Ends the worktree of an agent that is being removed, and says what became of it.
    pub(super) async fn end_worktree(&self, name: Option<&str>) {
        let Some(name) = name else {
            return;
        };
        match end_seat(self.options, self.configuration, name).await {
            Ok(None) => {}
            Ok(Some(told)) => note(&told),
            Err(error) => note(&format!(
                "the worktree `{name}` stays: {error}; `caliban worktrees rm {name}` tries again"
            )),
        }
    }
}
