#!/usr/bin/env python3
"""Compares fine-tuning steps of a run's model with PyTorch, transformers and peft. Development only.

    finetune_peers.py build/apps/longhand RUN [--length 512] [--batch 1] [--steps 6] [--modes full,lora]

RUN is an imported Llama, Qwen 2 or Gemma 3. Both sides start from the same weights (`longhand export`)
and train on windows of this repository's documents with AdamW in f32, each in a separate process. The
time of a step is the median of all steps after the first; the memory is the peak of the process.
longhand runs with --math exact and fast. The mode lora has rank 8 on queries and values; with
recompute, blocks are computed again in the backward pass.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parents[2]
ours = {"full": [], "recompute": ["--recompute", "1"],
        "lora": ["--lora", "8", "--lora-alpha", "16", "--lora-targets", "query,value"],
        "moments": ["--moments", "bf16", "--beta2", "0.99"]}


def theirs(folder, text, mode, length, batch, steps):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.train()
    if mode == "lora":
        from peft import LoraConfig, get_peft_model
        model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, task_type="CAUSAL_LM",
                                                 target_modules=["q_proj", "v_proj"]))
    if mode == "recompute":
        model.gradient_checkpointing_enable()
    learning = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=1e-5, weight_decay=0.0, fused=True)
    ids = torch.tensor(json.loads(pathlib.Path(text).read_text()))
    generator = torch.Generator().manual_seed(1)
    times = []
    for _ in range(steps):
        first = torch.randint(len(ids) - length, (batch,), generator=generator)
        window = torch.stack([ids[i:i + length] for i in first.tolist()])
        begin = time.perf_counter()
        loss = model(input_ids=window, labels=window).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - begin)
    print(json.dumps({"ms": 1000 * statistics.median(times[1:]), "loss": float(loss.detach())}))


def peak_of(words):
    """Returns the command's output and its peak memory in MiB."""
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out = child.stdout.read()
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(words)} failed: {said[-2000:]}")
    return out, usage.ru_maxrss / 1024


def main():
    if sys.argv[1] == "--theirs":
        folder, text, mode, length, batch, steps = sys.argv[2:]
        return theirs(folder, text, mode, int(length), int(batch), int(steps))
    parser = argparse.ArgumentParser()
    parser.add_argument("longhand")
    parser.add_argument("run")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--modes", default="full,recompute,lora")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = folder / "text.txt"
        text.write_text("".join(p.read_text() for p in sorted((root / "docs").rglob("*.md"))))
        subprocess.run([a.longhand, "export", a.run, "--out", folder / "model"], check=True,
                       stdout=subprocess.DEVNULL)
        ids = subprocess.run([a.longhand, "tokenize", text, "--tokenizer", pathlib.Path(a.run) /
                              "tokenizer", "--ids"], check=True, capture_output=True, text=True)
        (folder / "ids.json").write_text(json.dumps([int(i) for i in ids.stdout.split()]))
        print("| what learns | who | ms a step | process MiB |\n|---|---|---|---|")
        for mode in a.modes.split(","):
            for math in ("exact", "fast"):
                run = folder / f"{mode}-{math}"
                _, mib = peak_of([a.longhand, "train", "--from", a.run, "--text", text, "--task.length",
                                  str(a.length), "--batch", str(a.batch), "--steps", str(a.steps),
                                  "--rate", "1e-5", "--schedule", "constant", "--warm_up", "0",
                                  "--evaluate_samples", "0", "--math", math, "--quiet", "--out", run,
                                  *ours[mode]])
                lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
                seconds = [line["seconds"] for line in lines if "seconds" in line][1:]
                print(f"| {mode} | longhand {math} | {1000 * statistics.median(seconds):.0f} | {mib:.0f} |",
                      flush=True)
            if mode == "moments":
                continue
            out, mib = peak_of([sys.executable, __file__, "--theirs", folder / "model", folder /
                                "ids.json", mode, str(a.length), str(a.batch), str(a.steps)])
            print(f"| {mode} | transformers | {json.loads(out)['ms']:.0f} | {mib:.0f} |", flush=True)


main()
