"""Writes blocks of every quantized type of GGUF with random contents, and the numbers that the Python
package gguf 0.19.0 reads from them.

    pip install gguf==0.19.0 safetensors numpy
    python gguf_blocks.py gguf_blocks.safetensors
"""
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize
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
save_file(tensors, sys.argv[1])
