//! Output styles: a block of the prompt that changes the manner of replies and nothing else.

mod human_task;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

pub use human_task::{HumanTask, human_tasks};

use crate::frontmatter::{self, Lenient};
use crate::names::{self, Named};
use crate::notice::{Kind, Notice};
use crate::options::Options;
use crate::origin::Origin;
use crate::places::{Places, Surface};
use crate::roots::{Root, roots};
use crate::section::{Tag, element};
use crate::source;

/// The style that adds nothing.
pub const DEFAULT_STYLE: &str = "default";

/// The styles that are always there: name, description and text.
const BUILT_IN: [(&str, &str, &str); 4] = [
    (
        DEFAULT_STYLE,
        "Nothing added: the assistant works as its prompt says.",
        "",
    ),
    (
        "proactive",
        "Fills gaps and decides by itself instead of stopping to ask.",
        include_str!("proactive.md"),
    ),
    (
        "explanatory",
        "Explains each decision and change along the way.",
        include_str!("explanatory.md"),
    ),
    (
        "learning",
        "Leaves the decisions worth learning from to the user, marked in the code and the reply.",
        include_str!("learning.md"),
    ),
];

/// The largest style file.
const MAX_FILE: u64 = 32 * 1024;
/// The most styles of one directory, and the most names looked at there.
const MAX_STYLES: usize = 100;
const MAX_NAMES: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputStyle {
    name: String,
    description: String,
    origin: Origin,
    coding: CodingInstructions,
    choice: Choice,
    body: String,
}

/// Whether the default prompt's advice on coding stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodingInstructions {
    Kept,
    Dropped,
}

/// Who chooses a style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    User,
    /// Its plugin, as long as that is enabled.
    Plugin,
}

#[derive(Debug, Deserialize)]
struct Fields {
    name: String,
    description: String,
    #[serde(default = "yes", alias = "keep-coding-instructions")]
    keep_coding_instructions: bool,
    #[serde(default, alias = "force-for-plugin")]
    force_for_plugin: bool,
}

fn yes() -> bool {
    true
}

impl OutputStyle {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    pub fn coding_instructions(&self) -> CodingInstructions {
        self.coding
    }

    pub fn body(&self) -> &str {
        &self.body
    }

    /// Its element in the prompt; a style without text has none.
    pub fn render(&self) -> Option<String> {
        (!self.body.is_empty()).then(|| element(Tag::OutputStyle, "name", &self.name, &self.body))
    }
}

impl Named for OutputStyle {
    fn name(&self) -> &str {
        &self.name
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }
}

/// The styles there are, by name.
#[derive(Debug, Clone)]
pub struct OutputStyles {
    entries: BTreeMap<String, OutputStyle>,
    /// Changes nothing, whatever files say.
    default: OutputStyle,
}

/// The style in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection<'a> {
    pub style: &'a OutputStyle,
    /// The plugin that insists on it.
    pub locked_by: Option<&'a str>,
    pub notice: Option<Notice>,
}

/// Those that are built in.
impl Default for OutputStyles {
    fn default() -> Self {
        let styles = BUILT_IN.into_iter();
        let styles = styles.map(|(name, description, body)| built_in(name, description, body));
        Self {
            entries: styles.map(|style| (style.name.clone(), style)).collect(),
            default: built_in(DEFAULT_STYLE, "", ""),
        }
    }
}

impl OutputStyles {
    /// Finds the styles. Files that are not styles are notices.
    pub fn load(places: &Places, options: &Options, notices: &mut Vec<Notice>) -> Self {
        let mut entries = BTreeMap::new();
        for root in roots(places, options, Surface::Styles) {
            for style in scan(&root, notices) {
                names::insert(&mut entries, style, Kind::Style, notices);
            }
        }
        for (name, description, body) in BUILT_IN {
            let style = built_in(name, description, body);
            names::insert(&mut entries, style, Kind::Style, notices);
        }
        Self {
            entries,
            default: built_in(DEFAULT_STYLE, "", ""),
        }
    }

    pub fn get(&self, name: &str) -> Option<&OutputStyle> {
        self.entries.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &OutputStyle> {
        self.entries.values()
    }

    /// The style to use when this one is asked for.
    pub fn select(&self, requested: Option<&str>) -> Selection<'_> {
        let requested = requested.unwrap_or(DEFAULT_STYLE);
        let forced = self.iter().find(|style| style.choice == Choice::Plugin);
        if let Some(style) = forced {
            let plugin = match style.origin() {
                Origin::Plugin(plugin) => plugin.as_str(),
                Origin::BuiltIn
                | Origin::User
                | Origin::Project
                | Origin::Additional
                | Origin::Agent => "",
            };
            return Selection {
                style,
                locked_by: Some(plugin),
                notice: (requested != DEFAULT_STYLE && requested != style.name).then(|| {
                    Notice::StyleLocked {
                        requested: requested.to_owned(),
                        by: plugin.to_owned(),
                    }
                }),
            };
        }
        let found = self.get(requested).or_else(|| {
            self.iter()
                .find(|style| style.name.eq_ignore_ascii_case(requested))
                .or_else(|| names::only_of_plugins(&self.entries, requested))
        });
        let known = || {
            let names: Vec<&str> = self.iter().map(OutputStyle::name).collect();
            names.join(", ")
        };
        Selection {
            style: found.unwrap_or(&self.default),
            locked_by: None,
            notice: found.is_none().then(|| Notice::UnknownStyle {
                name: requested.to_owned(),
                known: known(),
            }),
        }
    }
}

