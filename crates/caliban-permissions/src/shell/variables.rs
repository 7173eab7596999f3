//! Names of variables, and those that change what programs are or do.

use std::sync::LazyLock;

use super::Refusal;
use super::programs::{Names, names};

/// Variables that decide where programs are found, what they load or run, or how the shell reads.
static NAMES: Names = LazyLock::new(|| {
    names(
        "\
     AR BASHOPTS BROWSER CC COMSPEC CPP CURL_HOME CXX EDITOR ENV EXECIGNORE EXINIT FCEDIT \
     FUNCNEST GLOBIGNORE GREP_COLOR HOME HOSTALIASES IFS INPUTRC KUBECONFIG LD LESS LESSCLOSE \
     LESSKEY LESSOPEN LOGNAME MAIL MAKE MAKEFILES MANOPT MANROFFOPT MORE NETRC OLDPWD OSTYPE \
     PAGER POSIXLY_CORRECT PROMPT_COMMAND PWD REPLY_TO RUSTC RUSTDOC SHELL SHELLOPTS \
     SYSTEMD_EDITOR TAPE TMP TEMP TMPDIR TMOUT USER VISUAL WGETRC ZDOTDIR GOENV GOROOT \
     GOTOOLCHAIN GOPROXY GOSUMDB NM RANLIB STRIP OBJCOPY LINKER CARGO",
    )
});
const PREFIXES: &str = "\
     AWS_ BASH BAT_ BUNDLE_ CARGO_ CGO_ CLOUDSDK_ COMP_ CORECLR_ COR_ DENO_ DOCKER_ DOTNET_ \
     DYLD_ EMACS FZF_ GCC_ GCONV GEM_ GH_ GIT_ GNUPG GPG GRADLE_ HIST JAVA_ JDK_ KUBE LD_ LUA_ \
     MALLOC_ MAVEN_ NODE_ NPM_CONFIG_ npm_config_ OPENSSL_ PERL PG PHP PIP_ POETRY_ PROMPT PS0 \
     PS1 PS2 PS3 PS4 PYTEST_ PYTHON READLINE_ RUBY RUSTC_ RUSTUP_ SSH_ SSL_ SUDO_ SYSTEMD_ \
     TERMINFO TEXTDOMAIN UV_ VIM XDG_ YARN_ _JAVA";
const SUFFIXES: &str = "\
     EDITOR FLAGS OPT OPTIONS OPTS PAGER PATH PRELOAD _ASKPASS _BROWSER _COMMAND _CONFIG _HOME \
     _PROXY _RUNNER _SHELL _WRAPPER _proxy";
/// Everyday exceptions from the prefixes: they only change how much is printed or kept.
static HARMLESS: Names = LazyLock::new(|| {
    names(
        "\
     CARGO_INCREMENTAL CARGO_TERM_COLOR CARGO_TERM_PROGRESS_WHEN GIT_TERMINAL_PROMPT NODE_ENV \
     PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED",
    )
});

/// Refuses to set a variable that changes what programs are or do.
pub(super) fn check(name: &str) -> Result<(), Refusal> {
    if is_harmless(name) {
        Ok(())
    } else {
        Err(Refusal::Variable {
            name: name.to_owned(),
        })
    }
}

pub(super) fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(name)
        || !(NAMES.contains(name)
            || PREFIXES
                .split_whitespace()
                .any(|prefix| name.starts_with(prefix))
            || SUFFIXES
                .split_whitespace()
                .any(|suffix| name.ends_with(suffix)))
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(is_name_start) && text.chars().all(is_name_part)
}

pub(super) fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

pub(super) fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn variables_that_load_run_or_look_up_are_not_harmless() {
        for name in [
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "NODE_OPTIONS",
            "GIT_SSH_COMMAND",
            "PAGER",
            "MANPAGER",
            "EDITOR",
            "VISUAL",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PERL5OPT",
            "RUBYOPT",
            "BASH_ENV",
            "ENV",
            "IFS",
            "PATH",
            "SHELLOPTS",
            "PS4",
            "PROMPT_COMMAND",
            "HOME",
            "TMPDIR",
            "JAVA_TOOL_OPTIONS",
            "RUSTC_WRAPPER",
            "CARGO_BUILD_RUSTC_WRAPPER",
            "LESSOPEN",
            "RUSTFLAGS",
            "CDPATH",
            "https_proxy",
            "HTTPS_PROXY",
            "TAR_OPTIONS",
            "POSIXLY_CORRECT",
        ] {
            assert!(!is_harmless(name), "{name}");
        }
    }

    #[test]
    fn everyday_variables_are_harmless() {
        for name in [
            "FOO",
            "RUST_LOG",
            "RUST_BACKTRACE",
            "CI",
            "DEBUG",
            "NODE_ENV",
            "i",
            "path",
            "LANG",
            "CARGO_TERM_COLOR",
            "NO_COLOR",
            "PORT",
            "x",
        ] {
            assert!(is_harmless(name), "{name}");
        }
    }
}
