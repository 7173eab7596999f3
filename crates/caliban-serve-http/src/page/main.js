// The page of `caliban serve web`: sessions, the one that is open, and what is typed.

import { Feed, call, session } from "./api.js";
import { Composer, showQueue } from "./composer.js";
import { at, make, plain, say } from "./dom.js";
import { Questions } from "./questions.js";
import { short, showOpen, showSaved } from "./sessions.js";
import { Transcript, money } from "./transcript.js";

let current = null;
let feed = null;
let last = { epoch: "", seq: 0 };
let view = null;
const titles = new Map();
let saved = [];

const transcript = new Transcript(at("transcript"), (digest) => `${session(current)}/blobs/${encodeURIComponent(digest)}`);
const questions = new Questions(at("questions"), answer, deadline);
const composer = new Composer({ send, stop, trouble });

function trouble(text) {
  at("trouble").textContent = text ? plain(text) : "";
}

/// Does something, and says what went wrong.
async function attempt(work) {
  trouble("");
  try {
    return await work();
  } catch (error) {
    if (error.status === 401) trouble("This page has no access any more. Open it again with the address that `caliban serve web` shows.");
    else trouble(error.message);
    return null;
  }
}

// ---- the session that is open

function choose(tab) {
  if (tab === current) return;
  feed?.close();
  current = tab;
  view = null;
  last = { epoch: "", seq: 0 };
  history.replaceState(null, "", tab ? `?session=${encodeURIComponent(tab)}` : "/");
  transcript.clear();
  questions.clear();
  showQueue([], () => {});
  at("head").hidden = !tab;
  at("empty").hidden = Boolean(tab);
  document.body.classList.remove("listing");
  if (tab) {
    const query = () => (last.epoch ? `?last=${encodeURIComponent(`${last.epoch}-${last.seq}`)}` : "?last=");
    feed = new Feed(`${session(tab)}/ws`, query, heard, connected);
  }
  list();
}

function connected(is) {
  at("connection").textContent = is ? "" : "Not connected; trying again…";
  if (is) return;
  // Whether it is gone, or we are not let in any more, is what a request tells.
  call("GET", session(current)).catch((error) => {
    if (error.status === 404) { choose(null); trouble("This session is not open any more; it can be gone on with below “Earlier”."); }
    if (error.status === 401) { feed?.close(); trouble("This page has no access any more. Open it again with the address that `caliban serve web` shows."); }
  });
}

function heard(line) {
  if (line.event === undefined) return;
  last.seq = line.seq;
  // A prompt that ends while it waits was taken back.
  if (line.event.type === "result" && last.queue?.includes(line.request)) transcript.note("Taken back.");
  else told(line.event);
}

function told(event) {
  switch (event.type) {
    case "snapshot": snapshot(event); break;
    case "user":
      transcript.user(event.content);
      entitle(event.content);
      break;
    case "text": transcript.piece("said", event.delta); break;
    case "thinking": transcript.piece("thinking", event.delta); break;
    case "tool_use": transcript.call(event); break;
    case "tool_result": transcript.finished(event.tool_use_id, event.content, event.is_error); break;
    case "message": transcript.ended(); break;
    case "question": questions.ask(event); break;
    case "answered": questions.answered(event.question, event.how); break;
    case "state": state(event); break;
    case "changed": changed(event); break;
    case "warning":
      if (["superseded", "fallback_model"].includes(event.subtype)) transcript.void();
      transcript.note(event.message);
      break;
    case "gap": transcript.note("… some of this was left out"); break;
    case "result":
      transcript.result(event);
      cost(event.total_cost_usd);
      break;
    case "system":
      if (event.subtype === "api_retry") transcript.note("The provider did not answer; trying again.");
      if (event.subtype === "compaction") transcript.note(`The conversation was condensed from ${event.before_tokens} to ${event.after_tokens} tokens.`);
      break;
    default: break;
  }
}

