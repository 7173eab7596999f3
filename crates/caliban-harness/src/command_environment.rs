//! The environment of commands that the model runs: that of other programs, and the programs of
//! plugins behind the user's own.

use std::ffi::{OsStr, OsString};

use crate::configuration::Configuration;
use crate::options::RunOptions;
use crate::plugins::plugins;

/// Hooks, servers and our own calls of programs do not find those of plugins.
pub(crate) fn command_environment(
    run: &RunOptions,
    configuration: &Configuration,
) -> Vec<(OsString, OsString)> {
    let directories = plugins(run, configuration).program_directories();
    let directories = directories.iter().map(|it| it.as_os_str());
    searching(configuration.child_environment(), directories)
}

/// Programs are looked for in these directories last, so that nothing is hidden by them. Where
/// nobody says where programs are, the shell knows a place, and nothing is added.
fn searching<'a>(
    mut environment: Vec<(OsString, OsString)>,
    directories: impl Iterator<Item = &'a OsStr>,
) -> Vec<(OsString, OsString)> {
    let path = environment.iter_mut().rfind(|(name, _)| name == "PATH");
    if let Some((_, path)) = path.filter(|(_, path)| !path.is_empty()) {
        // What has the separator in it cannot be in the list.
        let is_plain = |it: &&OsStr| !it.as_encoded_bytes().contains(&b':');
        for directory in directories.filter(is_plain) {
            path.push(":");
            path.push(directory);
        }
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_last_and_only_to_a_list() {
        let path = |value: &str, directories: &[&str]| {
            let environment = vec![("PATH".into(), value.into())];
            let directories = directories.iter().map(OsStr::new);
            let mut environment = searching(environment, directories);
            environment.remove(0).1
        };
        assert_eq!(path("/bin", &["/p/bin", "/q:r/bin"]), "/bin:/p/bin");
        assert_eq!(path("", &["/p/bin"]), "");
        assert!(searching(Vec::new(), [OsStr::new("/p")].into_iter()).is_empty());
    }
}
