//! Which version of the protocol is spoken.

/// A version that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// What a client gets that names no version.
    V0_2,
    /// With `turn_state`, `routed_model`, `request_id` and the code `max_iterations`.
    V0_5,
}

/// A client that wants another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Client requested {requested}, server is {}", Version::V0_2.as_str())]
pub struct Mismatch {
    pub requested: String,
}

impl Version {
    const ALL: [Self; 2] = [Self::V0_2, Self::V0_5];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0_2 => "0.2.0",
            Self::V0_5 => "0.5.0",
        }
    }

    /// The version for a client. Below 1.0 a minor version is compatible with itself only; the
    /// patch level says nothing about messages.
    pub fn negotiate(requested: Option<&str>) -> Result<Self, Mismatch> {
        let Some(requested) = requested else {
            return Ok(Self::V0_2);
        };
        let line = minor_line(requested);
        Self::ALL
            .into_iter()
            .find(|version| line.is_some() && line == minor_line(version.as_str()))
            .ok_or_else(|| Mismatch {
                requested: requested.to_owned(),
            })
    }
}

/// Major and minor of `MAJOR.MINOR` or `MAJOR.MINOR.PATCH`.
fn minor_line(text: &str) -> Option<(u32, u32)> {
    let number = |part: &str| {
        let is_plain = part.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| part.parse::<u32>().ok()).flatten()
    };
    let mut parts = text.split('.');
    let line = (number(parts.next()?)?, number(parts.next()?)?);
    if let Some(patch) = parts.next() {
        number(patch)?;
    }
    parts.next().is_none().then_some(line)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(None, "0.2.0")]
    #[case(Some("0.2.0"), "0.2.0")]
    #[case(Some("0.2"), "0.2.0")]
    #[case(Some("0.2.17"), "0.2.0")]
    #[case(Some("0.5.0"), "0.5.0")]
    #[case(Some("0.5"), "0.5.0")]
    fn a_minor_version_is_compatible_with_itself(
        #[case] requested: Option<&str>,
        #[case] served: &str,
    ) {
        assert_eq!(Version::negotiate(requested).unwrap().as_str(), served);
    }

    #[rstest]
    #[case("0.1.0")]
    #[case("0.3.0")]
    #[case("0.20.0")]
    #[case("1.2.0")]
    #[case("0")]
    #[case("0.2.x")]
    #[case("0.2.0.0")]
    #[case("+0.2.0")]
    #[case("")]
    fn anything_else_is_a_mismatch(#[case] requested: &str) {
        let mismatch = Version::negotiate(Some(requested)).unwrap_err();
        assert_eq!(
            mismatch.to_string(),
            format!("Client requested {requested}, server is 0.2.0")
        );
    }
}
