//! What is offered while one writes: commands after `/`, files and resources after `@`.

use std::sync::Arc;

use caliban_compose::Editor;
use caliban_model::RateCard;
use caliban_session::Facts;
use caliban_slash::{BUILT_IN, Category, Completes, Does};
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// The most that is offered at once.
const OFFERED: usize = 200;

/// One thing that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    /// What is written when it is chosen.
    pub(crate) text: String,
    pub(crate) label: String,
    pub(crate) about: String,
    /// What is to be written after it.
    pub(crate) hint: String,
    pub(crate) group: &'static str,
}

impl Offer {
    /// Whether it can stand alone: everything that may follow it is in brackets.
    pub(crate) fn needs_nothing(&self) -> bool {
        let mut depth = 0_usize;
        self.hint.chars().all(|c| {
            match c {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                c if depth == 0 => return c.is_whitespace(),
                _ => {}
            }
            true
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Command,
    /// What follows the name of a command.
    Argument,
    File,
}

/// What is offered at the moment.
#[derive(Debug)]
pub(crate) struct Menu {
    pub(crate) kind: Kind,
    pub(crate) offers: Vec<Offer>,
    pub(crate) chosen: usize,
    /// The part of the text that a choice replaces.
    pub(crate) range: std::ops::Range<usize>,
    query: String,
}

impl Menu {
    /// What fits the text before the cursor; nothing where nothing does.
    pub(crate) fn of(
        editor: &Editor,
        facts: Option<&Facts>,
        files: &Arc<[String]>,
        before: Option<Self>,
    ) -> Option<Self> {
        let text = editor.text();
        let caret = editor.caret();
        if text.starts_with('/') && !text[..caret].contains(char::is_whitespace) {
            let query = text.get(1..caret)?.to_owned();
            return Some(Self::commands(query, 0..caret, facts).keeping(before));
        }
        if let Some(menu) = Self::arguments(&text, caret, facts) {
            return Some(menu.keeping(before));
        }
        let word = editor.word_at_caret()?;
        let query = word.text.strip_prefix('@')?.to_owned();
        Some(Self::files(query, word.range, facts, files).keeping(before))
    }

    /// The first words that a command knows; nothing where it knows none, or they are written.
    fn arguments(text: &str, caret: usize, facts: Option<&Facts>) -> Option<Self> {
        let (name, rest) = text.strip_prefix('/')?.split_once(' ')?;
        let entry = caliban_slash::built_in(name)?;
        let begin = text.len() - rest.len();
        let query = text.get(begin..caret)?.trim_start().to_owned();
        if caret != text.len() || query.contains(char::is_whitespace) {
            return None;
        }
        let words: Vec<String> = match entry.completes {
            Completes::Nothing => return None,
            Completes::Words(words) => words.iter().map(ToString::to_string).collect(),
            Completes::Models => {
                let provider = facts.map(|facts| facts.provider.as_str());
                let card = RateCard::builtin();
                let models = card.models(provider.unwrap_or_default());
                models.map(str::to_owned).collect()
            }
        };
        let all = words.into_iter().map(|word| Offer {
            label: word.clone(),
            text: word,
            about: String::new(),
            hint: String::new(),
            group: entry.category.title(),
        });
        let offers = ranked(&query, all.collect(), |offer| &offer.text);
        // What is written out needs no offer.
        let is_written = offers.iter().any(|offer| offer.text == query);
        (!offers.is_empty() && !is_written).then(|| Self {
            kind: Kind::Argument,
            offers,
            chosen: 0,
            range: caret - query.len()..caret,
            query,
        })
    }

    fn commands(query: String, range: std::ops::Range<usize>, facts: Option<&Facts>) -> Self {
        let built_in = BUILT_IN.iter().filter(|entry| match entry.does {
            Does::Act(_) | Does::NeedsScreen { .. } => true,
            Does::Missing { .. } => false,
        });
        let mut all: Vec<Offer> = built_in
            .map(|entry| Offer {
                text: format!("/{}", entry.name),
                label: format!("/{}", entry.name),
                about: entry.summary.to_owned(),
                hint: entry.arguments.to_owned(),
                group: entry.category.title(),
            })
            .collect();
        let others = facts.into_iter().flat_map(|facts| &facts.commands);
        let hint = |name: &String| {
            let hint = facts.and_then(|facts| facts.hints.get(name));
            hint.cloned().unwrap_or_default()
        };
        let known: Vec<String> = all.iter().map(|offer| offer.text.clone()).collect();
        all.extend(
            others
                .map(|(name, about)| Offer {
                    text: format!("/{name}"),
                    label: format!("/{name}"),
                    about: about.clone(),
                    hint: hint(name),
                    group: if name.starts_with("mcp__") {
                        "Servers"
                    } else {
                        "Yours"
                    },
                })
                .filter(|offer| !known.contains(&offer.text)),
        );
        let offers = ranked(&query, all, |offer| offer.text.trim_start_matches('/'));
        Self {
            kind: Kind::Command,
            offers,
            chosen: 0,
            range,
            query,
        }
    }

    fn files(
        query: String,
        range: std::ops::Range<usize>,
        facts: Option<&Facts>,
        files: &Arc<[String]>,
    ) -> Self {
        let servers = facts.into_iter().flat_map(|facts| &facts.servers);
        let servers = servers.map(|server| Offer {
            text: format!("@{}:", server.name),
            label: format!("@{}:", server.name),
            about: "resources of this server".to_owned(),
            hint: String::new(),
            group: "Servers",
        });
        // Many thousand paths are ranked as they are; only what is shown becomes an offer.
        let ranked_files = ranked_texts(&query, files);
        let offers = ranked_files.into_iter().map(|path| Offer {
            text: format!("@{path}"),
            label: path.clone(),
            about: String::new(),
            hint: String::new(),
            group: "Files",
        });
        let servers = ranked(&query, servers.collect(), |offer| &offer.text[1..]);
        let offers = offers.chain(servers).take(OFFERED).collect();
        Self {
            kind: Kind::File,
            offers,
            chosen: 0,
            range,
            query,
        }
    }

    /// The same choice as before, where the same is asked.
    fn keeping(mut self, before: Option<Self>) -> Self {
        if let Some(before) = before
            && before.kind == self.kind
            && before.query == self.query
        {
            self.chosen = before.chosen.min(self.offers.len().saturating_sub(1));
        }
        self
    }

    /// Whether the offers stand in the order of their groups.
    pub(crate) fn is_grouped(&self) -> bool {
        self.query.is_empty()
    }

    pub(crate) fn wants_files(&self) -> bool {
        self.kind == Kind::File
    }

    pub(crate) fn up(&mut self) {
        self.chosen = match self.chosen {
            0 => self.offers.len().saturating_sub(1),
            chosen => chosen - 1,
        };
    }

    pub(crate) fn down(&mut self) {
        self.chosen += 1;
        if self.chosen >= self.offers.len() {
            self.chosen = 0;
        }
    }

    pub(crate) fn choice(&self) -> Option<&Offer> {
        self.offers.get(self.chosen)
    }
}

/// The order of groups in lists.
pub(crate) fn group_rank(group: &str) -> usize {
    let place = Category::ALL
        .iter()
        .position(|category| category.title() == group);
    place.unwrap_or(Category::ALL.len())
}

/// What fits a query, best first; everything in its own order for an empty one.
fn ranked(query: &str, all: Vec<Offer>, text: impl Fn(&Offer) -> &str) -> Vec<Offer> {
    if query.is_empty() {
        let mut all = all;
        all.sort_by_key(|offer| group_rank(offer.group));
        return all;
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, bool, Offer)> = all
        .into_iter()
        .filter_map(|offer| {
            let haystack = Utf32Str::new(text(&offer), &mut buffer);
            let score = pattern.score(haystack, &mut matcher)?;
            let begins = text(&offer).starts_with(query);
            Some((score, begins, offer))
        })
        .collect();
    scored.sort_by(|a, b| (b.1, b.0).cmp(&(a.1, a.0)).then(a.2.text.cmp(&b.2.text)));
    scored
        .into_iter()
        .map(|(_, _, offer)| offer)
        .take(OFFERED)
        .collect()
}

/// Paths that fit a query, best first.
pub(crate) fn ranked_texts(query: &str, all: &[String]) -> Vec<String> {
    if query.is_empty() {
        return all.iter().take(OFFERED).cloned().collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, &String)> = all
        .iter()
        .filter_map(|text| {
            let haystack = Utf32Str::new(text, &mut buffer);
            Some((pattern.score(haystack, &mut matcher)?, text))
        })
        .collect();
    scored.sort_by(|a, b| {
        b.0.cmp(&a.0)
            .then(a.1.len().cmp(&b.1.len()))
            .then(a.1.cmp(b.1))
    });
    let best = scored.into_iter().take(OFFERED);
    best.map(|(_, text)| text.clone()).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Offer;

    #[rstest]
    #[case("", true)]
    #[case("[id]", true)]
    #[case("[N] [--code|--force] [--dry-run]", true)]
    #[case("QUESTION", false)]
    #[case("[file] <mode>", false)]
    fn a_command_runs_at_once_where_nothing_must_follow(#[case] hint: &str, #[case] runs: bool) {
        let offer = Offer {
            text: "/x".to_owned(),
            label: "/x".to_owned(),
            about: String::new(),
            hint: hint.to_owned(),
            group: "",
        };
        assert_eq!(offer.needs_nothing(), runs);
    }
}
