#!/usr/bin/env python3
"""Compares whole training steps with PyTorch. Development only.

    training_peers.py build/apps/longhand [--models ffl,ct-fal] [--math exact,bf16]
                      [--forms eager,compiled] [--seconds S] [--under CMD] [--out FILE]
                      [--device cuda]

PyTorch's model is a typical GPT-NeoX: scaled_dot_product_attention, gather for FAL, AdamW (fused or
foreach, whichever is faster), and bf16 by autocast. The form `eager` is not compiled; in `compiled`, the
blocks are. Both sides time forward, loss, backward and optimizer after a warm-up and report the median.
A batch size can be added to a model: ffl:128. With --device cuda both sides run on the GPU, fast is TF32
in both, the device's memory is reported, and many of PyTorch's steps are timed together, without waiting
for each of them. On the CPU, every contender runs in a separate process, so that its peak memory can be
measured; the time from the start of `longhand train` to its first step is measured too. The floor of a
step is the maximum of two times: its operations at the rate of longhand's large matrix products, and its
bytes at the rate of longhand's fastest token-wise kernel, both measured in the same run. The script
prints a table; --out appends the rows to a file of JSON lines.
"""
import json
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from peers import (MIB, Contenders, arguments, better, ceilings, floor_ms, keep, memory, run, serve,
                   set_math, timed, timings)

