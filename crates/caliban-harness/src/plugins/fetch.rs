//! Gets what marketplaces and plugins are made of from where they lie. Nothing of it runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use caliban_git::{Git, GitError, Reach};
use caliban_http::{Proxies, causes, is_loopback};
use caliban_plugins::{
    GitAddress, INDEX_BYTES, INDEX_FILES, MarketSource, SIGNATURE_BYTES, SIGNATURE_SUFFIX,
    follow_links,
};
use caliban_settings::{TREE_BYTES, hex};
use futures::StreamExt;
use reqwest::Url;
use reqwest::header::LOCATION;
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;

use super::problem::ManageError;
use crate::configuration::Configuration;

/// How long a download may take.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often a server may send us elsewhere.
const REDIRECTS: usize = 5;

/// A list of plugins, and the directory it lies in where there is one.
#[derive(Debug)]
pub(super) struct FetchedMarket {
    pub(super) text: String,
    pub(super) root: Option<PathBuf>,
    pub(super) commit: Option<String>,
    /// What lies beside the list to prove whose it is.
    pub(super) signature: Option<String>,
}

/// Whether a signature is looked for where that takes another download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    Wanted,
    Unneeded,
}

/// Fetches a marketplace into an empty directory; of a repository this commit, where it is named.
pub(super) async fn market(
    configuration: &Configuration,
    source: &MarketSource,
    commit: Option<&str>,
    proof: Proof,
    into: &Path,
) -> Result<FetchedMarket, ManageError> {
    match source {
        MarketSource::Index { url } => {
            let bytes = download(url, INDEX_BYTES).await?;
            let text =
                String::from_utf8(bytes).map_err(|_| ManageError::fetch(url, "it is not text"))?;
            let file = into.join("index.json");
            write(&file, text.as_bytes())?;
            let signature = match proof {
                Proof::Unneeded => None,
                // Whether there must be one is for the key to say.
                Proof::Wanted => {
                    let address = format!("{url}{SIGNATURE_SUFFIX}");
                    let bytes = download(&address, SIGNATURE_BYTES).await.ok();
                    bytes.and_then(|bytes| String::from_utf8(bytes).ok())
                }
            };
            if let Some(signature) = &signature {
                write(&beside(&file), signature.as_bytes())?;
            }
            Ok(FetchedMarket {
                text,
                root: None,
                commit: None,
                signature,
            })
        }
        MarketSource::Git { url, reference } => {
            let reference = reference.as_deref();
            let commit = checkout(configuration, url, reference, commit, into).await?;
            local(into, Some(commit))
        }
        MarketSource::Directory { path } => local(path, None),
    }
}

/// Reads the list of a directory, or a list itself.
pub(super) fn local(path: &Path, commit: Option<String>) -> Result<FetchedMarket, ManageError> {
    let shown = path.display().to_string();
    let (file, root) = if path.is_file() {
        let directory = path.parent().unwrap_or(path);
        let is_nested = directory
            .file_name()
            .is_some_and(|name| name == ".claude-plugin");
        let root = match directory.parent() {
            Some(above) if is_nested => above,
            Some(_) | None => directory,
        };
        (path.to_owned(), root.to_owned())
    } else {
        let mut files = INDEX_FILES.iter().map(|name| path.join(name));
        let found = files.find(|file| file.is_file());
        let file = found.ok_or_else(|| {
            ManageError::fetch(&shown, "there is no `.claude-plugin/marketplace.json`")
        })?;
        (file, path.to_owned())
    };
    let unreadable = |error: std::io::Error| ManageError::fetch(&shown, &error.to_string());
    if fs::metadata(&file).map_err(unreadable)?.len() > INDEX_BYTES {
        return Err(ManageError::fetch(&shown, "the list is too large"));
    }
    let signature = beside(&file);
    let is_small = fs::metadata(&signature).is_ok_and(|it| it.len() <= SIGNATURE_BYTES);
    Ok(FetchedMarket {
        text: fs::read_to_string(&file).map_err(unreadable)?,
        root: Some(root.canonicalize().map_err(unreadable)?),
        commit,
        signature: is_small
            .then(|| fs::read_to_string(&signature).ok())
            .flatten(),
    })
}

/// Where the signature of a file is.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(SIGNATURE_SUFFIX);
    name.into()
}

