#!/usr/bin/env python3
"""Works long and mixed, and looks whether anything stays behind.

Headless runs, turns in one server of sessions, and runs that are killed and go on, against a model that this
program plays itself. Exits with 1 where a run has no result, a session is lost, a process, file or descriptor is
left, or memory grows.
"""

import argparse
import concurrent.futures
import http.server
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

TABS = 8
PROMPTS_A_TAB = 50
# What a server of sessions may grow by between a tenth of its work and all of it.
GROWTH_KIB = 4 * 1024
# A command that nobody else starts.
SLEEP = "sleep 98765"


class Model(http.server.BaseHTTPRequestHandler):
    """Answers every other request with a call, as the prompt asks for, and the next with text."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = asked["messages"][-1]["content"]
        texts = [last] if isinstance(last, str) else [part.get("text", "") for part in last]
        is_result = any(isinstance(part, dict) and part.get("type") == "tool_result" for part in last)
        said = " ".join(texts)
        if is_result or "read" not in said and "sleep" not in said:
            body = events({"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}, "end_turn")
        else:
            name, wanted = ("Read", {"file_path": "note.txt"}) if "read" in said else ("Bash", {"command": SLEEP})
            call = {"type": "tool_use", "id": f"call_{random.getrandbits(48):x}", "name": name, "input": {}}
            body = events(call, {"type": "input_json_delta", "partial_json": json.dumps(wanted)}, "tool_use")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, address):
        """Whoever asked was killed."""


def events(block, delta, reason):
    message = {
        "id": "msg", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "content": [],
        "stop_reason": None, "usage": {"input_tokens": 9, "output_tokens": 1},
    }
    told = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n".encode() for it in told)


class Soak:
    def __init__(self, program, place, url):
        self.program = program
        self.home = place / "home"
        self.workspace = place / "workspace"
        for directory in (self.home, self.workspace):
            directory.mkdir()
        (self.workspace / "note.txt").write_text("a note\n")
        self.environment = {
            "HOME": str(self.home), "PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "soak", "ANTHROPIC_BASE_URL": url,
        }
        self.problems = []

    def start(self, *words, **pipes):
        return subprocess.Popen(
            [self.program, *words], cwd=self.workspace, env=self.environment, text=True,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, **pipes},
        )

    def expect(self, holds, what):
        if not holds:
            self.problems.append(what)

    def runs(self, count):
        """Headless runs, two at a time; each has one result."""
        def one(number):
            words = ["-p", "read it" if number % 2 else "say it", "--output-format", "stream-json", "--auto-allow"]
            child = self.start(*words)
            results = sum(json.loads(line)["type"] == "result" for line in child.stdout)
            self.expect(child.wait() == 0 and results == 1, f"run {number}: {results} results")

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(one, range(count)))
        return {"runs": count, "sessions": self.sessions()}

    def turns(self, count):
        """Turns in one server: tabs that are opened, asked and closed, two turns a prompt."""
        server = self.start("--auto-allow", "serve", "app", stdin=subprocess.PIPE)
        memory, descriptors, done, number = [], [], 0, 0
        prompts = min(PROMPTS_A_TAB, max(1, count // (4 * TABS)))
        while done < count:
            names = [f"tab{number + place}" for place in range(TABS)]
            number += TABS
            for name in names:
                self.ask(server, {"op": "open", "id": f"open-{name}", "tab": name})
            for prompt in range(prompts):
                for name in names:
                    request = {"op": "send", "tab": name, "request": f"{name}-{prompt}", "content": "read it"}
                    self.ask(server, {"id": f"send-{name}-{prompt}", **request})
                self.results(server, {f"{name}-{prompt}" for name in names})
                done += 2 * TABS
            for name in names:
                self.ask(server, {"op": "close", "id": f"close-{name}", "tab": name})
            self.answers(server, {f"close-{name}" for name in names})
            memory.append(resident(server.pid))
            descriptors.append(len(os.listdir(f"/proc/{server.pid}/fd")))
        server.stdin.close()
        self.expect(server.wait(timeout=30) == 0, "the server did not end well")
        early, late = memory[len(memory) // 10], memory[-1]
        self.expect(late - early < GROWTH_KIB, f"the server grew from {early} to {late} KiB")
        self.expect(descriptors[-1] <= descriptors[0] + TABS, f"descriptors grew from {descriptors[0]} to {descriptors[-1]}")
        return {"turns": done, "KiB": [early, max(memory), late], "descriptors": [descriptors[0], descriptors[-1]]}

    def ask(self, server, request):
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()

    def answers(self, server, wanted):
        while wanted:
            line = json.loads(server.stdout.readline())
            self.expect("error" not in line, f"{line}")
            wanted.discard(line.get("re"))

    def results(self, server, wanted):
        while wanted:
            line = json.loads(server.stdout.readline())
            if "error" in line:
                raise RuntimeError(line)
            if line.get("event", {}).get("type") == "result":
                self.expect(line["request"] in wanted, f"{line['request']} has a second result")
                self.expect(line["event"]["subtype"] == "success", f"{line['request']}: {line['event']['subtype']}")
                wanted.discard(line["request"])

    def kills(self, count):
        """Runs that are killed at some moment; the next goes on with what is there, and no command is left."""
        draw = random.Random(1)
        going_on = 0
        for number in range(count):
            prompt = draw.choice(["read it", "sleep", "say it"])
            child = self.start("-p", prompt, "--auto-allow", stdout=subprocess.DEVNULL)
            time.sleep(draw.uniform(0, 0.06))
            child.send_signal(signal.SIGKILL)
            child.wait()
            again = self.start("-p", "say it", "-c", "--output-format", "json")
            told = again.communicate(timeout=60)[0]
            is_known = again.returncode == 0 and json.loads(told)["subtype"] == "success"
            self.expect(is_known, f"kill {number}: going on ended with {again.returncode}: {told[-300:]}")
            going_on += is_known
        deadline = time.monotonic() + 10
        while (orphans := commands_left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.expect(not orphans, f"{len(orphans)} commands of killed runs go on")
        return {"kills": count, "went on": going_on, "orphans": len(orphans)}

    def sessions(self):
        return len(list(self.home.glob(".local/share/caliban/sessions/*.json")))

    def leftovers(self):
        """Files that only a run that is at work has, once those of killed runs are swept. A journal is a session."""
        self.start("sessions", "prune").communicate(timeout=60)
        kinds = (".new", ".tmp", ".part")
        found = [path for path in self.home.rglob("*") if path.is_file() and path.name.endswith(kinds)]
        self.expect(not found, f"{len(found)} files are left, such as {found[:1]}")
        return len(found)


def resident(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def commands_left():
    found = subprocess.run(["pgrep", "-f", f"^{SLEEP}$"], capture_output=True, text=True)
    return found.stdout.split()


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("program", type=pathlib.Path, help="the caliban to look at")
    words.add_argument("--runs", type=int, default=10_000)
    words.add_argument("--turns", type=int, default=100_000)
    words.add_argument("--kills", type=int, default=500)
    options = words.parse_args()
    model = Server(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="soak-") as place:
        url = f"http://127.0.0.1:{model.server_address[1]}"
        soak = Soak(options.program.resolve(), pathlib.Path(place), url)
        for part, count in ((soak.runs, options.runs), (soak.turns, options.turns), (soak.kills, options.kills)):
            begun = time.monotonic()
            found = part(count) if count else {}
            print(json.dumps({**found, "seconds": round(time.monotonic() - begun, 1)}), flush=True)
        print(json.dumps({"files left": soak.leftovers(), "sessions": soak.sessions()}))
    for problem in soak.problems[:20]:
        print(f"soak: {problem}", file=sys.stderr)
    sys.exit(1 if soak.problems else 0)


if __name__ == "__main__":
    main()
