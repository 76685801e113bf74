"""Compares `longhand op` with PyTorch and NumPy, in double precision and in f32.

Development only; needs torch, numpy and safetensors:
    python tests/golden/audit_op.py build/release/apps/longhand FOLDER
writes the inputs of docs/guide/op.md into FOLDER and prints the differences shown there.
"""

import subprocess
import sys

import numpy as np
import torch
from safetensors.torch import load_file, save_file

program, folder = sys.argv[1], sys.argv[2]


def run(op, inputs, attributes, expected, outputs, dtype, backend, math):
    """Runs the op and prints the largest difference of each result, relative to its largest entry."""
    save_file({k: v.contiguous() for k, v in inputs.items()}, f"{folder}/{op}.safetensors")
    command = [program, "op", op, "--in", f"{folder}/{op}.safetensors", "--grad",
               "--out", f"{folder}/{op}-out.safetensors", "--backend", backend,
               "--math", math, "--dtype", dtype]
    for name, value in attributes.items():
        command += ["--attr", f"{name}={value}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    got = load_file(f"{folder}/{op}-out.safetensors")
    assert set(got) == set(expected) | set(outputs), (sorted(got), sorted(expected))
    differences = []
    for name, value in expected.items():
        value = value.double()
        assert got[name].shape == value.shape, (name, got[name].shape, value.shape)
        error = (got[name].double() - value).abs().max() / value.abs().max()
        differences.append(f"{name} {error:.1e}")
    print(f"{op:18}{backend:10}{dtype:5}{math:6}{', '.join(differences)}")


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def leaves(*tensors):
    return [t.clone().requires_grad_() for t in tensors]


def matmul():
    a, b, bias, residual, dy = normal(64, 48), normal(32, 48), normal(32), normal(64, 32), normal(64, 32)
    w = leaves(a, b, bias, residual)
    y = torch.nn.functional.gelu(0.5 * w[0] @ w[1].T + w[2]) + w[3]
    grads = torch.autograd.grad(y, w, dy)
    return ("matmul", dict(a=a, b=b, bias=bias, residual=residual, dy=dy),
            dict(transpose_b=1, alpha=0.5, f="gelu"),
            dict(y=y.detach(), da=grads[0], db=grads[1], dbias=grads[2], dresidual=grads[3]), [])


def layer_norm():
    x, gain, bias, dy = normal(50, 96) * 3 + 1, normal(96), normal(96), normal(50, 96)
    w = leaves(x, gain, bias)
    y = torch.nn.functional.layer_norm(w[0], (96,), w[1], w[2], eps=1e-5)
    grads = torch.autograd.grad(y, w, dy)
    return ("layer_norm", dict(x=x, gain=gain, bias=bias, dy=dy), dict(epsilon="1e-5"),
            dict(y=y.detach(), dx=grads[0], dgain=grads[1], dbias=grads[2]), [])


def cross_entropy():
    logits, targets = normal(40, 103) * 2, torch.randint(0, 103, (40, 1))
    weights = torch.rand(40, 1, dtype=torch.float64)
    targets[3], targets[17] = -1, -1  # not counted
    (w,) = leaves(logits)
    t = targets[:, 0]
    each = torch.nn.functional.cross_entropy(w, t, reduction="none", ignore_index=-1)
    counted = (t >= 0) * weights[:, 0]
    loss = (each * counted).sum() / counted.sum()
    (grad,) = torch.autograd.grad(loss, w)
    return ("cross_entropy", dict(logits=logits, targets=targets, weights=weights), {},
            dict(loss=loss.detach().reshape(1), dlogits=grad), ["hits"])


def solve_triangular():
    rng = np.random.default_rng(1)
    a = np.tril(rng.normal(size=(3, 33, 33)) / 12) + 2 * np.eye(33)
    b, dy = rng.normal(size=(3, 33, 5)), rng.normal(size=(3, 33, 5))
    y = np.linalg.solve(a, b)
    db = np.linalg.solve(a.transpose(0, 2, 1), dy)
    da = np.tril(-db @ y.transpose(0, 2, 1))
    t = {k: torch.from_numpy(v) for k, v in dict(a=a, b=b, dy=dy, y=y, da=da, db=db).items()}
    return ("solve_triangular", {k: t[k] for k in ("a", "b", "dy")}, {},
            {k: t[k] for k in ("y", "da", "db")}, [])


torch.manual_seed(1)
print(f"{'op':18}{'backend':10}{'type':5}{'math':6}largest difference over the largest entry")
for case in (matmul(), layer_norm(), cross_entropy(), solve_triangular()):
    for settings in (("f64", "reference", "exact"), ("f32", "cpu", "exact"), ("f32", "cpu", "bf16")):
        if settings[2] == "bf16" and case[0] != "matmul":
            continue  # the math mode affects only matrix products
        run(*case, *settings)
