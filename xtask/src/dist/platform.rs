//! What packages call the platform that a program is for.

use anyhow::{Context, Result, bail};

/// Names of one platform; the program is for the machine that packs it.
#[derive(Debug)]
pub(super) struct Platform {
    /// Debian's name of the architecture, where Debian has one.
    pub(super) deb: Option<&'static str>,
    /// What npm calls the system and the processor.
    pub(super) npm: (&'static str, &'static str),
    /// The platform tag of a wheel.
    pub(super) wheel: String,
    /// The least C library that has what the program calls.
    pub(super) glibc: Option<Glibc>,
}

/// A version of the GNU C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Glibc(pub(super) u32, pub(super) u32);

impl Platform {
    pub(super) fn of(program: &[u8]) -> Result<Self> {
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        let (deb, cpu) = match arch {
            "x86_64" => ("amd64", "x64"),
            "aarch64" => ("arm64", "arm64"),
            other => bail!("no packages are made for the processor `{other}`"),
        };
        match os {
            "linux" => {
                let glibc =
                    Glibc::needed_by(program).context("the program needs no C library version")?;
                Ok(Self {
                    deb: Some(deb),
                    npm: ("linux", cpu),
                    wheel: format!("manylinux_{}_{}_{arch}", glibc.0, glibc.1),
                    glibc: Some(glibc),
                })
            }
            "macos" => {
                let arch = if arch == "aarch64" { "arm64" } else { arch };
                Ok(Self {
                    deb: None,
                    npm: ("darwin", cpu),
                    wheel: format!("macosx_11_0_{arch}"),
                    glibc: None,
                })
            }
            other => bail!("no packages are made for `{other}`"),
        }
    }
}

impl Glibc {
    /// The highest version among the names of versions in a program.
    pub(super) fn needed_by(program: &[u8]) -> Option<Self> {
        const NAME: &[u8] = b"GLIBC_";
        let starts = program.windows(NAME.len()).enumerate();
        let starts = starts.filter(|(_, window)| *window == NAME);
        starts
            .filter_map(|(at, _)| {
                let rest = program.get(at + NAME.len()..)?;
                let end = rest.iter().position(|byte| *byte == 0)?;
                let text = std::str::from_utf8(rest.get(..end)?).ok()?;
                let (major, minor) = text.split_once('.')?;
                let minor = minor.split('.').next()?;
                Some(Self(major.parse().ok()?, minor.parse().ok()?))
            })
            .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_counts() {
        let program = b"\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0GLIBC_PRIVATE\0GLIBC_2.1";
        assert_eq!(Glibc::needed_by(program), Some(Glibc(2, 34)));
        assert_eq!(Glibc::needed_by(b"nothing"), None);
    }
}
