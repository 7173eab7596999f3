//! From flags, variables and settings to the permissions of a run.

use caliban_harness::{Permissions, protected};
use caliban_permissions::{
    AuditLog, AutoAllow, AutoRules, Enforcement, Finding, Gating, Latch, ModeRequest, Origin,
    Regime, Rule, RuleBook, RuleError, lint,
};
use caliban_settings::variables::names;
use caliban_settings::{PermissionMode, RuleAction, RuleSpec, Scope};

use crate::args::{PermissionArgs, RuleArgs};
use crate::configuration::Configuration;
use crate::exit::Failure;

/// Everything that decides which calls may run.
pub(crate) fn build(
    args: &PermissionArgs,
    rules: &RuleArgs,
    continued: Option<&str>,
    configuration: &Configuration<'_>,
) -> Result<Permissions, Failure> {
    let environment = &configuration.environment;
    let regime = regime(args, rules, continued, configuration)?;
    let auto_off = args.disable_auto_mode || environment.is_set(names::CALIBAN_DISABLE_AUTO_MODE);
    let auto = if regime == Regime::Rules(PermissionMode::Auto) && !auto_off {
        let path = configuration.locations.config_dir().join("auto-mode.toml");
        Some(AutoRules::load(&path).map_err(|error| Failure::Config(error.to_string()))?)
    } else {
        None
    };
    Ok(Permissions {
        book: book(rules, configuration)?,
        regime,
        auto_allow: if args.auto_allow || environment.is_set(names::CALIBAN_AUTO_ALLOW) {
            AutoAllow::On
        } else {
            AutoAllow::Off
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

/// All rules in the order they are tried.
pub(crate) fn book(
    rules: &RuleArgs,
    configuration: &Configuration<'_>,
) -> Result<RuleBook, Failure> {
    let unusable = |error: RuleError| match error.origin {
        Origin::Flag => Failure::Usage(error.to_string()),
        _ => Failure::Config(error.to_string()),
    };
    let book = RuleBook::new(rules.ordered.iter().cloned(), &configuration.loaded);
    let approve = |tool: &String| {
        let spec = RuleSpec::new(tool, RuleAction::Allow);
        Rule::new(spec, Origin::Client)
    };
    let approved: Result<Vec<Rule>, RuleError> = rules.approved.iter().map(approve).collect();
    Ok(book
        .map_err(unusable)?
        .with_last(approved.map_err(unusable)?))
}

/// Rules that could never match anything and are left out.
pub(crate) fn idle(rules: &RuleArgs, configuration: &Configuration<'_>) -> Vec<String> {
    let flags = rules.ordered.iter().cloned();
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
pub(crate) fn warnings(rules: &RuleArgs, configuration: &Configuration<'_>) -> Vec<String> {
    let idle = idle(rules, configuration);
    let rules: Vec<Rule> = rules
        .ordered
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
    args: &PermissionArgs,
    rules: &RuleArgs,
    continued: Option<&str>,
    configuration: &Configuration<'_>,
) -> Result<Regime, Failure> {
    let environment = &configuration.environment;
    let variable = environment
        .text(names::CALIBAN_DEFAULT_PERMISSION_MODE)
        .map(|text| text.parse())
        .transpose()
        .map_err(|error: String| {
            Failure::Config(format!("`CALIBAN_DEFAULT_PERMISSION_MODE`: {error}"))
        })?;
    let permissions = &configuration.settings().permissions;
    // A flag beats the variable that would make it useless.
    let gating_off = args.no_permissions
        || (rules.ordered.is_empty() && environment.is_set(names::CALIBAN_NO_PERMISSIONS));
    let enforced = |scope| {
        configuration
            .loaded
            .scope(scope)
            .is_some_and(|settings| settings.permissions.enforce == Some(true))
    };
    let request = ModeRequest {
        // A session goes on in its mode; only a flag of this run lifts all rules.
        flag: args.permission_mode.or_else(|| {
            continued
                .and_then(|mode| mode.parse().ok())
                .filter(|mode| *mode != PermissionMode::BypassPermissions)
        }),
        variable,
        setting: permissions.default_mode,
        latch: if args.allow_dangerously_skip_permissions {
            Latch::Given
        } else {
            Latch::Absent
        },
        gating: if gating_off { Gating::Off } else { Gating::On },
        enforcement: if permissions.enforce == Some(true)
            || enforced(Scope::User)
            || enforced(Scope::Managed)
        {
            Enforcement::On
        } else {
            Enforcement::Off
        },
    };
    request
        .resolve()
        .map_err(|error| Failure::Config(error.to_string()))
}
