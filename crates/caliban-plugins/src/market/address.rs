//! Where marketplaces and repositories lie, and when two spellings mean the same one.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Hosts whose addresses are repositories.
const REPOSITORY_HOSTS: [&str; 4] = ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org"];
/// The longest address, in bytes.
const LONGEST: usize = 2048;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error(
        "`{0}` is not an address; write `https://…`, `owner/repository` or the path of a directory"
    )]
    Unknown(String),
    #[error("`{0}` is no address; to mean the directory of that name, write `./{0}`")]
    Relative(String),
    #[error("`{0}` has no scheme; write `https://{0}`")]
    NoScheme(String),
    #[error("`{0}` is not https; only this machine is spoken to without encryption")]
    Plain(String),
    #[error("`{0}` holds a user name or password; git and proxies know where to find those")]
    Credentials(String),
    #[error("`{0}` is no name of a branch, tag or commit")]
    Reference(String),
}

/// A repository that git can fetch from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GitAddress {
    text: String,
    identity: String,
}

impl GitAddress {
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let unknown = || AddressError::Unknown(shown(text));
        let is_safe = |letter: char| !letter.is_control() && !letter.is_whitespace();
        if text.len() > LONGEST || text.starts_with('-') || !text.chars().all(is_safe) {
            return Err(unknown());
        }
        // As git does: what has a colon before the first slash, and no scheme, is `host:path`.
        if !text.contains("://") {
            let (before, path) = text.split_once(':').ok_or_else(unknown)?;
            let host = before.rsplit('@').next().unwrap_or(before);
            let is_host = |host: &str| {
                !host.is_empty()
                    && !host.starts_with('-')
                    && host
                        .chars()
                        .all(|it| it.is_ascii_alphanumeric() || ".-".contains(it))
            };
            if before.contains('/') || !is_host(host) || path.is_empty() || path.starts_with('-') {
                return Err(unknown());
            }
            return Ok(Self {
                text: text.to_owned(),
                identity: identity(&host.to_ascii_lowercase(), path),
            });
        }
        let url = Url::parse(text).map_err(|_| unknown())?;
        match url.scheme() {
            "https" => check_web(&url, text)?,
            "http" if is_this_machine(&url) => {}
            "http" => return Err(AddressError::Plain(shown(text))),
            "ssh" if url.password().is_none() && url.host_str().is_some() => {}
            "file" => {}
            _ => return Err(unknown()),
        }
        Ok(Self {
            identity: identity(&place(&url), url.path()),
            text: text.to_owned(),
        })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is a directory of this machine.
    pub fn is_local(&self) -> bool {
        self.text.starts_with("file://")
    }
}

impl TryFrom<String> for GitAddress {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        Self::parse(&text)
    }
}

impl From<GitAddress> for String {
    fn from(address: GitAddress) -> Self {
        address.text
    }
}

/// Where a list of plugins lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MarketSource {
    /// A document of the web.
    Index {
        url: String,
    },
    Git {
        url: GitAddress,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reference: Option<String>,
    },
    Directory {
        path: PathBuf,
    },
}

impl MarketSource {
    /// Reads what somebody wrote; relative paths are meant from `from`.
    pub fn parse(text: &str, from: &Path, home: &Path) -> Result<Self, AddressError> {
        let text = text.trim();
        let unknown = || AddressError::Unknown(shown(text));
        if text.is_empty() || text.len() > LONGEST {
            return Err(unknown());
        }
        if let Some(rest) = text.strip_prefix("~/") {
            return Ok(Self::directory(home.join(rest)));
        }
        if text.starts_with(['/', '.']) {
            return Ok(Self::directory(from.join(text)));
        }
        let (address, reference) = match text.split_once('#') {
            Some((address, reference)) => (address, Some(checked(reference)?)),
            None => (text, None),
        };
        if address.contains("://") {
            return Self::web(address, reference);
        }
        if address.contains('@') && address.contains(':') {
            let url = GitAddress::parse(address)?;
            return Ok(Self::Git { url, reference });
        }
        let (path, at) = match address.split_once('@') {
            Some((path, reference)) => (path, Some(checked(reference)?)),
            None => (address, None),
        };
        let parts: Vec<&str> = path.split('/').collect();
        let is_name = |part: &&str| {
            !part.is_empty()
                && !part.starts_with(['.', '-'])
                && part
                    .chars()
                    .all(|it| it.is_ascii_alphanumeric() || "._-".contains(it))
        };
        if parts.len() < 2 || !parts.iter().all(is_name) {
            return Err(if from.join(text).is_dir() {
                AddressError::Relative(shown(text))
            } else {
                unknown()
            });
        }
        if parts.len() > 2 || parts[0].contains('.') {
            return Err(AddressError::NoScheme(shown(text)));
        }
        let repository = parts[1].strip_suffix(".git").unwrap_or(parts[1]);
        let url = GitAddress::parse(&format!("https://github.com/{}/{repository}.git", parts[0]))?;
        Ok(Self::Git {
            url,
            reference: reference.or(at),
        })
    }

    fn directory(path: PathBuf) -> Self {
        Self::Directory {
            path: path.canonicalize().unwrap_or(path),
        }
    }