/// Fetches one commit of a repository, and says which. Its history is not kept.
pub(super) async fn checkout(
    configuration: &Configuration,
    url: &GitAddress,
    reference: Option<&str>,
    sha: Option<&str>,
    into: &Path,
) -> Result<String, ManageError> {
    let reach = if url.is_local() {
        Reach::Directory
    } else {
        Reach::Network
    };
    let git = Git::fetching(
        into.to_owned(),
        configuration.child_environment(),
        configuration.process.guard.clone(),
        reach,
    );
    let failed = |reason: String| ManageError::fetch(url.as_str(), &reason);
    let refused = |error: GitError| failed(error.reason());
    let wanted = sha.or(reference).unwrap_or("HEAD");
    git.run(["init", "--quiet", "--template="])
        .await
        .map_err(refused)?;
    let fetch = [
        "fetch",
        "--quiet",
        "--depth",
        "1",
        "--no-tags",
        "--",
        url.as_str(),
        wanted,
    ];
    git.run(fetch).await.map_err(refused)?;
    let checkout = ["checkout", "--quiet", "--detach", "FETCH_HEAD"];
    git.run(checkout).await.map_err(refused)?;
    let commit = git.run(["rev-parse", "HEAD"]).await.map_err(refused)?;
    let commit = commit.text();
    if let Some(sha) = sha
        && commit != sha
    {
        return Err(failed(format!("the commit is {commit} and not {sha}")));
    }
    let listed = git.run(["ls-files", "-s", "-z"]).await.map_err(refused)?;
    follow_links(into, &links(&listed.stdout));
    fs::remove_dir_all(into.join(".git")).map_err(|error| failed(error.to_string()))?;
    Ok(commit)
}

/// The links among the files of a repository, as git lists them.
fn links(listed: &[u8]) -> Vec<PathBuf> {
    let records = listed.split(|byte| *byte == 0);
    let links = records.filter(|record| record.starts_with(b"120000 "));
    let paths = links.filter_map(|record| {
        let at = record.iter().position(|byte| *byte == b'\t')?;
        std::str::from_utf8(&record[at + 1..]).ok()
    });
    paths.map(PathBuf::from).collect()
}

/// Fetches an archive, which must have this digest.
pub(super) async fn archive(url: &str, sha256: &str, to: &Path) -> Result<(), ManageError> {
    let bytes = download(url, TREE_BYTES).await?;
    let digest = hex(&Sha256::digest(&bytes));
    if digest != sha256 {
        let reason = format!("its sha256 is {digest} and not {sha256}");
        return Err(ManageError::fetch(url, &reason));
    }
    write(to, &bytes)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), ManageError> {
    fs::write(path, bytes)
        .map_err(|error| ManageError::fetch(&path.display().to_string(), &error.to_string()))
}

/// Fetches a document, following redirects as long as they are as safe as the address was.
pub(super) async fn download(address: &str, limit: u64) -> Result<Vec<u8>, ManageError> {
    let failed = |reason: &str| ManageError::fetch(address, reason);
    let mut url = Url::parse(address).map_err(|error| failed(&error.to_string()))?;
    let is_safe = |url: &Url| match url.scheme() {
        "https" => true,
        "http" => is_loopback(url),
        _ => false,
    };
    let fetching = async {
        for _ in 0..=REDIRECTS {
            if !is_safe(&url) {
                return Err("it leads to an address that is not https".to_owned());
            }
            let told = |error: reqwest::Error| causes(&error.without_url());
            let client = caliban_http::builder(&url, Proxies::NotForThisMachine);
            let client = client.build().map_err(told)?;
            let answer = client.get(url.clone()).send().await.map_err(told)?;
            let status = answer.status();
            if status.is_redirection() {
                let location = answer
                    .headers()
                    .get(LOCATION)
                    .and_then(|it| it.to_str().ok());
                let next = location.and_then(|location| url.join(location).ok());
                url = next.ok_or("it leads nowhere")?;
                continue;
            }
            if !status.is_success() {
                return Err(format!("it answered {status}"));
            }
            let mut bytes = Vec::new();
            let mut body = answer.bytes_stream();
            while let Some(piece) = body.next().await {
                bytes.extend_from_slice(&piece.map_err(told)?);
                if bytes.len() as u64 > limit {
                    return Err(format!("it is larger than {limit} bytes"));
                }
            }
            return Ok(bytes);
        }
        Err(format!("it leads on more than {REDIRECTS} times"))
    };
    match timeout(PATIENCE, fetching).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(reason)) => Err(failed(&reason)),
        Err(_) => Err(failed("it did not answer in time")),
    }
}
