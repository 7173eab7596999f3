// What a person does in the page.

import { Buffer } from "node:buffer";
import { URL_, ask, check, eventually } from "./driver.mjs";

const transcript = (page) => page.locator("#transcript");
const idle = (page) => page.locator("#state.idle").waitFor();

async function send(page, text) {
  await page.locator("#prompt").fill(text);
  await page.keyboard.press("Enter");
}

/// No mouse at all: a prompt, a question, a second session and the way back.
export async function keyboard({ page }) {
  await page.waitForFunction(() => document.activeElement?.id === "prompt");
  await page.keyboard.type("make it");
  await page.keyboard.press("Enter");
  const question = page.locator(".question");
  await question.waitFor();
  await eventually(async () => (await question.innerText()).includes("touch made"), "the question shows what would run");
  await eventually(async () => (await question.innerText()).includes("Allow in this session"), "the question has scopes");
  // Typing goes on where it was: a question takes no keys that were meant for something else.
  await page.keyboard.type("next thought");
  await eventually(async () => await page.locator("#prompt").inputValue() === "next thought", "the question took the keys");
  await page.keyboard.press("Alt+q");
  await eventually(async () => await page.evaluate(() => document.activeElement.className === "question"), "Alt+Q goes to the question");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await eventually(async () => await page.evaluate(() => document.activeElement.textContent) === "Allow once", "the first choice is behind what would run");
  await page.locator(".question button:not([aria-disabled])").first().waitFor();
  await page.keyboard.press("Enter");
  await transcript(page).getByText("It is made.").waitFor();
  await idle(page);
  await eventually(async () => await page.evaluate(() => document.activeElement.id) === "prompt", "after an answer the prompt has the focus");
  await page.keyboard.press("Alt+n");
  await page.waitForFunction(() => document.querySelectorAll("#sessions li").length === 2);
  await transcript(page).getByText("It is made.").waitFor({ state: "detached" });
  await page.keyboard.press("Alt+s");
  const before = await page.evaluate(() => document.activeElement.dataset.tab);
  await page.keyboard.press("ArrowDown");
  if (await page.evaluate(() => document.activeElement.dataset.tab) === before) await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await transcript(page).getByText("It is made.").waitFor();
  await page.locator("#transcript").focus();
  await page.keyboard.press("?");
  await page.locator("#help[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#help[open]").waitFor({ state: "detached" });
  // Every control can be reached, and each has a name.
  const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input:not([hidden]), select, textarea")]
    .filter((it) => !(it.getAttribute("aria-label") || it.labels?.length || it.textContent.trim())).map((it) => it.outerHTML));
  check(nameless.length === 0, `controls without a name: ${nameless}`);
}

/// What was said before a reload is there after it, and the rest comes once.
export async function reload({ page }) {
  await send(page, "tell me");
  await transcript(page).getByText("The beginning").waitFor();
  await page.reload();
  await transcript(page).getByText("The beginning").waitFor();
  await eventually(async () => await page.locator(".user").count() === 1, "the prompt is there once");
  await ask("release");
  await transcript(page).getByText("and the end.").waitFor();
  await idle(page);
  const said = await page.locator(".said .prose").allInnerTexts();
  check(said.length === 1 && said[0] === "The beginning of it and the end.", `said: ${JSON.stringify(said)}`);
  await page.reload();
  await transcript(page).getByText("and the end.").waitFor();
  await eventually(async () => await page.locator(".said").count() === 1, "said once after another reload");
}

/// Two windows on one session: what one sends both see, what one answers is answered in both.
export async function windows({ page, another, context }) {
  await send(page, `${"a line\n".repeat(60)}make it`);
  await page.locator(".question").waitFor();
  // The question takes room from the conversation, whose end stays to be seen.
  const isAtEnd = () => page.evaluate(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.getElementById("transcript");
    return scrollHeight > clientHeight && scrollHeight - scrollTop - clientHeight < 2;
  });
  await eventually(isAtEnd, "the end is seen beside the question");
  const other = await another(new URL("/", URL_).href);
  await other.locator(".question").waitFor();
  await eventually(async () => (await other.locator(".user").innerText()).includes("make it"), "the other sees the prompt");
  await eventually(async () => (await other.locator("nav .badge.waiting").innerText()) === "needs you", "the list says who is needed");
  await eventually(async () => (await other.title()).startsWith("(1)"), "the title says so too");
  await other.getByRole("button", { name: "Allow once" }).click();
  await page.locator(".question").waitFor({ state: "detached" });
  await transcript(page).getByText("It is made.").waitFor();
  await transcript(other).getByText("It is made.").waitFor();
  await send(other, "again");
  await transcript(page).getByText("Once more.").waitFor();
  // More windows than a browser has streams for one server.
  const many = [];
  for (let count = 0; count < 6; count += 1) many.push(await another(new URL("/", URL_).href));
  for (const window of many) await transcript(window).getByText("Once more.").waitFor();
  check(context.pages().length === 8, "eight windows");
}

