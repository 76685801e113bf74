"""Writes blocks of every quantized type of GGUF with random contents, and the numbers that the Python
package gguf 0.19.0 reads from them. Also writes numbers, and the blocks that the package makes of them.

    pip install gguf==0.19.0 safetensors numpy
    python gguf_blocks.py gguf_blocks.safetensors
"""
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize, quantize
from safetensors.numpy import save_file

# Offsets of the half-precision factors in a block. Random bits could be infinite, so factors are
# drawn differently.
FACTORS = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2],
           "Q5_K": [0, 2], "Q6_K": [208]}
BLOCKS = 4

random = np.random.default_rng(1)
tensors = {}
for name, places in FACTORS.items():
    kind = GGMLQuantizationType[name]
    size = GGML_QUANT_SIZES[kind][1]
    blocks = random.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for place in places:
        factors = random.normal(0, 0.1, BLOCKS).astype(np.float16)
        blocks[:, place:place + 2] = factors.view(np.uint8).reshape(BLOCKS, 2)
    tensors[name + ".blocks"] = blocks.reshape(-1)
    tensors[name + ".numbers"] = dequantize(blocks, kind).astype(np.float32).reshape(-1)
# Blocks of different scales. One block is 0, and two have few different numbers.
numbers = random.normal(0, 1, (16, 32)) * np.exp(random.uniform(-8, 8, (16, 1)))
numbers[3] = 0
numbers[4] = np.sign(numbers[4])
numbers[5] = np.round(numbers[5] / np.abs(numbers[5]).max() * 8)
numbers = numbers.astype(np.float32)
tensors["written.numbers"] = numbers.reshape(-1)
for name in ["F16", "BF16", "Q8_0", "Q4_0"]:
    blocks = quantize(numbers, GGMLQuantizationType[name])
    tensors["written." + name] = np.ascontiguousarray(blocks).view(np.uint8).reshape(-1)
save_file(tensors, sys.argv[1])
