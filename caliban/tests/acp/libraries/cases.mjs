// A whole conversation by the protocol's own library for TypeScript.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const folder = path.join(process.env.SDK_MODULES, "@agentclientprotocol/sdk");
const description = JSON.parse(
  await import("node:fs").then((fs) => fs.readFileSync(path.join(folder, "package.json"), "utf8")),
);
const entry = description.exports["."];
const acp = await import(pathToFileURL(path.join(folder, entry.import ?? entry.default)));
const { methods } = acp;

const cwd = process.env.WORKSPACE;
const child = spawn(process.env.CALIBAN, ["serve", "acp"], {
  cwd,
  stdio: ["pipe", "pipe", "inherit"],
});
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));

const updates = [];
let wake = () => {};
const kinds = () => updates.map((it) => it.sessionUpdate);
const said = () =>
  updates
    .filter((it) => it.sessionUpdate === "agent_message_chunk")
    .map((it) => it.content.text)
    .join("");
const until = async (kind, seen) => {
  while (!kinds().slice(seen).includes(kind)) {
    await new Promise((resolve) => (wake = resolve));
  }
};
const text = (text) => [{ type: "text", text }];

const app = acp
  .client({ name: "editor" })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    const kind = params.toolCall.title.includes("refused") ? "reject_once" : "allow_once";
    const { optionId } = params.options.find((it) => it.kind === kind);
    return { outcome: { outcome: "selected", optionId } };
  })
  .onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params.update);
    wake();
  });

await app.connectWith(stream, async (agent) => {
  const call = (method, params) => agent.request(method, params);
  const met = await call(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  assert.equal(met.protocolVersion, 1);
  const { sessionId } = await call(methods.agent.session.new, { cwd, mcpServers: [] });
  const prompt = (words) =>
    call(methods.agent.session.prompt, { sessionId, prompt: text(words) });

  assert.equal((await prompt("hi")).stopReason, "end_turn");
  assert.equal(said(), "hello from the model");
  assert.equal((await prompt("make")).stopReason, "end_turn");
  const ends = updates.map((it) => it.status);
  assert.ok(ends.includes("completed") && ends.includes("failed"), ends.join());

  let seen = updates.length;
  const working = prompt("long");
  await until("agent_message_chunk", seen);
  await agent.notify(methods.agent.session.cancel, { sessionId });
  assert.equal((await working).stopReason, "cancelled");

  const { sessions } = await call(methods.agent.session.list, { cwd });
  assert.deepEqual(
    sessions.map((it) => it.sessionId),
    [sessionId],
  );
  await call(methods.agent.session.close, { sessionId });
  seen = updates.length;
  await call(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  assert.ok(kinds().slice(seen).includes("user_message_chunk"), kinds().slice(seen).join());
  assert.equal((await prompt("last")).stopReason, "end_turn");
  assert.ok(said().endsWith("after"), said());
});
child.stdin.end();
process.exit(0);
