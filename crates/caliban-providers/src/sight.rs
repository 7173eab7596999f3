//! Images and models that cannot see them: refused before anything is sent, or replaced by a note
//! where that is asked for.

use std::sync::Arc;

use caliban_model::{
    Block, Error, ErrorKind, Image, Message, Origin, ProviderKind, Request, Role, ToolContent,
    Warning,
};

use crate::failure::fail;

/// What stands where an image was.
pub(crate) const OMITTED_IMAGE: &str = "[image omitted]";

/// What becomes of a prompt with an image for a model that cannot see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Blind {
    #[default]
    Refused,
    /// A note takes the image's place, and a warning says so.
    Described,
}

/// Checks a request to a model that cannot see. An image that the prompt holds must be seen; older
/// ones may have been shown to another model.
pub(crate) fn check(request: &Request, origin: &Origin, blind: Blind) -> Result<(), Error> {
    let turns = request.turns().iter().rev();
    let has_image = turns
        .take_while(|message| message.role != Role::Assistant)
        .flat_map(|message| &message.content)
        .any(|block| matches!(block, Block::Image(_)));
    if !has_image || blind == Blind::Described {
        return Ok(());
    }
    let error = fail(
        origin,
        ErrorKind::Invalid,
        "no candidate: the prompt holds an image, and the model has no vision".to_owned(),
    );
    let kind = origin.provider.parse::<ProviderKind>().ok();
    let such = kind
        .map(ProviderKind::default_model)
        .filter(|model| caliban_model::capabilities(&origin.provider, model).vision)
        .map_or_else(String::new, |model| format!(" such as `{model}`"));
    Err(error.with_remedy(format!(
        "use a model that can see{such}, or set `CALIBAN_STRICT_ROUTING=false` to send a note in place of the image"
    )))
}

/// The request without images, and what to say about it where there were any.
pub(crate) fn without_images(request: &mut Request) -> Option<Warning> {
    let holds_image = |message: &Arc<Message>| message.content.iter().any(has_image);
    if !request.messages().iter().any(holds_image) {
        return None;
    }
    request.rewrite(|message| {
        let mut content = message.content.clone();
        content.iter_mut().for_each(omit);
        message.content.iter().any(has_image).then_some(content)
    });
    let why = "the model cannot see";
    Some(Warning::dropped("image", &request.model, why))
}

fn has_image(block: &Block) -> bool {
    match block {
        Block::Image(_) => true,
        Block::ToolResult { content, .. } => {
            let is_image = |part: &ToolContent| matches!(part, ToolContent::Image(_));
            content.iter().any(is_image)
        }
        Block::Text { .. }
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolUse { .. }
        | Block::Opaque { .. } => false,
    }
}

fn omit(block: &mut Block) {
    match block {
        Block::Image(Image { .. }) => *block = Block::text(OMITTED_IMAGE),
        Block::ToolResult { content, .. } => {
            for part in content {
                if matches!(part, ToolContent::Image(_)) {
                    *part = ToolContent::Text {
                        text: OMITTED_IMAGE.to_owned(),
                    };
                }
            }
        }
        Block::Text { .. }
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolUse { .. }
        | Block::Opaque { .. } => {}
    }
}
