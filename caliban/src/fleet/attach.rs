//! Being attached to an agent at a terminal: what it does is shown, lines are messages to it, and
//! the end of the input detaches.

use std::io::IsTerminal as _;

use caliban_fleet::{AgentId, Answers, Attachment, Input, Past, Resumption, Wanted};
use caliban_model::CancellationToken;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use super::Fleet;
use super::frames::Reader;
use crate::args::AttachArgs;
use crate::console::{Console, note};
use crate::exit::Failure;
use crate::typed_lines::TypedLines;

/// How long an agent that is just being started may take to be reachable.
const REACHABLE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);
/// How long the socket of one that runs may be missing: it goes a moment before its agent does.
const MISSING: Duration = Duration::from_secs(1);
/// How long an agent may take to take what was typed last.
const TAKEN: Duration = Duration::from_secs(10);

impl Fleet<'_> {
    pub(super) async fn attach(
        &self,
        args: &AttachArgs,
        cancel: &CancellationToken,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let (id, directory) = self.find(&args.id)?;
        let mut view = directory.view(&id);
        if !view.state.is_alive() {
            if args.read_only {
                return Err(Failure::Usage(format!(
                    "{id} is {}; `caliban logs {id}` shows what it did",
                    view.state.as_str()
                )));
            }
            view = self.resume(id.as_str(), Resumption::Wait).await?;
        }
        let wanted = Wanted {
            input: match (args.read_only, args.take) {
                (true, _) => Input::None,
                (false, true) => Input::TakenOver,
                (false, false) => Input::Shared,
            },
            after: args.since,
            past: Past::Told,
            answers: if args.json {
                Answers::Whole
            } else {
                Answers::AsTheyCome
            },
        };
        let attachment = self.reach(&view.id, wanted).await?;
        // Who only watches types nothing but the end of input, at a terminal.
        let typed = if args.read_only && !std::io::stdin().is_terminal() {
            TypedLines::none()
        } else {
            TypedLines::of_standard_input()
        };
        let mut view = View {
            attachment,
            console,
            form: if args.json {
                Form::Frames
            } else {
                Form::Text(Reader::default())
            },
            typing: if args.read_only {
                Typing::Ignored
            } else {
                Typing::Sent
            },
            questions: Vec::new(),
            heard: 0,
        };
        view.greet(args);
        view.run(typed, cancel).await
    }

    /// Connects to an agent, which may be just about to start.
    pub(super) async fn reach(&self, id: &AgentId, wanted: Wanted) -> Result<Attachment, Failure> {
        let directory = self.registry().directory(id);
        let begun = Instant::now();
        let deadline = begun + REACHABLE;
        loop {
            let view = directory.view(id);
            let has_begun = view.state != caliban_fleet::Phase::Spawning;
            if !view.state.is_alive() {
                let reason = view.reason.unwrap_or_default();
                let state = view.state.as_str();
                return Err(Failure::Runtime(format!("{id} is {state}: {reason}")));
            }
            let socket = view.socket.unwrap_or_else(|| self.places.worker_socket(id));
            match Attachment::open(&socket, wanted).await {
                Ok(attachment) => return Ok(attachment),
                Err(error)
                    if error.kind() == std::io::ErrorKind::NotFound
                        && has_begun
                        && begun.elapsed() > MISSING =>
                {
                    return Err(Failure::Runtime(format!(
                        "{id} is {}, but somebody removed its socket `{}`, so nothing can be said to \
                         it; `caliban agents kill {id}` ends it, `caliban agents resume {id}` lets it \
                         go on",
                        view.state.as_str(),
                        socket.display()
                    )));
                }
                Err(error)
                    if Instant::now() < deadline
                        && matches!(
                            error.kind(),
                            std::io::ErrorKind::NotFound
                                | std::io::ErrorKind::ConnectionRefused
                                | std::io::ErrorKind::UnexpectedEof
                                | std::io::ErrorKind::ConnectionReset
                                | std::io::ErrorKind::BrokenPipe
                        ) =>
                {
                    sleep(LOOK).await;
                }
                Err(error) => return Err(Failure::Runtime(format!("{id}: {error}"))),
            }
        }
    }
}

/// How frames are shown.
enum Form {
    Frames,
    Text(Reader),
}

/// What becomes of lines that are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typing {
    Sent,
    Ignored,
}

struct View<'a> {
    attachment: Attachment,
    console: &'a mut Console,
    form: Form,
    typing: Typing,
    /// Those that are open, oldest first.
    questions: Vec<String>,
    heard: u64,
}

