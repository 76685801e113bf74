"""Writes nn/text/unicode_tables.cpp: the classes of code points and the tables of canonical
composition.

    pip install unicodedata2==16.0.0
    apt-get download unicode-data && dpkg-deb -x unicode-data_*.deb ud      # 15.0.0-1
    python3 nn/text/unicode_tables.py ud/usr/share/unicode/DerivedAge.txt

Letters (L*), numbers (N*) and white space are those of Unicode 16.0. Normalization follows Unicode
9.0: the tables contain the decompositions, classes and compositions of 16.0 for the code points that
9.0 assigns, because Unicode guarantees that these do not change. Later code points are not decomposed
or composed.
"""

import pathlib
import re
import sys

import unicodedata2 as ucd

assert ucd.unidata_version == "16.0.0"
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
WHITE_SPACE = {*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
               0x202F, 0x205F, 0x3000}


def assigned_in_9(path):
    found = set()
    for line in pathlib.Path(path).read_text().splitlines():
        match = re.match(r"([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*;\s*([\d.]+)", line)
        if match and float(match[3]) <= 9.0:
            found |= set(range(int(match[1], 16), int(match[2] or match[1], 16) + 1))
    return found


def code_class(c):
    category = ucd.category(chr(c))[0]
    return "spaces" if c in WHITE_SPACE else {"L": "letters", "N": "numbers"}.get(category)


def ranges(values):
    """Lists [first, last, value] for each range of consecutive code points with equal values."""
    found = []
    for c in sorted(values):
        if found and found[-1][1] == c - 1 and found[-1][2] == values[c]:
            found[-1][1] = c
        else:
            found.append([c, c, values[c]])
    return found


def function(kind, name, rows):
    lines = [f"std::span<const {kind}> {name}() {{", f"  static constexpr {kind} all[] = {{"]
    line = "     "
    for row in rows:
        word = " {" + ", ".join(row) + "},"
        if len(line) + len(word) > 100:
            lines.append(line)
            line = "     "
        line += word
    return "\n".join(lines + [line, "  };", "  return all;", "}", ""])


def main():
    old = assigned_in_9(sys.argv[1])
    classes = {"letters": {}, "numbers": {}, "spaces": {}}
    for c in CODE_POINTS:
        if code_class(c):
            classes[code_class(c)][c] = True
    combining = {c: ucd.combining(chr(c)) for c in CODE_POINTS if c in old and ucd.combining(chr(c))}

    number = "0x{:x}".format
    decompositions = []
    for c in CODE_POINTS:
        text = chr(c)
        if c not in old or 0xAC00 <= c <= 0xD7A3 or ucd.normalize("NFD", text) == text:
            continue  # Hangul syllables are computed instead
        parts = [number(int(x, 16)) for x in ucd.decomposition(text).split()]
        kept_apart = len(parts) == 2 and ucd.normalize("NFC", text) != text
        decompositions.append([number(c), *parts, *(["false"] if kept_apart else [])])

    body = [
        "// Written by unicode_tables.py: classes of Unicode 16.0, normalization of Unicode 9.0.",
        "// clang-format off",
        '#include "nn/text/unicode_tables.h"', "",
        "namespace longhand::nn::unicode_tables {", "",
        *(function("CodePointRange", name, [[number(first), number(last)] for first, last, _ in ranges(of)])
          for name, of in classes.items()),
        function("CodePointRange", "combining_classes",
                 [[number(first), number(last), str(of)] for first, last, of in ranges(combining)]),
        function("Decomposition", "decompositions", decompositions),
        "}  // namespace longhand::nn::unicode_tables", ""]
    out = pathlib.Path(__file__).parent / "unicode_tables.cpp"
    out.write_text("\n".join(body))
    print("letters, numbers, spaces:", *(len(of) for of in classes.values()), "; decompositions:",
          len(decompositions), ";", out.stat().st_size, "bytes of source")


main()
