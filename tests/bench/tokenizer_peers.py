"""Compares tokenizers with Hugging Face's tokenizers and tiktoken, in turn, with one thread each.

    pip install tokenizers==0.23.3 tiktoken
    RAYON_NUM_THREADS=1 python3 tests/bench/tokenizer_peers.py build/release/apps/longhand TEXT TOKENIZER.json...

If the tokenizer is byte-level, tiktoken is built from its vocabulary and its word pattern. The script
first checks that all tokenizers return the same ids. --json prints the rows as JSON.
"""

import json
import os
import statistics
import subprocess
import sys
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tiktoken  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
ROUNDS = 3


def byte_of():
    itself = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in itself]
    return {chr(b): b for b in itself} | {chr(256 + i): b for i, b in enumerate(others)}


def in_tiktoken(whole):
    """Returns the tokenizer in tiktoken, whose merges have the order of the ids; None if impossible."""
    steps = whole["pre_tokenizer"].get("pretokenizers", [whole["pre_tokenizer"]])
    if steps[0]["type"] == "Digits" or steps[-1]["type"] != "ByteLevel" or whole["normalizer"]:
        return None
    pattern = GPT2 if len(steps) == 1 else steps[0]["pattern"]["Regex"]
    table = byte_of()
    special = {t["content"]: t["id"] for t in whole["added_tokens"]}
    ranks = {bytes(table[c] for c in token): i for token, i in whole["model"]["vocab"].items()
             if token not in special}
    return tiktoken.Encoding("same", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)


def timed(body):
    start = time.perf_counter()
    body()
    return time.perf_counter() - start


def main():
    words = [w for w in sys.argv[1:] if w != "--json"]
    program, path, *tokenizers = words
    text = open(path, encoding="utf-8").read()
    size = len(text.encode()) / 1e6
    rows = []
    for name in tokenizers:
        whole = json.load(open(name))
        start = time.perf_counter()
        theirs = Tokenizer.from_file(name)
        load = time.perf_counter() - start
        tik = in_tiktoken(whole)
        ids = theirs.encode(text, add_special_tokens=False).ids
        ours = subprocess.run([program, "tokenize", path, "--tokenizer", name, "--ids", "--bare"],
                              check=True, capture_output=True, text=True).stdout
        same = {"longhand": [int(i) for i in ours.split()] == ids}
        if tik:
            same["tiktoken"] = tik.encode_ordinary(text) == ids
        seconds = {"tokenizers": [], "tiktoken": [], "longhand": []}
        loads = []
        for _ in range(ROUNDS):  # a new tokenizer each time, because Hugging Face's caches words too
            fresh = Tokenizer.from_file(name)
            seconds["tokenizers"].append(timed(lambda: fresh.encode(text, add_special_tokens=False)))
            if tik:
                seconds["tiktoken"].append(timed(lambda: tik.encode_ordinary(text)))
            row = json.loads(subprocess.run(
                [program, "bench", "tokenize", "--tokenizer", name, "--text", path, "--threads", "1",
                 "--json", "--seconds", "0.5"], check=True, capture_output=True, text=True).stdout)
            seconds["longhand"].append(size / row["rows"][0]["mb_per_second"])
            loads.append(row["rows"][0]["load_seconds"])
        for peer, all_seconds in seconds.items():
            if all_seconds:
                rows.append({"tokenizer": name, "by": peer, "same_ids": same.get(peer, True),
                             "mb_per_second": size / statistics.median(all_seconds),
                             "load_seconds": {"longhand": statistics.median(loads),
                                              "tokenizers": load}.get(peer)})
    if "--json" in sys.argv:
        print(json.dumps(rows))
        return
    print(f"{'tokenizer':30} {'by':12} {'MB/s':>7} {'load s':>7}  ids of tokenizers")
    for row in rows:
        load = row["load_seconds"]
        print(f"{row['tokenizer'][-30:]:30} {row['by']:12} {row['mb_per_second']:7.1f} "
              f"{'' if load is None else format(load, '.3f'):>7}  "
              f"{'yes' if row['same_ids'] else 'NO'}")


main()
