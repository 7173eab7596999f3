//! MCP servers: where each stands, and what can be done about it.

use std::sync::Arc;

use caliban_session::{Facts, ServerCommand};
use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Strength, sanitise};
use ratatui_core::layout::Rect;

use crate::canvas::Canvas;
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

/// The overlay.
#[derive(Debug, Default)]
pub(crate) struct ServersPanel {
    chosen: usize,
    names: Vec<(String, String)>,
}

impl ServersPanel {
    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        let last = self.names.len().saturating_sub(1);
        let chosen = self.names.get(self.chosen).cloned();
        let command = match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Reaction::Close,
            KeyCode::Char('c') if key.modifiers.contains(Modifiers::CTRL) => {
                return Reaction::Close;
            }
            KeyCode::Up | KeyCode::Char('k') => {
                self.chosen = self.chosen.saturating_sub(1);
                None
            }
            KeyCode::Down | KeyCode::Char('j') => {
                self.chosen = (self.chosen + 1).min(last);
                None
            }
            KeyCode::Char('r') => chosen.map(|(server, _)| ServerCommand::Reconnect { server }),
            KeyCode::Char('e') => chosen.map(|(server, status)| {
                if status == "disabled" {
                    ServerCommand::Enable { server }
                } else {
                    ServerCommand::Disable { server }
                }
            }),
            _ => None,
        };
        command.map_or(Reaction::Stay, |command| {
            Reaction::Do(Wish::Server(command))
        })
    }

    pub(crate) fn draw(
        &mut self,
        canvas: &mut Canvas,
        area: Rect,
        theme: &Theme,
        facts: Option<&Arc<Facts>>,
    ) {
        let inside = canvas.frame(area, "MCP servers", theme);
        let palette = &theme.palette;
        let servers = facts.map_or(&[][..], |facts| &facts.servers);
        self.names = servers
            .iter()
            .map(|server| (server.name.clone(), server.status.clone()))
            .collect();
        self.chosen = self.chosen.min(self.names.len().saturating_sub(1));
        if servers.is_empty() {
            let text = "none; `caliban mcp add` adds one";
            canvas.text(inside.x, inside.y, inside.right(), text, palette.dim);
        }
        let bottom = inside.bottom().saturating_sub(1);
        for (y, (place, server)) in (inside.y..bottom).zip(servers.iter().enumerate()) {
            let sign = if place == self.chosen {
                theme.signs.selected
            } else {
                " "
            };
            let style = match server.status.as_str() {
                "connected" => palette.success,
                "failed" => palette.error,
                _ => palette.warning,
            };
            let tools = facts.map_or(0, |facts| {
                let prefix = format!("mcp__{}__", server.name);
                let tools = facts.tools.iter();
                tools.filter(|tool| tool.starts_with(&prefix)).count()
            });
            let reason = server.reason.as_deref().unwrap_or_default();
            let text = format!(
                "{sign} {}  {}  {tools} tools  {reason}",
                server.name, server.status
            );
            let text = sanitise(&text, Strength::Name);
            canvas.text(inside.x, y, inside.right(), &text, style);
        }
        let hint = "r reconnect  e switch on or off  q closes";
        canvas.text(inside.x, bottom, inside.right(), hint, palette.dim);
    }
}
