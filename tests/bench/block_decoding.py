"""Compares generating from GGUF files with matrices in blocks with llama.cpp.

    pip install xllamacpp==2026.10.11549
    python3 tests/bench/block_decoding.py build/release/apps/longhand FILE.gguf... [--rounds 3]

Both programs read the same file and run in turn with two threads. The script prints the best round of
each: tokens per second while 64 tokens are generated after a short prompt, and tokens per second of a
prompt of 512 tokens. longhand's figures are those of `longhand generate --weights file`, from the
difference of two lengths, so that they do not contain the time to load the file.
"""
import argparse
import json
import subprocess
import sys
import time

THEIRS = """
import json, sys
import xllamacpp
p = xllamacpp.CommonParams()
p.model.path = sys.argv[1]
p.n_ctx, p.n_batch, p.n_ubatch, p.n_parallel = 1024, 512, 512, 1
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 2
server = xllamacpp.Server(p)
def times(prompt, tokens):
    got = server.handle_completions({"prompt": prompt, "n_predict": tokens, "temperature": 0,
                                     "cache_prompt": False, "ignore_eos": True})
    return (got if isinstance(got, dict) else json.loads(got))["timings"]
times("The capital of France is", 8)
best = {"token": 0, "prompt": 0}
for _ in range(2):
    best["token"] = max(best["token"], times("The capital of France is", 64)["predicted_per_second"])
    best["prompt"] = max(best["prompt"], times(list(range(1000, 1512)), 1)["prompt_per_second"])
print(json.dumps(best))
"""


def theirs(path):
    out = subprocess.run([sys.executable, "-c", THEIRS, path], check=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout
    return json.loads(out.splitlines()[-1])


def ours(program, path):
    def seconds(prompt, tokens):
        words = [program, "generate", path, "--weights", "file", "--threads", "2", "--context", "0",
                 "--temperature", "0", "--prompt", prompt, "--tokens", str(tokens), "--stop", "",
                 "--json"]
        began = time.perf_counter()
        said = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL).stdout)
        return time.perf_counter() - began, len(said["tokens"]), len(said["prompt_tokens"])

    short, few, begin = seconds("The capital of France is", 2)
    long, many, _ = seconds("The capital of France is", 130)
    text = "word " * 500
    whole, said, read = seconds(text, few)
    return {"token": (many - few) / (long - short), "prompt": (read - begin) / (whole - short)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{'file':28} {'work':7} {'longhand':>9} {'llama.cpp':>9} {'ratio':>6}")
    for path in options.files:
        best = {"ours": {}, "theirs": {}}
        for _ in range(options.rounds):
            for who, got in (("ours", ours(options.program, path)), ("theirs", theirs(path))):
                for work, rate in got.items():
                    best[who][work] = max(rate, best[who].get(work, 0))
        for work in ("token", "prompt"):
            a, b = best["ours"][work], best["theirs"][work]
            print(f"{path.split('/')[-1]:28} {work:7} {a:9.1f} {b:9.1f} {a / b:6.2f}")


if __name__ == "__main__":
    main()
