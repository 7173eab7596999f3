//! Reads `caliban.toml`. Which models answer, and where requests and keys go, is only for a trusted
//! project to say.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use super::discovery::{FoundRouterFile, RouterSource};
use super::types::{ProviderId, Route, RouterConfig, RouterFile};
use crate::document::{Content, Entry, Format, Node, Origin, Step, dotted, parse, typed};
use crate::error::{Fault, SettingsError, shown};
use crate::policy::Trust;
use crate::source::{WorkspaceFile, read_file, read_workspace_file};
use crate::trust::{Ignored, IgnoredBecause};
use crate::variables::VARIABLES;

#[derive(Debug, Clone, PartialEq)]
pub struct LoadedRouterFile {
    pub path: PathBuf,
    pub source: RouterSource,
    pub file: RouterFile,
    /// Keys left out because the project is not trusted.
    pub ignored: Vec<Ignored>,
    pub warnings: Vec<String>,
    /// Why no run can begin with it: its routes would be passed over.
    pub refusal: Option<SettingsError>,
}

/// Reads the file that was found.
pub fn load_router_file(
    found: &FoundRouterFile,
    trust: Trust,
) -> Result<LoadedRouterFile, SettingsError> {
    let mut loaded = LoadedRouterFile {
        path: found.path.clone(),
        source: found.source,
        file: RouterFile::default(),
        ignored: Vec::new(),
        warnings: Vec::new(),
        refusal: None,
    };
    let Some(text) = read(found, &mut loaded.warnings)? else {
        return Ok(loaded);
    };
    let mut root = parse(
        found.source.scope(),
        Origin::File(found.path.clone()),
        text,
        Format::Toml,
    )?;
    // Everything is checked, what is left out included.
    if let Some(route) = root.at(&["route"]) {
        let message = "routes belong to the router: write `[[router.route]]`";
        let fault = Fault::at(&route.place, message);
        return Err(SettingsError::Value(Box::new(fault)));
    }
    if let Some(api) = root.at(&["provider", "bedrock", "api"])
        && api.to_value() == "mantle"
    {
        let message = "Bedrock's Messages endpoint (Mantle) is not built in";
        let fault = Fault::at(&api.place, message)
            .with_help("leave `api` out: Claude's models are reached with InvokeModel");
        return Err(SettingsError::Value(Box::new(fault)));
    }
    let _: RouterFile = typed(&root)?;
    if let Some(router) = root.at(&["router"]) {
        check_router(router)?;
    }
    if found.source == RouterSource::Project {
        gate(&mut root, trust, &mut loaded);
    }
    loaded.file = typed(&root)?;
    if let Some(router) = &loaded.file.router {
        let circle = circle(&router.routes);
        loaded.warnings.extend(circle.map(|names| {
            format!(
                "`{}`: these routes fall back in a circle, and each is tried once: {}",
                shown(&found.path),
                names.join(" → ")
            )
        }));
    }
    Ok(loaded)
}

/// The first routes that lead back to where they began.
fn circle(routes: &[Route]) -> Option<Vec<String>> {
    let next = |id: &str| {
        let route = routes.iter().find(|route| route.id() == id);
        let fallback = route.and_then(|route| route.fallback.as_deref());
        fallback.unwrap_or_default()
    };
    for route in routes {
        let start = route.id();
        // Whoever is left, with the way there; nobody is looked at twice.
        let mut seen = HashSet::new();
        let mut ways = vec![vec![start.clone()]];
        while let Some(way) = ways.pop() {
            for id in way.last().map_or(&[][..], |last| next(last)) {
                let mut longer = way.clone();
                longer.push(id.clone());
                if *id == start && longer.len() > 2 {
                    return Some(longer);
                }
                // A route that names itself is said elsewhere.
                if *id != start && seen.insert(id.clone()) {
                    ways.push(longer);
                }
            }
        }
    }
    None
}

