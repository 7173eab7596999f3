//! The one tool through which the model gets skills.

use std::sync::Arc;

use caliban_agent::{Effect, Tool, ToolContext, ToolOutput, Workspace, input_schema};
use caliban_model::ToolSpec;
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Invocation, Skill, Skills};
use crate::notice::Notice;

const NAME: &str = "Skill";
const INTRODUCTION: &str = "Loads the instructions of a skill. When one of these fits the task, \
     load it before you begin and follow it:";
/// The longest menu, in bytes; it is sent with every request.
const MAX_MENU: usize = 16 * 1024;
/// How long descriptions may be, in characters, when the menu would be too long.
const SHORTER: [usize; 3] = [240, 80, 0];

#[derive(Debug)]
pub struct SkillTool {
    spec: ToolSpec,
    skills: Arc<Skills>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The exact name of the skill.
    #[serde(alias = "skill")]
    name: String,
    /// What the skill is loaded for, where it is said.
    #[serde(default)]
    #[schemars(skip)]
    args: Option<String>,
}

impl SkillTool {
    pub fn new(skills: Arc<Skills>) -> Self {
        Self {
            spec: ToolSpec {
                name: NAME.to_owned(),
                description: format!("{INTRODUCTION}\n{}", menu(&skills).text),
                input_schema: input_schema::<Input>(),
            },
            skills,
        }
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn first_arg(&self, input: &Value) -> Option<String> {
        parse(input).map(|input| input.name).ok()
    }

    fn conflict_key(&self, _: &Value, _: &Workspace) -> Option<String> {
        None
    }

    fn supersession_key(&self, _: &Value) -> Option<String> {
        None
    }

    fn understands(&self, input: &Value) -> bool {
        parse(input).is_ok()
    }

    fn run(&self, input: Value, _: ToolContext) -> BoxFuture<'_, ToolOutput> {
        let skills = Arc::clone(&self.skills);
        async move {
            match tokio::task::spawn_blocking(move || load(&skills, &input)).await {
                Ok(output) => output,
                Err(error) => ToolOutput::failed(error.to_string()),
            }
        }
        .boxed()
    }
}

fn parse(input: &Value) -> Result<Input, serde_json::Error> {
    Input::deserialize(input)
}

fn load(skills: &Skills, input: &Value) -> ToolOutput {
    let (name, args) = match parse(input) {
        Ok(Input { name, args }) => (name, args),
        Err(error) => {
            return ToolOutput::invalid(format!("The input of {NAME} does not fit: {error}."));
        }
    };
    let Some(skill) = usable(skills).find(|skill| skill.name() == name) else {
        let known: Vec<&str> = usable(skills).map(Skill::name).collect();
        return ToolOutput::invalid(format!(
            "There is no skill `{name}`. There are: {}.",
            known.join(", ")
        ));
    };
    let loaded = skill
        .body()
        .map(|body| match args.as_deref().map(str::trim) {
            None | Some("") => body,
            Some(args) => format!("{}\n\nArguments: {args}", body.trim_end()),
        });
    match loaded {
        Ok(body) => match skill.path().and_then(|path| path.parent()) {
            // Skills refer to files beside them.
            Some(directory) => ToolOutput::ok(format!(
                "Skill `{name}` ({}), whose files are in {}.\n\n{body}",
                skill.origin(),
                directory.display()
            )),
            None => ToolOutput::ok(body),
        },
        Err(error) => ToolOutput::failed(error.to_string()),
    }
}

fn usable(skills: &Skills) -> impl Iterator<Item = &Skill> {
    skills
        .iter()
        .filter(|skill| skill.invocation() == Invocation::ModelAndUser)
}

/// What the model is told of skills beforehand.
struct Menu {
    text: String,
    /// How long its descriptions may be, in characters.
    limit: usize,
    /// How many skills it does not name.
    missing: usize,
}

/// Something to say about a menu that does not hold everything.
pub(super) fn shortfall(skills: &Skills) -> Option<Notice> {
    let Menu { limit, missing, .. } = menu(skills);
    let longest = usable(skills).map(|skill| skill.description().chars().count());
    let is_cut = longest.max().is_some_and(|longest| longest > limit);
    (is_cut || missing > 0).then_some(Notice::MenuCut { limit, missing })
}

/// Every skill with its description, as far as that fits.
fn menu(skills: &Skills) -> Menu {
    let lines = |limit: usize| {
        usable(skills)
            .map(|skill| entry(skill, limit))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let mut limit = usize::MAX;
    let mut text = lines(limit);
    for shorter in SHORTER {
        if text.len() <= MAX_MENU {
            break;
        }
        limit = shorter;
        text = lines(limit);
    }
    if text.len() > MAX_MENU {
        text.truncate(text.floor_char_boundary(MAX_MENU));
        text.truncate(text.rfind('\n').unwrap_or(text.len()));
    }
    Menu {
        missing: usable(skills).count() - text.lines().count(),
        limit,
        text,
    }
}

fn entry(skill: &Skill, limit: usize) -> String {
    let name = skill.name();
    let description = skill.description();
    if limit == 0 {
        return format!("- {name}");
    }
    let short: String = description.chars().take(limit).collect();
    let mark = if short.len() < description.len() {
        "…"
    } else {
        ""
    };
    format!("- {name}: {short}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Origin;
    use serde_json::Map;

    fn skills(count: usize, length: usize) -> Skills {
        let skill = |index: usize| Skill {
            name: format!("skill-{index:04}"),
            description: "d".repeat(length),
            origin: Origin::User,
            invocation: Invocation::ModelAndUser,
            metadata: Map::new(),
            text: super::super::Text::BuiltIn(""),
        };
        Skills {
            entries: (0..count)
                .map(|index| (format!("skill-{index:04}"), skill(index)))
                .collect(),
        }
    }

    #[test]
    fn a_long_menu_keeps_every_name_it_can() {
        let short = skills(2, 3);
        assert_eq!(menu(&short).text, "- skill-0000: ddd\n- skill-0001: ddd");
        assert_eq!(shortfall(&short), None);
        for (count, length, lines) in [
            (15, 1024, 15),
            (50, 1024, 50),
            (500, 1024, 500),
            (2000, 9, 1260),
        ] {
            let skills = skills(count, length);
            let menu = menu(&skills);
            assert!(menu.text.len() <= MAX_MENU);
            assert_eq!(menu.text.lines().count(), lines);
            assert_eq!(menu.missing, count - lines);
            assert_eq!(shortfall(&skills).is_some(), count > 15);
        }
    }
}
