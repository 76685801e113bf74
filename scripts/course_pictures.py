#!/usr/bin/env python3
"""Draws the diagrams of docs/course. Without arguments, writes docs/course/*.svg. With --check, compares
the files with what would be written."""

import html
import pathlib
import re
import sys

STYLE = """<style>
svg { --text: #1d2129; --faint: #667; --panel: #eef2f7; --c0: #1f6fb4; --c1: #d1642a; }
@media (prefers-color-scheme: dark) {
  svg { --text: #e4e7ec; --faint: #98a0ad; --panel: #262c36; --c0: #6db3f2; --c1: #f2955f; }
}
text { fill: var(--text); font: 15px system-ui, sans-serif; text-anchor: middle; }
.faint { fill: var(--faint); } .left { text-anchor: start; } .back { fill: var(--c1); }
rect, circle { fill: var(--panel); stroke: var(--faint); }
path { fill: none; stroke: var(--c0); stroke-width: 1.6; } .head { fill: var(--c0); stroke: none; }
path.back { fill: none; stroke: var(--c1); } .head.back { fill: var(--c1); stroke: none; }
</style>
"""


class Picture:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.parts = []

    def text(self, x, y, words, kind=""):
        """Writes words centred at x. `q_i` and `x^2` have a lowered and a raised part."""
        parts = ""
        for piece in re.split(r"([_^][A-Za-z0-9]+)", words):
            shift = {"_": 4, "^": -5}.get(piece[:1], 0)
            if shift and len(piece) > 1:
                parts += f'<tspan dy="{shift}" font-size="11">{piece[1:]}</tspan><tspan dy="{-shift}">&#8203;</tspan>'
            else:
                parts += html.escape(piece)
        mark = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x}" y="{y + 5}"{mark}>{parts}</text>')

    def box(self, x, y, width, words, height=32):
        """A box centred at x, y."""
        self.parts.append(
            f'<rect x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width}" height="{height}" rx="5"/>')
        self.text(x, y, words)

    def circle(self, x, y, words, radius=17):
        self.parts.append(f'<circle cx="{x}" cy="{y}" r="{radius}"/>')
        self.text(x, y, words)

    def arrow(self, *points, kind=""):
        """A line through points, with a head at the last one."""
        (x0, y0), (x1, y1) = points[-2:]
        length = ((x1 - x0)**2 + (y1 - y0)**2)**0.5
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        base = (x1 - 8 * dx, y1 - 8 * dy)
        line = [*points[:-1], base]
        mark = f' class="{kind}"' if kind else ""
        self.parts.append(f'<path{mark} d="M ' + " L ".join(f"{x:g} {y:g}" for x, y in line) + '"/>')
        corners = [(x1, y1), (base[0] - 4 * dy, base[1] + 4 * dx), (base[0] + 4 * dy, base[1] - 4 * dx)]
        self.parts.append(f'<path class="{f"head {kind}".strip()}" d="M ' +
                          " L ".join(f"{x:.1f} {y:.1f}" for x, y in corners) + ' Z"/>')

    def svg(self):
        return (f'<svg viewBox="0 0 {self.width} {self.height}" width="{self.width}" role="img" '
                'xmlns="http://www.w3.org/2000/svg">\n' + STYLE + "\n".join(self.parts) + "\n</svg>\n")


def number():
    p = Picture(480, 250)
    p.text(140, 16, "forward", "faint")
    p.text(340, 16, "backward", "faint")
    for y, forward, backward in ((60, "w = 0", "dw = dy · x"), (140, "y = w x", "dy = 2 (y − t)"),
                                 (220, "(y − t)^2", "1")):
        p.box(140, y, 120, forward)
        p.box(340, y, 130, backward)
    for y in (76, 156):
        p.arrow((140, y), (140, y + 48))
        p.arrow((340, y + 48), (340, y), kind="back")
    p.arrow((200, 220), (275, 220), kind="back")
    return p


def neuron():
    p = Picture(480, 220)
    for y, name, weight in ((35, "x_1", "w_1"), (100, "x_2", "w_2"), (165, "1", "b")):
        p.circle(60, y, name)
        p.arrow((77, y), (221, 100 + (y - 100) * 0.2))
        p.text(140, y + (100 - y) * 0.32 - 12, weight, "faint")
    p.circle(242, 100, "sum", 21)
    p.arrow((263, 100), (330, 100))
    p.text(295, 86, "z", "faint")
    p.circle(348, 100, "σ")
    p.arrow((365, 100), (425, 100))
    p.text(440, 100, "y")
    p.text(250, 205, "z = w_1 x_1 + w_2 x_2 + b,   y = σ(z)", "faint")
    return p


