#!/usr/bin/env python3
"""Draws results of run.py as bars on logarithmic scales: plot.py results.json picture.svg"""

import json
import math
import pathlib
import statistics
import sys
from xml.sax.saxutils import escape

ROWS = {
    "start": "Start to the first request",
    "cpu": "CPU of one answer",
    "memory": "Peak memory of one answer",
    "turns": "A turn with a command",
}
LEFT, WIDTH, BAR, GAP = 120, 520, 16, 34


def medians(results, row):
    cells = {name: found.get(row) for name, found in results.items()}
    return {
        name: (statistics.median(cell["samples"]), cell["unit"])
        for name, cell in cells.items()
        if isinstance(cell, dict) and "samples" in cell
    }


def text(x, y, words, kind="name"):
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(words)}</text>'


def bars(values, top):
    """One group: every bar as long as the number of times it is larger than a fifth of the smallest."""
    least = min(value for value, _ in values.values()) / 5
    longest = math.log(max(value for value, _ in values.values()) / least)
    for place, (name, (value, unit)) in enumerate(values.items()):
        y = top + place * (BAR + 4)
        length = round((WIDTH - 110) * math.log(value / least) / longest)
        kind = "ours" if name == "caliban" else "peer"
        yield text(LEFT - 8, y + 12, name, "label")
        yield f'<rect x="{LEFT}" y="{y}" width="{length}" height="{BAR}" class="{kind}"/>'
        yield text(LEFT + length + 6, y + 12, f"{value:,.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}")


def picture(results):
    drawn, y = [], 10
    for row, title in ROWS.items():
        values = medians(results, row)
        drawn.append(text(LEFT, y + 12, title, "title"))
        drawn.extend(bars(values, y + 22))
        y += len(values) * (BAR + 4) + 22 + GAP - 10
    style = (
        "text{font:12px sans-serif;fill:#555}.title{font-weight:bold;fill:#888}.label{text-anchor:end}"
        ".ours{fill:#2a7de1}.peer{fill:#9aa5b1}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH} {y}" width="{LEFT + WIDTH}" role="img">'
    said = "<title>Start, CPU, memory and turns of agent harnesses, on logarithmic scales</title>"
    return "\n".join([head, said, f"<style>{style}</style>", *drawn, "</svg>", ""])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = map(pathlib.Path, sys.argv[1:])
    target.write_text(picture(json.loads(source.read_text())))
