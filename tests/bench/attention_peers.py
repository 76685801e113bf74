#!/usr/bin/env python3
"""Attention beside PyTorch, forward and backward, in one run. Development only.

    attention_peers.py build/apps/longhand [--shapes 0,1,...] [--seconds S]

For each shape runs `longhand bench attention` and then PyTorch on the same number of threads, in
the best form it has: scaled_dot_product_attention (ragged batches: padded, or nested if that
works and is faster), masked matrix products with gather for FAL, matrix products, softmax and
torch.linalg.solve_triangular for ChaCAL. Both sides report their best round. Prints a table.
"""
import argparse
import json
import subprocess
import time

import torch
import torch.nn.functional as F

SHAPES = [(32, 4, 1024, 1024, 16), (64, 8, 128, 128, 64), (8, 12, 1024, 1024, 64),
          (4, 1, 1024, 1024, 768), (1024, 16, 5, 41, 16), (1, 4, 16384, 16384, 64)]
GAMMA = 0.9


def best(body, seconds):
    body()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        body()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def lengths(shape):
    sequences, _, shortest, longest, _ = shape
    return [shortest + s * 7919 % (longest - shortest + 1) for s in range(sequences)]


def inputs(shape, dtype):
    sequences, heads, _, longest, width = shape
    torch.manual_seed(1)
    q, k, v, dy = (torch.randn(sequences, longest, heads, width, dtype=dtype).transpose(1, 2)
                   for _ in range(4))
    for x in (q, k, v):
        x.requires_grad_()
    return q, k, v, dy


def softmax(shape, dtype, seconds):
    q, k, v, dy = inputs(shape, dtype)

    def padded():
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        torch.autograd.grad(y, (q, k, v), dy)

    result = best(padded, seconds)
    if shape[2] == shape[3]:
        return result, "padded" if shape[2] != shape[3] else ""
    try:
        n = torch.tensor([0] + lengths(shape)).cumsum(0)
        rows = [torch.randn(int(n[-1]), shape[1], shape[4], dtype=dtype, requires_grad=True)
                for _ in range(3)]
        dout = torch.randn(int(n[-1]), shape[1], shape[4], dtype=dtype)

        def nested():
            a, b, c = (torch.nested.nested_tensor_from_jagged(x, n).transpose(1, 2) for x in rows)
            y = F.scaled_dot_product_attention(a, b, c, is_causal=True)
            torch.autograd.grad(y.transpose(1, 2).values(), rows, dout)

        other = best(nested, seconds)
        return (other, "nested") if other < result else (result, "padded")
    except Exception:  # not offered on the CPU in this version
        return result, "padded"


def fal(shape, dtype, seconds, without_match=False):
    q, k, v, dy = inputs(shape, dtype)
    if without_match:
        q, k = q.detach().relu().requires_grad_(), (-q.detach().relu()).requires_grad_()
    n = shape[3]
    earlier = torch.ones(n, n, dtype=torch.bool).tril(-1)
    place = torch.arange(1, n + 1, dtype=torch.int32)

    def both():
        with torch.no_grad():
            hit = ((q @ k.transpose(-1, -2)) > 0) & earlier
            m = (hit * place).amax(-1).long() - 1
        found = (m >= 0).unsqueeze(-1)
        at = m.clamp(min=0).unsqueeze(-1)
        k_m = k.gather(2, at.expand(k.shape))
        v_m = v.gather(2, (at + 1).clamp(max=n - 1).expand(v.shape))
        y = (q * k_m).sum(-1, keepdim=True) * v_m * found
        torch.autograd.grad(y, (q, k, v), dy)

    return best(both, seconds), ""


def chacal(shape, dtype, seconds):
    q, k, v, dy = inputs(shape, dtype)
    n, width = shape[3], shape[4]
    hidden = torch.full((n, n), float("-inf")).triu(1)

    def both():
        p = torch.softmax((q @ k.transpose(-1, -2)) * width**-0.5 + hidden, -1)
        y = torch.linalg.solve_triangular(-GAMMA * p, (1 - GAMMA) * (p @ v), upper=False,
                                          unitriangular=True)
        torch.autograd.grad(y, (q, k, v), dy)

    return best(both, seconds), ""


def ours(program, shape, seconds, *flags):
    words = [program, "bench", "attention", "--json", "--threads", str(torch.get_num_threads()),
             "--seconds", str(seconds), "--size", ",".join(map(str, shape)), *flags]
    rows = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)["rows"]
    return {row["mechanism"]: row["best_ms"] for row in rows}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--shapes", default=",".join(map(str, range(len(SHAPES)))))
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("| sequences x heads x length x width | mechanism | longhand ms | PyTorch ms | ratio "
          "| of our softmax |")
    print("|---|---|---|---|---|---|")
    for number in map(int, options.shapes.split(",")):
        shape = SHAPES[number]
        sequences, heads, shortest, longest, width = shape
        length = longest if shortest == longest else f"{shortest}..{longest}"
        name = f"{sequences} x {heads} x {length} x {width}"
        f32 = ours(options.program, shape, options.seconds, "--math", "exact")
        bf16 = ours(options.program, shape, options.seconds, "--math", "bf16", "--dtype", "bf16")
        small = longest <= 4096  # beyond, matrices of all pairs leave no memory
        rows = [("softmax f32", f32["softmax"], softmax(shape, torch.float32, options.seconds)),
                ("softmax bf16", bf16["softmax"], softmax(shape, torch.bfloat16, options.seconds)),
                ("ChaCAL f32", f32["chacal"],
                 chacal(shape, torch.float32, options.seconds) if small else None),
                ("FAL f32", f32["fal"],
                 fal(shape, torch.float32, options.seconds) if small else None),
                ("FAL f32, no match", f32["fal without a match"],
                 fal(shape, torch.float32, options.seconds, True) if small else None)]
        for mechanism, time_ours, peer in rows:
            softmax_ms = bf16["softmax"] if "bf16" in mechanism else f32["softmax"]
            theirs = f"{peer[0]:.1f} {peer[1]}".strip() if peer else "no memory"
            ratio = f"{peer[0] / time_ours:.2f}" if peer else ""
            print(f"| {name} | {mechanism} | {time_ours:.1f} | {theirs} | {ratio} "
                  f"| {time_ours / softmax_ms:.2f} |", flush=True)


if __name__ == "__main__":
    main()