function snapshot(event) {
  transcript.clear();
  questions.clear();
  last.epoch = event.tab.epoch;
  if (event.omitted) transcript.note(`${event.omitted} earlier messages are not shown.`);
  for (const message of event.messages) {
    if (message.type === "user") {
      transcript.user(message.content);
      entitle(message.content);
    } else transcript.assistant(message.content);
  }
  for (const frame of event.partial ?? []) told(frame);
  facts(event.tab);
  for (const open of event.tab.questions) questions.ask(open.event, open.deadline);
  transcript.toEnd();
}

/// What a session is called: by what was asked first.
function entitle(content) {
  if (!view && !current) return;
  const key = view?.session ?? current;
  const text = content.find((block) => block.type === "text")?.text;
  if (text && !titles.has(key)) {
    titles.set(key, text.replace(/\s+/g, " ").slice(0, 80));
    if (view) head();
    list();
  }
}

function facts(tab) {
  view = tab;
  if (titles.has(tab.tab) && !titles.has(tab.session)) titles.set(tab.session, titles.get(tab.tab));
  head();
  at("mode").value = tab.mode;
  at("model").value = tab.model;
  cost(tab.total_cost_usd);
  state(tab);
}

function head() {
  at("title").textContent = plain(titles.get(view.session) ?? short(view.tab));
  at("place").textContent = plain(view.cwd);
}

function cost(dollars) {
  at("cost").textContent = money(dollars);
}

const DOING = { connecting: "Starting…", idle: "Idle", running: "Working…", waiting: "Needs your answer", ended: "Ended", dead: "Could not start" };

function state(now) {
  at("state").textContent = DOING[now.state] ?? now.state;
  at("state").className = now.state;
  document.body.dataset.state = now.state;
  at("stop").hidden = now.state !== "running" && now.state !== "waiting";
  if (now.reason) trouble(now.reason);
  queue(now.queue ?? []);
}

/// Requests that wait, with what they say.
async function queue(waiting) {
  last.queue = waiting;
  if (!waiting.length) { showQueue([], takeBack); return; }
  const tab = current;
  const found = await attempt(() => call("GET", `${session(tab)}/prompts`));
  if (found && tab === current) showQueue(found.prompts.filter((it) => it.state === "queued"), takeBack);
}

async function takeBack(request, content) {
  const path = `${session(current)}/prompts/${encodeURIComponent(request)}`;
  if (await attempt(() => call("DELETE", path))) { composer.restore(content); say("Taken back."); }
}

function changed(event) {
  if (event.mode) at("mode").value = event.mode;
  if (event.model) at("model").value = event.model;
  if (event.effort) at("effort").value = event.effort.effort ?? "";
}

async function change(what) {
  if (!current) return;
  const tab = await attempt(() => call("PATCH", session(current), what));
  if (tab) say("Changed.");
  // Where it was refused, what counts is shown again.
  const now = tab ?? (view && await call("GET", session(current)).catch(() => null));
  if (now) { at("mode").value = now.mode; at("model").value = now.model; }
}

async function answer(question, body) {
  await attempt(() => call("POST", `${session(current)}/questions/${encodeURIComponent(question)}`, body));
}

async function deadline(question) {
  const found = await call("GET", `${session(current)}/questions`).catch(() => null);
  return found?.questions.find((it) => it.question === question)?.deadline;
}

async function send(request, content) {
  if (!current && !(await begin())) return false;
  const body = { request_id: request, content };
  return Boolean(await attempt(() => call("POST", `${session(current)}/prompts`, body)));
}

function stop() {
  if (current) attempt(() => call("POST", `${session(current)}/interrupt`, {}));
}

// ---- all sessions

async function begin(open = {}) {
  const opened = await attempt(() => call("POST", "/v1/sessions", open));
  if (opened) choose(opened.tab);
  return opened;
}

let listing = null;
async function list() {
  // One at a time; what changes meanwhile is seen by the next.
  if (listing) { listing.again = true; return; }
  listing = { again: false };
  const found = await call("GET", "/v1/sessions?limit=256").catch(() => null);
  if (found) {
    showOpen(found.sessions, current, titles, choose, close);
    const open = new Set(found.sessions.map((it) => it.session));
    showSaved(saved.filter((it) => !open.has(it.session)), (id) => begin({ resume: id }), saved.cursor && more);
  }
  const isAgain = listing.again;
  listing = null;
  if (isAgain) list();
  return found;
}