fn read(
    found: &FoundRouterFile,
    warnings: &mut Vec<String>,
) -> Result<Option<String>, SettingsError> {
    let path = &found.path;
    let text = match found.source {
        RouterSource::Flag | RouterSource::Variable | RouterSource::User => read_file(path)?,
        RouterSource::Project => {
            let root = fs::canonicalize(&found.root).unwrap_or_else(|_| found.root.clone());
            match read_workspace_file(&root, path) {
                WorkspaceFile::Absent => None,
                WorkspaceFile::Text(text) => Some(text),
                WorkspaceFile::Elsewhere(target) => {
                    warnings.push(format!(
                        "`{}` is not read because it leads out of the workspace, to `{}`",
                        shown(path),
                        shown(&target)
                    ));
                    return Ok(None);
                }
                WorkspaceFile::Unusable(error) => return Err(error),
            }
        }
    };
    match text {
        Some(text) => Ok(Some(text)),
        None => Err(SettingsError::Unreadable {
            path: path.clone(),
            reason: "there is no such file".to_owned(),
        }),
    }
}

/// What says nothing as a zero.
const COUNTED: [&str; 4] = [
    "failure_threshold",
    "half_open_probes",
    "cooldown_secs",
    "window_secs",
];

/// Names of routes must be unique, and what names a route must name one that is there.
pub(crate) fn check_router(router: &Node) -> Result<(), SettingsError> {
    let _: RouterConfig = typed(router)?;
    let empty = Vec::new();
    let nodes = match router.at(&["route"]).map(|node| &node.content) {
        Some(Content::List(nodes)) => nodes,
        _ => &empty,
    };
    let fault = |node: &Node, message: String| {
        Err(SettingsError::Value(Box::new(Fault::at(
            &node.place,
            message,
        ))))
    };
    for node in nodes {
        if let Some(model) = node.at(&["model"])
            && model
                .to_value()
                .as_str()
                .is_none_or(|name| name.trim().is_empty())
        {
            return fault(model, "must name a model".to_owned());
        }
    }
    let breakers = nodes.iter().chain([router]);
    for breaker in breakers.filter_map(|node| node.at(&["breaker"])) {
        for key in COUNTED {
            if let Some(number) = breaker.at(&[key])
                && number.to_value() == 0
            {
                return fault(number, format!("`{key}` must be at least 1"));
            }
        }
    }
    let mut ids = HashSet::new();
    for node in nodes {
        if let Some(id) = node.at(&["id"])
            && !ids.insert(id.to_value())
        {
            return fault(id, format!("another route has the id {}", id.to_value()));
        }
    }
    let unnamed = nodes.iter().filter(|node| node.at(&["id"]).is_none());
    for node in unnamed {
        let route: super::types::Route = typed(node)?;
        ids.insert(route.id().into());
    }
    for node in nodes {
        let Some(Content::List(names)) = node.at(&["fallback"]).map(|node| &node.content) else {
            continue;
        };
        if let Some(name) = names.iter().find(|name| !ids.contains(&name.to_value())) {
            return fault(name, format!("no route has the id {}", name.to_value()));
        }
    }
    let budgets = match router.at(&["budget"]).map(|node| &node.content) {
        Some(Content::List(budgets)) => budgets,
        _ => &empty,
    };
    let named = budgets.iter().filter_map(|budget| budget.at(&["use"]));
    match named
        .into_iter()
        .find(|name| !ids.contains(&name.to_value()))
    {
        Some(name) => fault(name, format!("no route has the id {}", name.to_value())),
        None => Ok(()),
    }
}

/// Why no run begins where routes do not count for want of trust: whoever wrote them does not
/// expect the prompt elsewhere, and whoever runs them does not expect it there.
pub(crate) fn withheld(routes: &Node) -> SettingsError {
    let path = [
        Step::Key("router".to_owned()),
        Step::Key("route".to_owned()),
    ];
    let message = "the workspace is not trusted, so its routes do not say where prompts go";
    let fault = Fault::at(&routes.place, message)
        .about(&path)
        .with_help("run `caliban trust` if they may, or pass `--trust-workspace` for this run");
    SettingsError::Unbuilt(Box::new(fault))
}

