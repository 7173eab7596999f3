// What is sent: a text, files beside it, and what waits already.

import { at, button, make, plain, say } from "./dom.js";

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
// Bytes of one file, and of all that go with a prompt.
const LARGEST_PICTURE = 5 * 1024 * 1024;
const LARGEST_TEXT = 512 * 1024;
const MOST = 20 * 1024 * 1024;

export class Composer {
  constructor({ send, stop, trouble }) {
    Object.assign(this, { send, stop, trouble, files: [] });
    const prompt = at("prompt");
    at("compose").addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    prompt.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); this.submit(); }
    });
    prompt.addEventListener("input", () => this.grow());
    prompt.addEventListener("paste", (event) => {
      if (event.clipboardData.files.length) { event.preventDefault(); this.attach(event.clipboardData.files); }
    });
    at("attach").addEventListener("click", () => at("picker").click());
    at("picker").addEventListener("change", () => { this.attach(at("picker").files); at("picker").value = ""; });
    const page = document.body;
    const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    page.addEventListener("dragover", (event) => { if (hasFiles(event)) { event.preventDefault(); page.classList.add("dropping"); } });
    page.addEventListener("dragleave", (event) => { if (!event.relatedTarget) page.classList.remove("dropping"); });
    page.addEventListener("drop", (event) => {
      page.classList.remove("dropping");
      if (!hasFiles(event)) return;
      event.preventDefault();
      this.attach(event.dataTransfer.files);
    });
  }

  grow() {
    const prompt = at("prompt");
    prompt.style.setProperty("height", "auto");
    prompt.style.setProperty("height", `${Math.min(prompt.scrollHeight + 2, 320)}px`);
  }

  async attach(files) {
    for (const file of files) {
      try {
        this.files.push(await read(file, this.files.reduce((sum, it) => sum + it.size, 0)));
        say(`Attached ${file.name}`);
      } catch (error) {
        this.trouble(error.message);
      }
    }
    this.showFiles();
    at("prompt").focus();
  }

  showFiles() {
    at("files").replaceChildren(...this.files.map((file) => make("li", {},
      file.picture ? make("img", { src: file.picture, alt: "" }) : "", plain(file.name), " ",
      button("×", () => { this.files = this.files.filter((it) => it !== file); this.showFiles(); at("prompt").focus(); }, { "aria-label": `Remove ${plain(file.name)}` }))));
    at("files").hidden = this.files.length === 0;
  }

  async submit() {
    const text = at("prompt").value.trim();
    if (!text && !this.files.length) return;
    const content = this.files.length
      ? [...this.files.map((file) => file.block), ...(text ? [{ type: "text", text }] : [])]
      : text;
    // The same request, should it be sent twice, is one piece of work.
    const request = this.request?.text === JSON.stringify(content) ? this.request.id : crypto.randomUUID();
    this.request = { text: JSON.stringify(content), id: request };
    at("send").disabled = true;
    const isSent = await this.send(request, content);
    at("send").disabled = false;
    if (!isSent) return;
    this.request = null;
    if (at("prompt").value.trim() === text) at("prompt").value = "";
    this.files = [];
    this.showFiles();
    this.grow();
  }

  /// Puts what was taken back where it can be changed.
  restore(content) {
    const texts = typeof content === "string" ? [content] : content.filter((block) => block.type === "text").map((block) => block.text);
    const prompt = at("prompt");
    prompt.value = [texts.join("\n"), prompt.value].filter(Boolean).join("\n");
    this.grow();
    prompt.focus();
  }
}

/// A file as a block of a prompt.
async function read(file, already) {
  const isPicture = PICTURES.includes(file.type);
  const most = isPicture ? LARGEST_PICTURE : LARGEST_TEXT;
  if (file.size > most) throw new Error(`“${plain(file.name)}” is larger than ${most / 1024} KiB.`);
  if (already + file.size > MOST) throw new Error("That is more than goes with one prompt.");
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (isPicture) {
    const data = base64(bytes);
    const source = { type: "base64", media_type: file.type, data };
    return { name: file.name, size: file.size, picture: `data:${file.type};base64,${data}`, block: { type: "image", source } };
  }
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`“${plain(file.name)}” is neither a text nor a picture.`);
  }
  // The fence is longer than any in the file.
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((found) => found[0].length));
  const fence = "`".repeat(longest + 1);
  const name = file.name.replace(/[\n`]/g, " ");
  return { name: file.name, size: file.size, block: { type: "text", text: `The file ${name}:\n${fence}\n${text}\n${fence}` } };
}

function base64(bytes) {
  let text = "";
  for (let from = 0; from < bytes.length; from += 8192) text += String.fromCharCode(...bytes.subarray(from, from + 8192));
  return btoa(text);
}

/// What waits, each with a way to take it back.
export function showQueue(waiting, takeBack) {
  const place = at("queue");
  place.hidden = waiting.length === 0;
  place.replaceChildren(...waiting.map(({ request, content }, number) => {
    const texts = typeof content === "string" ? content : (content ?? []).map((block) => block.text ?? "[picture]").join(" ");
    const short = plain(texts).replace(/\s+/g, " ").slice(0, 120);
    return make("li", {}, make("span.number", {}, `${number + 1}`), make("span.waiting", {}, short || request),
      button("Take back", () => takeBack(request, content), { "aria-label": `Take back: ${short}` }));
  }));
}
