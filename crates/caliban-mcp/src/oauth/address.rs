//! Which addresses secrets may travel to.

use caliban_http::is_loopback;
use url::Url;

/// Why nothing secret may be sent to an address, if so: it must be https, or this machine.
pub(crate) fn objection(url: &Url) -> Option<&'static str> {
    match url.scheme() {
        _ if !url.username().is_empty() || url.password().is_some() => {
            Some("it contains a user name or a password")
        }
        "https" if url.host().is_some() => None,
        "http" if is_loopback(url) => None,
        "http" => Some("it is neither https nor on this machine"),
        _ => Some("it is not a web address"),
    }
}

/// An endpoint that metadata or the settings of a server name. A server elsewhere has no business
/// with this machine.
pub(crate) fn endpoint(text: &str, server: &Url) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("`{}`: {error}", shown(text)))?;
    if let Some(objection) = objection(&url) {
        return Err(format!("`{}`: {objection}", shown(text)));
    }
    if is_loopback(&url) && !is_loopback(server) {
        return Err(format!(
            "`{}`: the server is elsewhere and names an address on this machine",
            shown(text)
        ));
    }
    Ok(url)
}

/// The longest foreign text in a message.
const SHOWN: usize = 200;

/// Foreign text, harmless and short enough for a message.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    shown.retain(|char| !char.is_control());
    shown
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://a.example/mcp", true)]
    #[case("http://127.0.0.1:1/mcp", true)]
    #[case("http://localhost:1/mcp", true)]
    #[case("http://[::1]:1/mcp", true)]
    #[case("http://a.example/mcp", false)]
    #[case("http://127.0.0.1.example/mcp", false)]
    #[case("http://localhost.example/mcp", false)]
    #[case("https://user:password@a.example/", false)]
    #[case("javascript:alert(1)", false)]
    #[case("data:text/html,x", false)]
    #[case("file:///etc/passwd", false)]
    fn secrets_go_to_https_or_stay_here(#[case] url: &str, #[case] is_fine: bool) {
        assert_eq!(objection(&Url::parse(url).unwrap()).is_none(), is_fine);
    }

    #[rstest]
    #[case("https://auth.example/token", "https://a.example/mcp", true)]
    #[case("http://127.0.0.1:2/token", "http://127.0.0.1:1/mcp", true)]
    #[case("http://127.0.0.1:2/token", "https://a.example/mcp", false)]
    #[case("https://localhost/token", "https://a.example/mcp", false)]
    #[case("http://auth.example/token", "https://a.example/mcp", false)]
    #[case("/token", "https://a.example/mcp", false)]
    fn endpoints_are_as_far_away_as_their_server(
        #[case] text: &str,
        #[case] server: &str,
        #[case] is_fine: bool,
    ) {
        let server = Url::parse(server).unwrap();
        assert_eq!(endpoint(text, &server).is_ok(), is_fine);
    }
}