/// Whatever a model, a tool or a file name says stays text.
export async function hostile({ page, seen }) {
  await send(page, "be hostile");
  await transcript(page).getByText("The end of it").waitFor();
  await idle(page);
  const found = await page.evaluate(() => {
    const all = [...document.querySelectorAll("#transcript *")];
    return {
      foreign: all.filter((it) => ["SCRIPT", "IFRAME", "OBJECT", "EMBED", "STYLE", "LINK", "SVG", "FORM", "META", "BASE", "VIDEO"].includes(it.tagName.toUpperCase())).length,
      handlers: all.filter((it) => [...it.attributes].some((attribute) => attribute.name.startsWith("on") || attribute.name === "style" || attribute.name === "srcdoc")).length,
      links: [...document.querySelectorAll("#transcript a")].map((it) => it.href),
      rel: [...document.querySelectorAll("#transcript a")].every((it) => it.rel.includes("noopener")),
      pictures: [...document.querySelectorAll("#transcript img")].map((it) => it.src),
      hacked: window.hacked,
      text: document.getElementById("transcript").innerText,
    };
  });
  check(found.foreign === 0 && found.handlers === 0, `markup got through: ${JSON.stringify(found)}`);
  check(found.hacked === undefined, "a script ran");
  check(found.links.every((link) => /^(https?:|mailto:)/.test(link)), `links: ${found.links}`);
  check(found.links.includes("https://example.com/a") && found.rel, `the good link is there: ${found.links}`);
  check(found.text.includes("(example.com)"), "a link shows where it leads");
  check(found.pictures.length === 0, `pictures: ${found.pictures}`);
  check(found.text.includes("<script>") && found.text.includes("<img src=x"), "markup is shown as text");
  check(found.text.includes("⟨U+202E⟩") && found.text.includes("⟨U+0007⟩"), `hidden characters are shown: ${found.text}`);
  check(!/[\u202e\u2066\u0007\u001b]/.test(found.text), "hidden characters are gone");
  check(seen.requests.every((url) => !url.includes("evil.test")), "nothing was fetched");
}

/// Markdown as it should look.
export async function markdown({ page }) {
  await send(page, "write");
  await transcript(page).getByText("Last words.").waitFor();
  await idle(page);
  const shown = await page.evaluate(() => {
    const prose = document.querySelector(".said .prose");
    const texts = (what) => [...prose.querySelectorAll(what)].map((it) => it.textContent);
    return {
      order: [...prose.children].map((it) => it.tagName),
      headings: texts("h3, h4"), items: texts("ul > li"), ordered: prose.querySelector("ol").start, nested: texts("li li"),
      code: texts("pre code"), cells: texts("td"), strong: texts("strong"), em: texts("em"), inline: texts("p > code"), tasks: texts(".todo"), quote: texts("blockquote"),
    };
  });
  const expected = {
    order: ["H3", "P", "H4", "UL", "OL", "DIV", "FIGURE", "BLOCKQUOTE", "UL", "P", "HR", "P"],
    headings: ["Title", "Second"], items: ["one", "two\nnested\n".replace(/\n/g, ""), "nested", "☐ open", "☑ done"], ordered: 3, nested: ["nested"],
    code: ["fn main() {\n    <b>\n}"], cells: ["a|b", "1"], strong: ["bold"], em: ["soft"], inline: ["x < y"], tasks: ["☐ open", "☑ done"], quote: ["quoted"],
  };
  for (const [name, value] of Object.entries(expected)) {
    check(JSON.stringify(shown[name]) === JSON.stringify(value), `${name}: ${JSON.stringify(shown[name])}, not ${JSON.stringify(value)}`);
  }
  const said = await page.locator(".said").innerText();
  check(said.includes("snake_case_name and 2 * 3 * 4"), said);
}