MODELS = {  # vocabulary, width, layers, heads [(kind, count, width)], batch, `longhand train` flags
    "ffl": (5, 64, 6, [("softmax", 4, 16)], 8, ["--task", "flip-flop", "--batch", "8"]),
    "ffl-fal": (5, 64, 6, [("softmax", 3, 16), ("fal", 1, 16)], 8,
                ["--task", "flip-flop", "--batch", "8", "--heads", "softmax:3,fal:1"]),
    "ct": (14, 768, 12, [("softmax", 1, 768)], 2,
           ["--task", "cycle-tracing", "--batch", "2", "--width", "768", "--layers", "12",
            "--heads", "softmax:1"]),
    "ct-fal": (14, 768, 12, [("softmax", 1, 704), ("fal", 1, 64)], 2,
               ["--task", "cycle-tracing", "--batch", "2", "--width", "768", "--layers", "12",
                "--heads", "softmax:1x704,fal:1x64"]),
}
def theirs(name, math, form, batch, length, seconds, device):
    """Times a form of PyTorch's model."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    set_math(math)
    imported = memory("VmRSS")
    vocabulary, width, layers, heads, _, _ = MODELS[name]

    def rotary(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def fal(q, k, v):
        n = q.shape[2]
        with torch.no_grad():
            earlier = torch.ones(n, n, dtype=torch.bool, device=q.device).tril(-1)
            place = torch.arange(1, n + 1, dtype=torch.int32, device=q.device)
            hit = ((q @ k.transpose(-1, -2)) > 0) & earlier
            m = (hit * place).amax(-1).long() - 1
        found = (m >= 0).unsqueeze(-1)
        at = m.clamp(min=0).unsqueeze(-1)
        k_m = k.gather(2, at.expand(k.shape))
        v_m = v.gather(2, (at + 1).clamp(max=n - 1).expand(v.shape))
        return (q * k_m).sum(-1, keepdim=True) * v_m * found

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            columns = sum(count * w for _, count, w in heads)
            self.qkv = nn.Linear(width, 3 * columns)
            self.out = nn.Linear(columns, width)
            for _, _, w in heads:
                turn = torch.arange(length)[:, None] * 10000 ** (-torch.arange(0, w, 2) / w)
                self.register_buffer(f"cos{w}", torch.cat((turn, turn), -1).cos(), False)
                self.register_buffer(f"sin{w}", torch.cat((turn, turn), -1).sin(), False)

        def forward(self, x):
            b, n, _ = x.shape
            qkv, first, outputs = self.qkv(x), 0, []
            for kind, count, w in heads:
                group = qkv[..., first:first + 3 * count * w].view(b, n, 3, count, w)
                q, k, v = (t.transpose(1, 2) for t in group.unbind(2))
                first += 3 * count * w
                if kind == "softmax":
                    cos, sin = getattr(self, f"cos{w}"), getattr(self, f"sin{w}")
                    q, k = rotary(q, cos, sin).to(v.dtype), rotary(k, cos, sin).to(v.dtype)
                    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                else:
                    y = fal(q, k, v)
                outputs.append(y.transpose(1, 2).reshape(b, n, count * w))
            return self.out(torch.cat(outputs, -1) if len(outputs) > 1 else outputs[0])

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = Attention()
            self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

        def forward(self, x):
            return x + self.attention(self.norm1(x)) + self.down(F.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(vocabulary, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(width)
            self.unembed = nn.Linear(width, vocabulary, bias=False)

        def forward(self, ids, targets):
            x = self.embed(ids)
            for block in self.blocks:
                x = block(x)
            logits = self.unembed(self.norm(x)).float()
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    with torch.device(device):
        model = Model()
        ids = torch.randint(vocabulary, (batch, length))
        targets = torch.where(torch.rand(batch, length) < 0.3, ids.roll(-1, 1), -100)
    if form == "compiled":
        for block in model.blocks:  # equal blocks are compiled only once
            block.compile()

    def step():
        with torch.autocast(device, torch.bfloat16, enabled=math == "bf16"):
            loss = model(ids, targets)
        loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=True)

    adam = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0, fused=True)
    first = timed(step, device)
    several = 1
    if device == "cuda":
        step()
        several = max(1, min(50, int(0.1 / timed(step, device))))

    def steps():
        for _ in range(several):
            step()

    times = [span / several for span in timings(steps, seconds, device)]
    peak = memory("VmHWM") if device == "cpu" else imported + torch.cuda.max_memory_allocated()
    # The other implementation of the optimizer (foreach) is timed alone on the same gradients. If
    # it is faster than the fused one, the difference is subtracted from the time of a step.
    model(ids, targets).backward()
    other = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0, foreach=True)
    spans = {a: min(timed(a.step, device) for _ in range(4)) for a in (adam, other)}
    gain = max(0.0, spans[adam] - spans[other])
    return {"milliseconds": 1e3 * (statistics.median(times) - gain),
            "best_ms": 1e3 * (min(times) - gain), "first_step_ms": 1e3 * first,
            "peak_mib": peak / MIB, "imported_mib": imported / MIB,
            "fused_ms": 1e3 * spans[adam], "foreach_ms": 1e3 * spans[other]}


def start_up(program, flags, math, threads, device):
    """Returns the seconds from exec to the beginning of the first step."""
    with tempfile.TemporaryDirectory() as folder:
        out = folder + "/run"
        begin = time.perf_counter()
        child = subprocess.Popen([program, "train", *flags, "--steps", "100", "--math", math,
                                  "--evaluate_samples", "0", "--threads", str(threads),
                                  "--backend", device, "--out", out], stderr=subprocess.PIPE, text=True)
        for line in child.stderr:
            if line.startswith("step 1/"):
                break
        elapsed = time.perf_counter() - begin
        child.send_signal(signal.SIGKILL)
        child.wait()
        with open(out + "/metrics.jsonl") as lines:
            return elapsed - json.loads(lines.readline())["seconds"]


def main():
    parser = arguments(models=",".join(MODELS), math="exact,bf16", forms="eager,compiled",
                       seconds=1.0)
    options = parser.parse_args()
    if options.serve:
        return serve(lambda *request: theirs(*request, options.device), options)

    under = shlex.split(options.under)
    contenders = Contenders(__file__, options, under)
    common = ["--threads", str(options.threads), "--seconds", str(options.seconds), "--backend",
              options.device]
    print("| model | math | floor ms | ours ms | PyTorch eager ms | compiled ms | ratio to the better "
          "| peak MiB: ours | eager, beyond import | compiled | start-up ms |")
    print("|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for math in options.math.split(","):
        ceiling = ceilings([*under, options.program], math, options)
        for subject in options.models.split(","):
            name, _, batch = subject.partition(":")
            batch = int(batch or MODELS[name][4])
            report, peak = run([*under, options.program, "bench", "training", "--size",
                                f"{name}:{batch}", "--math", math, "--json", *common])
            ours = report["rows"][0]
            if options.device == "cuda":
                peak = ours["peak_mib"]
            ours["process_mib"] = peak
            floor = ours["floor_ms"] = floor_ms(ceiling, ours)
            ours["ceiling_gflops"], ours["ceiling_gigabytes"] = (
                (rate / 1e9 for rate in ceiling) if ceiling else (None, None))
            if options.device == "cpu":
                ours["start_up_ms"] = 1e3 * start_up(options.program, MODELS[name][5], math,
                                                     options.threads, options.device)
            length = ours["tokens"] // batch
            forms = {form: contenders.ask(name, math, form, batch, length, options.seconds)
                     for form in options.forms.split(",") if form}
            keep(options, {"model": subject, "math": math, "ours": ours, **forms})
            ms = {form: answer.get("milliseconds") for form, answer in forms.items()}
            beyond = {form: answer["peak_mib"] - answer["imported_mib"]
                      for form, answer in forms.items() if ms[form] is not None}

            def shown(values, form, style):
                if form not in forms:
                    return "-"
                return "failed" if values.get(form) is None else style % values[form]

            best = better(ms.values()) / ours["milliseconds"]
            started = f"{ours['start_up_ms']:.0f}" if "start_up_ms" in ours else "-"
            lowest = f"{floor:.2f}" if floor else "-"
            print(f"| {subject} | {math} | {lowest} | {ours['milliseconds']:.2f} "
                  f"| {shown(ms, 'eager', '%.2f')} | {shown(ms, 'compiled', '%.2f')} | {best:.2f} "
                  f"| {peak:.0f} | {shown(beyond, 'eager', '%.0f')} "
                  f"| {shown(beyond, 'compiled', '%.0f')} | {started} |", flush=True)


if __name__ == "__main__":
    main()
