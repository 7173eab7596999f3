//! Paths inside a plugin: they never lead out of it.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A path below a directory; empty for the directory itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelativePath(PathBuf);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the path `{}` leads out of the plugin; paths are relative to it and have no `..`", .0.escape_debug())]
pub struct LeadsOut(String);

impl RelativePath {
    pub fn parse(text: &str) -> Result<Self, LeadsOut> {
        let leads_out = || LeadsOut(text.chars().take(200).collect());
        if text.contains(['\0', '\\']) {
            return Err(leads_out());
        }
        let mut path = PathBuf::new();
        for component in Path::new(text).components() {
            match component {
                Component::Normal(name) => path.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(leads_out());
                }
            }
        }
        Ok(Self(path))
    }

    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Whether it is the directory itself.
    pub fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// The place below `root`, whose path is canonical; links that lead out of it are refused.
    /// `None` where there is nothing.
    pub fn within(&self, root: &Path) -> Result<Option<PathBuf>, LeadsOut> {
        match root.join(&self.0).canonicalize() {
            Ok(real) if real.starts_with(root) => Ok(Some(real)),
            Ok(_) => Err(LeadsOut(self.to_string())),
            Err(_) => Ok(None),
        }
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str(".");
        }
        self.0.display().fmt(f)
    }
}

impl TryFrom<String> for RelativePath {
    type Error = LeadsOut;

    fn try_from(text: String) -> Result<Self, LeadsOut> {
        Self::parse(&text)
    }
}

impl From<RelativePath> for String {
    fn from(path: RelativePath) -> Self {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for (text, shown) in [("./a/b", "a/b"), ("a//b/", "a/b"), ("./", "."), ("", ".")] {
            assert_eq!(RelativePath::parse(text).unwrap().to_string(), shown);
        }
        for bad in ["/a", "..", "a/../../b", "a/..", "a\0b", "..\\a", "~/../x"] {
            assert!(RelativePath::parse(bad).is_err(), "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_lead_out() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap().join("p");
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::os::unix::fs::symlink("..", root.join("out")).unwrap();
        std::os::unix::fs::symlink("in", root.join("link")).unwrap();
        let within = |text: &str| RelativePath::parse(text).unwrap().within(&root);
        assert_eq!(within("link"), Ok(Some(root.join("in"))));
        assert_eq!(within("gone"), Ok(None));
        assert!(within("out").is_err());
    }
}