/// What waits is seen, and can be taken back and changed.
export async function queue({ page, another }) {
  await send(page, "first");
  await page.locator("#state.running").waitFor();
  await send(page, "second");
  await page.locator("#queue li").first().waitFor();
  await send(page, "third");
  await page.waitForFunction(() => document.querySelectorAll("#queue li").length === 2);
  const other = await another(new URL("/", URL_).href);
  await other.waitForFunction(() => document.querySelectorAll("#queue li").length === 2);
  await eventually(async () => (await other.locator("#queue").innerText()).includes("third"), "another window sees what waits");
  await page.getByRole("button", { name: "Take back: third" }).click();
  await other.waitForFunction(() => document.querySelectorAll("#queue li").length === 1);
  // The two windows hear of it in either order.
  await page.waitForFunction(() => document.getElementById("prompt").value === "third");
  await transcript(page).getByText("Taken back.").waitFor();
  await page.locator("#mode").selectOption("plan");
  await other.waitForFunction(() => document.getElementById("mode").value === "plan");
  await page.locator("#model").fill("claude-opus-4-6");
  await page.locator("#model").press("Enter");
  await other.waitForFunction(() => document.getElementById("model").value.includes("claude-opus-4-6"));
  await page.locator("#prompt").focus();
  await page.keyboard.press("Escape");
  await transcript(page).getByText("Interrupted.").waitFor();
  await transcript(page).getByText("Second answer.").waitFor();
  await eventually(async () => await page.locator("#queue").isHidden(), "nothing waits any more");
}

const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Files by dropping them and by choosing them.
export async function files({ page }) {
  const drop = await page.evaluateHandle((data) => {
    const bytes = Uint8Array.from(atob(data), (it) => it.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], "dot.png", { type: "image/png" }));
    return transfer;
  }, DOT);
  await page.dispatchEvent("body", "drop", { dataTransfer: drop });
  await page.locator("#files li").getByText("dot.png").waitFor();
  const chosen = page.waitForEvent("filechooser");
  await page.locator("#attach").click();
  await (await chosen).setFiles([{ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("remember the milk ```") }]);
  await page.locator("#files li").getByText("notes.txt").waitFor();
  const again = page.waitForEvent("filechooser");
  await page.locator("#attach").click();
  await (await again).setFiles([{ name: "bad.bin", mimeType: "application/octet-stream", buffer: Buffer.from([0xff, 0xfe, 0x00]) }]);
  await page.locator("#trouble").getByText("neither a text nor a picture").waitFor();
  await send(page, "look at these");
  await transcript(page).getByText("Seen.").waitFor();
  await idle(page);
  await eventually(async () => await page.locator(".user img.picture").count() === 1, "the picture is shown");
  await eventually(async () => await page.locator("#files").isHidden(), "nothing is attached any more");
  await page.reload();
  await page.locator(".user img.picture").waitFor();
  await page.waitForFunction(() => document.querySelector(".user img.picture").naturalWidth === 1);
}

/// The way in: a token that works once, is seen nowhere, and a page that is small.
export async function door({ page, another, seen }) {
  await page.locator("#prompt").waitFor();
  await page.waitForFunction(() => document.getElementById("empty").hidden === false);
  check(new URL(page.url()).hash === "", `the address bar has no token: ${page.url()}`);
  await eventually(async () => await page.evaluate(() => document.cookie) === "", "no script sees the cookie");
  check(seen.requests.every((url) => !url.includes(URL_.split("#")[1])), "no request has the token in its address");
  check(seen.bytes > 1000 && seen.bytes < 200 * 1024, `the page has ${seen.bytes} bytes`);
  await page.goBack().catch(() => {});
  check(!page.url().includes("#"), "nor has the history");
  // The same address a second time, in a browser that knows nothing.
  const fresh = await page.context().browser().newContext();
  const late = await fresh.newPage();
  await late.goto(URL_);
  await late.locator("#trouble").getByText("no access").waitFor();
  await fresh.close();
  const back = await another(new URL("/", URL_).href);
  await back.locator("#prompt").waitFor();
  await send(back, "hello");
  await transcript(back).getByText("Hello there.").waitFor();
  await idle(back);
  await back.getByRole("button", { name: /^Close/ }).first().click();
  await back.locator("#earlier li").first().waitFor();
  await back.locator("#earlier .session").first().click();
  await transcript(back).getByText("Hello there.").waitFor();
}

