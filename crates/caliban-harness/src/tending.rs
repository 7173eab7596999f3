//! Commands about the session itself: where it works, what goes on in it, and what its workspace
//! may set.

use std::path::PathBuf;

use caliban_git::ANSWER_BYTES;
use caliban_settings::IgnoredBecause;
use caliban_tools::{JobEnd, ListedJob};

use crate::configuration::Configuration;
use crate::git::git;
use crate::reports::columns;
use crate::session::Session;

impl Session {
    /// What counts at this moment; nothing where the session was not begun from settings.
    pub(crate) fn configuration(&self) -> Result<Configuration, String> {
        let watch = self.watch.as_ref();
        let watch = watch.ok_or("the settings are not at hand here")?;
        Ok(watch.configuration())
    }

    /// For this session only; settings keep directories for others.
    pub(crate) fn add_directory(&self, path: &str) -> Result<String, String> {
        let workspace = &self.agent.workspace;
        let resolved = workspace.resolve_freely(path);
        let real = resolved.map_err(|error| error.to_string())?.real;
        if !real.is_dir() {
            return Err(format!("`{}` is not a directory", real.display()));
        }
        let known = workspace.additional();
        let mut roots = std::iter::once(workspace.root()).chain(known.iter().map(PathBuf::as_path));
        if let Some(root) = roots.find(|root| real.starts_with(root)) {
            return Ok(format!(
                "`{}` is within reach already, in `{}`.",
                real.display(),
                root.display()
            ));
        }
        let further: Vec<PathBuf> = known.iter().cloned().chain([real.clone()]).collect();
        workspace.replace_additional(&further);
        if let Some(watch) = &self.watch {
            watch.keep_directory(real.clone());
        }
        Ok(format!(
            "`{}` belongs to this session; rules count there as in the workspace.",
            real.display()
        ))
    }

    pub(crate) fn tasks(&self) -> String {
        let jobs = self.jobs.as_ref().map(|jobs| jobs.listed());
        let jobs = jobs.unwrap_or_default();
        let jobs = if jobs.is_empty() {
            "no background jobs".to_owned()
        } else {
            format!("background jobs\n{}", columns(jobs.iter().map(job)))
        };
        format!("{jobs}\n\n{}", self.todos.render())
    }

    /// Granting trust takes a person who has looked: this only tells.
    pub(crate) fn trust(&self) -> Result<String, String> {
        let configuration = self.configuration()?;
        let project = configuration.project().display();
        if configuration.is_trusted() {
            return Ok(format!(
                "`{project}` is trusted; `caliban trust --revoke` ends that."
            ));
        }
        let ignored = configuration.loaded.ignored.iter();
        let router = configuration.router.as_ref();
        let ignored = ignored.chain(router.into_iter().flat_map(|router| &router.ignored));
        let ignored = ignored.filter(|it| it.because == IgnoredBecause::Untrusted);
        let mut rows: Vec<_> = ignored
            .map(|it| (format!("  {}", it.key), it.scope.to_string()))
            .collect();
        rows.dedup();
        let held = if rows.is_empty() {
            "Nothing in its settings waits for that.".to_owned()
        } else {
            format!("Ignored until then:\n{}", columns(rows))
        };
        Ok(format!(
            "`{project}` is not trusted: it may tighten rules, and neither loosen any nor run \
             programs. {held}\n\nLook at its `.caliban`, then run `caliban trust`, or pass \
             `--trust-workspace` for one run."
        ))
    }

    /// What differs from the last commit, and what is new.
    pub(crate) async fn diff(&self) -> Result<String, String> {
        let git = git(&self.configuration()?).await;
        git.ask(&["rev-parse", "--is-inside-work-tree"]).await?;
        let plain = ["diff", "--no-ext-diff", "--no-textconv", "--no-color"];
        let against = git.ask(&["rev-parse", "--verify", "--quiet", "HEAD"]).await;
        let mut args = plain.to_vec();
        // Before the first commit there is nothing but what was added.
        args.push(if against.is_ok() { "HEAD" } else { "--cached" });
        let mut text = git.ask(&args).await?;
        if text.len() >= ANSWER_BYTES {
            text.push_str("\n… and more; `git diff HEAD` shows everything");
        }
        let new = git
            .ask(&["ls-files", "--others", "--exclude-standard"])
            .await?;
        if !new.is_empty() {
            let names: Vec<&str> = new.lines().collect();
            text = format!("new files\n  {}\n\n{text}", names.join("\n  "));
        }
        Ok(match text.trim_end() {
            "" => "Nothing differs from the last commit.".to_owned(),
            text => text.to_owned(),
        })
    }
}

fn job(job: &ListedJob) -> (String, String) {
    let state = match job.end {
        None => format!("runs for {} s", job.age.as_secs()),
        Some(JobEnd::Exited(code)) => format!("exited with {code}"),
        Some(JobEnd::Killed) => "was ended".to_owned(),
    };
    let line = job.command.lines().next().unwrap_or_default();
    (format!("  {} {state}", job.id), line.to_owned())
}
