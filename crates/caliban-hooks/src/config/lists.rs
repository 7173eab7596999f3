//! The lists that say which URLs HTTP handlers may call and which variables they may send.

use caliban_http::is_loopback;
use caliban_settings::Scope;
use url::Url;

use super::HookLayer;
use super::error::HookConfigError;
use crate::urls::UrlPattern;

/// What each scope says, the lowest priority first.
#[derive(Debug)]
pub(super) struct Lists(Vec<List>);

#[derive(Debug)]
struct List {
    scope: Scope,
    urls: Option<Vec<UrlPattern>>,
    variables: Option<Vec<String>>,
}

impl Lists {
    pub(super) fn parse(layers: &[HookLayer]) -> Result<Self, HookConfigError> {
        let pattern = |scope: Scope, text: &String| {
            UrlPattern::parse(text).map_err(|problem| HookConfigError::UrlPattern {
                scope,
                pattern: text.clone(),
                problem,
            })
        };
        let list = |layer: &HookLayer| {
            let urls = layer.allowed_urls.as_ref().map(|urls| {
                let patterns = urls.iter().map(|text| pattern(layer.scope, text));
                patterns.collect::<Result<Vec<_>, _>>()
            });
            Ok(List {
                scope: layer.scope,
                urls: urls.transpose()?,
                variables: layer.allowed_variables.clone(),
            })
        };
        layers.iter().map(list).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a handler of a scope may call a URL.
    ///
    /// 1. The managed scope may call any.
    /// 2. The overlay of the command line may call this machine: whoever starts a run may serve
    ///    its permission questions.
    /// 3. Where the managed scope has a list, the URL must be on it.
    /// 4. The user's handlers need to be on a list only where there is one; all others always.
    ///    A workspace's list never counts for the user's handlers.
    pub(super) fn allow_url(&self, scope: Scope, url: &Url) -> bool {
        let is_on = |list: &Vec<UrlPattern>| list.iter().any(|pattern| pattern.matches(url));
        if scope == Scope::Managed || (scope == Scope::Cli && is_loopback(url)) {
            return true;
        }
        let managed = self.managed().and_then(|list| list.urls.as_ref());
        if !managed.is_none_or(is_on) {
            return false;
        }
        let list = self
            .visible(scope)
            .filter_map(|list| list.urls.as_ref())
            .last();
        match (list, scope) {
            (None, Scope::User) => true,
            (Some(list), Scope::User) if list.is_empty() => true,
            (list, _) => list.is_some_and(is_on),
        }
    }

    /// Whether a handler of a scope may send an environment variable: it must be listed, and by
    /// the managed scope too where that has a list.
    pub(super) fn allow_variable(&self, scope: Scope, name: &str) -> bool {
        let is_on = |list: &Vec<String>| list.iter().any(|listed| listed == name);
        let managed = self.managed().and_then(|list| list.variables.as_ref());
        managed.is_none_or(is_on)
            && self
                .visible(scope)
                .filter_map(|list| list.variables.as_ref())
                .last()
                .is_some_and(is_on)
    }

    fn managed(&self) -> Option<&List> {
        self.0.iter().find(|list| list.scope == Scope::Managed)
    }

    /// The lists that count for handlers of a scope.
    fn visible(&self, scope: Scope) -> impl Iterator<Item = &List> {
        self.0.iter().filter(move |list| match scope {
            Scope::Managed => list.scope == Scope::Managed,
            Scope::User => !list.scope.is_workspace(),
            Scope::Project | Scope::Local | Scope::Cli => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn lists(urls: &[(Scope, &[&str])]) -> Lists {
        let layer = |(scope, urls): &(Scope, &[&str])| HookLayer {
            allowed_urls: Some(urls.iter().map(|url| (*url).to_owned()).collect()),
            allowed_variables: Some(urls.iter().map(|url| (*url).to_owned()).collect()),
            ..HookLayer::empty(*scope)
        };
        Lists::parse(&urls.iter().map(layer).collect::<Vec<_>>()).unwrap()
    }

    const LOCAL: &str = "http://127.0.0.1:1/";
    const REMOTE: &str = "https://a.org/";
    const LIST: &[&str] = &["https://a.org/*"];
    const NONE: &[&str] = &[];
    const OTHER: &[&str] = &["https://b.org/*"];

    #[rstest]
    #[case(&[], Scope::Managed, REMOTE, true)]
    #[case(&[], Scope::User, REMOTE, true)]
    #[case(&[], Scope::Project, REMOTE, false)]
    #[case(&[], Scope::Local, LOCAL, false)]
    #[case(&[], Scope::Cli, LOCAL, true)]
    #[case(&[], Scope::Cli, REMOTE, false)]
    #[case(&[(Scope::User, LIST)], Scope::Project, REMOTE, true)]
    #[case(&[(Scope::Project, LIST)], Scope::Project, REMOTE, true)]
    #[case(&[(Scope::User, LIST)], Scope::User, REMOTE, true)]
    #[case(&[(Scope::User, OTHER)], Scope::User, REMOTE, false)]
    #[case(&[(Scope::User, NONE)], Scope::User, REMOTE, true)]
    #[case(&[(Scope::User, NONE)], Scope::Project, REMOTE, false)]
    #[case(&[(Scope::Project, OTHER)], Scope::User, REMOTE, true)]
    #[case(&[(Scope::Managed, OTHER), (Scope::Project, LIST)], Scope::Project, REMOTE, false)]
    #[case(&[(Scope::Managed, LIST), (Scope::Project, OTHER)], Scope::Project, REMOTE, false)]
    #[case(&[(Scope::Managed, LIST)], Scope::Project, REMOTE, true)]
    #[case(&[(Scope::Managed, OTHER)], Scope::Managed, REMOTE, true)]
    #[case(&[(Scope::Managed, OTHER)], Scope::User, REMOTE, false)]
    fn urls(
        #[case] given: &[(Scope, &[&str])],
        #[case] scope: Scope,
        #[case] url: &str,
        #[case] expected: bool,
    ) {
        let url = Url::parse(url).unwrap();
        assert_eq!(lists(given).allow_url(scope, &url), expected);
    }

    #[test]
    fn variables_must_be_listed() {
        let none = lists(&[]);
        let user = lists(&[(Scope::User, &["*"])]);
        let project = lists(&[(Scope::Project, &["*"])]);
        let both = lists(&[(Scope::Managed, &[]), (Scope::User, &["*"])]);
        for scope in Scope::ALL {
            assert!(!none.allow_variable(scope, "*"));
            assert!(
                !both.allow_variable(scope, "*"),
                "the managed list comes first"
            );
        }
        assert!(user.allow_variable(Scope::User, "*") && user.allow_variable(Scope::Project, "*"));
        assert!(
            !user.allow_variable(Scope::User, "TOKEN"),
            "a list of names, not patterns"
        );
        assert!(!project.allow_variable(Scope::User, "*"));
    }
}
