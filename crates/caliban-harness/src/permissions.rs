//! What a session's gate is made of: from options, variables and settings to the permissions of a
//! run.

use std::path::{Path, PathBuf};

use caliban_agent::Workspace;
use caliban_permissions::{
    AuditLog, AutoAllow, AutoRules, Enforcement, Finding, Gating, Judge, ModeRequest, Origin,
    Places, Protected, Regime, Rule, RuleBook, RuleError, lint,
};
use caliban_settings::variables::names;
use caliban_settings::{LoadedSettings, Locations, PermissionMode, RuleAction, RuleSpec, Scope};

use crate::configuration::Configuration;
use crate::error::{LaunchError, Problem};
use crate::gate::AUTO_ALLOW;
use crate::options::{EarlierMode, Part, PermissionOptions};

/// Everything that decides which calls may run.
#[derive(Debug, Clone)]
pub struct Permissions {
    pub book: RuleBook,
    pub regime: Regime,
    pub auto_allow: AutoAllow,
    /// The lists of auto mode; none where its classifier is switched off.
    pub auto: Option<AutoRules>,
    pub audit: Option<AuditLog>,
    pub protected: Protected,
}

impl Permissions {
    /// The built-in rules, nothing asked, nothing logged.
    pub fn unattended() -> Self {
        Self {
            book: RuleBook::of(std::iter::empty::<Rule>()),
            regime: Regime::Rules(PermissionMode::Default),
            auto_allow: AutoAllow::On,
            auto: None,
            audit: None,
            protected: Protected::default(),
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
pub fn protected(locations: &Locations) -> Protected {
    let own = [
        locations.config_dir(),
        locations.state_dir(),
        locations.data_dir(),
        locations.managed_dir(),
    ];
    let tokens = locations.mcp_tokens();
    Protected::new(
        Some(locations.home().to_owned()),
        own.into_iter().map(Path::to_owned),
        [tokens],
    )
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
                if options.mode.is_some() || options.auto_allow == AutoAllow::On =>
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
        let regime = regime(options, inherited, configuration)?;
        let is_classified = options.classifier == Part::AsConfigured
            && !environment.is_set(names::CALIBAN_DISABLE_AUTO_MODE);
        let auto = if regime == Regime::Rules(PermissionMode::Auto) && is_classified {
            let path = configuration.locations.config_dir().join("auto-mode.toml");
            let rules = AutoRules::load(&path).map_err(Problem::from_error);
            Some(rules.map_err(LaunchError::Configuration)?)
        } else {
            None
        };
        Ok(Self {
            book: rule_book(options, &configuration.loaded)?,
            regime,
            auto_allow: if environment.is_set(names::CALIBAN_AUTO_ALLOW) {
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
            protected: protected(&configuration.locations),
        })
    }

    /// The permissions of a run that begins anew.
    pub fn of_new_run(
        options: &PermissionOptions,
        configuration: &Configuration,
    ) -> Result<Self, LaunchError> {
        Self::choose(options, &Inherited::Nothing, configuration)
    }
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
    let book = RuleBook::new(options.rules.iter().cloned(), loaded);
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

/// Rules that could never match anything and are left out.
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
        .filter_map(|(spec, origin)| Rule::new(spec, origin).err())
        .filter(RuleError::is_idle)
        .map(|error| format!("left out: {error}"))
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
        Finding::Duplicate { .. } | Finding::Expired { .. } | Finding::Advice { .. } => None,
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
    // A rule of this run beats the variable that would make it useless.
    let is_lifted = options.rules.is_empty() && environment.is_set(names::CALIBAN_NO_PERMISSIONS);
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
