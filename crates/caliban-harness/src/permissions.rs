//! What a session's gate is made of: from options, variables and settings to the permissions of a
//! run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_agent::{OpenReading, ReadGuard, Workspace};
use caliban_permissions::{
    AuditLog, AutoAllow, AutoRules, Enforcement, Finding, Gating, Judge, ModeRequest, Origin,
    Places, Protected, Reader, Regime, Rule, RuleBook, RuleError, lint,
};
use caliban_settings::variables::names;
use caliban_settings::{LoadedSettings, PermissionMode, RuleAction, RuleSpec, Scope};
use caliban_tools::OpenedHosts;

use crate::checkpoints::kept_files;
use crate::choosing::further_directories;
use crate::configuration::Configuration;
use crate::error::{LaunchError, Problem};
use crate::gate::AUTO_ALLOW;
use crate::options::{EarlierMode, Part, PermissionOptions, RunOptions};

/// Everything that decides which calls may run.
#[derive(Debug, Clone)]
pub struct Permissions {
    pub book: RuleBook,
    pub regime: Regime,
    /// The one that was asked for; another where that is switched off.
    pub(crate) chosen: Regime,
    pub auto_allow: AutoAllow,
    /// The lists of auto mode; none where its classifier is switched off.
    pub auto: Option<AutoRules>,
    pub audit: Option<AuditLog>,
    pub protected: Protected,
    /// The hosts of fetches that a person or the operator's hook approved.
    pub(crate) opened_hosts: OpenedHosts,
}

impl Permissions {
    /// The built-in rules, nothing asked, nothing logged.
    pub fn unattended() -> Self {
        Self {
            book: RuleBook::of(std::iter::empty::<Rule>()),
            regime: Regime::Rules(PermissionMode::Default),
            chosen: Regime::Rules(PermissionMode::Default),
            auto_allow: AutoAllow::On,
            auto: None,
            audit: None,
            protected: Protected::default(),
            opened_hosts: OpenedHosts::default(),
        }
    }
}

/// A judge for a workspace.
pub fn judge(
    book: RuleBook,
    mut protected: Protected,
    workspace: Workspace,
    home: Option<PathBuf>,
) -> Judge {
    let places = Places::new(workspace, home);
    protected.add_git_directory(&places.project);
    Judge {
        book,
        places,
        protected,
    }
}

/// The protected places of this user.
pub fn protected(configuration: &Configuration) -> Protected {
    let locations = &configuration.locations;
    let own = [
        locations.config_dir(),
        locations.state_dir(),
        locations.data_dir(),
        locations.runtime_dir(),
        locations.managed_dir(),
        locations.runtime_dir(),
    ];
    let secrets = [
        locations.mcp_tokens(),
        locations.provider_keys(),
        locations.serve(),
    ];
    Protected::new(
        Some(locations.home().to_owned()),
        own.into_iter().map(Path::to_owned),
        secrets,
    )
    .with_copies(kept_files(configuration))
}

/// What of an earlier session's permissions still holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Inherited {
    Nothing,
    /// It goes on in its mode.
    Mode(PermissionMode),
    /// It was in one that asks nobody, which only an option of this run brings back.
    AskedNobody(String),
}

impl Inherited {
    /// From the mode that was recorded; one that is not known any more is none.
    pub(crate) fn new(recorded: Option<&str>, earlier: EarlierMode) -> Self {
        let Some(recorded) = recorded else {
            return Self::Nothing;
        };
        let asked_nobody = || Self::AskedNobody(recorded.to_owned());
        if [Regime::Disabled.as_str(), AUTO_ALLOW].contains(&recorded) {
            return asked_nobody();
        }
        let Ok(mode) = recorded.parse::<PermissionMode>() else {
            return Self::Nothing;
        };
        match mode {
            PermissionMode::DontAsk | PermissionMode::BypassPermissions => asked_nobody(),
            PermissionMode::Default
            | PermissionMode::AcceptEdits
            | PermissionMode::Plan
            | PermissionMode::Auto => match earlier {
                EarlierMode::Kept => Self::Mode(mode),
                EarlierMode::Left => Self::Nothing,
            },
        }
    }

