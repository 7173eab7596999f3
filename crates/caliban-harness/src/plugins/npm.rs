//! Packages of npm as archives: the registry says where the archive of a version lies and what its
//! digest is. Nothing of a package runs, and nothing that it depends on is fetched.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caliban_settings::TREE_BYTES;
use semver::{Version, VersionReq};
use serde_json::Value;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use super::fetch::download;
use super::problem::ManageError;

/// The public registry.
const REGISTRY: &str = "https://registry.npmjs.org";
/// The longest description of a package, in bytes.
const DESCRIPTION: u64 = 32 * 1024 * 1024;

/// Fetches the archive of a package, and says which version it is.
pub(super) async fn archive(
    package: &str,
    wanted: Option<&str>,
    registry: Option<&str>,
    to: &Path,
) -> Result<String, ManageError> {
    let registry = registry.unwrap_or(REGISTRY).trim_end_matches('/');
    let address = format!("{registry}/{}", package.replace('/', "%2f"));
    let failed = |reason: String| ManageError::fetch(&address, &reason);
    let text = download(&address, DESCRIPTION).await?;
    let described: Value =
        serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
    let version = chosen(&described, wanted).map_err(failed)?;
    let dist = &described["versions"][&version]["dist"];
    let tarball = dist["tarball"].as_str();
    let tarball = tarball.ok_or_else(|| failed(format!("version {version} has no archive")))?;
    let integrity = dist["integrity"].as_str().unwrap_or_default();
    let bytes = download(tarball, TREE_BYTES).await?;
    let place = |reason: &str| ManageError::fetch(tarball, reason);
    verify(&bytes, integrity).map_err(place)?;
    fs::write(to, &bytes)
        .map_err(|error| ManageError::fetch(&to.display().to_string(), &error.to_string()))?;
    Ok(version)
}

/// The version that a text means: a version, a tag, or the latest of a range.
fn chosen(described: &Value, wanted: Option<&str>) -> Result<String, String> {
    let versions = described["versions"].as_object();
    let versions = versions.ok_or("it describes no package")?;
    let wanted = wanted.map_or("latest", str::trim);
    if versions.contains_key(wanted) {
        return Ok(wanted.to_owned());
    }
    if let Some(tagged) = described["dist-tags"][wanted].as_str()
        && versions.contains_key(tagged)
    {
        return Ok(tagged.to_owned());
    }
    let nothing = || format!("there is no version `{}`", wanted.escape_debug());
    let spaced: Vec<&str> = wanted.split_whitespace().collect();
    let range = VersionReq::parse(&spaced.join(", ")).map_err(|_| nothing())?;
    let fitting = versions.keys().filter_map(|version| {
        let parsed = Version::parse(version).ok()?;
        range.matches(&parsed).then_some((parsed, version))
    });
    let latest = fitting.max_by(|(one, _), (other, _)| one.cmp(other));
    latest
        .map(|(_, version)| version.clone())
        .ok_or_else(nothing)
}

/// Checks bytes against what the registry says of them. Older digests prove nothing.
fn verify(bytes: &[u8], integrity: &str) -> Result<(), &'static str> {
    let digests: Vec<(&str, &str)> = integrity
        .split_whitespace()
        .filter_map(|one| one.split_once('-'))
        .map(|(kind, digest)| (kind, digest.split('?').next().unwrap_or_default()))
        .collect();
    let of = |wanted: &str| -> Vec<&str> {
        let fitting = digests.iter().filter(|(kind, _)| *kind == wanted);
        fitting.map(|(_, digest)| *digest).collect()
    };
    // The strongest counts.
    let (digests, actual) = if !of("sha512").is_empty() {
        (of("sha512"), STANDARD.encode(Sha512::digest(bytes)))
    } else if !of("sha384").is_empty() {
        (of("sha384"), STANDARD.encode(Sha384::digest(bytes)))
    } else if !of("sha256").is_empty() {
        (of("sha256"), STANDARD.encode(Sha256::digest(bytes)))
    } else {
        return Err("the registry gives no `integrity` that can be checked");
    };
    if digests.contains(&actual.as_str()) {
        Ok(())
    } else {
        Err("its digest is not the `integrity` that the registry gives")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_are_chosen() {
        let described = json!({
            "dist-tags": {"latest": "1.2.0", "next": "2.0.0"},
            "versions": {"1.0.0": {}, "1.2.0": {}, "1.10.0": {}, "2.0.0": {}},
        });
        let of = |wanted: Option<&str>| chosen(&described, wanted);
        assert_eq!(of(None).unwrap(), "1.2.0");
        assert_eq!(of(Some("next")).unwrap(), "2.0.0");
        assert_eq!(of(Some("^1.0.0")).unwrap(), "1.10.0");
        assert_eq!(of(Some(">=1.0.0 <1.3.0")).unwrap(), "1.2.0");
        assert_eq!(of(Some("1.0.0")).unwrap(), "1.0.0");
        assert!(of(Some("3")).is_err() && of(Some("../x")).is_err());
        assert!(chosen(&json!({}), None).is_err());
    }

    #[test]
    fn the_strongest_digest_counts() {
        let weak = format!("sha256-{}", STANDARD.encode(Sha256::digest(b"x")));
        assert!(verify(b"x", &weak).is_ok());
        assert!(verify(b"y", &weak).is_err());
        assert!(verify(b"x", &format!("{weak} sha512-AAAA")).is_err());
        assert!(verify(b"x", "sha1-AAAA").is_err());
        assert!(verify(b"x", "").is_err());
    }
}