fn gate(root: &mut Node, trust: Trust, loaded: &mut LoadedRouterFile) {
    if trust == Trust::Untrusted
        && let Some(router) = root.at(&["router"])
    {
        let routes = router
            .at(&["route"])
            .filter(|routes| match &routes.content {
                Content::List(nodes) => !nodes.is_empty(),
                _ => true,
            });
        loaded.refusal = routes.map(withheld);
        loaded.ignored.push(Ignored {
            key: "router".to_owned(),
            scope: loaded.source.scope(),
            because: IgnoredBecause::Untrusted,
        });
        if let Some(table) = root.as_table_mut() {
            *table = std::mem::take(table)
                .into_iter()
                .filter(|entry| entry.key != "router")
                .collect();
        }
    }
    let providers = root
        .as_table_mut()
        .and_then(|table| table.get_mut("provider"))
        .and_then(Node::as_table_mut);
    let Some(providers) = providers else {
        return;
    };
    *providers = std::mem::take(providers)
        .into_iter()
        .map(|mut provider| {
            if let Some(block) = provider.node.as_table_mut() {
                *block = std::mem::take(block)
                    .into_iter()
                    .filter(|entry| is_admitted(&provider.key, entry, trust, loaded))
                    .collect();
            }
            provider
        })
        .collect();
}

fn is_admitted(provider: &str, entry: &Entry, trust: Trust, loaded: &mut LoadedRouterFile) -> bool {
    let key = dotted(&[
        Step::Key("provider".to_owned()),
        Step::Key(provider.to_owned()),
        Step::Key(entry.key.clone()),
    ]);
    if entry.key == "api" {
        return true;
    }
    if let ("api_key_env", Content::String(variable)) = (entry.key.as_str(), &entry.node.content)
        && belongs_to_another(provider, variable)
    {
        loaded.warnings.push(format!(
            "`{}`: `{key}` is ignored because `{variable}` holds the key of something else",
            shown(&loaded.path)
        ));
        return false;
    }
    match trust {
        Trust::Trusted => true,
        Trust::Untrusted => {
            loaded.ignored.push(Ignored {
                key,
                scope: loaded.source.scope(),
                because: IgnoredBecause::Untrusted,
            });
            false
        }
    }
}

/// Whether a variable is known to hold the key of another provider or service.
fn belongs_to_another(provider: &str, variable: &str) -> bool {
    let begins = |id: &ProviderId| {
        let mut prefixes = id.variable_prefixes().iter();
        prefixes.any(|prefix| variable.starts_with(prefix))
    };
    let owner = ProviderId::ALL.iter().find(|id| begins(id));
    match owner {
        Some(owner) => owner.as_str() != provider,
        None => VARIABLES
            .iter()
            .any(|known| known.is_secret && known.name == variable),
    }
}

#[cfg(test)]
mod tests {
    use caliban_model::{Effort, Knob, OpenAiApi, Purpose};

    use super::super::types::{Hedge, RouteEffort, Toggle};
    use super::*;

    const FULL: &str = r#"
[provider.openai]
api_key_env = "OPENAI_API_KEY_STAGING"
base_url = "https://oai-staging.example.com/v1"
api = "chat"

[provider.bedrock]
region = "eu-central-1"

[images]
max_bytes = 100

[router]
default_purpose = "main_loop"
[router.hedge]
hedge_after_ms = 1500
max_hedges = 1
[router.breaker]
failure_threshold = 5

[[router.route]]
id = "primary"
purpose = "main_loop"
provider = "anthropic"
model = "claude-sonnet-4-6"
fallback = ["ollama:llama3.2:3b:fast_classifier"]
hedge = { hedge_after_ms = 1000, max = 1 }
breaker = false
requires = { vision = true, tool_use = true }
effort = "medium"
[router.route.effort_map]
low = "budget=1024"

[[router.route]]
purpose = "fast_classifier"
provider = "ollama"
model = "llama3.2:3b"
"#;

