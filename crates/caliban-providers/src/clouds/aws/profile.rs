//! The files in which AWS's tools keep profiles.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::clouds::surroundings::{Surroundings, read};

/// Everything both files say.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    /// `~/.aws/credentials`: profiles by name.
    credentials: Sections,
    /// `~/.aws/config`: `profile NAME`, `sso-session NAME`, `default`.
    config: Sections,
}

type Sections = HashMap<String, HashMap<String, String>>;

/// One profile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Profile<'a> {
    pub(crate) name: &'a str,
    profiles: &'a Profiles,
}

impl Profiles {
    /// Files that are not there are empty.
    pub(crate) async fn load(surroundings: &Surroundings) -> Result<Self, String> {
        let mut texts = HashMap::new();
        for path in [credentials_file(surroundings), config_file(surroundings)] {
            if let Some(path) = path
                && let Some(text) = read(&path).await?
            {
                texts.insert(path, text);
            }
        }
        Ok(Self::from_texts(
            |path| texts.get(path).cloned(),
            surroundings,
        ))
    }

    /// The same with the texts that `read` gives.
    pub(crate) fn from_texts(
        read: impl Fn(&Path) -> Option<String>,
        surroundings: &Surroundings,
    ) -> Self {
        let sections = |path: Option<PathBuf>| {
            let text = path.and_then(|path| read(&path));
            parse(&text.unwrap_or_default())
        };
        Self {
            credentials: sections(credentials_file(surroundings)),
            config: sections(config_file(surroundings)),
        }
    }

    /// The profile of this name, if either file has it.
    pub(crate) fn profile<'a>(&'a self, name: &'a str) -> Option<Profile<'a>> {
        let profile = Profile {
            name,
            profiles: self,
        };
        profile.sections().next().is_some().then_some(profile)
    }

    /// What a session of single sign-on says.
    pub(crate) fn session(&self, name: &str, key: &str) -> Option<&str> {
        let section = self.config.get(&format!("sso-session {name}"))?;
        section.get(key).map(String::as_str)
    }
}

fn credentials_file(surroundings: &Surroundings) -> Option<PathBuf> {
    file(surroundings, "AWS_SHARED_CREDENTIALS_FILE", "credentials")
}

fn config_file(surroundings: &Surroundings) -> Option<PathBuf> {
    file(surroundings, "AWS_CONFIG_FILE", "config")
}

fn file(surroundings: &Surroundings, variable: &str, name: &str) -> Option<PathBuf> {
    let named = surroundings.variable(variable).map(PathBuf::from);
    named.or_else(|| Some(surroundings.home()?.join(".aws").join(name)))
}

impl<'a> Profile<'a> {
    fn sections(self) -> impl Iterator<Item = &'a HashMap<String, String>> {
        let config = match self.name {
            "default" => self
                .profiles
                .config
                .get("default")
                .or_else(|| self.profiles.config.get("profile default")),
            name => self.profiles.config.get(&format!("profile {name}")),
        };
        let credentials = self.profiles.credentials.get(self.name);
        credentials.into_iter().chain(config)
    }

    /// What is said of a profile; the file of credentials first.
    pub(crate) fn get(self, key: &str) -> Option<&'a str> {
        self.sections()
            .find_map(|section| section.get(key))
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn other(self, name: &'a str) -> Option<Self> {
        self.profiles.profile(name)
    }

    pub(crate) fn profiles(self) -> &'a Profiles {
        self.profiles
    }
}

/// Sections of `key = value` lines. What is indented belongs to the key before it and to nothing
/// that is read here.
fn parse(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) || line.starts_with([' ', '\t']) {
            continue;
        }
        if let Some(rest) = trimmed.strip_prefix('[') {
            let name = rest.split(']').next().unwrap_or_default();
            let words: Vec<&str> = name.split_whitespace().collect();
            let name = words.join(" ").replace('"', "");
            sections.entry(name.clone()).or_default();
            current = Some(name);
        } else if let (Some(section), Some((key, value))) = (&current, trimmed.split_once('=')) {
            let value = value.split(" #").next().unwrap_or_default();
            if let Some(section) = sections.get_mut(section) {
                section.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
            }
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_read_the_credentials_first() {
        let profiles = Profiles {
            credentials: parse("# mine\n[work]\naws_access_key_id = A\nregion=eu-west-1 # near\n"),
            config: parse(
                "[default]\nregion = us-west-2\n[profile  work]\nregion = us-east-1\ns3 =\n  region = no\nsso_session = corp\n[sso-session corp]\nsso_region = us-east-2\n",
            ),
        };
        let work = profiles.profile("work").unwrap();
        assert_eq!(work.get("region"), Some("eu-west-1"));
        assert_eq!(work.get("aws_access_key_id"), Some("A"));
        assert_eq!(work.get("sso_session"), Some("corp"));
        assert_eq!(profiles.session("corp", "sso_region"), Some("us-east-2"));
        let default = profiles.profile("default").unwrap();
        assert_eq!(default.get("region"), Some("us-west-2"));
        assert!(profiles.profile("nobody").is_none());
    }
}
