// Three tabs at once: each has a queue of its own, and questions are answered by a function.
// Run it with `node examples/tabs.js`.
import { Caliban } from "../src/index.js";

const server = await Caliban.start({ command: process.env.CALIBAN ?? "caliban" });

/** Allows what only looks, and denies the rest. */
function consent(question) {
  const command = String(question.input?.command ?? "");
  return /^(ls|cat|git (status|log|diff))\b/.test(command)
    ? { decision: "allow", scope: "command" }
    : { decision: "deny", reason: "only looking is allowed" };
}

const jobs = {
  readme: ["Summarise the README in one sentence.", "And in three words?"],
  tests: ["Which test frameworks are used here?"],
  risks: ["Name the riskiest file of this repository."],
};

await Promise.all(
  Object.entries(jobs).map(async ([name, prompts]) => {
    const tab = await server.open({ tab: name }, { onQuestion: consent });
    // All are sent at once; the tab works on them in order.
    const results = await Promise.all(prompts.map((prompt) => tab.send(prompt)));
    for (const [place, result] of results.entries()) {
      console.log(`[${name}] ${prompts[place]}\n  ${result.result ?? result.error}`);
    }
    await tab.close();
  }),
);
process.exitCode = (await server.shutdown()) ?? 1;
