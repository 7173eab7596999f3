// Drives the page in a real Chromium. What a scenario finds wrong ends the process with a trace;
// what it needs from the test that started it, it asks for over standard output and input.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";
import * as scenarios from "./scenarios.mjs";

const require = createRequire(join(process.env.PACKAGES, "package.json"));
const { chromium } = require("playwright-core");

/// A busy machine takes its time; what is never there is found out by then.
const PATIENCE = 60000;

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/// Asks the test for something, and waits until it is done.
export async function ask(what) {
  process.stdout.write(`${what}\n`);
  const { value } = await input.next();
  return value;
}

export function check(holds, what) {
  if (!holds) throw new Error(what);
}

/// What a page shows a moment after what was waited for.
export async function eventually(holds, what) {
  const deadline = Date.now() + PATIENCE;
  while (!(await holds())) {
    check(Date.now() < deadline, what);
    await new Promise((next) => setTimeout(next, 50));
  }
}

export const URL_ = process.env.PAGE;

/// A window of the page, whose every misstep is written down.
async function open(context, seen, address) {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) seen.errors.push(message.text()); });
  page.on("dialog", (dialog) => { seen.errors.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("popup", (popup) => seen.errors.push(`a popup: ${popup.url()}`));
  page.on("request", (request) => { if (!request.url().startsWith("data:")) seen.requests.push(request.url()); });
  page.on("response", async (response) => {
    const body = await response.body().catch(() => Buffer.alloc(0));
    if (new URL(response.url()).pathname.match(/^\/($|page\/)/)) seen.bytes += body.length;
  });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  await page.goto(address);
  return page;
}

async function main() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 } });
  const seen = { errors: [], requests: [], bytes: 0 };
  const windows = [];
  const another = async (address = URL_) => { windows.push(await open(context, seen, address)); return windows.at(-1); };
  try {
    const page = await another();
    await scenarios[process.env.SCENARIO]({ page, context, another, seen });
    for (const window of windows) {
      const found = await window.evaluate(() => window.violations);
      check(found.length === 0, `policy violations: ${found}`);
    }
    check(seen.isGone || seen.errors.length === 0, `errors: ${seen.errors.join("\n")}`);
    const own = new URL(URL_).host;
    const foreign = seen.requests.filter((url) => new URL(url).host !== own);
    check(foreign.length === 0, `requests to others: ${foreign}`);
  } catch (error) {
    const shot = join(process.env.HOME, "failed.png");
    await windows[0]?.screenshot({ path: shot }).catch(() => {});
    if (process.env.KEEP) await windows[0]?.screenshot({ path: process.env.KEEP }).catch(() => {});
    console.error(error.stack, seen.errors.join("\n"));
    const text = await windows[0]?.locator("body").innerText().catch(() => "");
    console.error(text?.slice(0, 3000));
    process.exitCode = 1;
  }
  await browser.close();
  process.exit();
}

main();
