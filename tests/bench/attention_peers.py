#!/usr/bin/env python3
"""Compares the speed of attention, forward and backward, with PyTorch. Development only.

    attention_peers.py build/apps/longhand [--shapes 0,1,...] [--mechanisms NAME,...] [--seconds S]
                       [--out FILE] [--device cuda]

For each shape, the script runs `longhand bench attention` and then PyTorch with the same number of
threads. PyTorch uses its fastest form: scaled_dot_product_attention for softmax (ragged batches are
padded, or nested if this works and is faster), masked matrix products with gather for FAL, and matrix
products, softmax and torch.linalg.solve_triangular for ChaCAL. Both sides report their best round. The
script prints a table.

PyTorch's FAL and ChaCAL store matrices of all pairs of tokens. Sequences longer than 4096 are computed
head by head, with one round and no warm-up. If the matrices of a single head exceed the free memory,
the row contains "no memory". `--shapes 5` takes minutes and can be divided with `--mechanisms softmax`,
`bf16`, `chacal` and `fal`.

With --device cuda, the first shapes have 16384 tokens in 16 heads of width 64, with lengths from 1024
to 8192; the shapes from 4 on are the CPU's. bf16 is compared only with PyTorch's flash attention, the
table also contains the ratios of forward and of backward, and f32 products may use TF32 on both sides.
"""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from peers import arguments, keep, rows_of, set_math, timings

SHAPES = [(32, 4, 1024, 1024, 16), (64, 8, 128, 128, 64), (8, 12, 1024, 1024, 64),
          (4, 1, 1024, 1024, 768), (1024, 16, 5, 41, 64), (1, 4, 16384, 16384, 64)]
GPU_SHAPES = [(16384 // n, 16, n, n, 64) for n in (1024, 2048, 4096, 8192)] + SHAPES[4:]
GAMMA = 0.9
LONG = 4096
device = "cpu"


def best(body, seconds, rounds=3):
    if rounds > 1:
        body()
    return 1e3 * min(timings(body, seconds, device, rounds))


def lengths(shape):
    sequences, _, shortest, longest, _ = shape
    return [shortest + s * 7919 % (longest - shortest + 1) for s in range(sequences)]


def rounds(shape):
    return 1 if shape[3] > LONG else 3


def free_bytes():
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    with open("/proc/meminfo") as file:
        return next(1024 * int(line.split()[1]) for line in file if "MemAvailable" in line)


def by_head(shape, matrices, body):
    """Calls body(shape) for all heads at once or head by head; None if the memory is too small."""
    sequences, heads, _, longest, width = shape
    alone = longest > LONG
    pairs = longest**2 * (1 if alone else sequences * heads)
    if 4 * matrices * pairs > free_bytes():
        return None
    if not alone:
        return body(shape), ""
    one = body((1, 1, longest, longest, width))
    return one * sequences * heads, "by heads"


def inputs(shape, dtype):
    sequences, heads, _, longest, width = shape
    torch.manual_seed(1)
    q, k, v, dy = (torch.randn(sequences, longest, heads, width, dtype=dtype, device=device)
                   .transpose(1, 2) for _ in range(4))
    for x in (q, k, v):
        x.requires_grad_()
    return q, k, v, dy


def softmax(shape, dtype, seconds):
    q, k, v, dy = inputs(shape, dtype)

    def padded():
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        torch.autograd.grad(y, (q, k, v), dy)

    if device == "cuda" and dtype == torch.bfloat16:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            parts = (best(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), seconds),
                     best(lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True), seconds))
        if shape[2] == shape[3]:
            return sum(parts), "flash", parts
    result = best(padded, seconds, rounds(shape))
    if shape[2] == shape[3]:
        return result, ""
    try:
        n = torch.tensor([0] + lengths(shape), device=device).cumsum(0)
        rows = [torch.randn(int(n[-1]), shape[1], shape[4], dtype=dtype, device=device,
                            requires_grad=True) for _ in range(3)]
        dout = torch.randn(int(n[-1]), shape[1], shape[4], dtype=dtype, device=device)

        def nested():
            a, b, c = (torch.nested.nested_tensor_from_jagged(x, n).transpose(1, 2) for x in rows)
            y = F.scaled_dot_product_attention(a, b, c, is_causal=True)
            torch.autograd.grad(y.transpose(1, 2).values(), rows, dout)

        other = best(nested, seconds)
        return (other, "nested") if other < result else (result, "padded")
    except Exception:  # not supported on the CPU in this version
        return result, "padded"


