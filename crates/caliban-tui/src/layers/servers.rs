//! MCP servers: where each stands, what it says, and what can be done about it.

use std::fmt::Write as _;
use std::sync::Arc;

use caliban_session::ServerCommand;
use caliban_terminal::{Key, KeyCode};
use caliban_text::{Strength, sanitise};
use ratatui_core::layout::Rect;

use crate::canvas::Canvas;
use crate::host::Desk;
use crate::layers::list::{Heard, Line, List, closes, panel, tell_keys};
use crate::layers::{Reaction, Wish};
use crate::servers_desk::ServerRow;
use crate::theme::Theme;

const KEYS: &str = "Enter tools  l log  o log in  r reconnect  e on or off  / search  q closes";

/// The overlay.
#[derive(Debug)]
pub(crate) struct ServersPanel {
    desk: Arc<dyn Desk>,
    list: List,
    said: String,
    /// What was switched a moment ago, and whether off: it is looked at until it is.
    turning: Option<(String, Turn)>,
}

/// How a server was switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    On,
    Off,
}

impl ServersPanel {
    pub(crate) fn new(desk: Arc<dyn Desk>) -> Self {
        Self {
            desk,
            list: List::default(),
            said: String::new(),
            turning: None,
        }
    }

    /// Whether something may change at any moment.
    pub(crate) fn is_live(&self) -> bool {
        let servers = self.desk.servers();
        let is_turning = |server: &ServerRow| {
            let turning = self.turning.as_ref();
            turning.is_some_and(|(name, turn)| {
                let is_off = server.status == "disabled";
                *name == server.name && is_off != (*turn == Turn::Off)
            })
        };
        servers
            .iter()
            .any(|server| server.status == "pending" || is_turning(server))
    }

    pub(crate) fn tell(&mut self, text: String) {
        self.said = text;
    }

    fn shown(&self) -> Vec<ServerRow> {
        let mut servers = self.desk.servers();
        let texts: Vec<String> = servers
            .iter()
            .map(|server| format!("{} {} {}", server.name, server.status, server.about))
            .collect();
        let places = self.list.shown(texts.iter().map(String::as_str));
        let mut place = 0;
        servers.retain(|_| {
            place += 1;
            places.contains(&(place - 1))
        });
        servers
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.list.paste(text);
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        let shown = self.shown();
        if self.list.press(key, shown.len()) == Heard::Taken {
            return Reaction::Stay;
        }
        if closes(key) {
            return Reaction::Close;
        }
        let Some(chosen) = shown.into_iter().nth(self.list.chosen()) else {
            return Reaction::Stay;
        };
        let server = chosen.name.clone();
        match key.code {
            KeyCode::Enter => {
                let title = format!("MCP server {server}");
                Reaction::Do(Wish::Read(title, described(&chosen)))
            }
            KeyCode::Char('l') => {
                let lines = self.desk.server_log(&server);
                let text = if lines.is_empty() {
                    "it wrote nothing".to_owned()
                } else {
                    lines.join("\n")
                };
                Reaction::Do(Wish::Read(format!("Log of {server}"), text))
            }
            KeyCode::Char('o') => {
                self.said = format!("asking `{server}` where to log in");
                Reaction::Do(Wish::LogInToServer(server))
            }
            KeyCode::Char('r') => {
                self.said = format!("`{server}` is tried again");
                Reaction::Do(Wish::Server(ServerCommand::Reconnect { server }))
            }
            KeyCode::Char('e') if chosen.status == "disabled" => {
                self.turning = Some((server.clone(), Turn::On));
                self.said = format!("`{server}` is on for this session");
                Reaction::Do(Wish::Server(ServerCommand::Enable { server }))
            }
            KeyCode::Char('e') => {
                self.turning = Some((server.clone(), Turn::Off));
                self.said = format!(
                    "`{server}` is off for this session; `mcp_servers.{server}.disabled` keeps it so"
                );
                Reaction::Do(Wish::Server(ServerCommand::Disable { server }))
            }
            _ => Reaction::Stay,
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let hint = self.list.hint(KEYS);
        let Some(places) = panel(canvas, area, "MCP servers", &hint, theme) else {
            return;
        };
        let palette = &theme.palette;
        let lines: Vec<Line> = self
            .shown()
            .into_iter()
            .map(|server| {
                let sign = match server.status {
                    "connected" => theme.signs.good,
                    "failed" => theme.signs.bad,
                    _ => theme.signs.waiting,
                };
                let tools = match server.tools.len() {
                    1 => "1 tool".to_owned(),
                    count => format!("{count} tools"),
                };
                Line {
                    label: format!("{sign} {}  {}  {tools}", server.name, server.status),
                    about: match server.withheld.len() {
                        0 => server.about,
                        count => format!("{count} withheld: `caliban mcp approve`"),
                    },
                    style: match server.status {
                        "connected" => palette.success,
                        "failed" => palette.error,
                        _ => palette.warning,
                    },
                }
            })
            .collect();
        if lines.is_empty() {
            let (body, text) = (places.body, "none; `caliban mcp add` adds one");
            canvas.text(body.x, body.y, body.right(), text, palette.dim);
        }
        self.list.draw(canvas, places.body, theme, &lines);
        let row = places.said;
        let said = sanitise(&self.said, Strength::Name);
        canvas.text(row.x, row.y, row.right(), &said, palette.warning);
        tell_keys(canvas, &places, &hint, theme);
    }
}

fn described(server: &ServerRow) -> String {
    let mut text = format!("{}  {}\n{}\n", server.name, server.status, server.about);
    if let Some(instructions) = &server.instructions {
        // Writing to a string does not fail.
        let _ = write!(text, "\nwhat it says about itself\n{instructions}\n");
    }
    let _ = writeln!(text, "\n{} tools", server.tools.len());
    for tool in &server.tools {
        let _ = writeln!(text, "  {tool}");
    }
    for tool in &server.withheld {
        let _ = writeln!(text, "  {tool}  withheld: it changed");
    }
    text
}