    fn load(
        source: RouterSource,
        text: &str,
        trust: Trust,
    ) -> Result<LoadedRouterFile, SettingsError> {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("caliban.toml");
        fs::write(&path, text).unwrap();
        let found = FoundRouterFile {
            path,
            source,
            root: root.path().to_owned(),
        };
        load_router_file(&found, trust)
    }

    #[test]
    fn routes_in_a_circle_are_told() {
        let routes = |of_second: &str| {
            format!(
                "[[router.route]]\nid = 'a'\npurpose = 'main_loop'\nprovider = 'anthropic'\n\
                 model = 'm'\nfallback = ['b']\n\
                 [[router.route]]\nid = 'b'\npurpose = 'main_loop'\nprovider = 'ollama'\n\
                 model = 'n'\nfallback = [{of_second}]\n"
            )
        };
        let warnings = |text: &str| {
            let loaded = load(RouterSource::User, text, Trust::Trusted).unwrap();
            loaded.warnings
        };
        let told = warnings(&routes("'a'"));
        assert!(told[0].ends_with("a → b → a"), "{told:?}");
        assert!(warnings(&routes("")).is_empty());
        assert!(warnings(&routes("'b'")).is_empty());
    }

    #[test]
    fn everything_the_file_may_say_is_typed() {
        let file = load(RouterSource::User, FULL, Trust::Untrusted)
            .unwrap()
            .file;
        let openai = &file.provider[&ProviderId::OpenAi];
        assert_eq!(openai.api, Some(OpenAiApi::Chat));
        assert_eq!(
            openai.api_key_env.as_deref(),
            Some("OPENAI_API_KEY_STAGING")
        );
        assert_eq!(
            file.provider[&ProviderId::Bedrock].extra["region"],
            "eu-central-1"
        );
        assert_eq!(
            (file.images.max_bytes, file.images.downscale_target),
            (100, 1568)
        );
        let router = file.router.unwrap();
        assert_eq!(router.default_purpose, Some(Purpose::MainLoop));
        let route = &router.routes[0];
        let hedge = Hedge {
            hedge_after_ms: Some(1000),
            max_hedges: Some(1),
            ..Hedge::default()
        };
        assert_eq!(
            (route.hedge, route.breaker),
            (Toggle::Own(hedge), Toggle::Off)
        );
        assert_eq!(route.effort, Some(RouteEffort::Medium));
        assert_eq!(route.effort_map[&Effort::Low], Knob::Budget(1_024));
        assert_eq!(router.routes[1].id(), "ollama:llama3.2:3b:fast_classifier");
        assert_eq!(router.routes[1].hedge, Toggle::Inherited);
    }

    #[test]
    fn a_project_may_not_say_where_keys_go_until_it_is_trusted() {
        let loaded = load(RouterSource::Project, FULL, Trust::Untrusted).unwrap();
        let openai = &loaded.file.provider[&ProviderId::OpenAi];
        assert_eq!((&openai.base_url, &openai.api_key_env), (&None, &None));
        assert_eq!(openai.api, Some(OpenAiApi::Chat));
        let keys: Vec<_> = loaded
            .ignored
            .iter()
            .map(|ignored| ignored.key.as_str())
            .collect();
        assert_eq!(
            keys,
            [
                "router",
                "provider.openai.api_key_env",
                "provider.openai.base_url",
                "provider.bedrock.region"
            ]
        );
        assert_eq!(loaded.file.router, None);
        let refusal = loaded.refusal.unwrap().to_string();
        assert!(refusal.contains("caliban trust"), "{refusal}");
        let loaded = load(RouterSource::Project, FULL, Trust::Trusted).unwrap();
        assert_eq!((loaded.ignored.len(), loaded.refusal), (0, None));
        assert!(loaded.file.router.is_some());
        assert!(loaded.file.provider[&ProviderId::OpenAi].base_url.is_some());
    }

