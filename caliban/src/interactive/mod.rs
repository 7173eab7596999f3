//! The terminal interface of the program: begins it, and is the program around it.

mod agents;
mod desk;
mod keys;
mod lists;
mod preferences;
mod sessions;
mod settings;
mod themes;

use std::io::{IsTerminal, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use caliban_compose::ImageAtom;
use caliban_context::{Approval, ExternalImport, ImportAllowlist, load_memory};
use caliban_harness::options::SessionChoice;
use caliban_harness::{
    Ambient, Configuration, Diagnostics, LaunchError, Process, RunOptions, Surroundings, configure,
    context_options, context_places, glimpse, launch_apart,
};
use caliban_images::{Scaling, Thumbnail};
use caliban_model::{Image, ImageSource, Message};
use caliban_settings::IgnoredBecause;
use caliban_settings::variables::names;
use caliban_terminal::Raster;
use caliban_tui::{
    CustomTheme, Earlier, FaceError, Farewell, Host, ImportVerdict, Look, Next, Opened, Programs,
    Screen, Setup, Which,
};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::args::{CommandLine, InputFormat};
use crate::console::Console;
use crate::doctor::Doctor;
use crate::exit::Failure;
use crate::fleet::Sender;
use crate::prompt;
use crate::signals::Interrupts;

use desk::ProgramDesk;

/// Whether a person is meant to talk with the program: nothing says otherwise, and there is a
/// terminal to talk on.
pub(crate) fn is_wanted(line: &CommandLine) -> bool {
    let run = &line.cli.run;
    let is_headless = run.print.is_some()
        || run.output.output_format.is_some()
        || run.output.input_format == InputFormat::StreamJson
        || [&run.prompt, &run.prompt_flag]
            .into_iter()
            .flatten()
            .any(|text| text == "-");
    !is_headless && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Talks with a person until he leaves.
pub(crate) async fn run(
    line: &CommandLine,
    process: Process,
    interrupts: &Interrupts,
    console: Console,
) -> Result<(), Failure> {
    let run = &line.cli.run;
    crate::args::check_prompt(run)?;
    crate::args::check_attended(run)?;
    let prompt = prompt::typed(run)?;
    let options = line.options()?;
    let diagnostics = Arc::new(Withheld::default());
    let outside = process.clone();
    let process = Process {
        diagnostics: Arc::clone(&diagnostics) as Arc<dyn Diagnostics>,
        ..process
    };
    let environment = process.environment.clone();
    let is_saved = !line.cli.session.no_save;
    let cwd = caliban_harness::workspace(options.workspace.as_deref(), &process)?;
    let locations = caliban_harness::locations(&process);
    let setup = Setup {
        environment: Arc::new(move |name| environment.text(name)),
        is_elsewhere: Arc::clone(&interrupts.is_elsewhere),
        draft_file: is_saved.then(|| locations.project_state(&cwd).join("draft.txt")),
        cwd,
        home: process.home.clone(),
        screen: match process.environment.text(names::CALIBAN_TUI).as_deref() {
            Some("inline") => Screen::Inline,
            Some(_) | None => Screen::Fullscreen,
        },
        prompt,
    };
    let program = Arc::new(Program {
        options,
        process,
        failure: Mutex::default(),
    });
    let host = Arc::clone(&program) as Arc<dyn Host>;
    let drawn = match surface(line, &program) {
        Surface::Screen => {
            let host = Arc::clone(&host);
            Box::pin(caliban_tui::run(setup.clone(), host, &interrupts.cancel)).await
        }
        Surface::Lines => Err(FaceError::WantsLines),
    };
    let ended = match drawn {
        Err(FaceError::WantsLines) => {
            let interruption = || interrupts.stop_instead();
            let cancel = &interrupts.cancel;
            Box::pin(caliban_tui::run_plain(setup, host, cancel, &interruption)).await
        }
        drawn => drawn,
    };
    for warning in diagnostics.taken() {
        crate::console::note(&format!("warning: {warning}"));
    }
    match ended {
        Ok(farewell) => {
            say_goodbye(&farewell);
            match farewell.next {
                Next::End => Ok(()),
                Next::Page(session) => {
                    interrupts.stop_everything();
                    crate::console::note("the session goes on in the page; Ctrl+C ends it");
                    let (options, cancel) = (program.options.clone(), &interrupts.cancel);
                    crate::serve::page(session, options, outside, cancel, console).await
                }
            }
        }
        Err(FaceError::NotBegun | FaceError::WantsLines) => Err(program.failure()),
        Err(FaceError::Cancelled(Some(farewell))) => {
            say_goodbye(&farewell);
            Err(Failure::Outcome(caliban_agent::Outcome::Cancelled))
        }
        Err(FaceError::Cancelled(None) | FaceError::HangUp) => {
            Err(Failure::Outcome(caliban_agent::Outcome::Cancelled))
        }
        Err(error @ (FaceError::Terminal(_) | FaceError::Lost(_))) => {
            Err(Failure::Runtime(error.to_string()))
        }
    }
}

/// What is talked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surface {
    Screen,
    /// Lines that are only ever added.
    Lines,
}

fn surface(line: &CommandLine, program: &Program) -> Surface {
    let environment = &program.process.environment;
    let is_asked_for = line.cli.run.output.screen_reader
        || environment.is_on(names::CALIBAN_SCREEN_READER)
        || environment.text(names::CALIBAN_TUI).as_deref() == Some("plain");
    let is_dumb = environment.text("TERM").is_none_or(|term| term == "dumb");
    if is_asked_for || is_dumb {
        Surface::Lines
    } else {
        Surface::Screen
    }
}

/// Leaves the conversation on the screen, and how it goes on.
fn say_goodbye(farewell: &Farewell) {
    let mut out = std::io::stdout().lock();
    let resume = farewell.resume.as_ref();
    let resume = resume.map_or_else(String::new, |line| format!("\nGo on with: {line}\n"));
    let text = format!("{}{resume}", farewell.transcript);
    // Nobody may be there to read it.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// What is said outside the events of a session waits until the screen is free.
#[derive(Debug, Default)]
struct Withheld(Mutex<Vec<String>>);

impl Withheld {
    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Diagnostics for Withheld {
    fn warning(&self, text: &str) {
        let mut withheld = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        withheld.push(text.to_owned());
    }

    fn debug(&self, _: &str) {}
}

/// The program around the face.
#[derive(Debug)]
struct Program {
    options: RunOptions,
    process: Process,
    /// Why the first session did not begin.
    failure: Mutex<Option<LaunchError>>,
}

impl Program {
    fn configuration(&self) -> Result<Configuration, LaunchError> {
        configure(&self.options, self.process.clone())
    }

    fn failed(&self, error: LaunchError) -> String {
        let text = error.to_string();
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some(error);
        text
    }

    fn failure(&self) -> Failure {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match failure.take() {
            Some(error) => Failure::Launch(error),
            None => Failure::Runtime("the session did not begin".to_owned()),
        }
    }

    async fn opened(self: Arc<Self>, which: Which) -> Result<Opened, String> {
        let mut options = self.options.clone();
        match which {
            Which::Asked => {}
            Which::Named(name) => options.session.choice = SessionChoice::Resume(name),
        }
        let configuration = self.configuration().map_err(|error| self.failed(error))?;
        let mut surroundings = Surroundings::new(self.process.clone());
        // A person began it, whatever ran in the shell before.
        surroundings.dialect.trace = Ambient::Ignored;
        surroundings.dialect.examiner = Some(Arc::new(Doctor {
            options: options.clone(),
            process: self.process.clone(),
        }));
        surroundings.dialect.fleet = Some(Arc::new(Sender {
            options: options.clone(),
            process: self.process.clone(),
        }));
        let launched = launch_apart(options, surroundings).await;
        let launched = launched.map_err(|error| self.failed(error))?;
        let desk = launched.desk();
        let (past, name) = (desk.past.clone(), desk.name.clone());
        let earlier = Earlier {
            turns: desk.earlier.turns,
            cost: desk.earlier.cost,
            used: desk.earlier.used,
        };
        let (handle, events) = launched.begin();
        Ok(Opened {
            handle,
            events: Some(events),
            past,
            earlier,
            name,
            desk: Arc::new(ProgramDesk {
                session: desk,
                configuration,
                options: self.options.clone(),
            }),
        })
    }
}

/// Files outside the workspace that its instructions import, as they are now, which were neither
/// approved nor refused.
fn undecided(
    options: &RunOptions,
    configuration: &Configuration,
) -> Result<Vec<ExternalImport>, LaunchError> {
    let wanted = context_options(options, configuration)?;
    let memory = load_memory(&context_places(configuration), &wanted);
    let mut imports = memory.external;
    imports.retain(|import| match import.approval {
        Approval::Unknown | Approval::Changed => true,
        Approval::Approved | Approval::Refused => false,
    });
    Ok(imports)
}

impl Host for Program {
    fn look(&self) -> Result<Look, String> {
        let configuration = self.configuration().map_err(|error| self.failed(error))?;
        let is_saved = self.options.session.saving == caliban_harness::options::Saving::On;
        let locations = &configuration.locations;
        let untrusted = if configuration.is_trusted() {
            Vec::new()
        } else {
            let router = configuration.router.iter();
            let ignored = router.flat_map(|router| &router.ignored);
            let ignored = configuration.loaded.ignored.iter().chain(ignored);
            ignored
                .filter(|ignored| ignored.because == IgnoredBecause::Untrusted)
                .map(|ignored| format!("{} ({})", ignored.key, ignored.scope))
                .collect()
        };
        let imports =
            undecided(&self.options, &configuration).map_err(|error| self.failed(error))?;
        let imports = imports.iter().map(|import| {
            let (path, by) = (import.path.display(), import.imported_by.display());
            format!("{path} ({} bytes), wanted by {by}", import.bytes)
        });
        Ok(Look {
            preferences: preferences::of(&configuration),
            untrusted,
            imports: imports.collect(),
            programs: Programs {
                guard: configuration.process.guard.clone(),
                environment: configuration.child_environment(),
                directory: configuration.workspace.clone(),
            },
            history: is_saved.then(|| locations.input_history(&configuration.workspace)),
            histories: is_saved.then(|| locations.checkpoints_root()),
        })
    }

    fn trust(&self) -> Result<(), String> {
        let configuration = self.configuration().map_err(|error| error.to_string())?;
        configuration
            .grant_trust()
            .map_err(|error| error.to_string())
    }

    fn judge_imports(&self, verdict: ImportVerdict) -> Result<(), String> {
        let configuration = self.configuration().map_err(|error| error.to_string())?;
        let imports = undecided(&self.options, &configuration);
        let list = ImportAllowlist::new(context_places(&configuration).imports_allowlist);
        for import in imports.map_err(|error| error.to_string())? {
            let judged = match verdict {
                ImportVerdict::Approve => list.approve(&import),
                ImportVerdict::Refuse => list.refuse(&import),
            };
            judged.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn glimpse(&self) -> Vec<Arc<Message>> {
        glimpse(&self.options, &self.process)
    }

    fn open(self: Arc<Self>, which: Which) -> BoxFuture<'static, Result<Opened, String>> {
        self.opened(which).boxed()
    }

    fn ingest(&self, bytes: &[u8]) -> Result<ImageAtom, String> {
        let configuration = self.configuration().map_err(|error| error.to_string())?;
        let ingested = caliban_images::ingest(bytes, configuration.image_limits())
            .map_err(|error| format!("The image {error}"))?;
        let size = ingested
            .image
            .dims
            .map_or_else(String::new, |(width, height)| format!("{width}×{height}"));
        let label = match ingested.scaling {
            Scaling::Kept => size,
            Scaling::Downscaled { .. } => format!("{size} [downscaled]"),
        };
        let ImageSource::Base64 { data } = &ingested.image.source else {
            return Err("The image cannot be sent".to_owned());
        };
        Ok(ImageAtom {
            media_type: ingested.image.mime.as_str().into(),
            data: data.as_bytes().into(),
            label: label.into(),
        })
    }

    fn picture(&self, image: &Image, dots: (u32, u32)) -> Result<Raster, String> {
        let Thumbnail {
            width,
            height,
            rgba,
            png,
        } = caliban_images::thumbnail(image, dots).map_err(|error| error.to_string())?;
        Ok(Raster {
            width,
            height,
            rgba,
            png,
        })
    }

    fn theme(&self, name: &str) -> Result<(CustomTheme, Vec<String>), String> {
        let locations = caliban_harness::locations(&self.process);
        themes::named(name, locations.config_dir())
    }
}
