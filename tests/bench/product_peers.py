#!/usr/bin/env python3
"""Compares large matrix products with PyTorch. Development only.

    product_peers.py build/apps/longhand [--sizes M,N,K ...] [--math fast,bf16] [--seconds S]
                     [--out FILE] [--device cuda]

For each size, the script runs `longhand bench gemm` with the three layouts of the forward and backward
passes, and then torch.matmul with operands of the same shapes and layouts. Both wait for the device
after every product. On a GPU, both use cuBLASLt, so the table shows the effect of its settings and of
the time around its calls. The mode fast is TF32 in both. With bf16, the operands are bf16; longhand's
result is f32 and PyTorch's is bf16.
"""
import torch

from peers import arguments, keep, rows_of, set_math, timings

SIZES = ["8192,8192,8192", "131072,512,512", "65536,2048,512", "16384,3072,1024"]


def theirs(m, n, k, layout, bf16, seconds, device):
    kind = torch.bfloat16 if bf16 else torch.float32
    a = torch.randn(*((k, m) if layout == "a^T b" else (m, k)), dtype=kind, device=device)
    b = torch.randn(*((n, k) if layout == "a b^T" else (k, n)), dtype=kind, device=device)
    a, b = a.T if layout == "a^T b" else a, b.T if layout == "a b^T" else b
    c = torch.empty(m, n, dtype=kind, device=device)

    def product():
        torch.matmul(a, b, out=c)

    product()
    return min(timings(product, seconds, device))


def main():
    parser = arguments(math="fast,bf16", seconds=0.2)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("| m x n x k | layout | math | longhand TFLOP/s | PyTorch TFLOP/s | ratio |")
    print("|---|---|---|---|---|---|", flush=True)
    for size in options.sizes:
        for math in options.math.split(","):
            bf16 = math == "bf16"
            set_math(math)
            words = [options.program, "bench", "gemm", "--size", size, "--math", math, "--dtype",
                     "bf16" if bf16 else "f32", "--backend", options.device, "--threads",
                     str(options.threads), "--seconds", str(options.seconds), "--json"]
            for row in rows_of(words):
                m, n, k = row["m"], row["n"], row["k"]
                seconds = theirs(m, n, k, row["layout"], bf16, options.seconds, options.device)
                mine, peer = row["best_gflops"] / 1e3, 2 * m * n * k / seconds / 1e12
                keep(options, {**row, "theirs_gflops": 1e3 * peer})
                print(f"| {m} x {n} x {k} | {row['layout']} | {math} | {mine:.2f} | {peer:.2f} "
                      f"| {mine / peer:.2f} |", flush=True)


if __name__ == "__main__":
    main()
