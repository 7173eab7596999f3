//! The one way in for images, whoever brings them along: prompts of every face, results of every
//! tool. What is none never reaches a provider.

use caliban_agent::{Intake, ToolOutput};
use caliban_images::{Ingested, Limits, MAX_IMAGES, Scaling, ingest_again};
use caliban_model::{Block, Image, Message, ToolContent};
use futures::FutureExt;
use futures::future::BoxFuture;

/// Takes images in by the limits of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageIntake(pub(crate) Limits);

impl ImageIntake {
    /// Decoding takes its time, and what strangers made may break it.
    async fn ingest(self, image: Image) -> Result<Ingested, String> {
        let decoding = tokio::task::spawn_blocking(move || ingest_again(image, self.0));
        match decoding.await {
            Ok(ingested) => ingested.map_err(|problem| problem.to_string()),
            Err(_) => Err("cannot be decoded".to_owned()),
        }
    }

    async fn shown(self, image: Image) -> Vec<ToolContent> {
        match self.ingest(image).await {
            Ok(Ingested { image, scaling }) => {
                let note = match (scaling, image.dims) {
                    (Scaling::Downscaled { from }, Some(to)) => Some(format!(
                        "[downscaled] The image is shown with {}x{} pixels; it has {}x{}.",
                        to.0, to.1, from.0, from.1
                    )),
                    (Scaling::Downscaled { .. } | Scaling::Kept, _) => None,
                };
                let note = note.map(|text| ToolContent::Text { text });
                note.into_iter()
                    .chain([ToolContent::Image(image)])
                    .collect()
            }
            Err(problem) => {
                let text = format!("[an image that cannot be shown: it {problem}]");
                vec![ToolContent::Text { text }]
            }
        }
    }
}

impl Intake for ImageIntake {
    fn prompt(&self, mut prompt: Message) -> BoxFuture<'_, Result<Message, String>> {
        async move {
            let is_image = |block: &&Block| matches!(block, Block::Image(_));
            let count = prompt.content.iter().filter(is_image).count();
            if count > MAX_IMAGES {
                return Err(format!(
                    "the message has {count} images; at most {MAX_IMAGES} are sent"
                ));
            }
            let mut position = 0;
            for block in &mut prompt.content {
                if let Block::Image(image) = block {
                    position += 1;
                    let ingested = self.ingest(image.clone()).await;
                    let ingested = ingested
                        .map_err(|problem| format!("image {position} of the message {problem}"))?;
                    *image = ingested.image;
                }
            }
            Ok(prompt)
        }
        .boxed()
    }

    fn result(&self, mut output: ToolOutput) -> BoxFuture<'_, ToolOutput> {
        async move {
            let is_image = |part: &ToolContent| matches!(part, ToolContent::Image(_));
            if !output.content.iter().any(is_image) {
                return output;
            }
            let mut content = Vec::with_capacity(output.content.len());
            let mut count = 0_usize;
            for part in std::mem::take(&mut output.content) {
                match part {
                    ToolContent::Image(image) => {
                        count += 1;
                        if count <= MAX_IMAGES {
                            content.extend(self.shown(image).await);
                        }
                    }
                    text @ ToolContent::Text { .. } => content.push(text),
                }
            }
            if let Some(more) = count.checked_sub(MAX_IMAGES).filter(|more| *more > 0) {
                let text =
                    format!("[{more} more images are left out; at most {MAX_IMAGES} are sent]");
                content.push(ToolContent::Text { text });
            }
            output.content = content;
            output
        }
        .boxed()
    }
}