    fn mode(&self) -> Option<PermissionMode> {
        match self {
            Self::Mode(mode) => Some(*mode),
            Self::Nothing | Self::AskedNobody(_) => None,
        }
    }

    /// What the user is told where the session goes on in another mode.
    pub(crate) fn warning(&self, options: &PermissionOptions, regime: Regime) -> Option<String> {
        match self {
            Self::Nothing | Self::Mode(_) => None,
            Self::AskedNobody(_)
                if options.mode.is_some()
                    || options.auto_allow == AutoAllow::On
                    || options.gating == Gating::Off =>
            {
                None
            }
            Self::AskedNobody(earlier) if *earlier == regime.as_str() => None,
            Self::AskedNobody(earlier) => Some(format!(
                "the session was in the mode `{earlier}`, which asks nobody; it goes on in the mode `{}` unless a flag of this run says otherwise",
                regime.as_str()
            )),
        }
    }
}

impl Permissions {
    /// Those that options, variables and settings choose.
    pub(crate) fn choose(
        options: &PermissionOptions,
        inherited: &Inherited,
        configuration: &Configuration,
    ) -> Result<Self, LaunchError> {
        let environment = configuration.environment();
        let chosen = regime(options, inherited, configuration)?;
        let is_classified = options.classifier == Part::AsConfigured
            && !environment.is_on(names::CALIBAN_DISABLE_AUTO_MODE)
            && !is_auto_mode_disabled(&configuration.loaded);
        // Without its classifier the mode would ask about everything, as the usual one does.
        let regime = match chosen {
            Regime::Rules(PermissionMode::Auto) if !is_classified => {
                Regime::Rules(PermissionMode::Default)
            }
            Regime::Rules(_) | Regime::Disabled => chosen,
        };
        let auto = if regime == Regime::Rules(PermissionMode::Auto) {
            let path = configuration.locations.config_dir().join("auto-mode.toml");
            let rules = AutoRules::load(&path).map_err(Problem::from_error);
            Some(rules.map_err(LaunchError::Configuration)?)
        } else {
            None
        };
        Ok(Self {
            book: rule_book(options, &configuration.loaded)?,
            regime,
            chosen,
            auto_allow: if options.mode.is_none() && environment.is_on(names::CALIBAN_AUTO_ALLOW) {
                AutoAllow::On
            } else {
                options.auto_allow
            },
            auto,
            audit: configuration
                .settings()
                .permissions
                .audits()
                .then(|| AuditLog::new(configuration.locations.audit_log())),
            protected: protected(configuration),
            opened_hosts: OpenedHosts::default(),
        })
    }

    /// What is said about them when a session begins.
    pub(crate) fn remarks(
        &self,
        inherited: &Inherited,
        options: &PermissionOptions,
    ) -> impl Iterator<Item = String> {
        let danger = self.danger().map(str::to_owned);
        let left = inherited.warning(options, self.regime);
        let withheld = (self.chosen != self.regime).then(|| {
            format!(
                "the mode `{}` is switched off (`disable_auto_mode` in the settings, `--disable-auto-mode` or `{}`); the mode is `{}`",
                self.chosen.as_str(),
                names::CALIBAN_DISABLE_AUTO_MODE,
                self.regime.as_str()
            )
        });
        left.into_iter().chain(withheld).chain(danger)
    }

