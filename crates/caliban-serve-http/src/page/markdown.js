// Markdown as elements. Nothing here writes markup: tags that a model writes are text, links lead
// only to the web, and pictures are links.

import { make, plain } from "./dom.js";

// How deep lists, quotes and emphasis nest; what is deeper is text.
const DEEPEST = 12;

/// The elements of a whole text.
export function markdown(text) {
  return blocks(plain(text).replace(/\t/g, "    ").split("\n"), 0);
}

/// A text that grows: what is finished stays as it is, only its last blocks are made again.
export class Growing {
  constructor(place) {
    this.place = place;
    this.text = "";
    this.done = 0;
    this.last = [];
    this.due = 0;
  }

  add(text) {
    this.text += text;
    if (!this.due) this.due = requestAnimationFrame(() => this.show());
  }

  show() {
    this.due = 0;
    const rest = this.text.slice(this.done);
    const end = finished(rest);
    this.last.forEach((node) => node.remove());
    if (end > 0) {
      this.place.append(...markdown(rest.slice(0, end)));
      this.done += end;
    }
    this.last = markdown(rest.slice(end));
    this.place.append(...this.last);
  }

  /// Everything is there: once more as a whole, so that nothing depends on how it came.
  end(text = this.text) {
    if (this.due) cancelAnimationFrame(this.due);
    this.due = 0;
    this.text = text;
    this.place.replaceChildren(...markdown(text));
  }
}

/// Where the last block that cannot grow any more ends.
function finished(text) {
  let fence = null;
  let end = 0;
  let place = 0;
  for (const line of text.split("\n")) {
    const next = place + line.length + 1;
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line);
    if (fence) {
      if (mark && mark[1][0] === fence[0] && mark[1].length >= fence.length && !line.slice(mark[0].length).trim()) fence = null;
    } else if (mark) fence = mark[1];
    else if (!line.trim() && next <= text.length && !/^\s|^[-*+>|]|^\d+[.)]/.test(text.slice(next, next + 4)) && text.length > next) end = next;
    place = next;
  }
  return end;
}

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}|$)/;
const ROW = /\|/;
const UNDER = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function blocks(lines, depth) {
  const made = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) { at += 1; continue; }
    const fence = FENCE.exec(line);
    if (fence) {
      const from = at + 1;
      const isEnd = (text) => {
        const mark = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(text);
        return mark && mark[1][0] === fence[2][0] && mark[1].length >= fence[2].length;
      };
      at = from;
      while (at < lines.length && !isEnd(lines[at])) at += 1;
      const indent = new RegExp(`^ {0,${fence[1].length}}`);
      made.push(code(lines.slice(from, at).map((text) => text.replace(indent, "")).join("\n"), fence[3].trim()));
      at += 1;
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading) {
      // The page has the first two levels itself.
      made.push(make(`h${Math.min(6, heading[1].length + 2)}`, {}, ...inline(heading[2] ?? "")));
      at += 1;
      continue;
    }
    if (RULE.test(line)) { made.push(make("hr")); at += 1; continue; }
    if (QUOTE.test(line) && depth < DEEPEST) {
      const from = at;
      while (at < lines.length && lines[at].trim() && (QUOTE.test(lines[at]) || !starts(lines[at]))) at += 1;
      made.push(make("blockquote", {}, ...blocks(lines.slice(from, at).map((text) => text.replace(QUOTE, "")), depth + 1)));
      continue;
    }
    if (ITEM.test(line) && depth < DEEPEST) {
      const [node, next] = list(lines, at, depth);
      made.push(node);
      at = next;
      continue;
    }
    if (ROW.test(line) && at + 1 < lines.length && UNDER.test(lines[at + 1]) && cells(line).length === cells(lines[at + 1]).length) {
      const from = at;
      at += 2;
      while (at < lines.length && lines[at].trim() && ROW.test(lines[at])) at += 1;
      made.push(table(lines.slice(from, at)));
      continue;
    }
    if (/^ {4}/.test(line)) {
      const from = at;
      while (at < lines.length && (/^ {4}/.test(lines[at]) || !lines[at].trim())) at += 1;
      made.push(code(lines.slice(from, at).map((text) => text.slice(4)).join("\n").trimEnd(), ""));
      continue;
    }
    const from = at;
    at += 1;
    while (at < lines.length && lines[at].trim() && !starts(lines[at])) at += 1;
    made.push(make("p", { dir: "auto" }, ...broken(lines.slice(from, at))));
  }
  return made;
}

/// Whether a line ends a paragraph by beginning something else.
function starts(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || /^ {0,3}([-*+]|1[.)]) /.test(line);
}

