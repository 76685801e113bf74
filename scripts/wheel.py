#!/usr/bin/env python3
"""Packs a static program into a wheel, which pip installs without a compiler and without network.

  scripts/wheel.py PROGRAM NAME VERSION OUT

Writes OUT/NAME-VERSION-py3-none-PLATFORM.whl and prints its path. pip installs PROGRAM as the command
NAME. The platform is read from the program's ELF header. A program that needs a dynamic loader is
refused, because the platform tags promise that the program runs on any Linux. Files have the date of the
environment variable SOURCE_DATE_EPOCH (default: 1980-01-01), so the same program gives the same bits.
"""

import base64
import hashlib
import os
import re
import struct
import sys
import time
import zipfile

MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of the ELF header
PT_INTERP = 3  # type of the program header that names the dynamic loader


def refuse(message):
    sys.exit(f"wheel: {message}")


def machine_of(path, program):
    """The machine of a static 64-bit ELF program, as in the platform tags of wheels."""
    if program[:6] != b"\x7fELF\x02\x01" or len(program) < 64:
        refuse(f"{path}: expected a 64-bit little-endian ELF program, got another file")
    machine = struct.unpack_from("<H", program, 18)[0]
    if machine not in MACHINES:
        refuse(f"{path}: expected ELF machine 62 (x86_64) or 183 (aarch64), got {machine}")
    (begin,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    if begin + size * count > len(program) or (count and size < 4):
        refuse(f"{path}: its program headers are outside the file")
    for i in range(count):
        if struct.unpack_from("<I", program, begin + i * size)[0] == PT_INTERP:
            refuse(f"{path}: expected a static program, got a program that needs a dynamic loader")
    return MACHINES[machine]


def main():
    if len(sys.argv) != 5:
        refuse("expected PROGRAM NAME VERSION OUT")
    path, name, version, out = sys.argv[1:]
    if not re.fullmatch(r"[a-z][a-z0-9]*", name):
        refuse(f"NAME: expected lower-case letters and digits, got '{name}'")
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*", version):
        refuse(f"VERSION: expected numbers with points between them, got '{version}'")
    try:
        with open(path, "rb") as file:
            program = file.read()
        with open(os.path.join(os.path.dirname(__file__), "..", "LICENSE"), "rb") as file:
            license_text = file.read()
    except OSError as error:
        refuse(f"{error.filename}: {error.strerror}")

    # A static program needs neither glibc 2.17 nor musl 1.1. These are the oldest names that pip knows.
    machine = machine_of(path, program)
    platforms = [f"manylinux_2_17_{machine}", f"musllinux_1_1_{machine}"]
    info = f"{name}-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        "Summary: trains, evaluates and inspects transformers, in one program\n"
        "License: Apache-2.0\nLicense-File: LICENSE\n"
        "\nThis package contains one static program and no Python code.\n"
    )
    wheel = "Wheel-Version: 1.0\nGenerator: scripts/wheel.py\nRoot-Is-Purelib: false\n"
    wheel += "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    files = [  # name, contents, permissions
        (f"{name}-{version}.data/scripts/{name}", program, 0o755),
        (f"{info}/METADATA", metadata.encode(), 0o644),
        (f"{info}/WHEEL", wheel.encode(), 0o644),
        (f"{info}/LICENSE", license_text, 0o644),
    ]
    record = ""
    for member, contents, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
        record += f"{member},sha256={digest},{len(contents)}\n"
    record += f"{info}/RECORD,,\n"
    files.append((f"{info}/RECORD", record.encode(), 0o644))

    # The dates of a zip archive begin in 1980.
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))[:6]
    to = os.path.join(out, f"{name}-{version}-py3-none-{'.'.join(platforms)}.whl")
    with zipfile.ZipFile(to + ".part", "w") as archive:
        for member, contents, mode in files:
            entry = zipfile.ZipInfo(member, date)
            entry.create_system = 3  # Unix, which has permissions
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, contents, compresslevel=9)
    os.replace(to + ".part", to)
    print(to)


main()