    /// What must not go unnoticed, in a log either: that calls run which nobody consents to.
    fn danger(&self) -> Option<&'static str> {
        match (self.regime, self.auto_allow) {
            (Regime::Disabled, _) => Some(
                "dangerous: permissions are switched off; every call of the model runs, and none is judged",
            ),
            (Regime::Rules(PermissionMode::BypassPermissions), _) => Some(
                "dangerous: in the mode `bypassPermissions` calls run without consent, and nobody is asked",
            ),
            (
                Regime::Rules(
                    PermissionMode::Default
                    | PermissionMode::AcceptEdits
                    | PermissionMode::Plan
                    | PermissionMode::Auto
                    | PermissionMode::DontAsk,
                ),
                AutoAllow::On,
            ) => {
                Some("dangerous: every call that would be asked about is allowed (`--auto-allow`)")
            }
            (Regime::Rules(_), AutoAllow::Off) => None,
        }
    }

    /// The permissions of a run that begins anew.
    pub fn of_new_run(
        options: &PermissionOptions,
        configuration: &Configuration,
    ) -> Result<Self, LaunchError> {
        Self::choose(options, &Inherited::Nothing, configuration)
    }
}

/// Whether any scope has switched the classifier off, which no other undoes.
fn is_auto_mode_disabled(loaded: &LoadedSettings) -> bool {
    let mut layers = loaded.layers().iter();
    layers.any(|layer| layer.settings.disable_auto_mode == Some(true))
}

/// What may be read before there is a session: what prompts and instruction files name.
pub(crate) fn reading(
    options: &RunOptions,
    configuration: &Configuration,
) -> Result<Arc<dyn ReadGuard>, LaunchError> {
    let permissions = Permissions::of_new_run(&options.permissions, configuration)?;
    let mode = match permissions.regime {
        Regime::Disabled | Regime::Rules(PermissionMode::BypassPermissions) => {
            return Ok(OpenReading::shared());
        }
        Regime::Rules(mode) => mode,
    };
    let further = further_directories(&options.tools, configuration)?;
    let home = Some(configuration.process.home.clone());
    let workspace = Workspace::new(
        &configuration.workspace,
        &further,
        home.clone(),
        options.tools.confinement,
    );
    let workspace = workspace.map_err(Problem::from_error);
    let workspace = workspace.map_err(LaunchError::Configuration)?;
    let judge = judge(permissions.book, permissions.protected, workspace, home);
    Ok(Arc::new(Reader::new(
        Arc::new(judge),
        mode,
        permissions.auto_allow,
        Vec::new(),
    )))
}

/// All rules in the order they are tried.
pub fn rule_book(
    options: &PermissionOptions,
    loaded: &LoadedSettings,
) -> Result<RuleBook, LaunchError> {
    let unusable = |error: RuleError| match error.origin {
        Origin::Flag => LaunchError::Usage(Problem::from_error(error)),
        _ => LaunchError::Configuration(Problem::from_error(error)),
    };
    let book = RuleBook::new(options.rules.iter().cloned(), loaded)
        .map(|book| book.judged(options.precedence));
    let approve = |tool: &String| {
        let spec = RuleSpec::new(tool, RuleAction::Allow);
        Rule::new(spec, Origin::Client)
    };
    let approved: Result<Vec<Rule>, RuleError> = options.approved.iter().map(approve).collect();
    let book = book
        .map_err(unusable)?
        .with_last(approved.map_err(unusable)?);
    Ok(if options.defaults.is_empty() {
        book
    } else {
        book.with_defaults(options.defaults.iter().cloned())
    })
}

/// Rules that could never match anything.
pub fn idle_rules(rules: &[RuleSpec], configuration: &Configuration) -> Vec<String> {
    let flags = rules.iter().cloned();
    let flags = flags.map(|spec| (spec, Origin::Flag));
    let layers = configuration.loaded.rules();
    let settings = layers.into_iter().flat_map(|layer| {
        let origin = Origin::of(layer.scope);
        layer.rules.into_iter().map(move |spec| (spec, origin))
    });
    flags
        .chain(settings)
        .filter_map(|(spec, origin)| Rule::new(spec, origin).ok()?.never_matches())
        .map(|error| format!("{error}; it never matches"))
        .collect()
}

