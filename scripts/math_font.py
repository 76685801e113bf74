#!/usr/bin/env python3
"""Writes the font of the book's formulas, a subset of Latin Modern Math, as a style sheet.

  scripts/math_font.py [FONT [OUT]]

FONT is latinmodern-math.otf of Debian's package fonts-lmodern. OUT is apps/book/math_font.css by default.
The subset has the characters of apps/book/mathml.cpp, ASCII and the slanted letters that browsers use for
variables. The style sheet contains the font itself, because browsers do not load other files for a page
that is a local file. Needs Debian's packages python3-fonttools and python3-brotli.
"""

import base64
import io
import pathlib
import sys

from fontTools import subset
from fontTools.ttLib import TTFont

NAME = "Longhand Math"
SOURCE = pathlib.Path(__file__).resolve().parent.parent
FONT = "/usr/share/texmf/fonts/opentype/public/lm-math/latinmodern-math.otf"
COMMENT = """/* The font of formulas, written by scripts/math_font.py.
   This font is a subset of Latin Modern Math 1.959 under another name. The complete font:
   http://www.gust.org.pl/projects/e-foundry/lm-math
   Copyright 2012-2014 for the Latin Modern math extensions by B. Jackowski, P. Strzelczyk and P. Pianowski
   (on behalf of TeX Users Groups). The font may be used and distributed under the GUST Font License,
   https://tug.org/fonts/licenses/GUST-FONT-LICENSE.txt, an instance of the LaTeX Project Public License,
   https://www.latex-project.org/lppl.txt. */
"""


def main(font_file=FONT, out=SOURCE / "apps/book/math_font.css"):
    wanted = {ord(c) for c in (SOURCE / "apps/book/mathml.cpp").read_text("utf-8") if ord(c) > 127}
    wanted |= set(range(0x20, 0x7F))
    wanted |= set(range(0x1D434, 0x1D468)) | {0x210E}  # slanted Latin letters; h has its own place
    wanted |= set(range(0x1D6E2, 0x1D71C))  # slanted Greek letters
    wanted |= set(map(ord, "−′″√"))  # browsers draw √ for <msqrt>
    font = TTFont(font_file)
    options = subset.Options(layout_features=["*"], name_IDs=["*"], hinting=False)
    options.drop_tables.append("FFTM")
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=wanted)
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in (1, 3, 4, 16):
            record.string = NAME
        if record.nameID == 6:
            record.string = NAME.replace(" ", "")
    font["CFF "].cff.fontNames = [NAME.replace(" ", "")]
    font["head"].modified = font["head"].created  # the same bits on every day
    font.recalcTimestamp = False
    font.flavor = "woff2"
    packed = io.BytesIO()
    font.save(packed)
    text = base64.b64encode(packed.getvalue()).decode("ascii")
    pathlib.Path(out).write_text(
        COMMENT + f'@font-face {{ font-family: "{NAME}"; src: url(data:font/woff2;base64,{text}) format("woff2"); }}\n',
        "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
