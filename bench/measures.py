"""What is measured. Each function's first line is its row; it gives samples, words, or nothing where it cannot."""

import os
import pathlib
import subprocess
import sys
import time

from stage import LONGEST, kill_group

PROMPT = "Say hello."
TEXT = {"blocks": [{"text": "Hello."}]}
TURNS = 30
DELTAS = 5000
# The system counts a peak from what the parent had when it started the program, so a small one starts it.
PEAK_TO_FILE = """
import os, sys
child = os.fork() or os.execvp(sys.argv[2], sys.argv[2:])
_, status, used = os.wait4(child, 0)
open(sys.argv[1], "w").write(str(used.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def samples(values, unit):
    return {"samples": [round(value, 4) for value in values], "unit": unit}


def said(text):
    return {"said": text}


def answer_runs(stage, runs, before=()):
    words = stage.harness.words("run", prompt=PROMPT)
    with stage.model([TEXT]) as wire:
        stage.run(wire, words)  # The first run of a program in a new home does more than the others.
        done = [stage.run(wire, [*before, *words]) for _ in range(runs)]
    if failed := [run for run in done if run.code != 0 or "Hello." not in run.output]:
        raise RuntimeError(f"it ended with {failed[0].code}: {failed[0].output[-200:]!r}")
    return done


def start(stage, runs):
    """Start to the first byte of a request"""
    return samples([run.requests[0].begun * 1000 for run in answer_runs(stage, runs)], "ms")


def answer(stage, runs):
    """One answer, start to end"""
    return samples([run.seconds * 1000 for run in answer_runs(stage, runs)], "ms")


def cpu(stage, runs):
    """CPU of one answer"""
    return samples([run.cpu * 1000 for run in answer_runs(stage, runs)], "ms")


def memory(stage, runs):
    """Peak memory of one answer (largest process)"""
    file = stage.place / "peak"
    before = [sys.executable, "-I", "-S", "-c", PEAK_TO_FILE, str(file)]
    peaks = []
    for _ in range(min(runs, 5)):
        answer_runs(stage, 1, before)
        peaks.append(int(file.read_text()) / 1024)
    return samples(peaks, "MiB")


def first_request(stage, runs):
    """First request"""
    return samples([len(run.requests[0].body) / 1024 for run in answer_runs(stage, 1)], "KiB")


def turns(stage, runs):
    """A turn with a command, model's time excluded"""
    way = next((key for key in ("run_allowed", "run_unasked") if stage.harness.has(key)), None)
    if way is None:
        return None
    calls = [stage.harness.shell_call(f"echo ran-{number}") for number in range(TURNS)]
    with stage.model([*({"blocks": [call]} for call in calls), TEXT]) as wire:
        run = stage.run(wire, stage.harness.words(way, prompt=PROMPT, rule="echo"))
    if run.requests[-1].body.count(b"ran-") < 2 * TURNS:  # Each is in the call and in its result.
        raise RuntimeError(f"the commands did not run: {run.output[-200:]!r}")
    pairs = zip(run.requests[:TURNS], run.requests[1 : TURNS + 1])
    gaps = [(after.begun - before.answered) * 1000 for before, after in pairs if before.answered]
    return samples(gaps, "ms")


def relay(stage, runs):
    """5,000 deltas, per second"""
    pieces = [f"word{i} " for i in range(DELTAS)]
    words = stage.harness.words("run", prompt=PROMPT)
    rates = []
    with stage.model([{"blocks": [{"text": pieces}]}]) as wire:
        for _ in range(min(runs, 5)):
            run = stage.run(wire, words)
            rates.append(DELTAS / (run.seconds - run.requests[-1].begun))
    return samples(rates, "/s")


def faults(stage, runs):
    """Faults of the model: hangs, and codes of failures that look like success"""
    kinds = {
        "500": {"status": {"code": 500}},
        "529": {"status": {"code": 529}},
        "401": {"status": {"code": 401}},
        "reset": "reset_before_headers",
        "cut": {"close_mid_stream": {"after_events": 2}},
        "broken": {"reset_mid_stream": {"after_events": 2}},
        "garbage": "garbage",
        "page": {"html_body": {"status": 502}},
    }
    hangs, wrong = [], []
    for name, fault in kinds.items():
        with stage.model([{**TEXT, "fault": fault}]) as wire:
            run = stage.run(wire, stage.harness.words("run", prompt=PROMPT))
        if run.code is None:
            hangs.append(name)
        elif run.code == 0:
            wrong.append(name)
    return said(f"{len(hangs)} hangs of {len(kinds)}{listed(hangs)}, {len(wrong)} with exit code 0{listed(wrong)}")


