"""Compares greedy text of exported GGUF files in longhand and llama.cpp. Not part of the tests.

    pip install xllamacpp==2026.10.11549
    python tests/golden/llama_cpp_export.py build/release/apps/longhand FOLDER [TYPE ...]

Trains a small model of every family on this repository's guides, exports it with all types, and continues
prompts with both programs. longhand imports the file, and xllamacpp is llama.cpp with a Python interface.
Counts the characters before the first difference of each continuation. For q4_k, the model has rows of 256 numbers,
because longhand would store shorter rows as q8_0.
"""
import json
import pathlib
import subprocess
import sys

import xllamacpp

PROMPTS = ["The run", "A model of", "longhand train --task text", "1234 steps"]
TOKENS = 48
TYPES = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_k"]
COMMON = ("--layers 2 --width {width} --inner {inner} --steps 300 --batch 8 --rate 3e-3 --task.length 64 "
          "--evaluate-samples 8 --evaluate-every 1000 --order sequential --quiet --tokenizer {tokenizer} "
          "--text {text}")
LLAMA = "--norm rms --gated 1 --activation silu --feed-forward-bias 0 --out-bias 0"
FAMILIES = {
    "llama": f"--heads softmax:4/2 {LLAMA} --attention-bias 0",
    "qwen2": f"--heads softmax:4 {LLAMA} --attention-bias 1 --tied 1",
    "gemma3": "--heads softmax:4{{score_scale={scale},window=24,head_norm=rms_plus_one}} --norm rms_plus_one "
              "--norms-after 1 --gated 1 --activation gelu_tanh --feed-forward-bias 0 --out-bias 0 "
              "--attention-bias 0 --tied 1 --embedding-scale {root}",
    "gpt2": "--heads softmax:4 --positions learned --activation gelu_tanh --tied 1",
}


def longhand(*words):
    return subprocess.run([program, *words], check=True, stdout=subprocess.PIPE).stdout


program, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
guides = pathlib.Path(__file__).parents[2] / "docs/guide"
corpus, tokenizer = folder / "guides.txt", folder / "tokenizer.json"
corpus.write_text("\n".join(page.read_text() for page in sorted(guides.glob("*.md"))))
if not tokenizer.exists():
    longhand("tokenize", "train", corpus, "--out", tokenizer, "--size", "512")
print("| family | type | size | characters | equal |\n|---|---|---|---|---|")
failed = 0
for family, flags in FAMILIES.items():
    for kind in sys.argv[3:] or TYPES:
        width = 256 if kind == "q4_k" else 64
        run = folder / f"{family}-{width}"
        if not run.exists():
            words = f"{COMMON} {flags}".format(tokenizer=tokenizer, text=corpus, width=width, inner=2 * width,
                                               scale=(width // 4) ** -0.5, root=width ** 0.5).split()
            longhand("train", "--task", "text", *words, "--out", run)
        file, again = folder / f"{family}-{kind}.gguf", folder / f"{family}-{kind}"
        if not file.exists():
            longhand("export", run, "--gguf", file, "--type", kind)
            longhand("import", file, "--out", again)
        params = xllamacpp.CommonParams()
        params.model.path = str(file)
        params.n_ctx, params.n_gpu_layers, params.warmup = 256, 0, False
        params.cpuparams.n_threads = 1
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        server = xllamacpp.Server(params)
        total = equal = 0
        for prompt in PROMPTS:
            ours = json.loads(longhand("generate", again, "--prompt", prompt, "--tokens", str(TOKENS),
                                       "--temperature", "0", "--stop", "", "--math", "exact", "--json"))
            theirs = server.handle_completions({"prompt": prompt, "n_predict": TOKENS, "temperature": 0,
                                                "ignore_eos": True})
            assert theirs["usage"]["prompt_tokens"] == len(ours["prompt_tokens"]), (ours, theirs)
            text = theirs["choices"][0]["text"]
            total += len(ours["text"])
            equal += next((i for i, (a, b) in enumerate(zip(ours["text"], text)) if a != b), len(text))
        failed += kind == "f32" and equal < 0.75 * total
        print(f"| {family} | {kind} | {file.stat().st_size:,} bytes | {total} | {equal} |", flush=True)
sys.exit(1 if failed else 0)
