"""Writes nn/text/unicode_tables.cpp: the classes of code points and what canonical composition needs.

    pip install unicodedata2==16.0.0
    apt-get download unicode-data && dpkg-deb -x unicode-data_*.deb ud      # 15.0.0-1
    python3 nn/text/unicode_tables.py ud/usr/share/unicode/DerivedAge.txt

Letters (L*), numbers (N*) and white space are those of Unicode 16.0. Normalization is that of Unicode
9.0: the decompositions, classes and compositions of 16.0 for the code points that 9.0 had assigned
(stability promises that those have not changed); a later code point stays as it is and combines with
nothing.
"""

import pathlib
import re
import sys

import unicodedata2 as ucd

assert ucd.unidata_version == "16.0.0"
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
WHITE_SPACE = {*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
               0x202F, 0x205F, 0x3000}
BLOCK = 256


def assigned_in_9(path):
    found = set()
    for line in pathlib.Path(path).read_text().splitlines():
        match = re.match(r"([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*;\s*([\d.]+)", line)
        if match and float(match[3]) <= 9.0:
            found |= set(range(int(match[1], 16), int(match[2] or match[1], 16) + 1))
    return found


def code_class(c):
    category = ucd.category(chr(c))[0]
    return 3 if c in WHITE_SPACE else {"L": 1, "N": 2}.get(category, 0)


def two_stages(values):
    """values[c] as blocks, each kept once, and the number of each block."""
    blocks, numbers, stage = {}, [], []
    for start in range(0, 0x110000, BLOCK):
        block = tuple(values[start:start + BLOCK])
        if block not in blocks:
            blocks[block] = len(blocks)
            stage += block
        numbers.append(blocks[block])
    assert len(blocks) <= 256
    return numbers, stage


def array(kind, name, values, form=str):
    lines = [f"const {kind} {name}[{len(values)}] = {{"]
    words = [form(v) for v in values]
    line = "   "
    for word in words:
        if len(line) + len(word) + 2 > 99:
            lines.append(line)
            line = "   "
        line += " " + word + ","
    return "\n".join(lines + [line, "};", ""])


def main():
    old = assigned_in_9(sys.argv[1])
    classes = [0] * 0x110000
    for c in CODE_POINTS:
        classes[c] = code_class(c)

    # 0: stays as it is and begins anew. 1 .. 254: a combining class. 255: class 0, but it may
    # combine with what stands before it, or has a decomposition.
    attention = [0] * 0x110000
    decomposed, pairs = [], []
    for c in CODE_POINTS:
        if c not in old or 0xAC00 <= c <= 0xD7A3:
            continue
        text = chr(c)
        combining = ucd.combining(text)
        assert combining < 255
        attention[c] = combining
        full = ucd.normalize("NFD", text)
        if full != text:
            decomposed.append((c, [ord(x) for x in full]))
            if ucd.normalize("NFC", text) != text:
                attention[c] = attention[c] or 255
            else:  # the first step of its decomposition can be undone
                first, second = (int(x, 16) for x in ucd.decomposition(text).split())
                pairs.append(((first << 21) | second, c))
    for pair, _ in pairs:
        second = pair & 0x1FFFFF
        attention[second] = attention[second] or 255
    for c in [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]:  # vowels and finals of Hangul
        attention[c] = 255

    class_blocks, class_values = two_stages(classes)
    attention_blocks, attention_values = two_stages(attention)
    code_points, starts, targets = [], [], []
    for c, full in decomposed:
        code_points.append(c)
        starts.append(len(targets))
        targets += full
    starts.append(len(targets))
    pairs.sort()
    out = pathlib.Path(__file__).parent / "unicode_tables.cpp"
    hexadecimal = "0x{:x}".format
    body = [
        "// Written by unicode_tables.py: classes of Unicode 16.0, normalization of Unicode 9.0.",
        "// clang-format off",
        '#include "nn/text/unicode_tables.h"', "",
        "namespace longhand::nn::unicode_tables {", "",
        array("std::uint8_t", "class_block", class_blocks),
        array("std::uint8_t", "class_value", class_values),
        array("std::uint8_t", "attention_block", attention_blocks),
        array("std::uint8_t", "attention_value", attention_values),
        array("char32_t", "decomposed", code_points, hexadecimal),
        array("std::uint16_t", "decomposition_start", starts),
        array("char32_t", "decomposition", targets, hexadecimal),
        array("std::uint64_t", "composed_pair", [p for p, _ in pairs], hexadecimal),
        array("char32_t", "composition", [c for _, c in pairs], hexadecimal),
        f"const std::size_t decomposed_count = {len(code_points)};",
        f"const std::size_t composition_count = {len(pairs)};", "",
        "}  // namespace longhand::nn::unicode_tables", ""]
    out.write_text("\n".join(body))
    counts = [sum(1 for c in CODE_POINTS if classes[c] == k) for k in (1, 2, 3)]
    print("letters, numbers, spaces:", *counts, "; decompositions:", len(code_points),
          "; compositions:", len(pairs), ";", out.stat().st_size, "bytes of source")


main()
