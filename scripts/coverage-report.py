#!/usr/bin/env python3
"""Renders target/llvm-cov/coverage.json, as scripts/coverage.sh writes it, as Markdown."""

import argparse
import collections
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GAP = 60.0  # Files below so many per cent are named.
NAMED = 15


def percent(covered, count):
    return 100.0 if count == 0 else 100.0 * covered / count


def crate_of(name):
    parts = pathlib.Path(name).parts
    if "crates" in parts and parts.index("crates") + 1 < len(parts):
        return parts[parts.index("crates") + 1]
    return next((part for part in ("caliban", "xtask") if part in parts), "other")


def render(data):
    totals = data["totals"]["lines"]
    yield "## Coverage"
    yield ""
    yield f"{percent(totals['covered'], totals['count']):.1f} % of {totals['count']} lines are reached."
    crates = collections.defaultdict(lambda: [0, 0])
    gaps = []
    for file in data["files"]:
        lines = file["summary"]["lines"]
        crate = crates[crate_of(file["filename"])]
        crate[0] += lines["covered"]
        crate[1] += lines["count"]
        share = percent(lines["covered"], lines["count"])
        if share < GAP:
            gaps.append((share, lines["count"] - lines["covered"], file["filename"]))
    yield ""
    yield "| crate | lines | reached |"
    yield "| --- | ---: | ---: |"
    for name, (covered, count) in sorted(crates.items()):
        yield f"| {name} | {count} | {percent(covered, count):.1f} % |"
    if gaps:
        yield ""
        yield "Notable gaps:"
        yield ""
        for share, missed, name in sorted(gaps, key=lambda gap: -gap[1])[:NAMED]:
            yield f"- `{name}`: {share:.1f} %, {missed} lines not reached"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=ROOT / "target/llvm-cov/coverage.json")
    path = parser.parse_args().file
    try:
        document = json.loads(path.read_text())
        data = document["data"][0]
    except (OSError, ValueError, LookupError) as error:
        sys.exit(f"{path}: {error}; run scripts/coverage.sh first")
    print("\n".join(render(data)))


if __name__ == "__main__":
    main()
