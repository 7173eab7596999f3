"""Three tabs at once: each has a queue of its own, and questions are answered by a function.

Run it with ``python examples/tabs.py``.
"""

import asyncio
import os
import re
import sys

from caliban_client import Caliban, Event

JOBS = {
    "readme": ["Summarise the README in one sentence.", "And in three words?"],
    "tests": ["Which test frameworks are used here?"],
    "risks": ["Name the riskiest file of this repository."],
}


def consent(question: Event) -> dict[str, str]:
    """Allows what only looks, and denies the rest."""
    command = str(question.get("input", {}).get("command", ""))
    if re.match(r"(ls|cat|git (status|log|diff))\b", command):
        return {"decision": "allow", "scope": "command"}
    return {"decision": "deny", "reason": "only looking is allowed"}


async def work(server: Caliban, name: str, prompts: list[str]) -> None:
    tab = await server.open(tab=name, on_question=consent)
    # All are sent at once; the tab works on them in order.
    results = await asyncio.gather(*(tab.send(prompt) for prompt in prompts))
    for prompt, result in zip(prompts, results):
        print(f"[{name}] {prompt}\n  {result.get('result') or result.get('error')}")
    await tab.close()


async def main() -> int:
    server = await Caliban.start(os.environ.get("CALIBAN", "caliban"))
    await asyncio.gather(*(work(server, name, prompts) for name, prompts in JOBS.items()))
    return await server.shutdown() or 0


sys.exit(asyncio.run(main()))
