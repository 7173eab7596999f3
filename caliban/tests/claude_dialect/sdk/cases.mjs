// One case per capability of the TypeScript SDK. The first argument names the case; CLAUDE_CLI is
// the program, SDK_MODULES where the SDK is installed. A case that does not hold throws.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const sdk = join(process.env.SDK_MODULES, "@anthropic-ai/claude-agent-sdk/sdk.mjs");
const { query, tool, createSdkMcpServer } = await import(pathToFileURL(sdk).href);

const options = (more = {}) => ({
  pathToClaudeCodeExecutable: process.env.CLAUDE_CLI,
  cwd: process.cwd(),
  ...more,
});

async function all(stream) {
  const messages = [];
  for await (const message of stream) messages.push(message);
  return messages;
}

const once = (prompt, more) => all(query({ prompt, options: options(more) }));
const said = (content) => ({
  type: "user",
  session_id: "",
  parent_tool_use_id: null,
  message: { role: "user", content },
});
const results = (messages) => messages.filter((message) => message.type === "result");
const last = (messages) => results(messages).at(-1);
const blocks = (messages, type) =>
  messages.flatMap((message) => message.message?.content ?? []).filter((block) => block.type === type);

/** Prompts that are sent one after the other, each when the one before has its result. */
class Prompts {
  #waiting = [];
  #wake = () => {};
  #open = true;
  say(content) {
    this.#waiting.push(said(content));
    this.#wake();
  }
  end() {
    this.#open = false;
    this.#wake();
  }
  async *[Symbol.asyncIterator]() {
    while (this.#open || this.#waiting.length > 0) {
      if (this.#waiting.length > 0) yield this.#waiting.shift();
      else await new Promise((resolve) => (this.#wake = resolve));
    }
  }
}

const cases = {
  async one_shot() {
    const messages = await once("hi");
    assert.equal(messages[0].subtype, "init");
    assert.equal(last(messages).result, "Hello.");
    assert.equal(last(messages).usage.output_tokens, 7);
    assert.ok(last(messages).total_cost_usd > 0);
    assert.ok(last(messages).modelUsage["claude-sonnet-4-6"].contextWindow > 0);
  },

  async several_turns() {
    const prompts = new Prompts();
    const stream = query({ prompt: prompts, options: options() });
    prompts.say("first");
    const found = [];
    for await (const message of stream) {
      if (message.type !== "result") continue;
      found.push(message.result);
      if (found.length === 1) {
        assert.ok((await stream.supportedModels()).length > 0);
        assert.ok(Array.isArray(await stream.supportedCommands()));
        prompts.say("second");
      } else prompts.end();
    }
    assert.deepEqual(found, ["one", "two"]);
  },

  async interrupt() {
    const prompts = new Prompts();
    const stream = query({ prompt: prompts, options: options({ includePartialMessages: true }) });
    prompts.say("go");
    const found = [];
    let interrupted = false;
    for await (const message of stream) {
      if (message.type === "stream_event" && !interrupted) {
        interrupted = true;
        await stream.interrupt();
      }
      if (message.type !== "result") continue;
      found.push(message.subtype);
      if (found.length === 1) prompts.say("again");
      else prompts.end();
    }
    assert.deepEqual(found, ["error_during_execution", "success"]);
  },

  async consent() {
    const asked = [];
    const canUseTool = async (name, input, { suggestions }) => {
      asked.push(input.command);
      assert.ok(Array.isArray(suggestions));
      switch (input.command) {
        case "touch allowed":
          return { behavior: "allow", updatedInput: input };
        case "touch changed":
          return { behavior: "allow", updatedInput: { command: "touch other" } };
        case "touch ruled":
          return {
            behavior: "allow",
            updatedInput: input,
            updatedPermissions: [
              {
                type: "addRules",
                rules: [{ toolName: "Bash", ruleContent: "touch ruled:*" }],
                behavior: "allow",
                destination: "session",
              },
            ],
          };
        default:
          return { behavior: "deny", message: "Not that." };
      }
    };
    const messages = await once("go", { canUseTool });
    assert.deepEqual(asked, ["touch allowed", "touch changed", "touch ruled", "touch denied"]);
    for (const name of ["allowed", "other", "ruled", "ruled2"]) assert.ok(existsSync(name), name);
    for (const name of ["changed", "denied"]) assert.ok(!existsSync(name), name);
    assert.equal(blocks(messages, "tool_result").at(-1).content, "Not that.");
    assert.equal(last(messages).permission_denials.length, 1);
  },

  async hooks() {
    const seen = [];
    const before = async (input) => {
      seen.push(input.hook_event_name);
      return input.tool_input.command.includes("secret")
        ? { decision: "block", reason: "No secrets." }
        : {};
    };
    const after = async (input) => {
      seen.push(input.hook_event_name);
      return {};
    };
    const messages = await once("go", {
      allowedTools: ["Bash"],
      hooks: {
        PreToolUse: [{ matcher: "Bash", hooks: [before] }],
        PostToolUse: [{ hooks: [after] }],
      },
    });
    assert.deepEqual(seen.toSorted(), ["PostToolUse", "PreToolUse", "PreToolUse"]);
    assert.equal(blocks(messages, "tool_result").at(-1).content, "No secrets.");
  },

  async changes() {
    const prompts = new Prompts();
    const stream = query({ prompt: prompts, options: options() });
    prompts.say("first");
    const inits = [];
    let count = 0;
    for await (const message of stream) {
      if (message.subtype === "init") inits.push(message);
      if (message.type !== "result") continue;
      count += 1;
      if (count === 1) {
        await stream.setModel("claude-haiku-4-5");
        await stream.setPermissionMode("acceptEdits");
        prompts.say("second");
      } else prompts.end();
    }
    assert.equal(inits[0].model, "claude-sonnet-4-6");
    assert.equal(inits[1].model, "claude-haiku-4-5");
    assert.equal(inits[1].permissionMode, "acceptEdits");
  },

  async partial() {
    const messages = await once("hi", { includePartialMessages: true });
    const events = messages.filter((message) => message.type === "stream_event").map(({ event }) => event);
    const deltas = events.filter(({ type }) => type === "content_block_delta").map(({ delta }) => delta.text);
    assert.equal(deltas.join(""), "Hello there.");
    assert.equal(events[0].type, "message_start");
  },

  async sub_agents() {
    const agents = { scout: { description: "Looks", prompt: "You are a scout.", tools: ["Bash"] } };
    const messages = await once("outer", { agents });
    const [task] = blocks(messages, "tool_use");
    assert.equal(task.name, "Task");
    assert.ok(messages.some((message) => message.parent_tool_use_id === task.id));
    assert.equal(last(messages).result, "All done.");
  },

  async sessions() {
    const first = last(await once("first"));
    const resumed = last(await once("second", { resume: first.session_id }));
    assert.equal(resumed.session_id, first.session_id);
    const continued = last(await once("third", { continue: true }));
    assert.equal(continued.session_id, first.session_id);
    const forked = last(await once("fourth", { resume: first.session_id, forkSession: true }));
    assert.notEqual(forked.session_id, first.session_id);
  },

  async structured() {
    const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
    const messages = await once("go", { outputFormat: { type: "json_schema", schema } });
    assert.deepEqual(last(messages).structured_output, { ok: true });
  },

  async limits() {
    for (const [limit, subtype] of [
      [{ maxTurns: 1 }, "error_max_turns"],
      [{ maxBudgetUsd: 0.00001 }, "error_max_budget_usd"],
    ]) {
      const messages = [];
      try {
        for await (const message of query({ prompt: "go", options: options(limit) })) messages.push(message);
      } catch (error) {
        assert.match(String(error), /error result|exited with code 1/);
      }
      assert.equal(last(messages).subtype, subtype);
    }
  },

  async own_tools() {
    const { z } = await import(pathToFileURL(join(process.env.SDK_MODULES, "zod/index.js")).href);
    const add = tool("add", "Adds two numbers", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
      content: [{ type: "text", text: `sum ${a + b}` }],
    }));
    const prompts = new Prompts();
    const calc = createSdkMcpServer({ name: "calc", version: "1.0.0", tools: [add] });
    const stream = query({
      prompt: prompts,
      options: options({ mcpServers: { calc }, allowedTools: ["mcp__calc__add"] }),
    });
    prompts.say("add");
    const messages = [];
    for await (const message of stream) {
      messages.push(message);
      if (message.type === "result") prompts.end();
    }
    const init = messages.find(({ subtype }) => subtype === "init");
    assert.ok(init.tools.includes("mcp__calc__add"));
    const [result] = blocks(messages, "tool_result");
    assert.match(JSON.stringify(result.content), /sum 5/);
  },

  async checkpoints() {
    const { readFileSync, writeFileSync } = await import("node:fs");
    const kept = {
      enableFileCheckpointing: true,
      permissionMode: "acceptEdits",
      extraArgs: { "replay-user-messages": null },
    };
    writeFileSync("a.txt", "one\n");
    const messages = await once("make it two", kept);
    assert.equal(readFileSync("a.txt", "utf8"), "two\n");
    const point = messages.find(({ type, uuid }) => type === "user" && uuid).uuid;
    const resume = last(messages).session_id;
    const stream = query({ prompt: "", options: options({ ...kept, resume }) });
    for await (const _ of stream) {
      await stream.rewindFiles(point);
      break;
    }
    assert.equal(readFileSync("a.txt", "utf8"), "one\n");
  },
};

await cases[process.argv[2]]();
