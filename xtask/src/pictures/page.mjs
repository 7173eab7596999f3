// Photographs the page for the guide.

import { createRequire } from "node:module";
import { join } from "node:path";

const { PACKAGES, CHROMIUM, PAGE, FOLDER } = process.env;
const require = createRequire(join(PACKAGES, "package.json"));
const { chromium } = require("playwright-core");

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const context = await browser.newContext({ viewport: { width: 1120, height: 780 } });
const page = await context.newPage();
await page.goto(PAGE);

async function send(text) {
  await page.locator("#prompt").fill(text);
  await page.keyboard.press("Enter");
}

const idle = () => page.locator("#state.idle").waitFor();

await send("What does the build script do?");
await page.getByText("It compiles the grammar").waitFor();
await idle();
await page.locator("#new").click();
await page.locator(".user").waitFor({ state: "detached" });
await send("Why can the total of a cart be wrong?");
await page.locator(".said figure").waitFor();
await idle();
await page.locator("#mode").selectOption("acceptEdits");
await send("Mend it, then run the tests.");
await page.locator(".question button:not([aria-disabled])").first().waitFor();
await send("Write a line in the changelog as well.");
await page.locator("#queue li").waitFor();
await page.locator("#prompt").fill("");
// Times differ from one photograph to the next, and nothing is to be read from them.
const shoot = async (name, scheme, size) => {
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
  await page.evaluate(() => {
    document.querySelectorAll(".left").forEach((it) => { it.textContent = "denied in 4:58"; });
    const log = document.getElementById("transcript");
    log.scrollTop = log.scrollHeight;
  });
  await page.waitForTimeout(200);
  await page.screenshot({ path: join(FOLDER, name) });
};
await shoot("page-light.png", "light", { width: 1120, height: 780 });
await shoot("page-dark.png", "dark", { width: 1120, height: 780 });
await shoot("page-narrow.png", "light", { width: 390, height: 780 });
await browser.close();
process.exit();
