//! The variables by which programs in the sandbox find the proxy.

/// What is reached without the proxy: the sandbox's own loopback, and nothing else. A user's own list
/// would send programs to hosts that cannot be reached.
const DIRECT: &str = "localhost,127.0.0.1,::1";

/// The variables for a proxy on this port of the sandbox's loopback address. They replace those of the
/// same name.
pub fn environment(port: u16) -> Vec<(String, String)> {
    let http = format!("http://127.0.0.1:{port}");
    // The `h` leaves names to the proxy; in the sandbox nobody can look them up.
    let socks = format!("socks5h://127.0.0.1:{port}");
    let both = [
        ("HTTP_PROXY", &*http),
        ("HTTPS_PROXY", &http),
        ("ALL_PROXY", &socks),
        ("NO_PROXY", DIRECT),
    ];
    let lower = both.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    let others = [
        // Node's own `fetch` looks at no proxy without it.
        ("NODE_USE_ENV_PROXY", "1"),
        ("npm_config_proxy", &http),
        ("npm_config_https_proxy", &http),
        ("npm_config_noproxy", DIRECT),
        ("YARN_HTTP_PROXY", &http),
        ("YARN_HTTPS_PROXY", &http),
        ("ELECTRON_GET_USE_PROXY", "1"),
    ];
    both.into_iter()
        .chain(others)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .chain(lower)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_spelling_leads_to_the_same_port() {
        let all = environment(4711);
        let by_name: BTreeMap<_, _> = all.iter().cloned().collect();
        assert_eq!(by_name.len(), all.len(), "no name twice");
        for (upper, value) in [
            ("HTTP_PROXY", "http://127.0.0.1:4711"),
            ("HTTPS_PROXY", "http://127.0.0.1:4711"),
            ("ALL_PROXY", "socks5h://127.0.0.1:4711"),
            ("NO_PROXY", "localhost,127.0.0.1,::1"),
        ] {
            assert_eq!(by_name[upper], value);
            assert_eq!(by_name[&upper.to_ascii_lowercase()], value);
        }
        assert_eq!(by_name["NODE_USE_ENV_PROXY"], "1");
    }
}
