//! The beginning of a plugin, for its author.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::name::PluginName;

#[derive(Debug, thiserror::Error)]
pub enum SkeletonError {
    #[error("`{}` is there already", .0.display())]
    Exists(PathBuf),
    #[error("`{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Makes a directory with a plugin that can be used as it is, and names its files.
pub fn create(directory: &Path, name: &PluginName) -> Result<Vec<PathBuf>, SkeletonError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| SkeletonError::Io { path, source }
    };
    if directory.exists() {
        return Err(SkeletonError::Exists(directory.to_owned()));
    }
    let manifest = json!({
        "name": name,
        "version": "0.1.0",
        "description": format!("What {name} is for, in one line"),
        "caliban": {"min_version": env!("CARGO_PKG_VERSION")},
    });
    let files = [
        ("plugin.json", format!("{manifest:#}\n")),
        (
            "skills/example/SKILL.md",
            "---\nname: example\ndescription: Says when the model should load this skill.\n---\n\n\
             # Example\n\nWhat the model should know or do. Files beside this one are in \
             ${CALIBAN_SKILL_DIR}.\n"
                .to_owned(),
        ),
        (
            "commands/ask.md",
            "---\ndescription: Says what the command does\nargument-hint: \"[what]\"\n---\n\n\
             What the model is asked to do about $ARGUMENTS.\n"
                .to_owned(),
        ),
        (
            "agents/example.md",
            "---\nname: example\ndescription: Says what this agent is good for.\n\
             tools: Read, Grep, Glob\n---\n\nYou are told a task and look into it.\n"
                .to_owned(),
        ),
    ];
    let mut made = Vec::new();
    for (file, text) in files {
        let path = directory.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed(parent))?;
        }
        fs::write(&path, text).map_err(failed(&path))?;
        made.push(path);
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::{Naming, Package};
    use crate::survey::Survey;

    #[test]
    fn a_new_plugin_is_a_plugin_without_remarks() {
        let temp = tempfile::tempdir().unwrap();
        let directory = temp.path().join("mine");
        let name: PluginName = "mine".parse().unwrap();
        create(&directory, &name).unwrap();
        let package = Package::read(&directory, Naming::AsDirectory).unwrap();
        assert_eq!(package.remarks, Vec::<String>::new());
        let survey = Survey::of(&package, &[]);
        assert_eq!(survey.notices, Vec::<String>::new());
        assert_eq!(survey.skills, ["mine:example"]);
        assert_eq!(survey.agents, ["mine:example"]);
        assert!(matches!(
            create(&directory, &name),
            Err(SkeletonError::Exists(_))
        ));
    }
}
