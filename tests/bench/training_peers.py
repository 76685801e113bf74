#!/usr/bin/env python3
"""Whole training steps beside PyTorch, in one run. Development only.

    training_peers.py build/apps/longhand [--models ffl,ct-fal] [--math exact,bf16]
                      [--forms eager,compiled] [--seconds S] [--under CMD] [--out FILE]
                      [--device cuda]

Every contender has a process of its own, which gives its peak memory too. PyTorch's model is a
GPT-NeoX as its users write it: scaled_dot_product_attention, gather for FAL, AdamW fused or foreach,
whichever is faster, bf16 by autocast; as it is (eager) and with its blocks compiled. Both sides time
forward, loss, backward and optimizer after one step of warm-up and report the median. With --device
cuda both run on the GPU; fast is TF32 in both, and memory is the device's. Also timed:
from the start of `longhand train` to its first step. The floor of a step is the longer of its
operations at the rate of our product of 4096 x 1024 x 1024 and its bytes at the rate of our fastest
token-wise kernel, both timed in the same run. Prints a table; --out adds the rows to a file of JSON
lines.
"""
import argparse
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

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
MIB = 1 << 20


def memory(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def theirs(name, math, form, length, seconds, threads, device):
    """One PyTorch contender; runs in a process of its own."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    torch.set_default_device(device)
    torch.backends.cuda.matmul.allow_tf32 = math == "fast"
    imported = memory("VmRSS")
    vocabulary, width, layers, heads, batch, _ = MODELS[name]

    def rotary(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def fal(q, k, v):
        n = q.shape[2]
        with torch.no_grad():
            earlier = torch.ones(n, n, dtype=torch.bool).tril(-1)
            place = torch.arange(1, n + 1, dtype=torch.int32)
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

    model = Model()
    if form == "compiled":
        for block in model.blocks:  # all alike: compiled once
            block.compile()
    ids = torch.randint(vocabulary, (batch, length))
    targets = torch.where(torch.rand(batch, length) < 0.3, ids.roll(-1, 1), -100)

    def step(adam):
        with torch.autocast(device, torch.bfloat16, enabled=math == "bf16"):
            loss = model(ids, targets)
        loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=True)
        return loss.item()

    def timed(body):
        start = time.perf_counter()
        body()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    adam = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0, fused=True)
    first = timed(lambda: step(adam))
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        times.append(timed(lambda: step(adam)))
    peak = memory("VmHWM") if device == "cpu" else imported + torch.cuda.max_memory_allocated()
    # The other form of the optimizer, alone, on the same gradients: were it faster, the step would
    # be so by the difference.
    model(ids, targets).backward()
    other = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0, foreach=True)
    spans = {a: min(timed(a.step) for _ in range(4)) for a in (adam, other)}
    gain = max(0.0, spans[adam] - spans[other])
    print(json.dumps({"milliseconds": 1e3 * (statistics.median(times) - gain),
                      "best_ms": 1e3 * (min(times) - gain), "first_step_ms": 1e3 * first,
                      "peak_mib": peak / MIB, "imported_mib": imported / MIB,
                      "fused_ms": 1e3 * spans[adam], "foreach_ms": 1e3 * spans[other]}))


def run(words):
    """Its last line of output as JSON, and its peak memory."""
    child = subprocess.Popen(words, stdout=subprocess.PIPE)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(words)}: exit status {status}")
    return json.loads(out.splitlines()[-1]), usage.ru_maxrss / 1024


def ceilings(start, math, threads, device="cpu"):
    """Operations and bytes a second; start: how the program is started, in words."""
    words = ["--threads", str(threads), "--seconds", "0.2", "--json", "--backend", device]
    size = "4096,1024,1024" if device == "cpu" else "8192,8192,8192"
    product, _ = run([*start, "bench", "gemm", "--size", size, "--math", math, *words])
    tokenwise, _ = run([*start, "bench", "tokenwise", *words])
    return (1e9 * max(row["best_gflops"] for row in product["rows"]),
            1e9 * max(row["gigabytes"] for row in tokenwise["rows"]))


def start_up(program, flags, math, threads, device):
    """Seconds from exec to the first step, the step itself not counted."""
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
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--math", default="exact,bf16")
    parser.add_argument("--forms", default="eager,compiled")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--under", default="", help="what each contender is started with")
    parser.add_argument("--out")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)  # model, math, form, length
    options = parser.parse_args()
    if options.one:
        name, math, form, length = options.one
        return theirs(name, math, form, int(length), options.seconds, options.threads,
                      options.device)

    under = shlex.split(options.under)
    common = ["--threads", str(options.threads), "--seconds", str(options.seconds)]
    print("| model | math | floor ms | ours ms | PyTorch eager ms | compiled ms | ratio to the better "
          "| peak MiB: ours | eager, beyond import | compiled | start-up ms |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for math in options.math.split(","):
        rate, bandwidth = ceilings([*under, options.program], math, options.threads,
                                   options.device)
        for name in options.models.split(","):
            report, peak = run([*under, options.program, "bench", "training", "--size", name,
                                "--math", math, "--backend", options.device, "--json", *common])
            ours = report["rows"][0]
            if options.device == "cuda":
                peak = ours["peak_mib"]
            ours["process_mib"] = peak
            ours["ceiling_gflops"], ours["ceiling_gigabytes"] = rate / 1e9, bandwidth / 1e9
            floor = 1e3 * max(ours["operations"] / rate, ours["bytes"] / bandwidth)
            ours["floor_ms"] = floor
            ours["start_up_ms"] = 1e3 * start_up(options.program, MODELS[name][5], math,
                                                 options.threads, options.device)
            length = ours["tokens"] // MODELS[name][4]
            forms = {form: run([*under, sys.executable, __file__, options.program, "--one", name, math,
                                form, str(length), "--device", options.device, *common])[0]
                     for form in options.forms.split(",") if form}
            if options.out:
                with open(options.out, "a") as out:
                    print(json.dumps({"model": name, "math": math, "ours": ours, **forms}), file=out)
            ms = {form: forms[form]["milliseconds"] for form in forms}
            beyond = {form: forms[form]["peak_mib"] - forms[form]["imported_mib"] for form in forms}

            def shown(values, form, style):
                return style % values[form] if form in values else "-"

            best = min(ms.values()) / ours["milliseconds"] if ms else float("nan")
            print(f"| {name} | {math} | {floor:.1f} | {ours['milliseconds']:.1f} "
                  f"| {shown(ms, 'eager', '%.1f')} | {shown(ms, 'compiled', '%.1f')} | {best:.2f} "
                  f"| {peak:.0f} | {shown(beyond, 'eager', '%.0f')} "
                  f"| {shown(beyond, 'compiled', '%.0f')} | {ours['start_up_ms']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
