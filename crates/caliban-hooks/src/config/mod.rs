//! Configured hooks, from the values of the settings to handlers that cannot be wrong.

mod entry;
mod error;
mod fields;
mod handler;
mod lists;
mod timeout;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use caliban_agent::ToolCall;
use caliban_settings::{Layer, Scope};
use serde_json::Value;

pub use error::{HookConfigError, HookFault, HookPlace};
pub(crate) use handler::{Handler, Waiting};

use crate::event::{EventName, RESERVED};
use caliban_model::nearest;
use entry::Entries;
use lists::Lists;

/// Tells whether a call is meant by a condition such as `Bash:rm *`. It must look at the call's
/// input: once a handler has changed that, the call has no `first_arg` any more.
pub trait CallPattern: Send + Sync + Debug {
    fn matches(&self, call: &ToolCall) -> bool;
}

/// Compiles the text of a condition; the error says what is wrong with it.
pub type CompilePattern<'a> = &'a dyn Fn(&str) -> Result<Box<dyn CallPattern>, String>;

/// What one scope says about hooks.
#[derive(Debug, Clone, PartialEq)]
pub struct HookLayer {
    pub scope: Scope,
    /// Entries for each event.
    pub hooks: BTreeMap<String, Vec<Value>>,
    pub disable_all: Option<bool>,
    pub managed_only: Option<bool>,
    pub allowed_urls: Option<Vec<String>>,
    pub allowed_variables: Option<Vec<String>>,
}

/// The hooks that a plugin brings along.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginHooks {
    pub name: Arc<str>,
    /// Whose plugin it is.
    pub scope: Scope,
    /// Entries for each event, with everything of the plugin's own filled in.
    pub hooks: BTreeMap<String, Vec<Value>>,
    /// What its programs see beside the environment of all.
    pub variables: Arc<[(String, String)]>,
}

/// Whether the operator wants hooks in this run (`--no-hooks`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HookSwitch {
    #[default]
    On,
    Off,
}

/// What reading hooks needs from elsewhere.
pub struct ParseWith<'a> {
    pub switch: HookSwitch,
    pub pattern: CompilePattern<'a>,
    /// The environment that headers may be filled from.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Debug for ParseWith<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParseWith")
            .field("switch", &self.switch)
            .finish_non_exhaustive()
    }
}

/// The handlers of a run.
#[derive(Debug, Default)]
pub struct HookConfig {
    handlers: BTreeMap<EventName, Vec<Arc<Handler>>>,
    notices: Vec<String>,
}

/// A handler as lists show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configured<'a> {
    pub event: EventName,
    pub scope: Scope,
    pub matcher: &'a str,
    /// `command`, `http`, `mcp`, `prompt` or `agent`.
    pub kind: &'static str,
    pub handler: &'a str,
    pub is_async: bool,
}

impl HookLayer {
    pub fn empty(scope: Scope) -> Self {
        Self {
            scope,
            hooks: BTreeMap::new(),
            disable_all: None,
            managed_only: None,
            allowed_urls: None,
            allowed_variables: None,
        }
    }
}

impl From<&Layer> for HookLayer {
    fn from(layer: &Layer) -> Self {
        let settings = &layer.settings;
        Self {
            scope: layer.scope,
            hooks: settings.hooks.clone(),
            disable_all: settings.disable_all_hooks,
            managed_only: settings.allow_managed_hooks_only,
            allowed_urls: settings.allowed_http_hook_urls.clone(),
            allowed_variables: settings.http_hook_allowed_env_vars.clone(),
        }
    }
}

