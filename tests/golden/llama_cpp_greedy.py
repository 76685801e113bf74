"""Compares greedy decoding of GGUF files by longhand and llama.cpp. Not part of the tests.

    pip install llama-cpp-python==0.3.36
    python tests/golden/llama_cpp_greedy.py build/release/apps/longhand FOLDER FILE.gguf...

Each file is imported into FOLDER. llama.cpp reads the prompt and longhand's tokens, and its most likely
token is compared at each position. If the tokens differ, the script prints by how many nats llama.cpp's
token is more likely, according to llama.cpp. llama.cpp rounds activations to 8 bits if weights are
quantized, so tokens of almost equal probability may differ.
"""
import json
import pathlib
import subprocess
import sys

import numpy as np
from llama_cpp import Llama

PROMPTS = ["The capital of France is", "Photosynthesis is the process by which",
           "def fibonacci(n):", "Once upon a time, in a small village by the sea,"]
TOKENS, NEAR = 64, 0.5  # nats

program, folder, files = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
folder.mkdir(parents=True, exist_ok=True)
far = 0
for path in map(pathlib.Path, files):
    run = folder / path.stem
    if not run.exists():
        subprocess.run([program, "import", path, "--out", run], check=True,
                       stdout=subprocess.DEVNULL)
    net = Llama(str(path), n_ctx=1024, n_threads=2, logits_all=True, verbose=False)
    choices, other, worst = 0, 0, 0.0
    for prompt in PROMPTS:
        said = json.loads(subprocess.run(
            [program, "generate", run, "--prompt", prompt, "--tokens", str(TOKENS), "--math", "exact",
             "--json"], check=True, stdout=subprocess.PIPE).stdout)
        before, ours = said["prompt_tokens"], said["tokens"]
        net.reset()
        net.eval(before + ours)
        logits = np.array(net.scores[len(before) - 1:len(before) + len(ours) - 1], np.float64)
        theirs = logits.argmax(-1)
        for i, token in enumerate(ours):
            choices += 1
            if theirs[i] != token:
                other += 1
                worst = max(worst, logits[i, theirs[i]] - logits[i, token])
    far += worst > NEAR
    print(f"{path.stem}: {choices} choices, {other} others, the worst by {worst:.3f} nats")
sys.exit(1 if far else 0)