def layer():
    p = Picture(480, 220)
    p.text(250, 14, "w [3 neurons, 2 inputs]", "faint")
    for y, out in ((55, 1), (120, 2), (185, 3)):
        for source in (85, 155):
            p.arrow((97, source), (195, y + (source - y) * 0.12))
        p.box(250, y, 110, f"neuron {out}")
        p.arrow((305, y), (385, y))
        p.text(405, y, f"y_{out}")
    p.circle(80, 85, "x_1")
    p.circle(80, 155, "x_2")
    return p


def classifier():
    p = Picture(480, 250)
    for x, name in ((60, "logits"), (180, "exponentials"), (400, "probabilities")):
        p.text(x, 14, name, "faint")
    for i, y in enumerate((55, 110, 165)):
        p.circle(60, y, f"x_{i}")
        p.arrow((77, y), (143, y))
        p.box(180, y, 70, f"e^x{i}")
        p.arrow((215, y), (276, 110 + (y - 110) * 0.25))
        p.arrow((317, 110 + (y - 110) * 0.25), (365, y))
        p.box(400, y, 66, f"p_{i}")
    p.box(297, 110, 40, "sum")
    p.text(240, 232, "class 1 is right: loss = −log p_1", "back")
    return p


def attention():
    p = Picture(480, 330)
    p.box(240, 25, 120, "query q_i")
    for j, x in enumerate((90, 240, 390)):
        p.arrow((240 + (x - 240) * 0.3, 41), (x, 80))
        p.text(x + (26 if x >= 240 else -26), 62, f"s_i{j}", "faint")
        p.box(x, 97, 90, f"key k_{j}")
        p.arrow((x, 113), (x, 160))
        p.text(x + 50, 138, f"P_i{j}", "faint")
        p.box(x, 177, 90, f"value v_{j}")
        p.arrow((x, 193), (240 + (x - 240) * 0.3, 252))
    p.box(240, 270, 130, "y_i")
    p.text(240, 312, "s_ij = q_i · k_j / √width for tokens j ≤ i,  y_i = sum of P_ij v_j", "faint")
    return p


def block():
    p = Picture(560, 150)
    p.text(18, 110, "x")
    for x, parts in ((150, "norm1, qkv, attention, out"), (390, "norm2, up, gelu, down")):
        p.box(x, 40, 205, parts)
        p.arrow((x - 112, 110), (x - 112, 40), (x - 102, 40))
        p.arrow((x + 102, 40), (x + 118, 40), (x + 118, 97))
    p.arrow((28, 110), (255, 110))
    p.circle(268, 110, "+", 12)
    p.arrow((280, 110), (495, 110))
    p.circle(508, 110, "+", 12)
    p.arrow((520, 110), (540, 110))
    p.text(292, 130, "h", "faint")
    p.text(550, 110, "y")
    return p


def gpt():
    p = Picture(510, 300)
    columns = [90 + 60 * i for i in range(5)]
    for row, name in ((78, "letters + positions"), (150, "block"), (222, "norm, last")):
        p.box(210, row, 320, name)
    for x, read, written in zip(columns, "peter", "eter_"):
        p.text(x, 18, read)
        p.text(x, 284, written)
        for top in (30, 94, 166, 238):
            p.arrow((x, top), (x, top + (32 if top == 30 else 40 if top < 200 else 34)))
    p.text(385, 18, "characters", "left faint")
    p.text(385, 284, "next characters", "left faint")
    return p


def checked():
    p = Picture(600, 140)
    p.text(30, 30, "seed")
    p.arrow((50, 30), (74, 30))
    for i, x in enumerate((115, 225, 335)):
        p.box(x, 30, 76, f"state {i}")
        p.box(x, 100, 76, f"hash {i}")
        p.arrow((x, 46), (x, 84))
        for y in (30, 100):
            p.arrow((x + 38, y), (x + 72, y))
    for y, name in ((30, "last state"), (100, "last hash")):
        p.text(422, y, "…")
        p.arrow((436, y), (470, y))
        p.box(515, y, 86, name)
    p.arrow((515, 46), (515, 84))
    p.text(515, 128, "published", "faint")
    return p


def main():
    folder = pathlib.Path(__file__).resolve().parent.parent / "docs" / "course"
    wrong = []
    for draw in (number, neuron, layer, classifier, attention, block, gpt, checked):
        file, svg = folder / f"{draw.__name__}.svg", draw().svg()
        if sys.argv[1:] != ["--check"]:
            file.write_text(svg)
        elif not file.exists() or file.read_text() != svg:
            wrong.append(str(file))
    if wrong:
        sys.exit("not as scripts/course_pictures.py draws them: " + ", ".join(wrong))


main()