/// What the rules do not do, although they look as if they did.
pub(crate) fn warnings(rules: &[RuleSpec], configuration: &Configuration) -> Vec<String> {
    let idle = idle_rules(rules, configuration);
    let rules: Vec<Rule> = rules
        .iter()
        .filter_map(|spec| Rule::new(spec.clone(), Origin::Flag).ok())
        .collect();
    let findings = lint(&rules, jiff::Timestamp::now()).into_iter();
    let findings = findings.filter_map(|finding| match finding {
        Finding::Shadowed { pattern, by } => Some(format!(
            "the flag for `{pattern}` has no effect behind the one for `{by}`; put it first"
        )),
        Finding::Conflict { pattern, .. } => Some(format!(
            "two flags about `{pattern}`; only the first counts"
        )),
        Finding::Overruled {
            pattern,
            action,
            by,
        } => Some(format!(
            "the flag that says {action} for `{pattern}` stands behind the one that allows `{by}`; put it first"
        )),
        // What is idle is told already.
        Finding::Idle { .. }
        | Finding::Duplicate { .. }
        | Finding::Expired { .. }
        | Finding::Advice { .. } => None,
    });
    idle.into_iter().chain(findings).collect()
}

fn regime(
    options: &PermissionOptions,
    inherited: &Inherited,
    configuration: &Configuration,
) -> Result<Regime, LaunchError> {
    let environment = configuration.environment();
    let variable = environment
        .text(names::CALIBAN_DEFAULT_PERMISSION_MODE)
        .map(|text| text.parse())
        .transpose()
        .map_err(|error: String| {
            LaunchError::configuration(format!("`CALIBAN_DEFAULT_PERMISSION_MODE`: {error}"))
        })?;
    let permissions = &configuration.settings().permissions;
    // A mode or a rule of this run beats the variable that would make it useless.
    let is_lifted = options.mode.is_none()
        && options.rules.is_empty()
        && environment.is_on(names::CALIBAN_NO_PERMISSIONS);
    let enforced = |scope| {
        configuration
            .loaded
            .scope(scope)
            .is_some_and(|settings| settings.permissions.enforce == Some(true))
    };
    let request = ModeRequest {
        // A session goes on in its mode.
        flag: options.mode.or(inherited.mode()),
        variable,
        setting: permissions.default_mode,
        latch: options.latch,
        gating: if is_lifted {
            Gating::Off
        } else {
            options.gating
        },
        enforcement: if permissions.enforce == Some(true)
            || enforced(Scope::User)
            || enforced(Scope::Managed)
        {
            Enforcement::On
        } else {
            Enforcement::Off
        },
    };
    let regime = request.resolve().map_err(Problem::from_error);
    regime.map_err(LaunchError::Configuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mode_that_asks_nobody_is_inherited() {
        for (recorded, expected) in [
            ("acceptEdits", Inherited::Mode(PermissionMode::AcceptEdits)),
            ("auto", Inherited::Mode(PermissionMode::Auto)),
            ("dontAsk", Inherited::AskedNobody("dontAsk".to_owned())),
            (
                "bypassPermissions",
                Inherited::AskedNobody("bypassPermissions".to_owned()),
            ),
            ("disabled", Inherited::AskedNobody("disabled".to_owned())),
            ("something else", Inherited::Nothing),
        ] {
            assert_eq!(Inherited::new(Some(recorded), EarlierMode::Kept), expected);
        }
        let left = Inherited::new(Some("acceptEdits"), EarlierMode::Left);
        assert_eq!(left, Inherited::Nothing);
        let asked_nobody = Inherited::new(Some("dontAsk"), EarlierMode::Left);
        let default = Regime::Rules(PermissionMode::Default);
        let mut options = PermissionOptions::default();
        assert!(asked_nobody.warning(&options, default).is_some());
        let same = Regime::Rules(PermissionMode::DontAsk);
        assert_eq!(asked_nobody.warning(&options, same), None);
        options.mode = Some(PermissionMode::Default);
        assert_eq!(asked_nobody.warning(&options, default), None);
    }
}
