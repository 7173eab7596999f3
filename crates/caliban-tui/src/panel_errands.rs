//! What panels want done, off the loop; each comes back as one message.

use std::sync::Arc;

use futures::StreamExt;
use tokio::sync::mpsc;

use crate::app::{Done, PanelDone, PanelEffect};
use crate::errands::apart;
use crate::host::Host;

/// Begins it.
pub(crate) fn run(effect: PanelEffect, host: Arc<dyn Host>, done: mpsc::Sender<Done>) {
    match effect {
        PanelEffect::PreviewSession(name) => apart(done, move || {
            let preview = host.session_preview(&name);
            Done::Panel(PanelDone::SessionPreviewed(name, preview))
        }),
        PanelEffect::SearchSessions(text) => apart(done, move || {
            let found = host.sessions_with(&text);
            Done::Panel(PanelDone::SessionsFound(text, found))
        }),
        PanelEffect::ChangeSession(change) => apart(done, move || {
            let changed = host.change_session(&change);
            Done::Panel(PanelDone::SessionChanged(changed))
        }),
        PanelEffect::LogInToServer(desk, server) => {
            tokio::spawn(async move {
                let told = done.clone();
                let begun = Box::new(move |address| {
                    // A full queue means that nobody reads it now anyway.
                    let _ = told.try_send(Done::Panel(PanelDone::LoginBegun(address)));
                });
                let login = desk.log_in(&server, begun).await;
                let login = PanelDone::LoggedIn(server, login);
                let _ = done.send(Done::Panel(login)).await;
            });
        }
        PanelEffect::WatchAgents(desk, watch) => {
            tokio::spawn(async move {
                let telling = async {
                    let mut agents = desk.agents();
                    while let Some(told) = agents.next().await {
                        let _ = done.send(Done::Panel(PanelDone::Agents(told))).await;
                    }
                };
                watch.run_until_cancelled(telling).await;
            });
        }
        PanelEffect::ChangeAgent(desk, change) => {
            tokio::spawn(async move {
                let changed = PanelDone::AgentChanged(desk.change_agent(change).await);
                let _ = done.send(Done::Panel(changed)).await;
            });
        }
        PanelEffect::Vet(desk, line) => {
            tokio::spawn(async move {
                let vetted = PanelDone::Vetted(desk.vet(line).await);
                let _ = done.send(Done::Panel(vetted)).await;
            });
        }
        PanelEffect::ListProviders(errand, named) => apart(done, move || {
            Done::Panel(PanelDone::Providers(errand, named, host.providers()))
        }),
        PanelEffect::SaveKey {
            provider,
            key,
            begins,
        } => apart(done, move || {
            let saved = host.save_key(&provider, &key);
            Done::Panel(PanelDone::KeySaved(begins, saved))
        }),
        PanelEffect::ForgetKey(provider) => apart(done, move || {
            let forgotten = host.forget_key(&provider);
            Done::Panel(PanelDone::KeyForgotten(forgotten))
        }),
    }
}
