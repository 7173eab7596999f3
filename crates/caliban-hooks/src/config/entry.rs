//! One entry under an event, in any of its three shapes: a group with `handlers`, a group with
//! `hooks`, or a handler on its own.

use std::sync::Arc;

use caliban_settings::Scope;
use serde_json::Value;

use super::error::{HookConfigError, HookFault, HookPlace};
use super::fields::Fields;
use super::handler::{Filter, Handler, Surrounding};
use super::lists::Lists;
use super::{CallPattern, CompilePattern, ParseWith, PluginHooks};
use crate::action::Action;
use crate::event::{EventName, Subject};
use crate::matcher::Matcher;

/// The two names of the list of handlers.
const HANDLERS: &str = "handlers";
const HOOKS: &str = "hooks";

/// The entries of one event in one scope, being read.
pub(super) struct Entries<'a> {
    surrounding: Surrounding<'a>,
    pattern: CompilePattern<'a>,
    place: HookPlace,
    handlers: Vec<Arc<Handler>>,
    notices: Vec<String>,
}

impl<'a> Entries<'a> {
    pub(super) fn new(
        scope: Scope,
        event: EventName,
        lists: &'a Lists,
        with: &ParseWith<'a>,
        plugin: Option<&'a PluginHooks>,
    ) -> Self {
        Self {
            surrounding: Surrounding {
                scope,
                plugin,
                event,
                lists,
                variable: with.variable,
            },
            pattern: with.pattern,
            place: HookPlace {
                scope,
                event: event.as_str().to_owned(),
                entry: 0,
                handler: None,
                list: HANDLERS,
            },
            handlers: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Reads the next entry.
    pub(super) fn read(&mut self, value: &Value) -> Result<(), HookConfigError> {
        self.place.entry += 1;
        self.place.handler = None;
        self.entry(value).map_err(|fault| HookConfigError::Entry {
            place: self.place.clone(),
            fault,
        })
    }

    pub(super) fn finish(self) -> (Vec<Arc<Handler>>, Vec<String>) {
        (self.handlers, self.notices)
    }

    fn entry(&mut self, value: &Value) -> Result<(), HookFault> {
        let mut fields = Fields::new(value)?;
        let filter = self.filter(&mut fields)?;
        if let Some(idle) = filter.idle_matcher(self.surrounding.event) {
            self.notice(&idle);
        }
        let list = match (fields.list(HANDLERS)?, fields.list(HOOKS)?) {
            (Some(_), Some(_)) => return Err(HookFault::TwoLists),
            (Some(list), None) => {
                self.place.list = HANDLERS;
                list
            }
            (None, Some(list)) => {
                self.place.list = HOOKS;
                list
            }
            (None, None) if value.get("type").is_some() => {
                let handler = Handler::parse(&mut fields, filter, &self.surrounding)?;
                fields.finish()?;
                self.push(handler);
                return Ok(());
            }
            (None, None) => {
                fields.finish()?;
                return Err(HookFault::NoHandlers);
            }
        };
        fields.finish()?;
        if list.is_empty() {
            self.notice("it has no handlers and does nothing");
        }
        for (index, value) in list.iter().enumerate() {
            self.place.handler = Some(index + 1);
            let mut fields = Fields::new(value)?;
            let mut filter = filter.clone();
            filter.conditions.extend(self.condition(&mut fields)?);
            let handler = Handler::parse(&mut fields, filter, &self.surrounding)?;
            fields.finish()?;
            self.push(handler);
        }
        Ok(())
    }

    fn filter(&self, fields: &mut Fields<'_>) -> Result<Filter, HookFault> {
        let matcher = match fields.text("matcher")? {
            None => Matcher::all(),
            Some(text) => Matcher::parse(text).map_err(|problem| HookFault::Matcher {
                matcher: text.to_owned(),
                problem,
            })?,
        };
        Ok(Filter {
            text: matcher.as_str().into(),
            matcher,
            conditions: self.condition(fields)?.into_iter().collect(),
        })
    }

    fn condition(
        &self,
        fields: &mut Fields<'_>,
    ) -> Result<Option<Arc<dyn CallPattern>>, HookFault> {
        let Some(text) = fields.text("if")? else {
            return Ok(None);
        };
        if self.surrounding.event.subject() != Subject::Tool {
            return Err(HookFault::ConditionWithoutCall);
        }
        let pattern = (self.pattern)(text).map_err(|problem| HookFault::Condition {
            pattern: text.to_owned(),
            problem,
        })?;
        Ok(Some(Arc::from(pattern)))
    }

    fn push(&mut self, handler: Handler) {
        if let Action::Refused { reason, .. } = &handler.action {
            let reason = reason.clone();
            self.notice(&reason);
        }
        self.handlers.push(Arc::new(handler));
    }

    fn notice(&mut self, text: &str) {
        self.notices.push(format!("{}: {text}", self.place));
    }
}
