// The sessions at the side: those that need somebody first, then those that are saved.

import { at, button, make, plain } from "./dom.js";

const ORDER = { waiting: 0, running: 1, connecting: 1, idle: 2, ended: 3, dead: 3 };
const WORDS = { waiting: "needs you", running: "working", connecting: "starting", idle: "idle", ended: "ended", dead: "dead" };

export function showOpen(views, current, titles, choose, close) {
  const sorted = [...views].sort((one, other) => ORDER[one.state] - ORDER[other.state] || one.tab.localeCompare(other.tab));
  // A list that is the same stays as it is: whoever is in it keeps their place.
  const signature = JSON.stringify([current, sorted.map((view) => [view.tab, view.state, titles.get(view.session), view.queue.length])]);
  const place = at("sessions");
  if (place.dataset.signature === signature) return;
  place.dataset.signature = signature;
  const focused = document.activeElement?.dataset?.tab;
  place.replaceChildren(...sorted.map((view) => {
    const title = plain(titles.get(view.session) ?? short(view.tab));
    const open = make("button.session", {
      type: "button", "data-tab": view.tab, "aria-current": view.tab === current ? "true" : null,
      onclick: () => choose(view.tab),
    }, make("span.title", {}, title), make(`span.badge.${view.state}`, {}, WORDS[view.state]));
    const end = button("×", () => close(view.tab), { class: "end", "aria-label": `Close ${title}`, title: "Close; it stays saved" });
    return make("li", {}, open, end);
  }));
  if (focused) [...place.querySelectorAll("[data-tab]")].find((it) => it.dataset.tab === focused)?.focus();
  const waiting = views.filter((view) => view.state === "waiting").length;
  document.title = `${waiting ? `(${waiting}) ` : ""}caliban`;
}

export function showSaved(saved, resume, more) {
  at("saved").replaceChildren(...saved.map((it) => make("li", {},
    make("button.session", { type: "button", onclick: () => resume(it.session) },
      make("span.title", {}, plain(it.title ?? it.name)), make("span.when", {}, when(it.updated))))),
  ...(more ? [make("li", {}, button("More", more))] : []));
  at("earlier").hidden = saved.length === 0;
}

function when(moment) {
  const date = new Date(moment);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : date.toLocaleDateString();
}

/// Ids are long, and their beginning tells them apart.
export const short = (tab) => (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(tab) ? `Session ${tab.slice(0, 8)}` : tab);