fn built_in(name: &str, description: &str, body: &str) -> OutputStyle {
    OutputStyle {
        name: name.to_owned(),
        description: description.to_owned(),
        origin: Origin::BuiltIn,
        coding: CodingInstructions::Kept,
        choice: Choice::User,
        body: body.trim().to_owned(),
    }
}

fn scan(root: &Root, notices: &mut Vec<Notice>) -> Vec<OutputStyle> {
    let mut styles = Vec::new();
    let (directory, files) = match (root.path.parent(), root.path.file_name()) {
        // A plugin may name a file.
        (Some(directory), Some(name)) if root.plugin().is_some() && root.path.is_file() => {
            let name = name.to_string_lossy().into_owned();
            (directory, vec![name])
        }
        _ => (&*root.path, source::names(&root.path, MAX_NAMES)),
    };
    for file in files {
        let Some(stem) = source::markdown_stem(&file) else {
            continue;
        };
        if styles.len() == MAX_STYLES {
            notices.push(Notice::TooMany {
                what: "output styles of a directory",
                limit: MAX_STYLES,
            });
            break;
        }
        let path = directory.join(&file);
        match source::read_within(&path, &root.fence, MAX_FILE) {
            Ok(None) => {}
            Err(problem) => notices.push(Notice::Unusable { path, problem }),
            Ok(Some(document)) => match parse(&document.text, stem, &root.origin) {
                Ok(style) => {
                    notices.extend(document.notice());
                    styles.push(style);
                }
                Err(reason) => notices.push(Notice::Malformed { path, reason }),
            },
        }
    }
    styles
}

/// A style from the text of its file, whose name it must have.
/// A style that somebody wrote for another program: others call styles by titles, and what a plugin
/// brings is called as its files. What cannot be read of its head is left out.
fn of_stranger<'a>(text: &'a str, stem: &str) -> (Fields, &'a str) {
    let Lenient {
        mut fields, body, ..
    } = Lenient::read(text);
    let mut is_on = |keys: [&str; 2]| {
        let value = keys.iter().find_map(|key| fields.remove(*key))?;
        match value.as_str() {
            Some(text) => Some(text == "true"),
            None => value.as_bool(),
        }
    };
    let coding = is_on(["keep_coding_instructions", "keep-coding-instructions"]);
    let forced = is_on(["force_for_plugin", "force-for-plugin"]);
    let description = fields.get("description").and_then(Value::as_str);
    let fields = Fields {
        name: stem.to_owned(),
        description: description.unwrap_or_default().to_owned(),
        keep_coding_instructions: coding.unwrap_or_else(yes),
        force_for_plugin: forced.unwrap_or(false),
    };
    (fields, body)
}

fn parse(text: &str, stem: &str, origin: &Origin) -> Result<OutputStyle, String> {
    let (fields, body) = match origin {
        Origin::Plugin(_) => of_stranger(text, stem),
        Origin::BuiltIn | Origin::User | Origin::Project | Origin::Additional | Origin::Agent => {
            frontmatter::parse::<Fields>(text).map_err(|error| error.to_string())?
        }
    };
    if fields.name != stem {
        return Err(format!(
            "its name is `{}` and its file's `{stem}`",
            fields.name
        ));
    }
    if !names::is_plain(&fields.name) {
        return Err(format!("`{}` is not a plain name", fields.name));
    }
    let choice = match origin {
        Origin::Plugin(_) if fields.force_for_plugin => Choice::Plugin,
        Origin::Plugin(_)
        | Origin::BuiltIn
        | Origin::User
        | Origin::Project
        | Origin::Additional
        | Origin::Agent => Choice::User,
    };
    Ok(OutputStyle {
        name: names::qualified(origin, &fields.name),
        description: fields.description.trim().to_owned(),
        origin: origin.clone(),
        coding: if fields.keep_coding_instructions {
            CodingInstructions::Kept
        } else {
            CodingInstructions::Dropped
        },
        choice,
        body: body.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugins_style_needs_no_head() {
        let origin = Origin::Plugin("p".into());
        let plain = parse("Be brief.\n", "brief", &origin).unwrap();
        assert_eq!((plain.name(), plain.body()), ("p:brief", "Be brief."));
        let text =
            "---\nname: Some Title\ndescription: When: always\nforce-for-plugin: true\n---\nX";
        let forced = parse(text, "loud", &origin).unwrap();
        assert_eq!(
            (forced.name(), forced.description()),
            ("p:loud", "When: always")
        );
        assert_eq!(forced.choice, Choice::Plugin);
        assert!(parse("Be brief.\n", "brief", &Origin::User).is_err());
    }

    #[test]
    fn the_built_in_styles_are_complete() {
        let styles: Vec<OutputStyle> = BUILT_IN
            .iter()
            .map(|(name, description, body)| built_in(name, description, body))
            .collect();
        let names: Vec<&str> = styles.iter().map(OutputStyle::name).collect();
        assert_eq!(names, ["default", "proactive", "explanatory", "learning"]);
        assert_eq!(styles[0].render(), None);
        assert!(styles[3].body().contains("\nTODO(human): "));
        assert!(styles.iter().all(|style| !style.description().is_empty()));
    }
}