    #[test]
    fn a_project_never_sends_one_providers_key_to_another() {
        for variable in [
            "ANTHROPIC_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "BRAVE_API_KEY",
        ] {
            let text = format!("[provider.openai]\napi_key_env = '{variable}'\n");
            let loaded = load(RouterSource::Project, &text, Trust::Trusted).unwrap();
            assert_eq!(loaded.file.provider[&ProviderId::OpenAi].api_key_env, None);
            assert!(loaded.warnings[0].contains(variable));
            let own = load(RouterSource::User, &text, Trust::Untrusted).unwrap();
            assert!(own.file.provider[&ProviderId::OpenAi].api_key_env.is_some());
        }
        let text = "[provider.google]\napi_key_env = 'GOOGLE_GEMINI_API_KEY'\n";
        let loaded = load(RouterSource::Project, text, Trust::Trusted).unwrap();
        assert!(
            loaded.file.provider[&ProviderId::Google]
                .api_key_env
                .is_some()
        );
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, line, message) in [
            ("[provider.opnai]\n", 1, "unknown provider `opnai`"),
            ("[router]\nroutes = []\n", 2, "unknown field `routes`"),
            (
                "[[router.route]]\npurpose = 'main'\n",
                2,
                "unknown variant `main`",
            ),
            (
                "[[route]]\npurpose = 'other'\n",
                1,
                "write `[[router.route]]`",
            ),
            (
                "[[router.route]]\npurpose = 'other'\nprovider = 'openai'\nmodel = 'm'\nfallback_on = ['invalid']\n",
                5,
                "unknown variant `invalid`",
            ),
            (
                "[[router.route]]\npurpose = 'other'\nprovider = 'openai'\nmodel = 'm'\n[router.route.effort_map]\nlow = 'loud'\n",
                5,
                "`loud` is no effort",
            ),
            (
                "[[router.budget]]\nat = 0.8\npurpose = 'main_loop'\nuse = 'x'\n",
                4,
                "no route has the id \"x\"",
            ),
            (
                "[[router.budget]]\nat = 80\npurpose = 'main_loop'\nuse = 'x'\n",
                2,
                "must be between 0 and 1",
            ),
            ("[images]\ndownscale_target = 0\n", 2, "must be above 0"),
            ("[images]\nmax_bytes = 0\n", 2, "must be above 0"),
            (
                "[provider.openai]\napi = 'soap'\n",
                2,
                "unknown variant `soap`",
            ),
            (
                "[[router.route]]\npurpose = 'other'\nprovider = 'openai'\nmodel = 'm'\nfallback = ['x']\n",
                5,
                "no route has the id \"x\"",
            ),
            (
                "[[router.route]]\nid = 'a'\npurpose = 'other'\nprovider = 'openai'\nmodel = 'm'\n[[router.route]]\nid = 'a'\npurpose = 'other'\nprovider = 'openai'\nmodel = 'n'\n",
                7,
                "another route has the id",
            ),
        ] {
            let error = load(RouterSource::Project, text, Trust::Untrusted).unwrap_err();
            let fault = error.fault().unwrap();
            assert!(fault.message.contains(message), "{fault}");
            assert_eq!(fault.line, line, "{fault}");
        }
    }

    #[test]
    fn a_named_file_must_exist() {
        let found = FoundRouterFile {
            path: PathBuf::from("/nonsuch/caliban.toml"),
            source: RouterSource::Flag,
            root: PathBuf::from("/nonsuch"),
        };
        assert!(load_router_file(&found, Trust::Trusted).is_err());
    }
}
