// The page of `caliban serve web`. Everything that comes from a session is set as text, never as
// markup.
"use strict";

const $ = (id) => document.getElementById(id);
let current = null;
let source = null;
let answer = null;
const calls = new Map();

function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

async function call(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: body === undefined ? {} : { "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  const value = text ? JSON.parse(text) : null;
  if (!response.ok) throw new Error(value && value.detail ? value.detail : response.statusText);
  return value;
}

async function attempt(work) {
  $("trouble").textContent = "";
  try {
    return await work();
  } catch (error) {
    $("trouble").textContent = error.message;
    return null;
  }
}

function show(element) {
  const log = $("transcript");
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  log.append(element);
  if (atEnd) log.scrollTop = log.scrollHeight;
  return element;
}

function piece(kind, text) {
  if (!answer || answer.className !== kind) answer = show(make("div", kind, ""));
  answer.append(text);
  const log = $("transcript");
  if (log.scrollHeight - log.scrollTop - log.clientHeight < 120) log.scrollTop = log.scrollHeight;
}

function diff(input) {
  const block = make("pre");
  for (const [name, text] of [["remove", input.old_string], ["add", input.new_string ?? input.content]]) {
    if (typeof text !== "string") continue;
    for (const line of text.split("\n")) {
      block.append(make("span", name, (name === "add" ? "+ " : "- ") + line + "\n"));
    }
  }
  return block;
}

function tool(event) {
  const box = make("details", "tool");
  const input = event.input || {};
  const about = input.command || input.path || input.file_path || input.pattern || input.url || "";
  box.append(make("summary", "", `${event.name} ${about}`));
  const edits = "old_string" in input || ("content" in input && event.name === "Write");
  box.append(edits ? diff(input) : make("pre", "", JSON.stringify(input, null, 2)));
  calls.set(event.id, show(box));
  answer = null;
}

function finished(id, content, isError) {
  const text = (content || []).map((part) => part.text || "[image]").join("\n");
  const box = calls.get(id);
  const result = make("pre", isError ? "remove" : "", text);
  if (box) box.append(result);
  else show(result);
}

function blocks(kind, content) {
  for (const block of content) {
    if (block.type === "text") show(make("div", kind, block.text));
    else if (block.type === "thinking") show(make("div", "thinking", block.thinking));
    else if (block.type === "tool_use") tool(block);
    else if (block.type === "tool_result") finished(block.tool_use_id, block.content, block.is_error);
    else show(make("div", kind, "[image]"));
  }
  answer = null;
}

function question(event) {
  const box = make("div", "question");
  box.id = `q-${event.question}`;
  box.setAttribute("role", "group");
  const what = event.kind === "elicitation" ? event.message : `${event.tool}: ${event.reason}`;
  box.append(make("p", "", what), make("pre", "", JSON.stringify(event.input ?? event.schema, null, 2)));
  const path = `/v1/sessions/${encodeURIComponent(current)}/questions/${encodeURIComponent(event.question)}`;
  const options = event.kind === "elicitation"
    ? [["Decline", { action: "decline" }]]
    : [["Allow", { option: "allow" }], ["Allow in this session", { option: "allow-session" }], ["Deny", { option: "deny" }]];
  for (const [label, body] of options) {
    const button = make("button", "", label);
    button.type = "button";
    button.onclick = () => attempt(() => call("POST", path, body));
    box.append(button, " ");
  }
  $("questions").append(box);
  box.querySelector("button").focus();
}

function state(view) {
  const waiting = view.queue ? view.queue.length : 0;
  $("state").textContent = view.state + (waiting ? `, ${waiting} waiting` : "") + (view.last ? `, last ${view.last}` : "");
}

function told(event) {
  switch (event.type) {
    case "snapshot":
      $("transcript").replaceChildren();
      $("questions").replaceChildren();
      calls.clear();
      for (const message of event.messages) blocks(message.type === "user" ? "user" : "said", message.content);
      event.tab.questions.forEach((open) => question(open.event));
      facts(event.tab);
      break;
    case "user": blocks("user", event.content); break;
    case "text": piece("said", event.delta); break;
    case "thinking": piece("thinking", event.delta); break;
    case "tool_use": tool(event); break;
    case "tool_result": finished(event.tool_use_id, event.content, event.is_error); break;
    case "message": answer = null; break;
    case "question": question(event); break;
    case "answered": { const box = $(`q-${event.question}`); if (box) box.remove(); break; }
    case "state": state(event); break;
    case "changed": attempt(async () => facts(await call("GET", `/v1/sessions/${encodeURIComponent(current)}`))); break;
    case "warning": show(make("div", "thinking", event.message)); break;
    case "gap": show(make("div", "thinking", "…")); answer = null; break;
    case "result":
      answer = null;
      if (event.is_error) show(make("div", "remove", event.error || event.subtype));
      $("facts").dataset.cost = event.total_cost_usd;
      show(make("div", "thinking", `$${event.total_cost_usd.toFixed(4)} · ${event.total_input_tokens} in · ${event.total_output_tokens} out`));
      break;
  }
}

function facts(view) {
  $("title").textContent = view.tab;
  $("facts").textContent = `${view.model} · ${view.cwd}`;
  $("mode").value = view.mode;
  state(view);
}

function choose(tab) {
  current = tab;
  if (source) source.close();
  source = new EventSource(`/v1/sessions/${encodeURIComponent(tab)}/events`);
  source.onmessage = (message) => told(JSON.parse(message.data).event);
  list();
}

async function list() {
  const found = await attempt(() => call("GET", "/v1/sessions"));
  if (!found) return;
  const order = { waiting: 0, running: 1 };
  found.sessions.sort((one, other) => (order[one.state] ?? 2) - (order[other.state] ?? 2));
  $("sessions").replaceChildren(...found.sessions.map((view) => {
    const button = make("button", "", `${view.state === "waiting" ? "● " : ""}${view.tab} (${view.state})`);
    button.type = "button";
    button.setAttribute("aria-current", String(view.tab === current));
    button.onclick = () => choose(view.tab);
    const item = make("li");
    item.append(button);
    return item;
  }));
  if (!current && found.sessions.length) choose(found.sessions[0].tab);
}

async function send() {
  const text = $("prompt").value.trim();
  if (!text) return;
  if (!current) {
    const opened = await attempt(() => call("POST", "/v1/sessions", {}));
    if (!opened) return;
    choose(opened.tab);
  }
  const body = { request_id: crypto.randomUUID(), content: text };
  const sent = await attempt(() => call("POST", `/v1/sessions/${encodeURIComponent(current)}/prompts`, body));
  if (sent) $("prompt").value = "";
}

function stop() {
  if (current) attempt(() => call("POST", `/v1/sessions/${encodeURIComponent(current)}/interrupt`, {}));
}

async function begin() {
  const token = location.hash.slice(1);
  if (token) {
    history.replaceState(null, "", "/");
    if (!(await attempt(() => call("POST", "/v1/login", { token }).then(() => true)))) return;
  }
  $("new").onclick = () => attempt(async () => choose((await call("POST", "/v1/sessions", {})).tab));
  $("stop").onclick = stop;
  $("mode").onchange = () => current && attempt(() => call("PATCH", `/v1/sessions/${encodeURIComponent(current)}`, { mode: $("mode").value }));
  $("compose").onsubmit = (event) => { event.preventDefault(); send(); };
  $("prompt").onkeydown = (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); send(); }
    if (event.key === "Escape") stop();
  };
  await list();
  const states = new EventSource("/v1/events");
  states.onmessage = list;
}

begin();
