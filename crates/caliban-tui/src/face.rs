//! The loop: what the terminal, the session and the clock say goes into the state, and what the
//! state looks like goes onto the terminal. It waits for nothing else, and never for the terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use caliban_model::CancellationToken;
use caliban_session::{Command, EventBatch, Events, Shutdown};
use caliban_terminal::{
    Capabilities, Decoder, Gallery, InlinePainter, Input, MouseCapture, Painter, Surface, Tty,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::app::{App, Beginning, Done, Effect, Link, Msg, Redraw};
use crate::errands::Errands;
use crate::farewell::{self, Departure, Farewell};
use crate::host::Host;
use crate::inline;
use crate::panic_guard::PanicGuard;
use crate::preferences::{Mouse, Screen};
use crate::setup::{FaceError, Setup};
use crate::view;

/// A frame for what happens, and for what somebody does.
const FRAME: Duration = Duration::from_millis(33);
const SLOW_FRAME: Duration = Duration::from_millis(66);
const KEY_FRAME: Duration = Duration::from_millis(8);
/// What may wait of what came of errands.
const DONE: usize = 64;
/// How long the session may take to end when one leaves.
const GOODBYE: Duration = Duration::from_secs(2);
/// What is read from the terminal at once.
const READ: usize = 64 * 1024;

/// Everything around the state.
pub(crate) struct Face {
    app: App,
    tty: Tty,
    decoder: Decoder,
    painter: Painter,
    inline: InlinePainter,
    gallery: Gallery,
    errands: Errands,
    done: mpsc::Receiver<Done>,
    events: Option<Events>,
    drawn: Option<Instant>,
    leaving: Option<Departure>,
    /// On the `inline` surface.
    cover: Cover,
    /// While the terminal is not ours, its Ctrl+C is not for us either.
    is_elsewhere: Arc<AtomicBool>,
}

/// Shows sessions on the terminal until the operator leaves, or is made to.
pub async fn run(
    setup: Setup,
    host: Arc<dyn Host>,
    cancel: &CancellationToken,
) -> Result<Farewell, FaceError> {
    let mut face = Face::begin(setup, host)?;
    let guard = PanicGuard::new();
    // What was typed before there was anybody to read it is in the first frame.
    let typed = face.tty.drain_input();
    face.take(&typed);
    face.paint();
    let ended = face.live(cancel).await;
    let farewell = face.leave(guard).await;
    match ended {
        Ok(()) => Ok(farewell),
        Err(FaceError::Cancelled(_)) => Err(FaceError::Cancelled(Some(Box::new(farewell)))),
        Err(error) => Err(error),
    }
}

impl Face {
    fn begin(setup: Setup, host: Arc<dyn Host>) -> Result<Self, FaceError> {
        let mut tty = Tty::open().map_err(FaceError::Terminal)?;
        let (width, height) = tty.size();
        let capabilities = Capabilities::from_environment(&*setup.environment);
        let esc = capabilities.esc_delay();
        tty.enter_raw().map_err(FaceError::Lost)?;
        let modes = caliban_terminal::enter(surface(setup.screen), MouseCapture::Off);
        tty.set_modes(&modes).map_err(FaceError::Lost)?;
        tty.write(caliban_terminal::PROBES)
            .map_err(FaceError::Lost)?;
        let (sender, done) = mpsc::channel(DONE);
        let cell_dots = tty.cell_dots();
        let mut face = Self {
            painter: Painter::new(&capabilities),
            inline: InlinePainter::new(&capabilities),
            gallery: Gallery::new(capabilities.graphics()),
            app: App::new(Beginning {
                width,
                height,
                capabilities,
                cwd: setup.cwd.clone(),
                home: setup.home.clone(),
                screen: setup.screen,
                prompt: setup.prompt.clone(),
                draft: setup.draft(),
                now: Instant::now(),
            }),
            is_elsewhere: Arc::clone(&setup.is_elsewhere),
            errands: Errands::new(host, sender, setup),
            tty,
            decoder: Decoder::new(esc),
            done,
            events: None,
            drawn: None,
            leaving: None,
            cover: Cover::Down,
        };
        face.app.cell_dots = cell_dots;
        Ok(face)
    }

    async fn live(&mut self, cancel: &CancellationToken) -> Result<(), FaceError> {
        let mut resized = signal(SignalKind::window_change()).map_err(FaceError::Lost)?;
        let mut buffer = vec![0; READ];
        while self.leaving.is_none() {
            self.run_errands().await?;
            if self.leaving.is_some() {
                break;
            }
            self.paint_if_due()?;
            let deadline = self.deadline();
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(FaceError::Cancelled(None)),
                _ = resized.recv() => self.measure(),
                read = self.tty.read(&mut buffer) => {
                    let count = read.map_err(FaceError::Lost)?;
                    if count == 0 {
                        return Err(FaceError::HangUp);
                    }
                    self.take(&buffer[..count]);
                }
                batch = next(&mut self.events) => self.tell(batch),
                Some(done) = self.done.recv() => self.take_done(done),
                () = until(deadline) => {
                    let now = Instant::now();
                    let mut inputs = Vec::new();
                    self.decoder.expire(now, &mut inputs);
                    self.hear(inputs);
                    self.app.update(Msg::Tick, now);
                }
                free = self.tty.writable(), if !self.tty.is_free() => {
                    free.and_then(|()| self.tty.write(&[])).map_err(FaceError::Lost)?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) {
        let mut inputs = Vec::new();
        self.decoder.push(bytes, Instant::now(), &mut inputs);
        self.hear(inputs);
    }

    fn hear(&mut self, inputs: Vec<Input>) {
        let mut inputs = inputs;
        if self.app.mouse == Mouse::Off && self.app.screen == Screen::Fullscreen {
            caliban_terminal::fold_wheel(&mut inputs);
        }
        for input in inputs {
            self.app.update(Msg::Input(input), Instant::now());
        }
        self.painter.adopt(&self.app.capabilities);
        self.inline.adopt(&self.app.capabilities);
    }

    fn tell(&mut self, batch: Option<EventBatch>) {
        let msg = match batch {
            Some(EventBatch::Events(events)) => Msg::Told(events),
            Some(EventBatch::Missed(count)) => Msg::Missed(count),
            None => {
                self.events = None;
                Msg::Silence
            }
        };
        self.app.update(msg, Instant::now());
    }

    fn take_done(&mut self, done: Done) {
        let done = match done {
            Done::Opened(Ok(mut opened)) => {
                let mut events = opened.events.take();
                if let Some(events) = &mut events {
                    events.attend();
                }
                self.events = events;
                Done::Opened(Ok(opened))
            }
            done => done,
        };
        self.app.update(Msg::Done(done), Instant::now());
    }

    fn measure(&mut self) {
        let (width, height) = self.tty.size();
        self.app.cell_dots = self.tty.cell_dots();
        self.painter.resize(width, height);
        self.gallery.invalidate();
        self.app.update(Msg::Resized(width, height), Instant::now());
    }

    fn deadline(&self) -> Option<Instant> {
        let frame = self.frame_due();
        let decoder = self.decoder.deadline();
        let app = self.app.deadline();
        [frame, decoder, app].into_iter().flatten().min()
    }

    /// When the next frame may be drawn, where one is wanted and the terminal is free.
    fn frame_due(&self) -> Option<Instant> {
        let pause = match self.app.redraw {
            Redraw::No => return None,
            Redraw::Now => KEY_FRAME,
            Redraw::Soon if self.app.capabilities.over_ssh => SLOW_FRAME,
            Redraw::Soon => FRAME,
        };
        if !self.tty.is_free() {
            return None;
        }
        Some(self.drawn.map_or_else(Instant::now, |drawn| drawn + pause))
    }

    fn paint_if_due(&mut self) -> Result<(), FaceError> {
        if self.frame_due().is_some_and(|due| due <= Instant::now()) {
            self.try_paint().map_err(FaceError::Lost)?;
        }
        Ok(())
    }

    fn paint(&mut self) {
        // Where the terminal is gone, the loop finds out.
        let _ = self.try_paint();
    }

    fn try_paint(&mut self) -> std::io::Result<()> {
        self.app.now = Instant::now();
        self.app.redraw = Redraw::No;
        let bytes = match self.app.screen {
            Screen::Fullscreen => {
                let (before, bottom) = std::mem::take(&mut self.app.drawn);
                let canvas = view::draw(&mut self.app);
                self.app.hang_pictures();
                let pictures = &self.app.pictures;
                let moved = moved(&before, &self.app.drawn.0);
                let is_text = pictures.is_empty() && self.gallery.is_empty();
                let is_bare = is_text && self.app.layers.is_empty();
                // Whether pictures scroll along is another thing in every terminal.
                if bottom == self.app.drawn.1 && moved != 0 && is_bare {
                    self.painter.scrolled(0..bottom, moved);
                }
                for rows in self.gallery.vacated(pictures) {
                    self.painter.forget(rows);
                }
                let (links, cursor) = (&canvas.links, canvas.cursor);
                let bytes = self.painter.paint(&canvas.buffer, links, cursor);
                self.tty.write(bytes)?;
                &self.gallery.show(pictures)
            }
            // What is printed stays as it is: panels have a screen of their own.
            Screen::Inline if self.app.is_covered() => {
                if self.cover == Cover::Down {
                    self.tty.write(caliban_terminal::OVER)?;
                    self.painter.invalidate();
                    self.cover = Cover::Up;
                }
                let canvas = view::draw(&mut self.app);
                let (links, cursor) = (&canvas.links, canvas.cursor);
                self.painter.paint(&canvas.buffer, links, cursor)
            }
            Screen::Inline => {
                if self.cover == Cover::Up {
                    self.tty.write(caliban_terminal::BACK)?;
                    self.cover = Cover::Down;
                }
                let frame = inline::draw(&mut self.app);
                self.inline.above(&frame.finished);
                self.inline.paint(&frame.region, frame.cursor)
            }
        };
        self.drawn = Some(Instant::now());
        self.tty.write(bytes)?;
        Ok(())
    }

    /// Does what the state wants done.
    async fn run_errands(&mut self) -> Result<(), FaceError> {
        while !self.app.effects.is_empty() {
            for effect in std::mem::take(&mut self.app.effects) {
                self.perform(effect).await?;
            }
        }
        Ok(())
    }

    async fn perform(&mut self, effect: Effect) -> Result<(), FaceError> {
        match effect {
            Effect::Send(command) => {
                if let Link::Open(handle) = &self.app.link
                    && handle.send(command).await.is_err()
                {
                    self.app.update(Msg::Silence, Instant::now());
                }
            }
            Effect::Bytes(bytes) => {
                self.tty.write(&bytes).map_err(FaceError::Lost)?;
            }
            Effect::Repaint => {
                self.invalidate();
            }
            Effect::DrawOn => {
                self.step_out()?;
                self.step_in()?;
            }
            Effect::CaptureMouse(mouse) => {
                let bytes = capture(mouse).bytes();
                self.tty.write(bytes).map_err(FaceError::Lost)?;
                self.tty.remember(&self.modes());
            }
            Effect::EditText(text) => {
                let edited = self.outside(&text).await?;
                self.app
                    .update(Msg::Done(Done::Edited(edited)), Instant::now());
            }
            Effect::EditInput { question, text } => {
                let edited = self.outside(&text).await?;
                let done = Done::InputEdited { question, edited };
                self.app.update(Msg::Done(done), Instant::now());
            }
            Effect::EditMemory { value, text } => {
                let edited = self.outside(&text).await?;
                let done = Done::MemoryEdited { value, edited };
                self.app.update(Msg::Done(done), Instant::now());
            }
            Effect::ShowText(text) => {
                if let Err(error) = self.outside(&text).await? {
                    self.app.say(error);
                }
            }
            Effect::HandOver { program, arguments } => {
                self.step_out()?;
                let ended = self.errands.hand_over(&program, &arguments).await;
                self.step_in()?;
                if let Err(error) = ended {
                    self.app.say(error);
                }
            }
            Effect::Dump(rows) => self.dump(&rows)?,
            Effect::Suspend => {
                caliban_terminal::suspend().map_err(FaceError::Lost)?;
                self.cover = Cover::Down;
                self.measure();
                self.invalidate();
            }
            Effect::Copy(text) => {
                if let Some(bytes) = caliban_terminal::copy(&text, &self.app.capabilities) {
                    self.tty.write(&bytes).map_err(FaceError::Lost)?;
                }
                self.errands.copy(text);
            }
            Effect::Leave(way) => self.leaving = Some(way),
            Effect::GiveUp => return Err(FaceError::NotBegun),
            Effect::TalkInLines => return Err(FaceError::WantsLines),
            effect => self.errands.run(effect),
        }
        Ok(())
    }

    /// Hands the terminal to an editor.
    async fn outside(&mut self, text: &str) -> Result<Result<String, String>, FaceError> {
        self.step_out()?;
        let edited = self.errands.edit(text).await;
        self.step_in()?;
        Ok(edited)
    }

    /// Prints rows where they stay: on the main screen.
    fn dump(&mut self, rows: &[String]) -> Result<(), FaceError> {
        self.step_out()?;
        let mut text = rows.join("\r\n");
        text.push_str("\r\n");
        let written = self.tty.write_now(text.as_bytes());
        written.map_err(FaceError::Lost)?;
        self.step_in()
    }

    fn step_out(&mut self) -> Result<(), FaceError> {
        self.is_elsewhere.store(true, Ordering::Relaxed);
        if self.cover == Cover::Up {
            self.cover = Cover::Down;
            let written = self.tty.write_now(caliban_terminal::BACK);
            written.map_err(FaceError::Lost)?;
        }
        let region = self.inline.leave().to_vec();
        self.tty.write_now(&region).map_err(FaceError::Lost)?;
        let pictures = self.gallery.leave();
        self.tty.write_now(pictures).map_err(FaceError::Lost)?;
        self.tty
            .write_now(caliban_terminal::LEAVE)
            .and_then(|()| self.tty.leave_raw())
            .map_err(FaceError::Lost)
    }

    fn step_in(&mut self) -> Result<(), FaceError> {
        self.tty.enter_raw().map_err(FaceError::Lost)?;
        let modes = self.modes();
        self.tty.set_modes(&modes).map_err(FaceError::Lost)?;
        self.is_elsewhere.store(false, Ordering::Relaxed);
        self.measure();
        self.invalidate();
        Ok(())
    }

    fn modes(&self) -> Vec<u8> {
        caliban_terminal::enter(surface(self.app.screen), capture(self.app.mouse))
    }

    /// Nobody knows what is on the screen.
    fn invalidate(&mut self) {
        self.painter.invalidate();
        self.inline.invalidate();
        self.gallery.invalidate();
        self.app.want(Redraw::Now);
    }

    /// Gives the terminal back, leaves the conversation on it, and lets the session end.
    async fn leave(mut self, guard: PanicGuard) -> Farewell {
        // Where it is gone already, there is nothing to give back.
        let _ = self.step_out();
        self.is_elsewhere.store(false, Ordering::Relaxed);
        drop(guard);
        let farewell = farewell::of(&self.app, self.leaving.unwrap_or(Departure::Out));
        self.errands.save_draft(&self.app);
        if let Link::Open(handle) = &self.app.link {
            let when = Shutdown::Now;
            let ending = async {
                let _ = handle.send(Command::Shutdown { when }).await;
                while next(&mut self.events).await.is_some() {}
            };
            // What takes longer, the guardian ends without us.
            let _ = tokio::time::timeout(GOODBYE, ending).await;
        }
        farewell
    }
}

/// Whether a panel covers the main screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cover {
    Down,
    Up,
}

/// By how many rows what was drawn has moved up; it stands at the bottom, however much it is.
fn moved(before: &[(usize, usize)], after: &[(usize, usize)]) -> i32 {
    let place = after
        .first()
        .and_then(|first| before.iter().position(|row| row == first));
    let rows = |count: usize| i32::try_from(count).unwrap_or(0);
    place.map_or(0, |place| {
        rows(place) + rows(after.len()) - rows(before.len())
    })
}

fn surface(screen: Screen) -> Surface {
    match screen {
        Screen::Fullscreen => Surface::Fullscreen,
        Screen::Inline => Surface::Inline,
    }
}

fn capture(mouse: Mouse) -> MouseCapture {
    match mouse {
        Mouse::On => MouseCapture::On,
        Mouse::Off => MouseCapture::Off,
    }
}

/// What the session tells next, for ever nothing where there is none.
async fn next(events: &mut Option<Events>) -> Option<EventBatch> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