function broken(lines) {
  const text = lines.map((line, place) => {
    const isLast = place === lines.length - 1;
    return !isLast && / {2,}$|\\$/.test(line) ? `${line.replace(/ +$|\\$/, "").trim()}\n` : line.trim() + (isLast ? "" : " ");
  }).join("");
  return inline(text);
}

function list(lines, from, depth) {
  const first = ITEM.exec(lines[from]);
  const isOrdered = /\d/.test(first[2]);
  const kind = isOrdered ? first[2].at(-1) : first[2];
  const items = [];
  let at = from;
  let isLoose = false;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || (isOrdered ? item[2].at(-1) !== kind || !/\d/.test(item[2]) : item[2] !== kind) || RULE.test(lines[at])) break;
    const width = item[0].length + (item[3] ? 0 : 1);
    const body = [lines[at].slice(item[0].length)];
    at += 1;
    let blank = false;
    while (at < lines.length) {
      const line = lines[at];
      if (!line.trim()) { blank = true; body.push(""); at += 1; continue; }
      const indent = line.search(/\S/);
      if (indent >= Math.min(width, item[1].length + 2)) { body.push(line.slice(Math.min(indent, width))); at += 1; continue; }
      if (blank || starts(line) || ITEM.test(line)) break;
      body.push(line.trim());
      at += 1;
    }
    while (body.length && !body.at(-1).trim()) body.pop();
    isLoose ||= body.some((line) => !line.trim());
    items.push(body);
  }
  const nodes = items.map((body) => {
    const task = /^\[([ xX])\] /.exec(body[0] ?? "");
    if (task) body[0] = body[0].slice(4);
    const inner = blocks(body, depth + 1).flatMap((node) => (!isLoose && node.tagName === "P" ? [...node.childNodes] : [node]));
    if (task) inner.unshift(make("span.task", { role: "img", "aria-label": task[1] === " " ? "open" : "done" }, task[1] === " " ? "☐" : "☑"), " ");
    return make(task ? "li.todo" : "li", { dir: "auto" }, ...inner);
  });
  const number = parseInt(first[2], 10);
  return [make(isOrdered ? "ol" : "ul", { start: isOrdered && number !== 1 ? number : null }, ...nodes), at];
}

function cells(line) {
  const found = [];
  let cell = "";
  let isCode = false;
  const text = line.trim().replace(/^\|/, "");
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\" && text[at + 1] === "|") { cell += "|"; at += 1; continue; }
    if (text[at] === "`") isCode = !isCode;
    if (text[at] === "|" && !isCode) { found.push(cell.trim()); cell = ""; } else cell += text[at];
  }
  if (cell.trim()) found.push(cell.trim());
  return found;
}

function table(lines) {
  const sides = cells(lines[1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "centre" : "end") : ""));
  const row = (tag, line) => make("tr", {}, ...sides.map((side, place) =>
    make(side ? `${tag}.${side}` : tag, tag === "th" ? { scope: "col" } : {}, ...inline(cells(line)[place] ?? ""))));
  return make("div.wide", { tabindex: "0", role: "region", "aria-label": "Table" }, make("table", {},
    make("thead", {}, row("th", lines[0])),
    make("tbody", {}, ...lines.slice(2).map((line) => row("td", line)))));
}

function code(text, language) {
  const name = language.split(/\s/)[0].slice(0, 24);
  const copy = make("button.copy", { type: "button", "aria-label": "Copy the code" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(text);
    copy.textContent = "Copied";
  });
  return make("figure.code", {}, make("figcaption", {}, make("span", {}, name || "text"), copy),
    make("pre", { tabindex: "0", dir: "ltr" }, make("code", {}, text)));
}

const WEB = /^(https?:\/\/|mailto:)/i;
const BARE = /^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_]/i;

