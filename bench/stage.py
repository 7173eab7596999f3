"""Where a harness is run: a home, a workspace, a scripted model, and a wire between them that is watched."""

import contextlib
import dataclasses
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

LONGEST = 90  # Seconds that a run may take; one that takes longer hangs.


class Harness:
    """A program that drives a model, as its file describes it."""

    def __init__(self, name, described):
        self.name = name
        self.install = described["install"]
        self.program = described["run"][0]
        self.described = described

    def is_installed(self):
        return shutil.which(self.program) is not None

    def version(self):
        words = [self.program, *self.described.get("version", ["--version"])]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        return (done.stdout or done.stderr).strip().splitlines()[0]

    def has(self, key):
        return key in self.described

    def words(self, key, **values):
        return [word.format(**values) for word in self.described[key]]

    def shell_call(self, command):
        """How the model would ask for a command."""
        call = self.described["shell"]
        text = json.dumps(call["input"])
        filled = json.loads(text.replace('"{command}"', json.dumps(command)))
        return {"tool_call": {"name": call["tool"], "input": filled}}


@dataclasses.dataclass
class Run:
    """What a run left behind."""

    code: int | None  # Nothing where it had to be ended.
    seconds: float
    cpu: float
    output: str
    requests: list


@dataclasses.dataclass
class Request:
    """What went over the wire in one direction before the other answered."""

    begun: float
    answered: float | None  # When the first byte of the answer came.
    body: bytes

    def since(self, start):
        answered = None if self.answered is None else self.answered - start
        return Request(self.begun - start, answered, self.body)


class Stage:
    def __init__(self, place, harness, server):
        self.harness = harness
        self.server = server
        self.home, self.workspace = place / "home", place / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        self.place = place
        self.is_trusted = True

    def workspace_is_a_repository(self):
        subprocess.run(["git", "init", "--quiet"], cwd=self.workspace, check=True)

    def write(self, files, **values):
        """Writes files below the home (`~/`) or the workspace."""
        for name, text in files.items():
            path = self.home / name[2:] if name.startswith("~/") else self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            for key, value in values.items():
                text = text.replace("{" + key + "}", str(value))
            path.write_text(text)

    @contextlib.contextmanager
    def model(self, replies, after="repeat_last"):
        """A scripted model behind a watched wire; gives the wire."""
        script = self.place / "script.json"
        models = [{"id": self.harness.described["model"]}]
        script.write_text(json.dumps({"replies": replies, "after": after, "checks": "off", "models": models}))
        words = [self.server, "model-server", "--script", script, "--listen", "127.0.0.1:0"]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            port = int(server.stdout.readline().rsplit(":", 1)[1])
            with Wire(port) as wire:
                yield wire
        finally:
            server.kill()
            server.wait()

    def environment(self, wire):
        kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
        added = dict(self.harness.described.get("env", {}))
        if self.is_trusted:
            added |= self.harness.described.get("env_of_trust", {})
        url = f"http://127.0.0.1:{wire.port}"
        return {**kept, "HOME": str(self.home), "TERM": "dumb", **{k: v.format(url=url) for k, v in added.items()}}

    def start(self, wire, words):
        self.write(self.harness.described.get("files", {}), url=f"http://127.0.0.1:{wire.port}")
        output = open(self.place / "output", "wb")
        return subprocess.Popen(
            words, cwd=self.workspace, env=self.environment(wire), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )

    def run(self, wire, words, longest=LONGEST):
        wire.forget()
        begun = time.monotonic()
        child = self.start(wire, words)
        timer = threading.Timer(longest, lambda: kill_group(child.pid))
        timer.start()
        _, status, used = os.wait4(child.pid, 0)
        ended = time.monotonic()
        hung = not timer.is_alive() or ended - begun >= longest
        timer.cancel()
        kill_group(child.pid)
        child.returncode = 0
        return Run(
            code=None if hung else os.waitstatus_to_exitcode(status),
            seconds=ended - begun,
            cpu=used.ru_utime + used.ru_stime,
            output=(self.place / "output").read_text(errors="replace"),
            requests=[it.since(begun) for it in wire.requests()],
        )


def kill_group(pid):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


class Wire:
    """Passes bytes between harness and model, and remembers when each request began and what it held."""

    def __init__(self, target):
        self.target = target
        self.lock = threading.Lock()
        self.seen = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.ended = False

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.listener.close()

    def forget(self):
        with self.lock:
            self.seen.clear()

    def requests(self):
        """Requests to a model, oldest first; listings of models and pings are none."""
        with self.lock:
            return [it for it in self.seen if it.body.startswith(b"POST ") and len(it.body) > 200]

    def accept(self):
        while not self.ended:
            try:
                ours, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(ours,), daemon=True).start()

    def carry(self, ours):
        with ours, socket.create_connection(("127.0.0.1", self.target)) as theirs:
            for end in (ours, theirs):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            request = None
            while True:
                for end in select.select([ours, theirs], [], [])[0]:
                    try:
                        data = end.recv(1 << 16)
                    except OSError:
                        return
                    if not data:
                        return
                    now = time.monotonic()
                    with self.lock:
                        if end is theirs:
                            if request and request.answered is None:
                                request.answered = now
                        else:
                            if request is None or request.answered is not None:
                                request = Request(now, None, b"")
                                self.seen.append(request)
                            request.body += data
                    try:
                        (theirs if end is ours else ours).sendall(data)
                    except OSError:
                        return