    fn web(address: &str, reference: Option<String>) -> Result<Self, AddressError> {
        let url = Url::parse(address).map_err(|_| AddressError::Unknown(shown(address)))?;
        let path = url.path().trim_end_matches('/');
        let is_list = Path::new(path)
            .extension()
            .is_some_and(|it| it.eq_ignore_ascii_case("json"));
        let is_web = matches!(url.scheme(), "https" | "http");
        let is_repository = !is_web
            || Path::new(path)
                .extension()
                .is_some_and(|it| it.eq_ignore_ascii_case("git"))
            || path.contains("/_git/")
            || url
                .host_str()
                .is_some_and(|host| REPOSITORY_HOSTS.contains(&host));
        if is_repository && !is_list {
            let url = GitAddress::parse(address)?;
            return Ok(Self::Git { url, reference });
        }
        web_address(address)?;
        Ok(Self::Index {
            url: address.to_owned(),
        })
    }

    /// One text for all spellings of the same place.
    pub fn identity(&self) -> String {
        match self {
            Self::Index { url } => match Url::parse(url) {
                Ok(url) => identity(&place(&url), url.path()),
                Err(_) => url.clone(),
            },
            Self::Git { url, .. } => url.identity.clone(),
            Self::Directory { path } => path.display().to_string(),
        }
    }
}

impl fmt::Display for MarketSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index { url } => f.write_str(url),
            Self::Git {
                url,
                reference: None,
            } => f.write_str(url.as_str()),
            Self::Git {
                url,
                reference: Some(reference),
            } => {
                write!(f, "{}#{reference}", url.as_str())
            }
            Self::Directory { path } => write!(f, "{}", path.display()),
        }
    }
}

/// An address that may be fetched: encrypted, or this machine.
pub(crate) fn web_address(text: &str) -> Result<Url, AddressError> {
    let url = Url::parse(text).map_err(|_| AddressError::Unknown(shown(text)))?;
    match url.scheme() {
        "https" => check_web(&url, text)?,
        "http" if is_this_machine(&url) => {}
        "http" => return Err(AddressError::Plain(shown(text))),
        _ => return Err(AddressError::Unknown(shown(text))),
    }
    Ok(url)
}

/// A branch, tag or commit that git cannot take for an option.
pub(crate) fn checked(reference: &str) -> Result<String, AddressError> {
    let is_plain = !reference.is_empty()
        && reference.len() <= 200
        && !reference.starts_with(['-', '/', '.'])
        && !reference.contains("..")
        && reference
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || "._-/+".contains(it));
    if is_plain {
        Ok(reference.to_owned())
    } else {
        Err(AddressError::Reference(shown(reference)))
    }
}

fn check_web(url: &Url, text: &str) -> Result<(), AddressError> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::Credentials(
            url.host_str().unwrap_or_default().to_owned(),
        ));
    }
    match url.host_str() {
        Some(_) => Ok(()),
        None => Err(AddressError::Unknown(shown(text))),
    }
}

/// Whether an address is this machine without asking anybody.
fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn place(url: &Url) -> String {
    let host = url
        .host_str()
        .unwrap_or_default()
        .trim_end_matches('.')
        .to_ascii_lowercase();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

fn identity(host: &str, path: &str) -> String {
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    // The hosts that people name take names in any case.
    let path = if REPOSITORY_HOSTS.contains(&host) {
        path.to_ascii_lowercase()
    } else {
        path.to_owned()
    };
    format!("{host}/{path}")
}

fn shown(text: &str) -> String {
    text.chars()
        .take(200)
        .flat_map(char::escape_debug)
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn parse(text: &str) -> Result<MarketSource, AddressError> {
        MarketSource::parse(text, Path::new("/w"), Path::new("/h"))
    }

    #[rstest]
    #[case("owner/repo", "github.com/owner/repo")]
    #[case("Owner/Repo@v1", "github.com/owner/repo")]
    #[case("owner/repo#main", "github.com/owner/repo")]
    #[case("https://github.com/owner/repo", "github.com/owner/repo")]
    #[case("https://GitHub.com/owner/repo.git/", "github.com/owner/repo")]
    #[case("git@github.com:owner/repo.git", "github.com/owner/repo")]
    #[case("x@y@github.com:owner/repo", "github.com/owner/repo")]
    #[case("ssh://git@github.com/owner/repo.git", "github.com/owner/repo")]
    #[case("https://host.example/git/r.git", "host.example/git/r")]
    #[case("https://host.example/market.json", "host.example/market.json")]
    #[case("https://host.example/plugins", "host.example/plugins")]
    #[case("http://127.0.0.1:8/i.json", "127.0.0.1:8/i.json")]
    #[case("./m", "/w/./m")]
    #[case("~/m", "/h/m")]
    fn spellings_mean_places(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(parse(text).unwrap().identity(), expected);
    }

    #[test]
    fn a_directory_is_meant_with_a_dot_before_it() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("market")).unwrap();
        let parse = |text: &str| MarketSource::parse(text, root.path(), root.path());
        let error = parse("market").unwrap_err().to_string();
        assert!(error.contains("`./market`"), "{error}");
        assert!(parse("./market").is_ok());
        let error = parse("nothing").unwrap_err().to_string();
        assert!(error.contains("not an address"), "{error}");
    }

    #[rstest]
    #[case("host.example/a/b", "write `https://host.example/a/b`")]
    #[case("example.com/a", "no scheme")]
    #[case("http://host.example/i.json", "not https")]
    #[case("https://u:p@host.example/i.json", "password")]
    #[case("ext::sh -c x", "not an address")]
    #[case("word", "not an address")]
    #[case("-u/x", "not an address")]
    #[case("owner/repo#--upload-pack=x", "no name of a branch")]
    #[case("ftp://host/x.json", "not an address")]
    #[case("", "not an address")]
    fn others_are_refused_with_a_remedy(#[case] text: &str, #[case] said: &str) {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