def fal(shape, seconds, without_match=False):
    return by_head(shape, 4, lambda s: fal_time(s, torch.float32, seconds, without_match))


def fal_time(shape, dtype, seconds, without_match):
    q, k, v, dy = inputs(shape, dtype)
    if without_match:
        q, k = q.detach().relu().requires_grad_(), (-q.detach().relu()).requires_grad_()
    n = shape[3]
    earlier = torch.ones(n, n, dtype=torch.bool, device=device).tril(-1)
    place = torch.arange(1, n + 1, dtype=torch.int32, device=device)

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

    return best(both, seconds, rounds(shape))


def chacal(shape, seconds):
    return by_head(shape, 8, lambda s: chacal_time(s, torch.float32, seconds))


def chacal_time(shape, dtype, seconds):
    q, k, v, dy = inputs(shape, dtype)
    n, width = shape[3], shape[4]
    hidden = torch.full((n, n), float("-inf"), device=device).triu(1)

    def both():
        p = torch.softmax((q @ k.transpose(-1, -2)) * width**-0.5 + hidden, -1)
        y = torch.linalg.solve_triangular(-GAMMA * p, (1 - GAMMA) * (p @ v), upper=False,
                                          unitriangular=True)
        torch.autograd.grad(y, (q, k, v), dy)

    return best(both, seconds, rounds(shape))


def ours(options, shape, seconds, *flags):
    words = [options.program, "bench", "attention", "--json", "--threads",
             str(torch.get_num_threads()), "--backend", device, "--seconds", str(seconds), "--size",
             ",".join(map(str, shape)), *flags]
    return {row["mechanism"]: row for row in rows_of(words)}


def main():
    global device
    parser = arguments(shapes="", mechanisms="softmax,bf16,chacal,fal", seconds=0.5)
    options = parser.parse_args()
    device = options.device
    torch.set_num_threads(options.threads)
    exact = "exact"
    shapes = SHAPES
    if device == "cuda":
        exact, shapes = "fast", GPU_SHAPES
        set_math(exact)
    wanted = options.mechanisms.split(",")
    print("| sequences x heads x length x width | mechanism | longhand ms | PyTorch ms | ratio "
          "| forward, backward | of our softmax |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for number in map(int, options.shapes.split(",") if options.shapes else range(len(shapes))):
        shape = shapes[number]
        sequences, heads, shortest, longest, width = shape
        length = longest if shortest == longest else f"{shortest}..{longest}"
        name = f"{sequences} x {heads} x {length} x {width}"
        seconds = options.seconds if longest <= LONG or device == "cuda" else 0
        f32 = bf16 = {}
        if wanted != ["bf16"]:
            f32 = ours(options, shape, seconds, "--math", exact)
        if "bf16" in wanted:
            bf16 = ours(options, shape, seconds, "--math", "bf16", "--dtype", "bf16")
        rows = [("softmax", "softmax f32", f32, "softmax",
                 lambda: softmax(shape, torch.float32, seconds)),
                ("bf16", "softmax bf16", bf16, "softmax",
                 lambda: softmax(shape, torch.bfloat16, seconds)),
                ("chacal", "ChaCAL f32", f32, "chacal", lambda: chacal(shape, seconds)),
                ("fal", "FAL f32", f32, "fal", lambda: fal(shape, seconds)),
                ("fal", "FAL f32, no match", f32, "fal without a match",
                 lambda: fal(shape, seconds, True))]
        for key, title, times, row, peer_time in rows:
            if key not in wanted:
                continue
            mine, least = times[row], times[row]["best_ms"]
            try:
                peer = peer_time()
            except torch.OutOfMemoryError:
                peer = None
            theirs = f"{peer[0]:.2f} {peer[1]}".strip() if peer else "no memory"
            ratio = f"{peer[0] / least:.2f}" if peer else ""
            parts = ""
            if peer and len(peer) == 3:
                parts = ", ".join(f"{of / mine[pass_]:.2f}" for of, pass_ in
                                  zip(peer[2], ("forward_ms", "backward_ms")))
            keep(options, {"shape": shape, "mechanism": title, "ours": mine,
                           "theirs_ms": peer and peer[0], "form": peer and peer[1],
                           "theirs_forward_backward_ms": peer[2] if parts else None})
            print(f"| {name} | {title} | {least:.2f} | {theirs} | {ratio} | {parts} "
                  f"| {least / times['softmax']['best_ms']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
