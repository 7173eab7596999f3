//! The course of a run: frames out to the board, answers and wishes back in, and everything that
//! another attempt would need kept on the way.

use std::sync::atomic::Ordering;
use std::time::Duration;

use caliban_fleet_nats::{Board, BoardError, JobResult, Nudge, OnQuestion, Outcome, State};
use caliban_harness::RunOptions;
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::super::job_process::{Orders, Questions};
use super::attempt::{Attempt, Verdict};
use super::checkout::Checkout;
use super::journal::Journal;
use super::room::Room;
use super::run::Run;
use super::terms::Terms;

/// How often it is looked for answers, and for what did not reach the board.
const LOOK: Duration = Duration::from_secs(2);
/// For how long somebody who said so watches.
const WATCHED: Duration = Duration::from_secs(30);
/// How long a run that is to end may take to say its last word.
const GRACE: Duration = Duration::from_secs(10);
/// Numbers of events before the first frame.
const BEFORE: u64 = 100;

/// Why a run is to end before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cut {
    Cancelled,
    TooLong,
    /// Somebody would have to be asked, and the job shall fail then.
    Asked(String),
    /// The worker is to stop.
    Leaving,
}

/// Where a run is.
struct Course {
    /// Events told so far.
    number: u64,
    watched: Instant,
    /// Open questions, and until when they wait.
    questions: Vec<(String, Instant)>,
    result: Option<Value>,
    cut: Option<Cut>,
    /// When a run that is to end is ended.
    end: Option<Instant>,
}

