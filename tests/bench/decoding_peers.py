"""Compares a language model's decoding and prompt reading with transformers and llama.cpp.

    pip install torch transformers==5.23.0 llama-cpp-python==0.3.36 gguf
    python3 tests/bench/decoding_peers.py build/release/apps/longhand [--models smollm2-135m,qwen2.5-0.5b]
        [--types f32,bf16] [--rounds 3] [--peers eager,compiled,llama.cpp]

The models have random weights and the published shapes. Each program decodes greedily after a prompt
of 16 tokens, and reads a prompt of 512 tokens. The programs run in turn.
"""
import sys
import time

import peers

SHAPES = {
    "smollm2-135m": ("llama", dict(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
        num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=8192,
        tie_word_embeddings=True)),
    "qwen2.5-0.5b": ("qwen2", dict(
        vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
        num_attention_heads=14, num_key_value_heads=2, max_position_embeddings=32768,
        tie_word_embeddings=True)),
    "llama-3.2-1b": ("llama", dict(
        vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
        num_attention_heads=32, num_key_value_heads=8, head_dim=64,
        max_position_embeddings=131072, tie_word_embeddings=True)),
}


def transformers_times(model, dtype, compiles, tokens):
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

    family, shape = SHAPES[model]
    config = {"llama": LlamaConfig, "qwen2": Qwen2Config}[family](**shape)
    with torch.no_grad():
        net = AutoModelForCausalLM.from_config(
            config, dtype=torch.float32 if dtype == "f32" else torch.bfloat16).eval()
        forward = torch.compile(net.forward, dynamic=True) if compiles else net.forward

        def decode(prompt, count):
            ids = torch.arange(prompt)[None] % config.vocab_size
            cache, times, last = None, [], time.perf_counter()
            for _ in range(count):
                out = forward(input_ids=ids, past_key_values=cache, use_cache=True,
                              logits_to_keep=1)
                cache, ids = out.past_key_values, out.logits[:, -1:].argmax(-1)
                times.append(time.perf_counter() - last)
                last = time.perf_counter()
            return times

        decode(16, 6)
        later = sorted(decode(16, tokens)[1:])
        prompt = min(decode(512, 1)[0] for _ in range(2))
    return {"token_ms": 1e3 * later[len(later) // 2], "prompt_ms": 1e3 * prompt}


def write_gguf(path, model, dtype):
    """Writes a file for llama.cpp with random tensors of the shape and an empty vocabulary."""
    import gguf
    import numpy as np

    family, shape = SHAPES[model]
    width, inner, heads = (shape[key] for key in
                           ("hidden_size", "intermediate_size", "num_attention_heads"))
    head = shape.get("head_dim", width // heads)
    key_heads = shape["num_key_value_heads"]
    kind = {"f32": gguf.GGMLQuantizationType.F32, "bf16": gguf.GGMLQuantizationType.BF16}[dtype]
    random = np.random.default_rng(1).normal(0, 0.02, 1 << 20).astype(np.float32)

    writer = gguf.GGUFWriter(path, family)
    writer.add_block_count(shape["num_hidden_layers"])
    writer.add_context_length(1024)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(1e4)
    writer.add_tokenizer_model("no_vocab")
    writer.add_vocab_size(shape["vocab_size"])

    def matrix(name, rows, columns):
        data = gguf.quants.quantize(np.resize(random, (rows, columns)), kind)
        writer.add_tensor(name + ".weight", data, raw_dtype=kind)

    def vector(name, numbers):
        writer.add_tensor(name, np.ones(numbers, np.float32))

    matrix("token_embd", shape["vocab_size"], width)
    vector("output_norm.weight", width)
    for layer in range(shape["num_hidden_layers"]):
        block = f"blk.{layer}."
        vector(block + "attn_norm.weight", width)
        vector(block + "ffn_norm.weight", width)
        for name, count in (("q", heads), ("k", key_heads), ("v", key_heads)):
            matrix(block + "attn_" + name, count * head, width)
            if family == "qwen2":
                vector(f"{block}attn_{name}.bias", count * head)
        matrix(block + "attn_output", width, heads * head)
        matrix(block + "ffn_gate", inner, width)
        matrix(block + "ffn_up", inner, width)
        matrix(block + "ffn_down", width, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def llama_cpp_times(model, dtype, threads, tokens):
    import os
    import tempfile

    from llama_cpp import Llama

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.gguf")
        write_gguf(path, model, dtype)
        net = Llama(path, n_ctx=1024, n_batch=512, n_ubatch=512, n_threads=threads,
                    n_threads_batch=threads, verbose=False)
        vocabulary = SHAPES[model][1]["vocab_size"]

        def decode(prompt, count):
            net.reset()
            times = [peers.timed(lambda: net.eval([i % vocabulary for i in range(prompt)]))]
            return times + [peers.timed(lambda: net.eval([i])) for i in range(1, count)]

        decode(16, 6)
        later = sorted(decode(16, tokens)[1:])
        prompt = min(decode(512, 1)[0] for _ in range(2))
    return {"token_ms": 1e3 * later[len(later) // 2], "prompt_ms": 1e3 * prompt}


def theirs(model, dtype, who, threads, tokens):
    if who == "llama.cpp":
        return llama_cpp_times(model, dtype, threads, tokens)
    return transformers_times(model, dtype, who == "compiled", tokens)


def main():
    parser = peers.arguments(models="smollm2-135m", types="f32,bf16", rounds=3, peers="eager")
    options = parser.parse_args()
    if options.serve:
        peers.serve(theirs, options)
        return
    contenders = peers.Contenders(__file__, options, options.under.split())
    print(f"{'model':14} {'weights':8} {'who':12} {'token ms':>9} {'prompt ms':>10} {'ratio':>6} "
          f"{'of reading':>10}")
    for model in options.models.split(","):
        for dtype in options.types.split(","):
            best = {}
            for _ in range(options.rounds):
                rows = peers.rows_of([
                    *options.under.split(), options.program, "bench", "decoding", "--size", model,
                    "--dtype", dtype, "--threads", str(options.threads), "--seconds", "1",
                    "--json"])
                sides = {"longhand": {"token_ms": rows[0]["milliseconds"],
                                      "prompt_ms": rows[1]["milliseconds"],
                                      "share": rows[0]["share"]}}
                for who in options.peers.split(","):
                    sides[who] = contenders.ask(model, dtype, who, options.threads, 20)
                for who, side in sides.items():
                    if "failed" in side:
                        continue
                    if who not in best or side["token_ms"] < best[who]["token_ms"]:
                        best[who] = side
            for who, side in best.items():
                ratio = side["token_ms"] / best["longhand"]["token_ms"]
                share = f"{side['share']:.2f}" if "share" in side else ""
                print(f"{model:14} {dtype:8} {who:12} {side['token_ms']:9.1f} "
                      f"{side['prompt_ms']:10.0f} {ratio:6.2f} {share:>10}")
                sys.stdout.flush()
                peers.keep(options, {"model": model, "weights": dtype, "who": who, **side})


if __name__ == "__main__":
    main()
