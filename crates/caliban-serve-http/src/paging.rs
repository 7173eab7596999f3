//! Lists in pages. A cursor names the last thing of a page, so that what comes and goes meanwhile
//! moves nothing.

use axum::http::StatusCode;
use serde::Deserialize;

use crate::problem::Refusal;

/// Things in a page, unless fewer are asked for.
const MOST: usize = 256;

/// Which page is wanted.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Paging {
    cursor: Option<String>,
    limit: Option<usize>,
}

/// Some of a list, and where it goes on.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    pub(crate) cursor: Option<String>,
}

impl Paging {
    /// The page of a list whose things have these names.
    pub(crate) fn of<T>(&self, list: Vec<T>, name: fn(&T) -> &str) -> Result<Page<T>, Refusal> {
        let from = match &self.cursor {
            None => 0,
            Some(cursor) => match list.iter().position(|it| name(it) == cursor) {
                Some(place) => place + 1,
                None => {
                    return Err(Refusal::new(
                        StatusCode::BAD_REQUEST,
                        "stale_cursor",
                        "what this cursor names is not in the list any more; begin again without \
                         one",
                    ));
                }
            },
        };
        let limit = self.limit.unwrap_or(MOST).clamp(1, MOST);
        let rest = list.len() - from;
        let items: Vec<T> = list.into_iter().skip(from).take(limit).collect();
        let end = items.last().map(|it| name(it).to_owned());
        Ok(Page {
            cursor: end.filter(|_| rest > limit),
            items,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_without_holes() {
        let all: Vec<String> = (0..5).map(|number| format!("s{number}")).collect();
        let (mut paging, mut seen) = (Paging::default(), Vec::new());
        paging.limit = Some(2);
        loop {
            let page = paging.of(all.clone(), String::as_str).unwrap();
            assert!(page.items.len() <= 2);
            seen.extend(page.items);
            match page.cursor {
                Some(cursor) => paging.cursor = Some(cursor),
                None => break,
            }
        }
        assert_eq!(seen, all);
        paging.cursor = Some("gone".to_owned());
        assert!(paging.of(all, String::as_str).is_err());
    }
}
