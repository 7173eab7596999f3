#!/usr/bin/env python3
"""Measures command-line agent harnesses against a scripted model: no key, no network, no cost.

A harness is described by a file in `harnesses/`. Each is run in a network of its own, in which only the model
server of this repository answers, with an empty home and an empty workspace. See README.md.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib

from measures import ALL
from stage import Harness, Stage

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("harness", nargs="*", help="names of files in harnesses/; all that are installed unless given")
    words.add_argument("--only", action="append", choices=list(ALL), help="measure this alone; repeatable")
    words.add_argument("--runs", type=int, default=9, help="runs of what is timed (9)")
    words.add_argument("--path", default="", help="further directories with programs, as in PATH")
    words.add_argument("--json", type=pathlib.Path, help="also write the results to this file")
    words.add_argument("--server", type=pathlib.Path, default=ROOT / "target/debug/xtask", help="the built xtask")
    words.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = words.parse_args()
    if not options.inside:
        leave_the_network()
    if options.path:
        os.environ["PATH"] = f"{options.path}:{os.environ['PATH']}"
    if not options.server.exists():
        sys.exit(f"{options.server} is not there: cargo build --package xtask")
    results = {}
    for harness in harnesses(options.harness):
        print(f"{harness.name} {harness.version()}", file=sys.stderr)
        results[harness.name] = measured(harness, options)
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def leave_the_network():
    """Starts again in a network namespace whose only interface is loopback."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        sys.exit("`unshare` (util-linux) and `ip` (iproute2) are needed: nothing may reach a real service")
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    again = 'ip link set lo up && exec "$@"'
    words = [sys.executable, __file__, "--inside", *sys.argv[1:]]
    os.execvp("unshare", ["unshare", "--net", *user, "sh", "-c", again, "sh", *words])


def harnesses(names):
    files = sorted((HERE / "harnesses").glob("*.toml"))
    known = {file.stem: Harness(file.stem, tomllib.loads(file.read_text())) for file in files}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"there is no harnesses/{unknown[0]}.toml; there are {', '.join(known)}")
    for name in names or known:
        if known[name].is_installed():
            yield known[name]
        else:
            print(f"{name}: `{known[name].program}` is not installed ({known[name].install})", file=sys.stderr)


def measured(harness, options):
    found = {"version": harness.version()}
    for name, measure in ALL.items():
        if options.only and name not in options.only:
            continue
        with tempfile.TemporaryDirectory(prefix="harness-") as place:
            stage = Stage(pathlib.Path(place), harness, options.server)
            try:
                found[name] = measure(stage, options.runs)
            except Exception as error:  # One harness that surprises us must not end the others' run.
                found[name] = {"error": f"{type(error).__name__}: {error}"}
        print(f"  {name}: {found[name]}", file=sys.stderr)
    return found


def shown(value):
    match value:
        case None:
            return "–"
        case {"error": str(error)}:
            return f"not measured ({error[:40]})"
        case {"samples": list(samples), "unit": unit}:
            return f"{statistics.median(samples):.4g} {unit}"
        case {"said": str(said)}:
            return said
        case _:
            return str(value)


def table(results):
    names = list(results)
    rows = ["version", *ALL]
    lines = ["| | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for row in rows:
        cells = [results[name].get(row) for name in names]
        if any(cell is not None for cell in cells):
            label = row if row == "version" else ALL[row].__doc__.splitlines()[0].rstrip(".")
            lines.append(f"| {label} | " + " | ".join(shown(cell) for cell in cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
