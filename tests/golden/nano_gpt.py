"""Compares `longhand train --minutes` with nanoGPT's character models on the same text. Not part of the tests.

    pip install torch
    python tests/golden/nano_gpt.py TEXT FOLDER --minutes 5 --program build/release/apps/longhand

Trains in turn, each for the same time: longhand, nanoGPT's model for CPUs, and nanoGPT's model for GPUs. The two
configurations are those of train_shakespeare_char in the README of nanoGPT. This script contains the model in the
form of nanoGPT (LayerNorm, learned positions, GELU, no biases, tied embedding). The number of iterations is planned
from the measured time of 10 iterations, so that the learning rate has decayed when the time is over. All models are
scored on the last 5% of the text, in bits per byte.
"""
import argparse
import json
import math
import pathlib
import subprocess
import time

import torch
from torch import nn
from torch.nn import functional as F

CONFIGURATIONS = {
    "cpu": dict(layers=4, heads=4, width=128, block=64, batch=12, dropout=0.0),
    "gpu": dict(layers=6, heads=6, width=384, block=256, batch=64, dropout=0.2),
}
RATE, LAST_RATE, WARM_UP = 1e-3, 1e-4, 100


class Block(nn.Module):
    def __init__(self, width, heads, dropout, **_):
        super().__init__()
        self.heads, self.rate = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.projection, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        n, t, c = x.shape
        parts = self.projection(self.norm1(x)).split(c, dim=2)
        q, k, v = (part.view(n, t, self.heads, c // self.heads).transpose(1, 2) for part in parts)
        rate = self.rate if self.training else 0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=True)
        x = x + self.dropout(self.out(y.transpose(1, 2).reshape(n, t, c)))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)))))


class Model(nn.Module):
    def __init__(self, vocabulary, layers, width, block, dropout, **others):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(block, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width=width, dropout=dropout, **others) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                residual = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, 0, 0.02 / math.sqrt(2 * layers) if residual else 0.02)

    def loss(self, x, y):
        h = self.dropout(self.tokens(x) + self.positions.weight[:x.shape[1]])
        for block in self.blocks:
            h = block(h)
        logits = F.linear(self.norm(h), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def train(text, seconds, options):
    start = time.time()
    torch.manual_seed(1337)
    alphabet = sorted(set(text))
    ids = {c: i for i, c in enumerate(alphabet)}
    data = torch.tensor([ids[c] for c in text])
    cut = int(0.95 * len(data))
    learned, held = data[:cut], data[cut:]
    block, batch = options["block"], options["batch"]
    model = Model(len(alphabet), **options)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                                   {"params": vectors, "weight_decay": 0.0}], lr=RATE, betas=(0.9, 0.99))

    def iterate(rate):
        for group in optimizer.param_groups:
            group["lr"] = rate
        places = torch.randint(len(learned) - block, (batch,))
        rows = torch.stack([learned[i:i + block + 1] for i in places])
        optimizer.zero_grad(set_to_none=True)
        model.loss(rows[:, :-1], rows[:, 1:]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    iterate(0)
    calibrated = time.time()
    for _ in range(10):
        iterate(0)
    each = (time.time() - calibrated) / 10
    iterations = max(1, int((seconds - (time.time() - start)) / each))
    warm_up, done = min(WARM_UP, iterations // 10), 0
    while done < iterations and time.time() - start < seconds:
        progress = max(0, done - warm_up) / max(1, iterations - warm_up)
        rate = LAST_RATE + (RATE - LAST_RATE) * (1 + math.cos(math.pi * progress)) / 2
        iterate(min(rate, RATE * (done + 1) / (warm_up + 1)))
        done += 1
    took = time.time() - start
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        windows = (len(held) - 1) // block  # the last tokens, fewer than a window, are not scored
        x, y = held[:windows * block].view(windows, block), held[1:windows * block + 1].view(windows, block)
        for i in range(0, windows, 32):
            total += model.loss(x[i:i + 32], y[i:i + 32]).item() * y[i:i + 32].numel()
        count = windows * block
    held_bytes = len("".join(alphabet[i] for i in held[1:1 + count]).encode())
    return dict(bits_per_byte=total / math.log(2) / held_bytes, iterations=done, planned=iterations,
                seconds=took, parameters=sum(p.numel() for p in model.parameters()))


def main():
    words = argparse.ArgumentParser()
    words.add_argument("text", type=pathlib.Path)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--minutes", type=float, default=5)
    words.add_argument("--program", default="build/release/apps/longhand")
    words.add_argument("--only", choices=["longhand", "cpu", "gpu"])
    given = words.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {given.minutes} minutes", flush=True)
    if given.only in (None, "longhand"):
        start = time.time()
        run = given.folder / f"longhand-{given.minutes:g}-{int(start)}"
        line = subprocess.run([given.program, "train", "--task", "text", "--text", given.text, "--minutes",
                               str(given.minutes), "--out", run, "--json"], check=True, stdout=subprocess.PIPE)
        result = json.loads(line.stdout)
        print("longhand", json.dumps(dict(bits_per_byte=result["scores"]["validation/bits_per_byte"],
                                          step=result["step"], seconds=time.time() - start)), flush=True)
    for name, options in CONFIGURATIONS.items():
        if given.only in (None, name):
            print(name, json.dumps(train(given.text.read_text(), 60 * given.minutes, options)), flush=True)


main()
