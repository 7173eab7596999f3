// The conversation: frames as they come, or all at once from a snapshot.

import { at, button, exact, make, plain, say } from "./dom.js";
import { changes, diff, size } from "./diff.js";
import { Growing, markdown } from "./markdown.js";

// Characters of a tool's output that are shown before one asks for the rest.
const SHOWN = 20000;
// Things that are kept in the page; the oldest go.
const MOST = 3000;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export class Transcript {
  constructor(place, blob) {
    this.place = place;
    this.blob = blob;
    this.clear();
    place.addEventListener("scroll", () => {
      // What has grown since is no wish of the reader's: only who goes up leaves the end.
      const isUp = place.scrollTop < this.scrolled;
      this.scrolled = place.scrollTop;
      const isNear = place.scrollHeight - place.scrollTop - place.clientHeight < 60;
      this.isAtEnd = isNear || (this.isAtEnd && !isUp);
      at("to-end").hidden = this.isAtEnd;
    });
    // A question or a longer prompt takes room from it: the end stays to be seen.
    new ResizeObserver(() => this.follow()).observe(place);
  }

  clear() {
    this.place.replaceChildren();
    this.calls = new Map();
    this.turn = [];
    this.growing = null;
    this.kind = "";
    this.isAtEnd = true;
    this.scrolled = 0;
    at("to-end").hidden = true;
  }

  /// Shows an element at the end, and stays at the end if that is where the reader is.
  show(element) {
    this.place.append(element);
    while (this.place.children.length > MOST) this.place.firstElementChild.remove();
    this.follow();
    return element;
  }

  follow() {
    if (!this.isAtEnd) return;
    requestAnimationFrame(() => { if (this.isAtEnd) this.place.scrollTop = this.place.scrollHeight; });
  }

  toEnd() {
    this.isAtEnd = true;
    this.follow();
  }

  /// A piece of what the model writes.
  piece(kind, text) {
    if (this.kind !== kind) {
      this.settle();
      this.kind = kind;
      this.growing = new Growing(this.prose(kind));
    }
    this.growing.add(text);
    this.follow();
  }

  /// What was being written is complete.
  settle() {
    if (this.growing) {
      this.growing.end();
      if (this.kind === "said") say(this.growing.place.textContent.slice(0, 4000));
      this.follow();
    }
    this.growing = null;
    this.kind = "";
  }

  /// The element that prose of a kind goes into.
  prose(kind) {
    const body = make("div.prose");
    if (kind === "thinking") {
      this.turn.push(this.show(make("details.thinking", {}, make("summary", {}, "Thinking"), body)));
      return body;
    }
    const who = kind === "user" ? "You" : "caliban";
    const shown = this.show(make(`article.${kind}`, { "aria-label": who }, make("h3.who", {}, who), body));
    if (kind === "said") this.turn.push(shown);
    return body;
  }

  /// A turn is over: what is shown of it stays.
  ended() {
    this.settle();
    this.turn = [];
  }

  /// What was shown of this turn does not count: another answer takes its place.
  void() {
    this.settle();
    for (const element of this.turn) element.classList.add("void");
    this.turn = [];
  }

  note(text, kind = "note") {
    this.settle();
    return this.show(make(`p.${kind}`, {}, plain(text)));
  }

  user(content) {
    this.settle();
    const parts = content.filter((block) => block.type !== "tool_result");
    for (const block of content) {
      if (block.type === "tool_result") this.finished(block.tool_use_id, block.content, block.is_error);
    }
    if (!parts.length) return;
    const body = this.prose("user");
    for (const block of parts) {
      if (block.type === "text") body.append(make("p.typed", { dir: "auto" }, plain(block.text)));
      else if (block.type === "image") body.append(this.picture(block.source));
    }
    this.toEnd();
  }

  assistant(content) {
    this.settle();
    for (const block of content) {
      if (block.type === "text" && block.text) this.prose("said").append(...markdown(block.text));
      else if (block.type === "thinking" && block.thinking) this.prose("thinking").append(...markdown(block.thinking));
      else if (block.type === "tool_use") this.call(block);
    }
  }

  picture(source) {
    if (source?.type === "base64" && PICTURES.includes(source.media_type)) {
      return make("img.picture", { src: `data:${source.media_type};base64,${source.data}`, alt: "attached picture" });
    }
    if (source?.type === "blob" && PICTURES.includes(source.media_type)) {
      return make("img.picture", { src: this.blob(source.digest), alt: "attached picture", loading: "lazy" });
    }
    return make("span.note", {}, "[picture]");
  }

  /// A call, closed until somebody wants to see it; changes are open.
  call(frame) {
    this.settle();
    if (this.calls.has(frame.id)) return;
    const edits = changes(frame.name, frame.input);
    const state = make("span.call-state", {}, "…");
    const facts = edits.map(([before, after]) => size(before, after)).join(", ");
    const box = make("details.tool", { open: edits.length > 0 },
      make("summary", {}, make("span.tool-name", {}, plain(frame.name)), " ", make("span.about", { dir: "ltr" }, exact(about(frame.input))),
        facts ? make("span.size", {}, ` ${facts}`) : "", " ", state),
      ...(edits.length ? edits.map(([before, after]) => diff(before, after)) : [input(frame.input)]));
    if (frame.parent_tool_use_id) box.classList.add("nested");
    this.calls.set(frame.id, { box, state, isEdit: edits.length > 0 });
    this.turn.push(this.show(box));
  }

  finished(id, content, isError) {
    const call = this.calls.get(id);
    const text = (content ?? []).filter((part) => part.type === "text").map((part) => part.text).join("\n");
    const shown = exact(text.length > SHOWN ? text.slice(0, SHOWN) : text);
    const block = make("pre.output", { tabindex: "0", dir: "ltr", "aria-label": "Result" }, shown);
    const rest = text.length > SHOWN ? [button(`Show all ${text.length} characters`, (event) => {
      block.textContent = exact(text);
      event.target.remove();
    })] : [];
    const pictures = (content ?? []).filter((part) => part.type === "image").map((part) => this.picture(part.source));
    if (!call) {
      this.show(make("details.tool", {}, make("summary", {}, "Result"), block, ...rest, ...pictures));
      return;
    }
    call.state.textContent = isError ? "failed" : "done";
    call.box.classList.add(isError ? "failed" : "done");
    if (call.isEdit && !isError) call.box.append(make("details", {}, make("summary", {}, "Result"), block, ...rest));
    else if (text || isError) call.box.append(block, ...rest);
    call.box.append(...pictures);
    this.follow();
  }

  result(frame) {
    this.ended();
    if (frame.is_error) {
      const why = { cancelled: "Interrupted.", max_turns: "The most turns were reached.", budget_exceeded: "The budget is spent.", max_tokens: "The answer was cut at its longest length." };
      this.note(frame.error ?? why[frame.subtype] ?? frame.subtype, "trouble");
      say(frame.error ?? why[frame.subtype] ?? frame.subtype);
    } else if (frame.report && frame.result) {
      this.prose("said").append(...markdown(frame.result));
    }
    for (const denial of frame.denials ?? []) {
      this.note(`Not permitted: ${denial.tool_name ?? denial.tool ?? "a call"}${denial.reason ? `, ${denial.reason}` : ""}`, "trouble");
    }
    const seconds = (frame.duration_ms / 1000).toFixed(1);
    this.note(`${seconds} s · ${count(frame.total_input_tokens)} in · ${count(frame.total_output_tokens)} out · ${money(frame.total_cost_usd)} so far`, "sums");
  }
}

export const money = (dollars) => `$${(dollars ?? 0).toFixed(dollars >= 1 ? 2 : 4)}`;
const count = (tokens) => (tokens >= 10000 ? `${(tokens / 1000).toFixed(0)}k` : String(tokens));

/// What a call is about, in a line.
export function about(input) {
  if (!input || typeof input !== "object") return "";
  const text = input.command ?? input.file_path ?? input.path ?? input.pattern ?? input.url ?? input.query ?? input.description ?? input.prompt ?? "";
  const line = String(text).split("\n")[0];
  return line.length > 160 ? `${line.slice(0, 160)}…` : line;
}

/// The input of a call, as it is.
export function input(value) {
  const text = value && typeof value === "object" && typeof value.command === "string" && Object.keys(value).length <= 2
    ? value.command
    : JSON.stringify(value, null, 2);
  return make("pre.input", { tabindex: "0", dir: "ltr", "aria-label": "Input" }, exact(text ?? ""));
}
