#!/usr/bin/env python3
"""Compares training steps of the models of the ChaCAL and task-hinting papers with PyTorch.
Development only.

    ragged_peers.py build/apps/longhand [--models toy,sorting] [--math exact,bf16] [--steps N]
                    [--forms eager,compiled,even] [--under CMD] [--out FILE] [--device cuda]

PyTorch's model is a typical GPT-2: scaled_dot_product_attention, solve_triangular for ChaCAL, fused
AdamW, and bf16 by autocast. It pads each batch to its longest sample. The form `eager` is not compiled;
in `compiled`, the blocks are. The form `even` is `eager` on batches with the same number of tokens in
rows of the mean length, which need no padding, so the difference to `eager` is the cost of different
lengths. The lengths are those of the task. A batch size can be added to a model: boxes:256. Steps have
different lengths, so the time per token is measured, and the medians are multiplied by the tokens of
longhand's step. On the CPU, every contender runs in a separate process, which is started with CMD if it
is given. With --device cuda both sides run on the GPU, fast is TF32 in both, and all of PyTorch's steps
are timed together, without waiting for each of them.
"""
import json
import shlex
import statistics
import subprocess

from peers import (MIB, Contenders, arguments, better, ceilings, floor_ms, keep, memory, run, serve,
                   set_math, timed, timings)

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
                later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
                scores = (q @ k.transpose(-1, -2)).float() * (width // heads) ** -0.5
                a = scores.masked_fill(later, -torch.inf).softmax(-1)
                system = torch.eye(n, device=x.device) - GAMMA * a.tril(-1)
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


def theirs(name, math, form, steps, seconds, device):
    """Times a form of PyTorch's model on steps with these lengths."""
    import torch

    set_math(math)
    imported = memory("VmRSS")
    vocabulary, batches = MODELS[name]["vocabulary"], []
    with torch.device(device):
        model = make(name)
        for step in steps:
            length = round(sum(step) / len(step)) if form == "even" else max(step)
            ids = torch.randint(vocabulary, (len(step), length))
            targets = torch.where(torch.rand(len(step), length) < 0.3, ids.roll(-1, 1), -100)
            batches.append((ids, targets, ids.numel() if form == "even" else sum(step)))
    if form == "compiled":
        one_length = len({ids.shape[1] for ids, _, _ in batches}) == 1
        for block in model.blocks:
            block.compile(dynamic=not one_length)
    adam = torch.optim.AdamW(model.parameters(), 3e-4, weight_decay=0.01, fused=True)

    def take(some):
        for ids, targets, _ in some:
            with torch.autocast(device, torch.bfloat16, enabled=math == "bf16"):
                loss = model(ids, targets)
            loss.backward()
            adam.step()
            adam.zero_grad(set_to_none=True)

    times = []  # seconds per token
    if device == "cpu":
        take(batches[:1])  # warms up and compiles
        for batch in batches:
            times.append(timed(lambda: take([batch])) / batch[2])
    else:
        for _ in range(2):
            take(batches)
        tokens = sum(batch[2] for batch in batches)
        times = [span / tokens for span in timings(lambda: take(batches), seconds, device)]
    peak = memory("VmHWM") if device == "cpu" else imported + torch.cuda.max_memory_allocated()
    return {"ms_a_token": 1e3 * statistics.median(times), "best_ms_a_token": 1e3 * min(times),
            "peak_mib": peak / MIB, "imported_mib": imported / MIB}


def lines_of(words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    parser = arguments(models=",".join(MODELS), math="exact,bf16", forms="eager,compiled,even",
                       steps=3, seconds=1.0)
    options = parser.parse_args()
    if options.serve:
        return serve(lambda *request: theirs(*request, options.device), options)

    under = shlex.split(options.under)
    contenders = Contenders(__file__, options, under)
    print("| model | math | tokens a step | floor ms | ours ms | PyTorch eager ms | compiled ms "
          "| even ms | better / ours | even / ours |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for math in options.math.split(","):
        ceiling = ceilings([*under, options.program], math, options)
        for subject in options.models.split(","):
            name, _, batch = subject.partition(":")
            batch = int(batch or MODELS[name]["batch"])
            words = [options.program, "data", "--task", *MODELS[name]["task"],
                     "--count", str(batch * options.steps), "--json"]
            lengths = [len(json.loads(line)["tokens"]) for line in lines_of(words)]
            steps = [lengths[i:i + batch] for i in range(0, len(lengths), batch)]
            report, peak = run([*under, options.program, "bench", "training", "--size",
                                f"{name}:{batch}", "--math", math, "--seconds",
                                str(options.seconds), "--threads", str(options.threads),
                                "--backend", options.device, "--json"])
            ours = report["rows"][0]
            tokens = ours["tokens"]
            mine = 1e3 * tokens / ours["tokens_per_second"]
            floor = floor_ms(ceiling, ours)
            even = [[round(sum(step) / batch)] * batch for step in steps]
            forms = {}
            for form in options.forms.split(","):
                if form == "even" and even == steps:
                    continue
                forms[form] = contenders.ask(name, math, form, steps, options.seconds)
            ms = {form: tokens * forms[form]["ms_a_token"] if "ms_a_token" in forms[form] else None
                  for form in forms}
            keep(options, {"model": subject, "math": math, "ours": ours, "ms": mine,
                           "process_mib": peak, "floor_ms": floor,
                           "longest": [max(step) for step in steps], "theirs": forms,
                           "their_ms": ms})

            def shown(form):
                if form not in ms:
                    return "-"
                return "failed" if ms[form] is None else f"{ms[form]:.2f}"

            best = better(ms[form] for form in ms if form != "even") / mine
            unpadded = f"{ms['even'] / mine:.2f}" if ms.get("even") else "-"
            lowest = f"{floor:.2f}" if floor else "-"
            print(f"| {subject} | {math} | {tokens} | {lowest} | {mine:.2f} | {shown('eager')} "
                  f"| {shown('compiled')} | {shown('even')} | {best:.2f} | {unpadded} |", flush=True)


if __name__ == "__main__":
    main()
