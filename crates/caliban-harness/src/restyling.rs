//! Another output style in the system prompt of a session that begins anew. Everything else that
//! the model is told first stays as it is, whoever wrote it.

use std::sync::Arc;

use caliban_context::{CodingInstructions, OutputStyle, OutputStyles};
use caliban_model::{Message, Role};

use crate::additions::style_name;
use crate::session::Session;
use crate::system_prompt::{DefaultPrompt, default_prompt};

impl Session {
    /// The system messages with the style that the settings name now.
    pub(crate) fn restyled(&self) -> Vec<Arc<Message>> {
        let system: Vec<_> = self.system_messages().cloned().collect();
        let (Ok(configuration), Some((first, rest))) = (self.configuration(), system.split_first())
        else {
            return system;
        };
        let name = style_name(&configuration);
        let wanted = self.inventory.output_styles.select(name.as_deref()).style;
        self.inventory.set_style(wanted.name());
        let text = first.text();
        let base = default_prompt(self.agent.workspace.root(), &self.agent.tools.current());
        let now = in_effect(&text, &self.inventory.output_styles);
        let restyled = restyle(&text, now, wanted, &base);
        if restyled == text {
            return system;
        }
        let first = Arc::new(Message::system(restyled));
        std::iter::once(first).chain(rest.iter().cloned()).collect()
    }

    /// What the model is told before everything else.
    pub(crate) fn system_messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        let messages = self.conversation.messages().iter();
        messages.filter(|message| message.role == Role::System)
    }
}

/// The style that a prompt holds; nothing where none of those that are known has words in it.
fn in_effect<'a>(text: &str, styles: &'a OutputStyles) -> Option<&'a OutputStyle> {
    let is_in = |style: &&OutputStyle| style.render().is_some_and(|words| text.contains(&words));
    styles.iter().find(is_in)
}

/// Puts one style in the place of another, and the advice on coding where the new one wants it.
fn restyle(
    text: &str,
    now: Option<&OutputStyle>,
    wanted: &OutputStyle,
    base: &DefaultPrompt,
) -> String {
    let old = now.and_then(OutputStyle::render);
    if old == wanted.render() {
        return text.to_owned();
    }
    let mut text = text.to_owned();
    if let Some(old) = old {
        let followed = format!("{old}\n\n");
        let there = if text.contains(&followed) {
            &followed
        } else {
            &old
        };
        text = text.replacen(there, "", 1);
    }
    let coded = format!("{}{}", base.identity, base.coding);
    match wanted.coding_instructions() {
        CodingInstructions::Kept => {
            let lacks =
                |style: &OutputStyle| style.coding_instructions() == CodingInstructions::Dropped;
            if now.is_some_and(lacks) {
                text = text.replacen(&base.identity, &coded, 1);
            }
        }
        CodingInstructions::Dropped => text = text.replacen(&coded, &base.identity, 1),
    }
    if let Some(new) = wanted.render() {
        // It stands before what the program says of itself, or before everything.
        let place = text.find(&base.identity).unwrap_or_default();
        text.insert_str(place, &format!("{new}\n\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use caliban_context::{BasePrompt, system_prompt};

    use super::*;

    fn base() -> DefaultPrompt {
        DefaultPrompt {
            identity: "You are caliban.\n".to_owned(),
            coding: "\nHow to work:\n- well\n".to_owned(),
        }
    }

    fn told(style: &OutputStyle) -> String {
        let DefaultPrompt { identity, coding } = base();
        let base = BasePrompt::Default {
            identity: &identity,
            coding: &coding,
        };
        system_prompt(base, Some(style), &[]).unwrap() + "\n\nAnd this."
    }

    #[test]
    fn what_is_told_is_what_a_session_of_that_style_begins_with() {
        let styles = OutputStyles::default();
        for from in styles.iter() {
            for to in styles.iter() {
                let before = told(from);
                let after = restyle(&before, in_effect(&before, &styles), to, &base());
                assert_eq!(after, told(to), "{} to {}", from.name(), to.name());
            }
        }
    }

    #[test]
    fn words_of_the_operator_stay() {
        let styles = OutputStyles::default();
        let wanted = styles.select(Some("explanatory")).style;
        let after = restyle("Speak Latin.", None, wanted, &base());
        assert!(after.ends_with("\n\nSpeak Latin."), "{after}");
        let none = styles.select(None).style;
        let again = restyle(&after, in_effect(&after, &styles), none, &base());
        assert_eq!(again, "Speak Latin.");
    }
}
