#!/usr/bin/env python3
"""Training steps of the models of the ChaCAL and task-hinting papers beside PyTorch. Development only.

    ragged_peers.py build/apps/longhand [--models toy,sorting] [--math exact,bf16] [--steps N]
                    [--forms eager,compiled,even] [--under CMD] [--out FILE]

PyTorch's model is a GPT-2 as its users write it: scaled_dot_product_attention, solve_triangular for
ChaCAL, fused AdamW, bf16 by autocast. It pads each batch to its longest sample, as it is (eager) and
with its blocks compiled. "even" is eager on batches of as many tokens in rows all of the mean length,
which need no padding: what is between it and eager is raggedness. The batches' lengths are those of
the task. Steps differ in length, so each is timed by the tokens of its samples, and the medians are
shown for a step as long as ours. Every contender has a process of its own, started by CMD if given.
"""
import argparse
import json
import shlex
import statistics
import subprocess
import sys
import time

from training_peers import MIB, ceilings, memory, run

SOFTMAX, CHACAL = "softmax", "chacal"
GPT2 = {"width": 512, "heads": 8, "positions": True, "tied": True, "gelu": "tanh"}
MODELS = {
    "toy": {**GPT2, "layers": [SOFTMAX], "batch": 128, "vocabulary": 136, "task": ["chains"]},
    "toy-5": {**GPT2, "layers": 5 * [SOFTMAX], "batch": 128, "vocabulary": 136, "task": ["chains"]},
    "toy-chacal": {**GPT2, "layers": [CHACAL], "batch": 128, "vocabulary": 136, "task": ["chains"]},
    "boxes": {**GPT2, "layers": 2 * [SOFTMAX], "batch": 32, "vocabulary": 128,
              "task": ["boxes", "--task.version", "advanced"]},
    "boxes-chacal": {**GPT2, "layers": [SOFTMAX, CHACAL], "batch": 32, "vocabulary": 128,
                     "task": ["boxes", "--task.version", "advanced"]},
    "sorting": {"width": 1024, "heads": 16, "positions": False, "tied": False, "gelu": "none",
                "layers": 2 * [SOFTMAX], "batch": 1024, "vocabulary": 103, "task": ["sorting"]},
}
INNER, LONGEST, GAMMA = 2048, 512, 0.9


def make(name):
    import torch
    import torch.nn.functional as F
    from torch import nn

    shape = MODELS[name]
    width, heads = shape["width"], shape["heads"]

    class Block(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.kind = kind
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, INNER), nn.Linear(INNER, width)

        def attend(self, x):
            b, n, _ = x.shape
            parts = self.qkv(x).view(b, n, 3, heads, width // heads).unbind(2)
            q, k, v = (t.transpose(1, 2) for t in parts)
            if self.kind == SOFTMAX:
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                later = torch.ones(n, n, dtype=torch.bool).triu(1)
                scores = (q @ k.transpose(-1, -2)).float() * (width // heads) ** -0.5
                a = scores.masked_fill(later, -torch.inf).softmax(-1)
                system = torch.eye(n) - GAMMA * a.tril(-1)
                y = (1 - GAMMA) * torch.linalg.solve_triangular(system, a @ v.float(), upper=False,
                                                                unitriangular=True)
                y = y.to(v.dtype)
            return self.out(y.transpose(1, 2).reshape(b, n, width))

        def forward(self, x):
            x = x + self.attend(self.norm1(x))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate=shape["gelu"]))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(shape["vocabulary"], width)
            self.places = nn.Embedding(LONGEST, width) if shape["positions"] else None
            self.blocks = nn.ModuleList(Block(kind) for kind in shape["layers"])
            self.norm = nn.LayerNorm(width)
            self.unembed = nn.Linear(width, shape["vocabulary"], bias=False)
            if shape["tied"]:
                self.unembed.weight = self.tokens.weight

        def forward(self, ids, targets):
            x = self.tokens(ids)
            if self.places is not None:
                x = x + self.places.weight[: ids.shape[1]]
            for block in self.blocks:
                x = block(x)
            logits = self.unembed(self.norm(x)).float()
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    return Model()


