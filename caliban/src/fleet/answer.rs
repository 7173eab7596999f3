//! Answering a question of an agent without being attached to it.

use caliban_fleet::{Answers, Input, Past, Wanted};
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use super::Fleet;
use crate::args::{AnswerArgs, QuestionAnswer};
use crate::console::Console;
use crate::exit::Failure;

/// How long the agent may take to take note.
const NOTED: Duration = Duration::from_secs(10);

impl Fleet<'_> {
    pub(super) async fn answer(
        &self,
        args: &AnswerArgs,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let message = args.message.as_deref();
        let answered = self.answered(&args.id, &args.question, args.answer, message);
        console.write(&answered.await?)
    }

    /// Answers a question, and says how it was taken.
    pub(crate) async fn answered(
        &self,
        agent: &str,
        question: &str,
        answer: QuestionAnswer,
        message: Option<&str>,
    ) -> Result<String, Failure> {
        let (id, directory) = self.find(agent)?;
        let view = directory.view(&id);
        let asked = view.needs.as_ref().and_then(|needs| needs.id.clone());
        let question = match asked {
            Some(asked) if question == "-" || asked.starts_with(question) => asked,
            // It may have several at once; the agent knows best.
            Some(_) if question.len() == 36 => question.to_owned(),
            Some(_) | None => {
                return Err(Failure::NoInput(format!(
                    "{id} does not wait with the question `{question}`; `caliban agents list` \
                     shows what it waits for"
                )));
            }
        };
        let wanted = Wanted {
            input: Input::Shared,
            after: None,
            past: Past::Left,
            answers: Answers::Whole,
        };
        let mut attachment = self.reach(&id, wanted).await?;
        let mut frame = json!({
            "type": "answer",
            "question": question,
            "decision": answer.as_str(),
        });
        if let Some(message) = message {
            frame["message"] = message.into();
        }
        let gone = |error| Failure::Runtime(format!("{id} is gone: {error}"));
        attachment.say(&frame).await.map_err(gone)?;
        let noted = async {
            while let Some(line) = attachment.lines.recv().await {
                let frame: Value = serde_json::from_str(&line).unwrap_or_default();
                match frame["type"].as_str() {
                    Some("answered") if frame["question"] == question.as_str() => {
                        return Ok(frame["how"].as_str().unwrap_or_default().to_owned());
                    }
                    Some("error") => {
                        let message = frame["message"].as_str().unwrap_or_default();
                        return Err(Failure::NoInput(format!("{id}: {message}")));
                    }
                    _ => {}
                }
            }
            Err(Failure::Runtime(format!("{id} has ended")))
        };
        let how = timeout(NOTED, noted)
            .await
            .map_err(|_| Failure::Runtime(format!("{id} does not take note of the answer")))??;
        Ok(format!("{id} {how}\n"))
    }
}