impl HookConfig {
    /// Reads the hooks of all scopes, given with the lowest priority first, which is the order
    /// in which they run.
    ///
    /// `disable_all_hooks` and the switch leave out the handlers of every scope but the managed
    /// one; those only the managed scope itself can switch off. Handlers that are left out are
    /// not read, so that a run without hooks is possible where they are broken.
    pub fn parse(layers: &[HookLayer], with: &ParseWith<'_>) -> Result<Self, HookConfigError> {
        let mut config = Self::default();
        let lists = Lists::parse(layers)?;
        for layer in layers
            .iter()
            .filter(|layer| runs(layer, layers, with.switch))
        {
            for (name, values) in &layer.hooks {
                if RESERVED.contains(&name.as_str()) {
                    config.notices.push(format!(
                        "`hooks.{name}` in the {} settings: this event never fires in this version",
                        layer.scope
                    ));
                    continue;
                }
                let Some(event) = EventName::parse(name) else {
                    return Err(HookConfigError::UnknownEvent {
                        scope: layer.scope,
                        name: name.clone(),
                        nearest: nearest(name, EventName::ALL.map(EventName::as_str)),
                    });
                };
                let mut entries = Entries::new(layer.scope, event, &lists, with, None);
                for value in values {
                    entries.read(value)?;
                }
                let (handlers, notices) = entries.finish();
                config.notices.extend(notices);
                if !handlers.is_empty() {
                    config.handlers.entry(event).or_default().extend(handlers);
                }
            }
        }
        Ok(config)
    }

    /// Adds the hooks of plugins after those of the settings, which decide whether they run. What
    /// is wrong with one is told and the rest of it used: it is not the user's to repair.
    pub fn add_plugins(
        &mut self,
        plugins: &[PluginHooks],
        layers: &[HookLayer],
        with: &ParseWith<'_>,
    ) -> Result<(), HookConfigError> {
        let lists = Lists::parse(layers)?;
        for plugin in plugins {
            if !runs(&HookLayer::empty(plugin.scope), layers, with.switch) {
                continue;
            }
            for (name, values) in &plugin.hooks {
                // Whoever looks at the plugin is told; a run has nothing to do with it.
                let Some(event) = EventName::parse(name) else {
                    continue;
                };
                let mut entries = Entries::new(plugin.scope, event, &lists, with, Some(plugin));
                let mut wrong = Vec::new();
                for value in values {
                    if let Err(error) = entries.read(value) {
                        wrong.push(format!(
                            "a hook of the plugin `{}` is not used: {error}",
                            plugin.name
                        ));
                    }
                }
                let (handlers, notices) = entries.finish();
                self.notices.extend(wrong);
                self.notices.extend(notices);
                if !handlers.is_empty() {
                    self.handlers.entry(event).or_default().extend(handlers);
                }
            }
        }
        Ok(())
    }

    /// Things to say once: what is configured and does nothing, or can only refuse.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    pub fn is_empty(&self) -> bool {
        self.handlers.is_empty()
    }

    /// Every handler, in the order in which those of an event run.
    pub fn configured(&self) -> impl Iterator<Item = Configured<'_>> {
        self.handlers.iter().flat_map(|(event, handlers)| {
            handlers.iter().map(|handler| Configured {
                event: *event,
                scope: handler.scope,
                matcher: &handler.filter.text,
                kind: handler.action.kind(),
                handler: &handler.label,
                is_async: handler.waiting == Waiting::Async,
            })
        })
    }

    pub(crate) fn handlers(&self, event: EventName) -> &[Arc<Handler>] {
        self.handlers.get(&event).map_or(&[], Vec::as_slice)
    }
}

/// Whether a scope's handlers run at all. What the managed scope switches off stays off.
fn runs(layer: &HookLayer, layers: &[HookLayer], switch: HookSwitch) -> bool {
    if layer.scope == Scope::Managed {
        return layer.disable_all != Some(true);
    }
    let keys: [fn(&HookLayer) -> Option<bool>; 2] =
        [|layer| layer.disable_all, |layer| layer.managed_only];
    let managed = layers.iter().find(|layer| layer.scope == Scope::Managed);
    let is_off = |key: fn(&HookLayer) -> Option<bool>| {
        let highest = layers.iter().rev().find_map(key);
        highest == Some(true) || managed.and_then(key) == Some(true)
    };
    switch == HookSwitch::On && !keys.into_iter().any(is_off)
}

#[cfg(test)]
mod tests;
