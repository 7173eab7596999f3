//! What confined programs see of the environment: no way to what is hidden, caches of their own,
//! and the way to the proxy.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::plan::{CACHES, CARGO};
use crate::policy::Network;

/// Variables that lead to sockets of programs outside.
const WITHOUT: [&str; 8] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DOCKER_HOST",
    "GPG_AGENT_INFO",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
];

/// Caches of package managers. What is put into the user's own would run in the next build outside.
const CACHED: [(&str, &str); 8] = [
    ("GOCACHE", "go-build"),
    ("PIP_CACHE_DIR", "pip"),
    ("PNPM_HOME", "pnpm"),
    ("UV_CACHE_DIR", "uv"),
    ("XDG_CACHE_HOME", "xdg"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("npm_config_cache", "npm"),
    ("npm_config_update_notifier", ""),
];

/// What of cargo's home is shown: always its configuration, and the packages it has where it could
/// not fetch any.
const CARGO_CONFIGURATION: [&str; 2] = ["config.toml", "config"];
const CARGO_PACKAGES: [&str; 2] = ["registry", "git"];

type Variables = Vec<(OsString, OsString)>;

/// The environment of a confined program. `temporary` is where it has its temporary files.
pub(crate) fn confined(mut environment: Variables, temporary: &Path, caches: Caches) -> Variables {
    environment.retain(|(name, _)| !WITHOUT.iter().any(|without| name == without));
    environment.push(("TMPDIR".into(), temporary.into()));
    match caches {
        Caches::Own { network } => {
            environment.push(("CARGO_HOME".into(), CARGO.into()));
            if network == Fetching::Possible {
                let modules = Path::new(CACHES).join("go-mod");
                environment.push(("GOMODCACHE".into(), modules.into()));
            }
            for (name, place) in CACHED {
                let value = match place {
                    "" => OsString::from("false"),
                    place => Path::new(CACHES).join(place).into(),
                };
                environment.push((name.into(), value));
            }
        }
        Caches::TheUsers => {}
    }
    environment
}

/// Whose caches package managers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caches {
    Own {
        network: Fetching,
    },
    /// They cannot be put elsewhere, and cannot be written.
    TheUsers,
}

/// Whether packages could be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetching {
    Possible,
    Impossible,
}

impl From<&Network> for Fetching {
    fn from(network: &Network) -> Self {
        match network {
            Network::Closed => Self::Impossible,
            Network::Domains { .. } | Network::Operator { .. } => Self::Possible,
        }
    }
}

/// What of the user's cargo is shown, and where.
pub(crate) fn packages(
    environment: &[(OsString, OsString)],
    home: &Path,
    fetching: Fetching,
) -> Vec<(PathBuf, PathBuf)> {
    let named = environment.iter().find(|(name, _)| name == "CARGO_HOME");
    let cargo = match named {
        Some((_, path)) => PathBuf::from(path),
        None => home.join(".cargo"),
    };
    let packages: &[&str] = match fetching {
        Fetching::Possible => &[],
        Fetching::Impossible => &CARGO_PACKAGES,
    };
    CARGO_CONFIGURATION
        .iter()
        .chain(packages)
        .filter_map(|name| {
            Some((
                cargo.join(name).canonicalize().ok()?,
                Path::new(CARGO).join(name),
            ))
        })
        .collect()
}

/// The variables that lead programs to a proxy at this port.
pub(crate) fn proxied(port: u16) -> Vec<(&'static str, String)> {
    let http = format!("http://127.0.0.1:{port}");
    let socks = format!("socks5h://127.0.0.1:{port}");
    let local = "localhost,127.0.0.1,::1".to_owned();
    let mut variables = vec![
        ("ALL_PROXY", socks.clone()),
        ("all_proxy", socks),
        ("NO_PROXY", local.clone()),
        ("no_proxy", local),
        ("NODE_USE_ENV_PROXY", "1".to_owned()),
        ("ELECTRON_GET_USE_PROXY", "1".to_owned()),
    ];
    let by_http = [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "http_proxy",
        "https_proxy",
        "npm_config_proxy",
        "npm_config_https_proxy",
        "YARN_HTTP_PROXY",
        "YARN_HTTPS_PROXY",
    ];
    variables.extend(by_http.map(|name| (name, http.clone())));
    variables
}

/// The directories that programs are looked for in.
pub(crate) fn search(environment: &[(OsString, OsString)]) -> Option<&OsStr> {
    let mut path = environment.iter().rev().filter(|(name, _)| name == "PATH");
    path.next().map(|(_, value)| value.as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_to_sockets_outside_and_caches_are_private() {
        let given = [
            ("SSH_AUTH_SOCK", "/run/x"),
            ("PATH", "/bin"),
            ("TMPDIR", "/t"),
        ];
        let given = given
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec();
        let own = Caches::Own {
            network: Fetching::Impossible,
        };
        let made = confined(given, Path::new("/tmp"), own);
        let value = |name: &str| {
            let mut found = made.iter().rev().filter(|(it, _)| it == name);
            found.next().and_then(|(_, value)| value.to_str())
        };
        assert_eq!(value("SSH_AUTH_SOCK"), None);
        assert_eq!(value("PATH"), Some("/bin"));
        assert_eq!(value("TMPDIR"), Some("/tmp"));
        assert_eq!(value("PIP_CACHE_DIR"), Some("/run/caliban/caches/pip"));
        assert_eq!(value("GOMODCACHE"), None);
    }
}
