// Changes, line by line.

import { exact, make } from "./dom.js";

// Lines whose differences are looked for one by one; larger texts are shown as removed and added.
const MOST = 600;
// Unchanged lines around a change.
const AROUND = 3;
// Lines of a change that are shown at once.
const SHOWN = 2000;

/// The rows of a change: `[" " | "-" | "+", line]`.
export function rows(before, after) {
  const [old, now] = [before, after].map((text) => (text ? text.replace(/\n$/, "").split("\n") : []));
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const left = old.slice(head, old.length - tail);
  const right = now.slice(head, now.length - tail);
  const same = (lines) => lines.map((line) => [" ", line]);
  return [...same(old.slice(0, head)), ...changed(left, right), ...same(old.slice(old.length - tail))];
}

function changed(left, right) {
  const removed = left.map((line) => ["-", line]);
  const added = right.map((line) => ["+", line]);
  if (!left.length || !right.length || left.length > MOST || right.length > MOST) return [...removed, ...added];
  const width = right.length + 1;
  const longest = new Uint16Array((left.length + 1) * width);
  for (let one = left.length - 1; one >= 0; one -= 1) {
    for (let other = right.length - 1; other >= 0; other -= 1) {
      longest[one * width + other] = left[one] === right[other]
        ? longest[(one + 1) * width + other + 1] + 1
        : Math.max(longest[(one + 1) * width + other], longest[one * width + other + 1]);
    }
  }
  const found = [];
  let [one, other] = [0, 0];
  while (one < left.length || other < right.length) {
    if (one < left.length && other < right.length && left[one] === right[other]) {
      found.push([" ", left[one]]);
      one += 1;
      other += 1;
    } else if (other >= right.length || (one < left.length && longest[(one + 1) * width + other] >= longest[one * width + other + 1])) {
      found.push(["-", left[one]]);
      one += 1;
    } else {
      found.push(["+", right[other]]);
      other += 1;
    }
  }
  return found;
}

/// The element of a change.
export function diff(before, after) {
  const all = rows(before, after);
  const isNear = (place) => all.slice(Math.max(0, place - AROUND), place + AROUND + 1).some(([sign]) => sign !== " ");
  const block = make("pre.diff", { tabindex: "0", dir: "ltr", "aria-label": "Changes" });
  let skipped = 0;
  const skip = () => {
    if (skipped) block.append(make("span.skip-lines", {}, `⋯ ${skipped} unchanged\n`));
    skipped = 0;
  };
  all.slice(0, SHOWN).forEach(([sign, line], place) => {
    if (sign === " " && !isNear(place)) { skipped += 1; return; }
    skip();
    const kind = { "+": "ins.add", "-": "del.remove", " ": "span" }[sign];
    block.append(make(kind, {}, `${sign} ${exact(line)}\n`));
  });
  skip();
  if (all.length > SHOWN) block.append(make("span.skip-lines", {}, `⋯ ${all.length - SHOWN} more lines\n`));
  return block;
}

/// How many lines come and go.
export function size(before, after) {
  const all = rows(before, after);
  const count = (wanted) => all.filter(([sign]) => sign === wanted).length;
  return `+${count("+")} −${count("-")}`;
}

/// What a call would change; nothing where it edits nothing.
export function changes(name, input) {
  if (!input || typeof input !== "object") return [];
  const text = (value) => (typeof value === "string" ? value : "");
  if (Array.isArray(input.edits)) return input.edits.map((edit) => [text(edit?.old_string), text(edit?.new_string)]);
  if (typeof input.old_string === "string") return [[input.old_string, text(input.new_string)]];
  if (name === "Write" && typeof input.content === "string") return [["", input.content]];
  if (name === "NotebookEdit" && typeof input.new_source === "string") return [["", input.new_source]];
  return [];
}
