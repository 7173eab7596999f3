// Elements, and text that is what it looks like. What comes from a session becomes text nodes and
// never markup.

/// Makes an element: `make("a.link", {href}, ...children)`. Children are nodes or texts.
export function make(what, properties = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

export const at = (id) => document.getElementById(id);

// Characters that change what others look like, or cannot be seen at all: controls, the directions
// of text, tags, and separators of lines.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;
// In what is consented to, also those that join letters or take no room.
const INVISIBLE = /[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]/gu;

const named = (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

/// A text whose hidden characters can be seen.
export function plain(text) {
  return String(text).replace(/\r\n?/g, "\n").replace(HIDDEN, named);
}

/// The same for what somebody has to judge.
export function exact(text) {
  return String(text).replace(/\r/g, named).replace(HIDDEN, named).replace(INVISIBLE, named);
}

export function button(label, onclick, properties = {}) {
  return make("button", { type: "button", onclick, ...properties }, label);
}

/// A text for screen readers, said once.
export function say(text) {
  const place = at("said");
  place.textContent = "";
  // The same text twice is two things to say.
  setTimeout(() => { place.textContent = plain(text); }, 50);
}
