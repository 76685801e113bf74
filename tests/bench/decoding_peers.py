"""A language model's next token, and its prompt, beside transformers, turn by turn in one run.

    pip install torch transformers==5.23.0
    python3 tests/bench/decoding_peers.py build/release/apps/longhand [--models smollm2-135m,qwen2.5-0.5b]
        [--types f32,bf16] [--rounds 3] [--compile 1]

Random weights of the published shapes; both decode greedily after a prompt of 16 tokens, and read
one of 512.
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


def theirs(model, dtype, compiles, tokens):
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


def main():
    parser = peers.arguments(models="smollm2-135m", types="f32,bf16", rounds=3, compile=0)
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
                                      "share": rows[0]["share"]},
                         "eager": contenders.ask(model, dtype, False, 20)}
                if options.compile:
                    sides["compiled"] = contenders.ask(model, dtype, True, 20)
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