def theirs(name, math, form, steps, threads):
    """One PyTorch contender, over steps of such lengths; runs in a process of its own."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    imported = memory("VmRSS")
    model = make(name)
    one_length = len({max(step) for step in steps}) == 1
    if form == "compiled":
        for block in model.blocks:
            block.compile(dynamic=not one_length)
    adam = torch.optim.AdamW(model.parameters(), 3e-4, weight_decay=0.01, fused=True)
    vocabulary, batch, times = MODELS[name]["vocabulary"], MODELS[name]["batch"], []
    for step in steps[:1] + steps:  # the first one warms up, and compiles
        length = round(sum(step) / batch) if form == "even" else max(step)
        tokens = batch * length if form == "even" else sum(step)
        ids = torch.randint(vocabulary, (batch, length))
        targets = torch.where(torch.rand(batch, length) < 0.3, ids.roll(-1, 1), -100)
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=math == "bf16"):
            loss = model(ids, targets)
        loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=True)
        loss.item()
        times.append(1e3 * (time.perf_counter() - start) / tokens)
    del times[0]
    print(json.dumps({"ms_a_token": statistics.median(times), "best_ms_a_token": min(times),
                      "peak_mib": memory("VmHWM") / MIB, "imported_mib": imported / MIB}))


def lines_of(words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--math", default="exact,bf16")
    parser.add_argument("--forms", default="eager,compiled,even")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--under", default="", help="what each contender is started with")
    parser.add_argument("--out")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)  # model, math, form, lengths
    options = parser.parse_args()
    if options.one:
        name, math, form, steps = options.one
        return theirs(name, math, form, json.loads(steps), options.threads)

    under, threads = shlex.split(options.under), str(options.threads)
    print("| model | math | tokens a step | floor ms | ours ms | PyTorch eager ms | compiled ms "
          "| even ms | better / ours | even / ours |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for math in options.math.split(","):
        rate, bandwidth = ceilings([*under, options.program], math, options.threads)
        for name in options.models.split(","):
            batch = MODELS[name]["batch"]
            words = [options.program, "data", "--task", *MODELS[name]["task"],
                     "--count", str(batch * options.steps), "--json"]
            lengths = [len(json.loads(line)["tokens"]) for line in lines_of(words)]
            steps = [lengths[i:i + batch] for i in range(0, len(lengths), batch)]
            report, peak = run([*under, options.program, "bench", "training", "--size", name,
                                "--math", math, "--seconds", "1", "--threads", threads, "--json"])
            ours = report["rows"][0]
            tokens = ours["tokens"]
            mine = 1e3 * tokens / ours["tokens_per_second"]
            floor = 1e3 * max(ours["operations"] / rate, ours["bytes"] / bandwidth)
            even = [[round(sum(step) / batch)] * batch for step in steps]
            forms = {}
            for form in options.forms.split(","):
                if form == "even" and even == steps:
                    continue
                forms[form] = run([*under, sys.executable, __file__, options.program, "--one", name,
                                   math, form, json.dumps(steps), "--threads", threads])[0]
            ms = {form: tokens * forms[form]["ms_a_token"] for form in forms}
            if options.out:
                with open(options.out, "a") as out:
                    print(json.dumps({"model": name, "math": math, "ours": ours, "ms": mine,
                                      "process_mib": peak, "floor_ms": floor,
                                      "longest": [max(step) for step in steps], "theirs": forms,
                                      "their_ms": ms}), file=out)

            def shown(form):
                return f"{ms[form]:.0f}" if form in ms else "-"

            padded = [ms[form] for form in ms if form != "even"]
            best = f"{min(padded) / mine:.2f}" if padded else "-"
            unpadded = f"{ms['even'] / mine:.2f}" if "even" in ms else "-"
            print(f"| {name} | {math} | {tokens} | {floor:.0f} | {mine:.0f} | {shown('eager')} "
                  f"| {shown('compiled')} | {shown('even')} | {best} | {unpadded} |", flush=True)


if __name__ == "__main__":
    main()