async function close(tab) {
  if (!(await attempt(() => call("DELETE", session(tab))))) return;
  if (tab === current) choose(null);
  await earlier();
  list();
}

async function earlier() {
  const found = await call("GET", "/v1/saved?limit=20").catch(() => null);
  keep(found, []);
}

async function more() {
  const found = await attempt(() => call("GET", `/v1/saved?limit=20&cursor=${encodeURIComponent(saved.cursor)}`));
  keep(found, saved);
  list();
}

function keep(found, before) {
  if (!found) return;
  saved = [...before, ...found.sessions];
  saved.cursor = found.cursor;
  for (const it of saved) if (it.title) titles.set(it.session, it.title);
}

let offered = null;
/// The models of the provider, once somebody wants to choose.
async function models() {
  offered ??= call("GET", "/v1/models").catch(() => { offered = null; return null; });
  const found = await offered;
  if (found) at("models").replaceChildren(...found.models.map((id) => make("option", { value: id })));
}

// ---- keys

function keys(event) {
  const isTyping = event.target.matches?.("input, textarea, select");
  if (event.key === "Escape") {
    if (at("help").open) return;
    if (document.body.classList.contains("listing")) { document.body.classList.remove("listing"); at("menu").focus(); return; }
    if (["running", "waiting"].includes(document.body.dataset.state)) { stop(); event.preventDefault(); }
  } else if (event.altKey && event.code === "KeyQ") {
    questions.focus();
    event.preventDefault();
  } else if (event.altKey && event.code === "KeyN") {
    begin().then(() => at("prompt").focus());
    event.preventDefault();
  } else if (event.altKey && event.code === "KeyS") {
    document.body.classList.add("listing");
    (at("sessions").querySelector("[aria-current]") ?? at("new")).focus();
    event.preventDefault();
  } else if (event.altKey && event.code === "KeyP") {
    at("prompt").focus();
    event.preventDefault();
  } else if (event.key === "?" && !isTyping) {
    at("help").showModal();
    event.preventDefault();
  } else if (["ArrowDown", "ArrowUp"].includes(event.key) && event.target.matches?.(".session")) {
    const all = [...document.querySelectorAll("nav .session")];
    all[all.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
    event.preventDefault();
  }
}

function look(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

async function start() {
  const token = location.hash.slice(1);
  if (token) {
    // Neither the bar nor the history keeps it.
    history.replaceState(null, "", location.pathname + location.search);
    if (await attempt(() => call("POST", "/v1/login", { token }).then(() => true)) === null) return;
  }
  look(localStorage.getItem("theme") ?? "auto");
  at("theme").value = localStorage.getItem("theme") ?? "auto";
  at("theme").onchange = () => { localStorage.setItem("theme", at("theme").value); look(at("theme").value); };
  at("new").onclick = () => begin().then(() => at("prompt").focus());
  at("stop").onclick = stop;
  at("mode").onchange = () => change({ mode: at("mode").value });
  at("model").onchange = () => change({ model: at("model").value.trim() });
  at("model").onfocus = models;
  at("effort").onchange = () => at("effort").value && change({ effort: at("effort").value });
  at("menu").onclick = () => document.body.classList.toggle("listing");
  at("to-end").onclick = () => transcript.toEnd();
  at("keys").onclick = () => at("help").showModal();
  document.addEventListener("keydown", keys);
  const found = await attempt(() => call("GET", "/v1/sessions?limit=256"));
  if (!found) return;
  await earlier();
  new Feed("/v1/ws", () => "", list, (is) => is && list());
  const wanted = new URLSearchParams(location.search).get("session");
  const first = found.sessions.find((it) => it.tab === wanted) ?? found.sessions.find((it) => it.state === "waiting") ?? found.sessions[0];
  at("page").hidden = false;
  if (first) choose(first.tab);
  else { at("empty").hidden = false; list(); }
  at("prompt").focus();
}

start();
