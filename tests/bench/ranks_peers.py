#!/usr/bin/env python3
"""Compares training on several processes with PyTorch's DistributedDataParallel. Development only.

    ranks_peers.py build/release/apps/longhand [--ranks 2] [--models small,middle] [--math exact,bf16]
                   [--rounds 3] [--seconds S] [--out FILE]

Both sides train the same GPT-NeoX on the same number of processes of this machine, with one thread
each: `mpirun -np N longhand train` with one part per process, and eager DDP over gloo with fused AdamW.
Each process computes an equal share of the batch. The sequences of longhand have different lengths, so
its step ends with the process that has the most tokens; DDP's sequences all have the mean length. Both
use the same precision (f32, or bf16 with autocast) and run in turn, --rounds times. The script prints
the median and the minimum of all steps after the first five, the tokens, and the peak memory of the
largest process, for PyTorch also without the memory that importing it takes.
"""
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile

from peers import MIB, arguments, keep, memory, set_math, timed

MODELS = {  # width, layers, heads, batch of all processes, instructions per sequence
    "small": (128, 2, 4, 32, 32),
    "middle": (256, 4, 4, 32, 32),
    "large": (768, 6, 12, 16, 64),
}
VOCABULARY = 5


def ours(program, name, math, ranks, seconds):
    width, layers, heads, batch, instructions = MODELS[name]
    with tempfile.TemporaryDirectory() as folder:
        steps = max(12, int(seconds * 60))
        words = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-np", str(ranks), program, "train",
                 "--task", "flip-flop", "--task.instructions", str(instructions), "--width", str(width),
                 "--layers", str(layers), "--heads", f"softmax:{heads}", "--inner", str(4 * width),
                 "--batch", str(batch), "--parts", str(ranks), "--math", math, "--threads", "1",
                 "--steps", str(steps), "--max-minutes", "1", "--evaluate_samples", "0", "--quiet",
                 "--out", folder + "/run"]
        with open(folder + "/errors", "w") as errors:
            child = subprocess.Popen(["timeout", "300", *words], stderr=errors)
            _, status, usage = os.wait4(child.pid, 0)  # the usage includes the largest descendant
        if status:
            with open(folder + "/errors") as errors:
                sys.exit(errors.read())
        with open(folder + "/run/metrics.jsonl") as lines:
            rows = [row for row in map(json.loads, lines) if "seconds" in row]
    return {"times": [row["seconds"] for row in rows[5:]],
            "tokens": round(statistics.mean(row["tokens"] for row in rows[5:])),
            "exposed": statistics.median(row["exchange"]["exposed"] for row in rows[5:]),
            "peak_mib": usage.ru_maxrss / 1024}


def theirs(name, math, tokens, seconds):
    """Runs a process of PyTorch. The environment contains its rank and the number of ranks."""
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch import nn

    torch.set_num_threads(1)
    set_math(math)
    dist.init_process_group("gloo")
    imported = memory("VmRSS")
    width, layers, heads, batch, _ = MODELS[name]
    length, batch = round(tokens / batch), batch // dist.get_world_size()
    each = width // heads
    turn = torch.arange(length)[:, None] * 10000 ** (-torch.arange(0, each, 2) / each)
    cos, sin = torch.cat((turn, turn), -1).cos(), torch.cat((turn, turn), -1).sin()

    def rotary(x):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            qkv = self.qkv(self.norm1(x)).view(batch, length, 3, heads, each)
            q, k, v = (t.transpose(1, 2) for t in qkv.unbind(2))
            q, k = rotary(q).to(v.dtype), rotary(k).to(v.dtype)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            y = self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + y + self.down(F.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(width)
            self.unembed = nn.Linear(width, VOCABULARY, bias=False)

        def forward(self, ids, targets):
            x = self.embed(ids)
            for block in self.blocks:
                x = block(x)
            return F.cross_entropy(self.unembed(self.norm(x)).float().flatten(0, 1), targets.flatten())

    model = nn.parallel.DistributedDataParallel(Model())
    adam = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0, fused=True)
    ids = torch.randint(VOCABULARY, (batch, length))
    targets = torch.where(torch.rand(batch, length) < 0.3, ids.roll(-1, 1), -100)

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=math == "bf16"):
            loss = model(ids, targets)
        loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=True)

    # All ranks must make the same number of steps.
    for _ in range(5):
        last = timed(step)
    count = torch.tensor([max(5.0, seconds / last)])
    dist.broadcast(count, 0)
    times = [timed(step) for _ in range(int(count))]
    peak = torch.tensor([memory("VmHWM") / MIB, (memory("VmHWM") - imported) / MIB])
    dist.all_reduce(peak, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print(json.dumps({"times": times, "peak_mib": peak[0].item(), "beyond_mib": peak[1].item()}))
    dist.destroy_process_group()


def start_theirs(name, math, tokens, ranks, seconds):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(ranks):
        env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                   WORLD_SIZE=str(ranks), OMP_NUM_THREADS="1")
        children.append(subprocess.Popen(
            [sys.executable, __file__, "-", "--serve", "--models", name, "--math", math, "--tokens",
             str(tokens), "--seconds", str(seconds)], stdout=subprocess.PIPE, text=True, env=env))
    outs = [child.communicate(timeout=300)[0] for child in children]
    if any(child.returncode for child in children):
        sys.exit("PyTorch failed")
    return json.loads(outs[0].splitlines()[-1])


def main():
    options = arguments(models="small,middle", math="exact,bf16", rounds=3, ranks=2, tokens=0,
                        seconds=3.0).parse_args()
    if options.serve:
        return theirs(options.models, options.math, options.tokens, options.seconds)
    print("| model | math | processes | ours ms, least | DDP ms, least | ratio of medians | of leasts "
          "| peak MiB: ours | DDP, beyond import |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in options.models.split(","):
        for math in options.math.split(","):
            mine, other = {"times": []}, {"times": []}
            for _ in range(options.rounds):
                for sum_of, part in (
                        (mine, ours(options.program, name, math, options.ranks, options.seconds)),
                        (other, None)):
                    part = part or start_theirs(name, math, mine["tokens"], options.ranks,
                                                options.seconds)
                    part["times"] = sum_of["times"] + part["times"]
                    sum_of.update(part)
            keep(options, {"model": name, "math": math, "ours": mine, "ddp": other})
            medians = [1e3 * statistics.median(x["times"]) for x in (mine, other)]
            least = [1e3 * min(x["times"]) for x in (mine, other)]
            print(f"| {name} | {math} | {options.ranks} | {medians[0]:.1f}, {least[0]:.1f} "
                  f"| {medians[1]:.1f}, {least[1]:.1f} | {medians[1] / medians[0]:.2f} "
                  f"| {least[1] / least[0]:.2f} | {mine['peak_mib']:.0f} "
                  f"| {other['peak_mib']:.0f}, {other['beyond_mib']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