/// The address that a link leads to; none where it leads elsewhere than to the web.
function target(text) {
  if (!WEB.test(text)) return null;
  try {
    const url = new URL(text);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

function link(children, address) {
  const url = target(address);
  if (!url) return [...children, make("span.refused", {}, ` (${address})`)];
  const anchor = make("a", { href: url.href, rel: "noopener noreferrer", target: "_blank", title: url.href }, ...children);
  // Where it leads is seen before it is followed.
  const isPlain = anchor.textContent.replace(/\/$/, "") === url.href.replace(/\/$/, "");
  return isPlain ? [anchor] : [anchor, make("span.target", {}, ` (${url.host || url.pathname})`)];
}

const PAIRS = ["***", "**", "__", "~~", "*", "_"];

/// The nodes of a line.
export function inline(text, depth = 0) {
  const nodes = [];
  let from = 0;
  let at = 0;
  const flush = (to) => { if (to > from) nodes.push(text.slice(from, to)); };
  const take = (to, ...made) => { flush(at); nodes.push(...made); at = to; from = to; };
  // Marks that are not closed behind a place are not closed behind a later one.
  const unclosed = new Set();
  while (at < text.length) {
    const sign = text[at];
    if (sign === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) { take(at + 2, text[at + 1]); continue; }
    if (sign === "\n") { take(at + 1, make("br")); continue; }
    if (sign === "`") {
      const ticks = /^`+/.exec(text.slice(at))[0];
      if (!unclosed.has(ticks)) {
        let end = text.indexOf(ticks, at + ticks.length);
        while (end >= 0 && (text[end + ticks.length] === "`" || text[end - 1] === "`")) {
          end = text.indexOf(ticks, end + 1);
        }
        if (end > 0) {
          const inner = text.slice(at + ticks.length, end);
          const isPadded = inner.length > 2 && inner.startsWith(" ") && inner.endsWith(" ") && inner.trim();
          take(end + ticks.length, make("code", { dir: "ltr" }, isPadded ? inner.slice(1, -1) : inner));
          continue;
        }
        unclosed.add(ticks);
      }
      at += ticks.length;
      continue;
    }
    if ((sign === "[" || (sign === "!" && text[at + 1] === "[")) && depth < DEEPEST && !unclosed.has("[")) {
      if (text.indexOf("](", at) < 0) unclosed.add("[");
      const found = unclosed.has("[") ? null : bracket(text, at + (sign === "!" ? 1 : 0));
      if (found) {
        const children = inline(found.label || found.address, depth + 1);
        take(found.end, ...(sign === "!" ? ["🖼 "] : []), ...link(children, found.address));
        continue;
      }
    }
    if (sign === "<") {
      const auto = /^<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/i.exec(text.slice(at, at + 2100));
      if (auto) { take(at + auto[0].length, ...link([auto[1]], auto[1])); continue; }
    }
    if ((sign === "h" || sign === "H") && !/\w/.test(text[at - 1] ?? "")) {
      const bare = BARE.exec(text.slice(at, at + 2000));
      if (bare) { take(at + bare[0].length, ...link([bare[0]], bare[0])); continue; }
    }
    if ("*_~".includes(sign) && depth < DEEPEST) {
      const mark = PAIRS.find((pair) => text.startsWith(pair, at));
      const end = mark && !unclosed.has(mark) ? closing(text, at, mark) : null;
      if (end > 0) {
        const inner = inline(text.slice(at + mark.length, end), depth + 1);
        const node = mark === "~~" ? make("del", {}, ...inner)
          : mark === "***" ? make("strong", {}, make("em", {}, ...inner))
            : make(mark.length === 2 ? "strong" : "em", {}, ...inner);
        take(end + mark.length, node);
        continue;
      }
      if (end === -1) unclosed.add(mark);
      at += mark ? mark.length : 1;
      continue;
    }
    at += 1;
  }
  flush(text.length);
  return nodes;
}

/// Where a mark is closed: nothing where it opens nothing, -1 where nothing closes it. It opens
/// before a letter and closes behind one; `_` never inside a word.
function closing(text, at, mark) {
  const isWord = (sign) => /[\p{L}\p{N}]/u.test(sign ?? "");
  if (/\s|^$/.test(text[at + mark.length] ?? "")) return null;
  if (mark[0] === "_" && isWord(text[at - 1])) return null;
  for (let end = text.indexOf(mark, at + mark.length + 1); end >= 0; end = text.indexOf(mark, end + 1)) {
    if (/\s|\\/.test(text[end - 1])) continue;
    if (mark[0] === "_" && isWord(text[end + mark.length])) continue;
    // One star does not close at two.
    if (mark.length === 1 && (text[end + 1] === mark || text[end - 1] === mark)) { end += 1; continue; }
    return end;
  }
  return -1;
}

/// `[label](address "title")`, with brackets that match.
function bracket(text, at) {
  let depth = 0;
  let end = at;
  const most = Math.min(text.length, at + 2000);
  for (; end < most; end += 1) {
    if (text[end] === "\\") end += 1;
    else if (text[end] === "[") depth += 1;
    else if (text[end] === "]") { depth -= 1; if (depth === 0) break; }
  }
  if (text[end] !== "]" || text[end + 1] !== "(") return null;
  const rest = /^\(\s*<?([^\s<>]{0,2000}?)>?(?:\s+["'][^"']{0,500}["'])?\s*\)/.exec(balanced(text, end + 1));
  if (!rest) return null;
  return { label: text.slice(at + 1, end), address: rest[1], end: end + 1 + rest[0].length };
}

function balanced(text, at) {
  let depth = 0;
  const most = Math.min(text.length, at + 3000);
  for (let end = at; end < most; end += 1) {
    if (text[end] === "(") depth += 1;
    else if (text[end] === ")") { depth -= 1; if (depth === 0) return text.slice(at, end + 1); }
  }
  return "";
}