impl<B: Board> Attempt<'_, B> {
    /// Runs the job to its end.
    pub(super) async fn run(
        self,
        terms: Terms,
        options: RunOptions,
        prompt: String,
        mut journal: Journal,
        mut checkout: Checkout,
        room: Room,
    ) -> Result<Verdict, String> {
        let questions = match terms.on_question {
            OnQuestion::Deny => Questions::Nobody,
            OnQuestion::Park | OnQuestion::Fail => Questions::Worker,
        };
        let orders = Orders {
            options: Box::new(options),
            prompt,
            questions,
        };
        let nudges = self.board.nudges(self.spec.job).await;
        let mut nudges = nudges.map_err(|error| error.to_string())?;
        let starting = Run::start(
            &orders,
            self.spec.job,
            checkout.directory(),
            self.shop.configuration,
        );
        let mut run = starting.await.map_err(|error| error.to_string())?;
        let log = run.log();
        tokio::pin!(log);
        let mut said = None;
        let now = Instant::now();
        let wall = now + terms.wall;
        let mut course = Course {
            number: BEFORE,
            watched: now,
            questions: Vec::new(),
            result: None,
            cut: None,
            end: None,
        };
        let mut looking = interval(LOOK.min(self.shop.lease / 6));
        looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let end = course.end;
            tokio::select! {
                line = run.line() => match line.map_err(|error| error.to_string())? {
                    None => break,
                    Some(line) => {
                        let frame: Value = serde_json::from_str(&line).unwrap_or_default();
                        self.frame(frame, &terms, &mut course, &mut journal, &mut checkout).await?;
                    }
                },
                kept = &mut log, if said.is_none() => said = Some(kept),
                Some(nudge) = nudges.next() => match nudge {
                    Nudge::Watch => course.watched = Instant::now() + WATCHED,
                    Nudge::Look => self.look(&mut course, &mut run).await,
                },
                _ = looking.tick() => {
                    if !course.questions.is_empty() {
                        self.look(&mut course, &mut run).await;
                    }
                    if journal.is_behind() {
                        unless_fenced(journal.flush(self.board).await)?;
                    }
                }
                () = self.hold.news.notified() => course.cut(Cut::Cancelled),
                () = self.cancel.cancelled(), if course.cut.is_none() => course.cut(Cut::Leaving),
                () = sleep_until(wall), if course.cut.is_none() => course.cut(Cut::TooLong),
                () = sleep_until(end.unwrap_or(wall)), if end.is_some() => break,
            }
            if course.cut.is_some() && course.end.is_none() {
                course.end = Some(Instant::now() + GRACE);
                run.end();
            }
        }
        let code = run.gone().await;
        let log = match said {
            Some(said) => said,
            None => tokio::time::timeout(GRACE, log).await.unwrap_or_default(),
        };
        self.keep_all(&mut journal, &mut checkout).await?;
        self.finish(course, code, journal, checkout, room, log)
            .await
    }

    /// Takes a frame of the run to the board.
    async fn frame(
        &self,
        mut frame: Value,
        terms: &Terms,
        course: &mut Course,
        journal: &mut Journal,
        checkout: &mut Checkout,
    ) -> Result<(), String> {
        let job = self.spec.job;
        let kind = frame["type"].as_str().unwrap_or_default().to_owned();
        if kind == "text" || kind == "thinking" {
            if course.watched > Instant::now() {
                // Who watches sees the whole answer in any case.
                let _ = self.board.whisper(job, frame.to_string().into()).await;
            }
            return Ok(());
        }
        if let Some(object) = frame.as_object_mut() {
            object.insert("attempt".to_owned(), self.number.into());
        }
        match (kind.as_str(), frame["question"].as_str()) {
            ("question", Some(question)) => match terms.on_question {
                OnQuestion::Park => {
                    let until = Instant::now() + self.shop.patience;
                    course.questions.push((question.to_owned(), until));
                    let asking = self.board.ask(job, question, frame.to_string().into());
                    asking.await.map_err(|error| error.to_string())?;
                }
                // The run has nobody to ask, and denies it by itself.
                OnQuestion::Deny => {}
                OnQuestion::Fail => {
                    let tool = frame["tool"].as_str().unwrap_or("a server");
                    course.cut(Cut::Asked(tool.to_owned()));
                }
            },
            ("answered", Some(question)) => {
                course.questions.retain(|(open, _)| open != question);
            }
            _ => {}
        }
        course.number += 1;
        self.teller.tell(self.number, course.number, &frame).await;
        match kind.as_str() {
            "tool_use" => self.keep_session(journal).await?,
            "tool_result" | "message" => self.keep_all(journal, checkout).await?,
            "result" => course.result = Some(frame),
            _ => {}
        }
        Ok(())
    }

    async fn keep_session(&self, journal: &mut Journal) -> Result<(), String> {
        journal.note(None).map_err(|error| error.to_string())?;
        unless_fenced(journal.flush(self.board).await)
    }

    /// Keeps files and conversation; what cannot be kept now is kept later.
    async fn keep_all(&self, journal: &mut Journal, checkout: &mut Checkout) -> Result<(), String> {
        let files = match checkout.keep(self.board).await {
            Ok(files) => files,
            Err(reason) => {
                crate::console::note(&format!(
                    "warning: job {}: the files are not kept: {reason}",
                    self.spec.job
                ));
                None
            }
        };
        journal.note(files).map_err(|error| error.to_string())?;
        unless_fenced(journal.flush(self.board).await)
    }

    /// Looks at the board for answers and for the wish that the job end.
    async fn look(&self, course: &mut Course, run: &mut Run) {
        let job = self.spec.job;
        if let Ok(Some(record)) = self.board.record(job).await
            && record.value.state == State::Cancelling
        {
            course.cut(Cut::Cancelled);
            return;
        }
        let now = Instant::now();
        let mut answered = Vec::new();
        for (question, until) in &course.questions {
            let answer = self.board.answer_to(job, question).await.ok().flatten();
            let mut frame = json!({"type": "answer", "question": question});
            match answer {
                Some(answer) => {
                    frame["decision"] = answer.decision.into();
                    if let Some(message) = answer.message {
                        frame["message"] = message.into();
                    }
                }
                None if *until <= now => {
                    frame["decision"] = "deny".into();
                    frame["message"] = "nobody answered in time".into();
                }
                None => continue,
            }
            answered.push(question.clone());
            // A run that is gone says so itself.
            let _ = run.say(&frame).await;
        }
        course
            .questions
            .retain(|(question, _)| !answered.contains(question));
    }

    async fn finish(
        &self,
        course: Course,
        code: Option<u8>,
        mut journal: Journal,
        checkout: Checkout,
        room: Room,
        log: Vec<u8>,
    ) -> Result<Verdict, String> {
        let blank = self.blank();
        let said = course.result.unwrap_or_default();
        let text = |name: &str| said[name].as_str().map(str::to_owned);
        let sums = JobResult {
            subtype: text("subtype"),
            text: text("result"),
            cost_usd: said["total_cost_usd"].clone(),
            turns: said["turns"].as_u64().unwrap_or_default(),
            reason: None,
            ..blank
        };
        let reason = text("error").or_else(|| text("message"));
        let result = match course.cut {
            Some(Cut::Leaving) if !self.is_cancelled() => {
                // What another needs to go on is on the board before it may.
                journal
                    .flush(self.board)
                    .await
                    .map_err(|error| error.to_string())?;
                return Ok(Verdict::Released);
            }
            Some(Cut::Cancelled | Cut::Leaving) => JobResult {
                outcome: Outcome::Cancelled,
                exit_code: 124,
                reason: Some("cancelled".to_owned()),
                ..sums
            },
            Some(Cut::TooLong) => JobResult {
                outcome: Outcome::Failed,
                exit_code: 1,
                reason: Some("it took longer than it may".to_owned()),
                ..sums
            },
            Some(Cut::Asked(tool)) => JobResult {
                outcome: Outcome::Failed,
                exit_code: 1,
                reason: Some(format!("somebody would have to be asked about {tool}")),
                ..sums
            },
            None if said.is_null() => {
                let log = String::from_utf8_lossy(&log);
                let last = log.lines().last().unwrap_or("it said nothing");
                return Ok(Verdict::GivenUp(format!("the run vanished: {last}")));
            }
            None if sums.subtype.as_deref() == Some("success") => JobResult {
                outcome: Outcome::Done,
                exit_code: code.unwrap_or_default(),
                ..sums
            },
            None => JobResult {
                outcome: Outcome::Failed,
                exit_code: code.filter(|code| *code != 0).unwrap_or(1),
                reason,
                ..sums
            },
        };
        Ok(self.conclude(result, checkout, room, log).await)
    }

    fn is_cancelled(&self) -> bool {
        self.hold.is_cancelled.load(Ordering::SeqCst)
    }
}

impl Course {
    /// The run is to end; the first reason counts.
    fn cut(&mut self, cut: Cut) {
        self.cut.get_or_insert(cut);
    }
}

/// Trouble with the board passes; another attempt does not.
fn unless_fenced(flushed: Result<(), BoardError>) -> Result<(), String> {
    match flushed {
        Err(error @ BoardError::Fenced) => Err(error.to_string()),
        Ok(()) | Err(_) => Ok(()),
    }
}