impl View<'_> {
    fn greet(&mut self, args: &AttachArgs) {
        let greeting = &self.attachment.greeting;
        if let Form::Frames = self.form {
            return;
        }
        let may_type = greeting["input"] == true;
        if may_type {
            note(
                "lines are messages to the agent; /allow, /deny, /interrupt, /end; Ctrl+D detaches",
            );
        } else if args.read_only {
            note("Ctrl+D detaches");
        } else {
            note("somebody else types to this agent; `--take` takes over. Ctrl+D detaches");
        }
    }

    async fn run(
        mut self,
        mut typed: TypedLines,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        let newest = self.attachment.newest();
        if let Form::Frames = self.form {
            let greeting = super::listing::json_line(&self.attachment.greeting);
            self.console.write(&greeting)?;
        }
        // How it ends, once nothing more is typed.
        let mut leaving = None;
        loop {
            // What had happened before is shown in any case.
            if self.heard >= newest
                && let Some(end) = leaving
            {
                return self.leave(cancel).await.and(end);
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(()),
                line = self.attachment.lines.recv() => match line {
                    None => return Ok(()),
                    Some(line) => self.show(&line)?,
                },
                line = typed.next(), if leaving.is_none() => match line {
                    None => leaving = Some(Ok(())),
                    Some(Err(failure)) => leaving = Some(Err(failure)),
                    Some(Ok(line)) => match self.typing {
                        Typing::Sent => self.type_in(&line).await?,
                        Typing::Ignored => note("this only watches; Ctrl+D detaches"),
                    },
                },
            }
        }
    }

    /// Goes when the agent has taken everything that was typed: then it ends the connection.
    async fn leave(mut self, cancel: &CancellationToken) -> Result<(), Failure> {
        if self.typing == Typing::Ignored {
            return Ok(());
        }
        // Where it cannot be closed, the agent has closed it.
        let _ = self.attachment.close().await;
        let deadline = Instant::now() + TAKEN;
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(()),
                () = tokio::time::sleep_until(deadline) => {
                    return Err(Failure::Runtime(format!(
                        "the agent has not taken what was typed within {} seconds",
                        TAKEN.as_secs()
                    )));
                }
                line = self.attachment.lines.recv() => match line {
                    None => return Ok(()),
                    Some(line) => self.show(&line)?,
                },
            }
        }
    }

    fn show(&mut self, line: &str) -> Result<(), Failure> {
        let frame: Value = serde_json::from_str(line).unwrap_or_default();
        self.heard = frame["seq"].as_u64().unwrap_or(self.heard);
        let question = frame["question"].as_str().map(str::to_owned);
        match (frame["type"].as_str(), question) {
            (Some("question"), Some(question)) => self.questions.push(question),
            (Some("answered"), Some(question)) => self.questions.retain(|open| *open != question),
            _ => {}
        }
        match &mut self.form {
            Form::Frames => self.console.write(&format!("{line}\n")),
            Form::Text(reader) => {
                let text = reader.read(&frame);
                self.console.write(&text)
            }
        }
    }

    /// Sends what was typed.
    async fn type_in(&mut self, line: &str) -> Result<(), Failure> {
        let frame = match &self.form {
            Form::Frames => match serde_json::from_str(line) {
                Ok(frame) => frame,
                Err(error) => {
                    note(&format!("this is no frame: {error}"));
                    return Ok(());
                }
            },
            Form::Text(_) => {
                if line.trim().is_empty() {
                    return Ok(());
                }
                match meant(line, self.questions.first().map(String::as_str)) {
                    Ok(frame) => frame,
                    Err(problem) => {
                        note(&problem);
                        return Ok(());
                    }
                }
            }
        };
        let sent = self.attachment.say(&frame).await;
        sent.map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidInput => Failure::NoInput(error.to_string()),
            _ => Failure::Runtime(format!("the agent is gone: {error}")),
        })
    }
}

/// What a line means that a person types.
fn meant(line: &str, question: Option<&str>) -> Result<Value, String> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let answer = |decision: &str| {
        let question = question.ok_or("the agent has no question")?;
        let mut frame = json!({"type": "answer", "question": question, "decision": decision});
        if !rest.is_empty() {
            frame["message"] = rest.into();
        }
        Ok(frame)
    };
    match word {
        "/allow" => answer("allow"),
        "/allow-session" => answer("allow-session"),
        "/deny" => answer("deny"),
        "/interrupt" => Ok(json!({"type": "control", "subtype": "interrupt"})),
        "/end" => Ok(json!({"type": "end"})),
        "/take" => Ok(json!({"type": "take"})),
        _ => Ok(json!({"type": "user", "content": line})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_but_for_a_few_words() {
        let frame = |line| meant(line, Some("q")).unwrap();
        assert_eq!(
            frame(" hello /allow "),
            json!({"type": "user", "content": "hello /allow"})
        );
        assert_eq!(
            frame("/deny not that one"),
            json!({"type": "answer", "question": "q", "decision": "deny", "message": "not that one"})
        );
        assert_eq!(frame("/end"), json!({"type": "end"}));
        assert!(meant("/allow", None).is_err());
    }
}
