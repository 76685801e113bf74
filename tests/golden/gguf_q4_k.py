"""Writes numbers, the Q4_K blocks that llama.cpp makes of them, and the numbers that it reads from these blocks.

    pip install xllamacpp==2026.10.11549 safetensors numpy
    python gguf_q4_k.py gguf_q4_k.safetensors
"""
import ctypes
import pathlib
import sys

import numpy as np
import xllamacpp
from safetensors.numpy import save_file

ggml = ctypes.CDLL(str(next(pathlib.Path(xllamacpp.__file__).parent.glob("xllamacpp*.so"))))


def call(name, source, target, count):
    getattr(ggml, name)(source.ctypes.data_as(ctypes.c_void_p), target.ctypes.data_as(ctypes.c_void_p),
                        ctypes.c_int64(count))
    return target


def blocks_of(numbers):
    return call("quantize_row_q4_K_ref", numbers, np.zeros(numbers.size // 256 * 144, np.uint8), numbers.size)


random = np.random.default_rng(1)
# Blocks in which every part has a factor that is not 0, so all bytes of the blocks matter.
plain = np.concatenate([
    random.normal(0, 1, (4, 256)) * np.exp(random.uniform(-6, 6, (4, 1))),
    random.uniform(0, 1, (1, 256)),
    random.uniform(-1, -0.9, (1, 256)),
    random.laplace(0, 1, (2, 256)),
])
# Blocks in which some parts have the factor 0: a block of zeros, blocks of equal numbers, and a block whose
# parts have very different scales.
flat = np.zeros((4, 256))
flat[1], flat[2] = -0.7, 0.7
flat[3] = (random.normal(0, 1, (8, 32)) * np.exp(np.linspace(-8, 8, 8))[:, None]).reshape(-1)
tensors = {}
for name, numbers in {"plain": plain, "flat": flat}.items():
    numbers = numbers.astype(np.float32).reshape(-1)
    blocks = blocks_of(numbers)
    tensors[name + ".numbers"], tensors[name + ".blocks"] = numbers, blocks
    tensors[name + ".read"] = call("dequantize_row_q4_K", blocks, np.zeros_like(numbers), numbers.size)
save_file(tensors, sys.argv[1])