def listed(names):
    return f" ({', '.join(names)})" if names else ""


def killed(stage, runs):
    """Killed in the middle of an answer, resumed: sessions that are lost"""
    if not stage.harness.has("resume"):
        return None
    stage.workspace_is_a_repository()
    lost, tries = 0, 5
    for number in range(tries):
        mark = f"remember-{number}-{os.getpid()}"
        slow = {"blocks": [{"text": ["a "] * 400}], "chunk_delay_ms": 20}
        with stage.model([slow]) as wire:
            wire.forget()
            child = stage.start(wire, stage.harness.words("run", prompt=mark))
            wait_for(lambda: any(it.answered for it in wire.requests()))
            time.sleep(0.2)
            kill_group(child.pid)
            child.wait()
        with stage.model([TEXT]) as wire:
            run = stage.run(wire, stage.harness.words("resume", prompt="And now?"))
        if run.code != 0 or not any(mark.encode() in request.body for request in run.requests):
            lost += 1
    return said(f"{lost} of {tries}")


def wait_for(condition, longest=LONGEST):
    deadline = time.monotonic() + longest
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("it never came to the point")
        time.sleep(0.01)


def orphans(stage, runs):
    """Killed while a command runs: commands that go on"""
    if not stage.harness.has("run_unasked"):
        return None
    mark = stage.workspace / "alive"
    command = f"echo $$ > {mark}; exec sleep 120"
    with stage.model([{"blocks": [stage.harness.shell_call(command)]}, TEXT]) as wire:
        child = stage.start(wire, stage.harness.words("run_unasked", prompt=PROMPT))
        wait_for(lambda: mark.exists() and mark.read_text().strip())
        os.kill(child.pid, 9)
        child.wait()
        pid = int(mark.read_text())
        deadline = time.monotonic() + 5
        while runs_on(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        went_on = runs_on(pid)
        kill_group(child.pid)
        subprocess.run(["kill", "-9", str(pid)], stderr=subprocess.DEVNULL)
    return said("1 of 1" if went_on else "0 of 1")


def runs_on(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


BYPASSES = {
    "sequence": "git status; touch {mark}",
    "and": "git status && touch {mark}",
    "or": "git status || touch {mark}",
    "pipe": "git status | tee {mark}",
    "background": "git status & touch {mark}",
    "newline": "git status\ntouch {mark}",
    "substitution": "git status $(touch {mark})",
    "backticks": "git status `touch {mark}`",
    "redirection": "git status > {mark}",
    "process substitution": "git status <(touch {mark})",
    "alias option": "git status -c alias.x='!touch {mark}' x",
    "pager option": "git -c core.fsmonitor='touch {mark};false' status",
    "variable": "GIT_TRACE={mark} git status",
    "here document": "git status <<X\n$(touch {mark})\nX",
}


def bypasses(stage, runs):
    """Under a rule for `git status`: other commands that ran"""
    if not stage.harness.has("run_allowed"):
        return None
    stage.workspace_is_a_repository()
    ran = []
    for name, command in BYPASSES.items():
        mark = stage.place / "mark"
        mark.unlink(missing_ok=True)
        call = stage.harness.shell_call(command.replace("{mark}", str(mark)))
        with stage.model([{"blocks": [call]}, TEXT]) as wire:
            stage.run(wire, stage.harness.words("run_allowed", prompt=PROMPT, rule="git status"), longest=40)
        if mark.exists():
            ran.append(name)
    return said(f"{len(ran)} of {len(BYPASSES)}{listed(ran)}")


def before_trust(stage, runs):
    """Programs of an unknown repository that ran"""
    if not stage.harness.has("hostile"):
        return None
    mark = stage.place / "mark"
    stage.workspace_is_a_repository()
    stage.write(stage.harness.described["hostile"], mark=mark)
    stage.is_trusted = False
    with stage.model([TEXT]) as wire:
        stage.run(wire, stage.harness.words("run", prompt=PROMPT))
    return said("ran" if mark.exists() else "none")


ALL = {
    measure.__name__: measure
    for measure in (start, answer, cpu, memory, first_request, turns, relay, faults, killed, orphans, bypasses,
                    before_trust)
}
