"""Computes the three attention mechanisms with plain NumPy loops and compares `longhand op` with them.

Development only; needs numpy and safetensors:
    python tests/golden/attention.py                        writes attention.safetensors in the folder of this file
    python tests/golden/attention.py PROGRAM FOLDER         also runs PROGRAM op ... in FOLDER

Derivatives are computed by complex steps: f(x + ih) has the imaginary part h f'(x), exact except for
rounding, so no backward formulas are needed here.
"""

import os
import subprocess
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

lengths = [5, 1, 4]
heads, key_heads, width, v_width = 4, 2, 3, 2
group = heads // key_heads


def softmax_rows(q, k, tau=None, shift=None, sink=None, window=0):
    """Returns P[s][h][i, j] for every sequence s and head h."""
    result, first = [], 0
    for n in lengths:
        matrices = []
        for h in range(heads):
            P = np.zeros((n, n), dtype=q.dtype)
            for i in range(n):
                qi = q[first + i, h * width:(h + 1) * width]
                seen = [j for j in range(i + 1) if window == 0 or j > i - window]
                s = []
                for j in seen:
                    kj = k[first + j, h // group * width:(h // group + 1) * width]
                    s.append(sum(qi[c] * kj[c] for c in range(width)) / np.sqrt(width))
                if tau is not None:
                    s = [tau[first + i, h] * x for x in s]
                if shift is not None:
                    s = [x + shift[first + i, h] - shift[first + j, h] for j, x in zip(seen, s)]
                if sink is not None:
                    s.append(sink[h])
                e = [np.exp(x - max(y.real for y in s)) for x in s]
                for j, x in zip(seen, e):
                    P[i, j] = x / sum(e)
            matrices.append(P)
        result.append(matrices)
        first += n
    return result


def values(v, first, j, h):
    return v[first + j, h // group * v_width:(h // group + 1) * v_width]


def attention(q, k, v, **more):
    y, first = np.zeros((sum(lengths), heads * v_width), dtype=complex), 0
    for n, matrices in zip(lengths, softmax_rows(q, k, **more)):
        for h in range(heads):
            for i in range(n):
                for j in range(i + 1):
                    y[first + i, h * v_width:(h + 1) * v_width] += (
                        matrices[h][i, j] * values(v, first, j, h))
        first += n
    return y


def chacal(q, k, v, gamma):
    y, first = np.zeros((sum(lengths), heads * v_width), dtype=complex), 0
    for n, matrices in zip(lengths, softmax_rows(q, k)):
        for h in range(heads):
            P, g = matrices[h], gamma[h]
            V = np.array([values(v, first, j, h) for j in range(n)])
            A = np.eye(n) - g * np.tril(P, -1)
            y[first:first + n, h * v_width:(h + 1) * v_width] = (1 - g) * np.linalg.solve(A, P @ V)
        first += n
    return y


def fal(q, k, v):
    """Algorithm 1 of the paper: goes back from the query to the first positive score."""
    y, first = np.zeros((sum(lengths), heads * v_width), dtype=complex), 0
    for n in lengths:
        for h in range(heads):
            for i in range(n):
                qi = q[first + i, h * width:(h + 1) * width]
                for j in range(i - 1, -1, -1):
                    kj = k[first + j, h // group * width:(h // group + 1) * width]
                    score = sum(qi[c] * kj[c] for c in range(width))
                    if score.real > 0:
                        y[first + i, h * v_width:(h + 1) * v_width] = (
                            score * values(v, first, j + 1, h))
                        break
        first += n
    return y


def gradients(f, inputs, dy):
    """Returns d(sum of dy * f)/dx for every input x."""
    result, h = {}, 1e-40
    for name, x in inputs.items():
        g = np.zeros(x.shape)
        for at in np.ndindex(*x.shape):
            moved = {n: y.astype(complex) for n, y in inputs.items()}
            moved[name][at] += 1j * h
            g[at] = (dy * f(**moved).imag).sum() / h
        result["d" + name] = g
    return result


rng = np.random.default_rng(5)
tokens = sum(lengths)
q, k = rng.normal(size=(tokens, heads * width)), rng.normal(size=(tokens, key_heads * width))
v, dy = rng.normal(size=(tokens, key_heads * v_width)), rng.normal(size=(tokens, heads * v_width))
gamma = np.array([0.0, 0.5, 0.9, 0.99])
tau, shift = rng.normal(0.8, 0.6, size=(tokens, heads)), rng.normal(size=(tokens, heads))
sink = rng.normal(size=heads)
runs = {
    "attention": ("attention", attention, dict(q=q, k=k, v=v), {}),
    "scored": ("attention", attention, dict(q=q, k=k, v=v, tau=tau, shift=shift, sink=sink), {}),
    "windowed": ("attention", lambda q, k, v: attention(q, k, v, window=3), dict(q=q, k=k, v=v),
                 dict(window=3)),
    "fal": ("fal", fal, dict(q=q, k=k, v=v), {}),
    "chacal": ("chacal", chacal, dict(q=q, k=k, v=v, gamma=gamma), {}),
}

golden = dict(q=q, k=k, v=v, dy=dy, gamma=gamma, tau=tau, shift=shift, sink=sink,
              lengths=np.array(lengths, dtype=np.float64))
for name, (op, f, inputs, attributes) in runs.items():
    results = {"y": f(**{n: x.astype(complex) for n, x in inputs.items()}).real}
    results |= gradients(f, inputs, dy)
    golden |= {f"{name}.{n}": x for n, x in results.items()}
here = os.path.dirname(os.path.abspath(__file__))
save_file({n: np.ascontiguousarray(x) for n, x in golden.items()}, f"{here}/attention.safetensors")

if len(sys.argv) == 3:
    program, folder = sys.argv[1:]
    print(f"{'run':11}{'backend':10}{'type':5}{'math':6}largest difference over the largest entry")
    for name, (op, f, inputs, attributes) in runs.items():
        for backend, dtype, math in (("reference", "f64", "exact"), ("cpu", "f32", "exact"),
                                     ("cpu", "f32", "fast"), ("cpu", "f32", "bf16")):
            save_file({**inputs, "dy": dy, "lengths": np.array(lengths, dtype=np.int32)},
                      f"{folder}/{name}.safetensors")
            command = [program, "op", op, "--in", f"{folder}/{name}.safetensors", "--grad", "--out",
                       f"{folder}/{name}-out.safetensors", "--backend", backend, "--dtype",
                       dtype, "--math", math]
            for attribute, value in ({"heads": heads, "key_heads": key_heads} | attributes).items():
                command += ["--attr", f"{attribute}={value}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            got = load_file(f"{folder}/{name}-out.safetensors")
            shown = []
            for n in ["y"] + ["d" + i for i in inputs]:
                expected = golden[f"{name}.{n}"]
                error = np.abs(got[n].astype(float) - expected).max() / np.abs(expected).max()
                shown.append(f"{n} {error:.1e}")
            print(f"{name:11}{backend:10}{dtype:5}{math:6}{', '.join(shown)}")
