// Consent: what would run, why it is asked about, and for what an answer counts.

import { button, exact, make, plain, say } from "./dom.js";
import { changes, diff } from "./diff.js";
import { input } from "./transcript.js";

// A question that has just appeared cannot be answered by what was meant for something else.
const PAUSE = 600;

export class Questions {
  /// `answer` sends an answer; `deadline` finds out until when a question waits.
  constructor(place, answer, deadline) {
    Object.assign(this, { place, answer, deadline, open: new Map() });
    setInterval(() => this.tick(), 1000);
  }

  clear() {
    this.place.replaceChildren();
    this.open.clear();
  }

  ask(frame, until) {
    if (this.open.has(frame.question)) return;
    const box = frame.kind === "elicitation" ? this.elicitation(frame) : this.permission(frame);
    const left = make("span.left");
    box.querySelector(".choices").append(left);
    const buttons = [...box.querySelectorAll("button")];
    // They can be reached meanwhile, and do nothing.
    buttons.forEach((it) => it.setAttribute("aria-disabled", "true"));
    const early = (event) => { if (event.target.closest("[aria-disabled]")) event.stopPropagation(); };
    box.addEventListener("click", early, true);
    setTimeout(() => buttons.forEach((it) => it.removeAttribute("aria-disabled")), PAUSE);
    const entry = { box, left, until: until ? Date.parse(until) : null };
    this.open.set(frame.question, entry);
    this.place.append(box);
    if (!until) this.deadline(frame.question).then((found) => { if (found) entry.until = Date.parse(found); });
    this.tick();
    say(`A question: ${box.querySelector("h3").textContent}. Press Alt+Q to go to it.`);
  }

  /// Goes to the first open question.
  focus() {
    const first = this.open.values().next().value;
    first?.box.focus();
    return Boolean(first);
  }

  answered(question, how) {
    const entry = this.open.get(question);
    if (!entry) return;
    this.open.delete(question);
    const hadFocus = entry.box.contains(document.activeElement);
    entry.box.remove();
    if (hadFocus && !this.focus()) document.getElementById("prompt").focus();
    say(`The question was answered: ${how}.`);
  }

  tick() {
    for (const { left, until } of this.open.values()) {
      if (!until) continue;
      const seconds = Math.max(0, Math.round((until - Date.now()) / 1000));
      left.textContent = `denied in ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    }
  }

  permission(frame) {
    const who = frame.agent ? `The agent ${plain(frame.agent)}` : "caliban";
    const asks = { Bash: "wants to run a command", WebFetch: "wants to fetch a page" }[frame.tool] ?? `wants to use ${plain(frame.tool)}`;
    const edits = changes(frame.tool, frame.input);
    const file = frame.input?.file_path ?? frame.input?.path;
    const shown = edits.length
      ? [make("p.about", { dir: "ltr" }, exact(file ?? "")), ...edits.map(([before, after]) => diff(before, after))]
      : [input(frame.input)];
    const send = (body) => () => this.answer(frame.question, body);
    const reason = make("input", { type: "text", placeholder: "Why not? (optional)", "aria-label": "Reason for denying" });
    const deny = () => this.answer(frame.question, { decision: "deny", ...(reason.value.trim() ? { reason: reason.value.trim() } : {}) });
    reason.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); deny(); } });
    return make("section.question", { tabindex: "-1", role: "group", "aria-label": `Question: ${who} ${asks}`, "data-question": frame.question },
      make("h3", {}, `${who} ${asks}`),
      ...shown,
      make("p.reason", {}, plain(frame.reason), frame.rule ? make("code", {}, ` ${exact(frame.rule)}`) : ""),
      make("div.choices", {},
        button("Allow once", send({ decision: "allow", scope: "once" }), { class: "main" }),
        ...this.wider(frame, send),
        button("Deny", deny, { class: "deny" }), reason));
  }

  /// Answers that count for more than this call, each with what it would permit.
  wider(frame, send) {
    const scoped = (label, what, scope) =>
      make("button", { type: "button", onclick: send({ decision: "allow", scope }) }, `${label} `, make("code", {}, exact(what)));
    if (frame.tool === "Bash") {
      const rule = frame.suggestions?.[0];
      return rule ? [scoped("Allow in this session:", rule, "command")] : [];
    }
    if (frame.tool === "ExitPlanMode") return [];
    const host = domain(frame.input?.url);
    return [
      ...(host ? [scoped("Allow this domain:", host, "domain")] : []),
      scoped("Allow in this session:", `every ${frame.tool}`, "session"),
    ];
  }

  /// A question of a server, as a form of what it wants to know.
  elicitation(frame) {
    const fields = Object.entries(frame.schema?.properties ?? {}).map(([name, schema]) => field(name, schema, frame.schema?.required ?? []));
    const accept = () => {
      const content = {};
      for (const { name, value } of fields) {
        const given = value();
        if (given !== undefined) content[name] = given;
      }
      this.answer(frame.question, { action: "accept", content });
    };
    return make("section.question", { tabindex: "-1", role: "group", "aria-label": `Question of ${plain(frame.server)}`, "data-question": frame.question },
      make("h3", {}, `The server ${plain(frame.server)} asks`),
      make("p", {}, exact(frame.message)),
      ...fields.map(({ element }) => element),
      make("div.choices", {},
        button("Send the answer", accept, { class: "main" }),
        button("Decline", () => this.answer(frame.question, { action: "decline" }), { class: "deny" })));
  }
}

function domain(address) {
  try { return new URL(address).hostname; } catch { return null; }
}

let fields = 0;

function field(name, schema, required) {
  fields += 1;
  const id = `field-${fields}`;
  const label = make("label", { for: id }, plain(schema?.title ?? name), required.includes(name) ? " *" : "");
  const help = schema?.description ? make("small", {}, plain(schema.description)) : "";
  let element;
  let value;
  if (Array.isArray(schema?.enum)) {
    element = make("select", { id }, ...schema.enum.map((option) => make("option", { value: option }, plain(option))));
    value = () => element.value;
  } else if (schema?.type === "boolean") {
    element = make("input", { id, type: "checkbox", checked: schema.default === true });
    value = () => element.checked;
  } else if (schema?.type === "number" || schema?.type === "integer") {
    element = make("input", { id, type: "number", step: schema.type === "integer" ? "1" : "any", value: schema.default });
    value = () => (element.value === "" ? undefined : Number(element.value));
  } else {
    element = make("input", { id, type: "text", value: schema?.default });
    value = () => (element.value === "" ? undefined : element.value);
  }
  return { name, value, element: make("div.field", {}, label, element, help) };
}