/// Narrow, dark, and heard instead of seen.
export async function look({ page }) {
  await send(page, "write");
  await transcript(page).getByText("Last words.").waitFor();
  await idle(page);
  await page.waitForFunction(() => document.getElementById("said").textContent.includes("Last words."));
  await send(page, "run something");
  await page.locator(".question button:not([aria-disabled])").first().waitFor();
  await send(page, "and something that waits and has a rather long text, longer than a small screen is wide");
  await page.locator("#queue li").waitFor();
  for (const role of ["navigation", "main", "log"]) await eventually(async () => await page.getByRole(role).count() === 1, `one ${role}`);
  await eventually(async () => await page.locator("[role=alert]").count() === 1 && await page.locator("[role=status]").count() >= 2, "live regions");
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    const low = await page.evaluate(contrast);
    check(low.length === 0, `${scheme}: too little contrast: ${low.slice(0, 5).join("; ")}`);
  }
  await page.setViewportSize({ width: 360, height: 640 });
  await eventually(async () => await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than the screen");
  const outside = await page.evaluate(() => [...document.querySelectorAll("main *")]
    .filter((it) => it.checkVisibility() && !it.closest(".facts, pre, .wide, .unseen") && it.getBoundingClientRect().right > innerWidth + 1)
    .map((it) => it.outerHTML.slice(0, 80)));
  check(outside.length === 0, `cut off: ${outside}`);
  await eventually(async () => await page.locator("nav").isHidden(), "the list makes room");
  await page.locator("#menu").click();
  await page.locator("nav .session").first().waitFor();
  await eventually(async () => await page.locator("nav .badge.waiting").evaluate((it) => it.getBoundingClientRect().right <= it.closest("nav").getBoundingClientRect().right), "the state is seen");
  await page.keyboard.press("Escape");
  await eventually(async () => await page.locator("nav").isHidden(), "and goes away again");
  const box = await page.locator("#send").boundingBox();
  check(box.height >= 40 && box.x + box.width <= 360, `the button can be hit: ${JSON.stringify(box)}`);
}

/// Texts whose colour is too near to what is behind them, by the usual formula (4.5 to 1).
function contrast() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((it) => it / 255).map((it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4)).reduce((sum, it, at) => sum + it * [0.2126, 0.7152, 0.0722][at], 0);
  const low = [];
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((it) => it.nodeType === 3 && it.data.trim());
    if (!hasText || !element.checkVisibility() || element.disabled || element.closest(".unseen, option, .skip")) continue;
    let behind = element;
    while (behind && rgba(getComputedStyle(behind).backgroundColor)[3] < 255) behind = behind.parentElement;
    const [one, other] = [light(rgba(getComputedStyle(element).color)), light(rgba(behind ? getComputedStyle(behind).backgroundColor : "white"))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) low.push(`${element.tagName}.${element.className} ${ratio.toFixed(2)} "${element.textContent.slice(0, 20)}"`);
  }
  return low;
}

/// Thousands of pieces, and the page still answers.
export async function long({ page }) {
  await send(page, "at length");
  await page.locator(".sums").waitFor();
  await idle(page);
  const words = (await page.locator(".said .prose").innerText()).split(/\s+/).filter((it) => it === "word").length;
  check(words === 4000, `${words} words`);
  await eventually(async () => await page.evaluate(() => {
    const log = document.getElementById("transcript");
    return log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  }), "the end is in sight");
}

/// A server that goes away is missed, and nothing is pretended.
export async function gone({ page, seen }) {
  await send(page, "hello");
  await transcript(page).getByText("Hello there.").waitFor();
  await idle(page);
  await ask("stop");
  await page.locator("#connection").getByText("Not connected").waitFor();
  await send(page, "anybody?");
  await page.locator("#trouble").getByText("cannot be reached").waitFor();
  await eventually(async () => await page.locator("#prompt").inputValue() === "anybody?", "what was typed is kept");
  // That nobody answers is in the console, and is meant to be.
  seen.isGone = true;
}
