"""Writes llama_*, qwen2_* and gemma3_*.safetensors: small random models of these families, with
the logits, the loss, every gradient and 64 greedily decoded tokens that transformers 5.23.0 computes
for a ragged batch, in f32. The metadata contains the configuration in two forms: "config" in the form
of version 5 and "config_v4" in the form of version 4. Development only:
    python tests/golden/llama.py
"""
import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import (Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM,
                          Qwen2Config, Qwen2ForCausalLM)

here = pathlib.Path(__file__).parent
common = dict(vocab_size=29, hidden_size=24, intermediate_size=40, num_hidden_layers=2,
              max_position_embeddings=256, attn_implementation="eager", dtype="float32")
scaled = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=64)
cases = {
    "llama_tied": (LlamaConfig, LlamaForCausalLM, dict(
        num_attention_heads=3, num_key_value_heads=1, head_dim=10, rms_norm_eps=1e-5,
        rope_parameters=scaled, tie_word_embeddings=True)),
    "llama_biased": (LlamaConfig, LlamaForCausalLM, dict(
        num_attention_heads=4, num_key_value_heads=2, attention_bias=True, mlp_bias=True,
        rope_parameters=dict(rope_type="default", rope_theta=500.0), tie_word_embeddings=False)),
    "qwen2_tied": (Qwen2Config, Qwen2ForCausalLM, dict(
        num_attention_heads=4, num_key_value_heads=1,
        rope_parameters=dict(rope_type="default", rope_theta=1e6), tie_word_embeddings=True)),
    "qwen2_windowed": (Qwen2Config, Qwen2ForCausalLM, dict(
        num_attention_heads=3, num_key_value_heads=3, use_sliding_window=True, sliding_window=4,
        max_window_layers=1, rope_parameters=dict(rope_type="default", rope_theta=1e4),
        tie_word_embeddings=False)),
    "gemma3_tied": (Gemma3TextConfig, Gemma3ForCausalLM, dict(
        num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        query_pre_attn_scalar=10, sliding_window=4, pad_token_id=None, layer_types=[
            "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={"full_attention": dict(rope_type="default", rope_theta=1e6),
                         "sliding_attention": dict(rope_type="default", rope_theta=1e4)})),
}
lengths = [7, 1, 40, 5]

for name, (Config, Model, sizes) in cases.items():
    torch.manual_seed(1)
    config = Config(**{**common, **sizes})
    model = Model(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # random values for all parameters, including gains and biases
            parameter.add_(torch.randn_like(parameter) * 0.2)
    tokens = [torch.randint(29, (n,)) for n in lengths]
    targets = [torch.randint(29, (n,)) for n in lengths]
    for t in targets:
        t[torch.rand(t.shape) < 0.25] = -100
    logits = [model(t[None]).logits[0] for t in tokens]  # one by one, so that nothing is padded
    loss = torch.nn.functional.cross_entropy(torch.cat(logits), torch.cat(targets))
    loss.backward()

    prompt = tokens[0]
    said, margins = [], []
    with torch.no_grad():
        for _ in range(64):
            last = model(torch.cat([prompt, torch.tensor(said, dtype=torch.long)])[None]).logits[0, -1]
            best = last.topk(2)
            said.append(int(best.indices[0]))
            margins.append(float(best.values[0] - best.values[1]))

    tensors = {"golden.tokens": torch.cat(tokens).int(), "golden.lengths": torch.tensor(lengths).int(),
               "golden.targets": torch.cat(targets).int(), "golden.logits": torch.cat(logits).detach(),
               "golden.loss": loss.detach()[None], "golden.said": torch.tensor(said).int()}
    gradients = dict(model.named_parameters())
    for key, value in model.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        tensors[key] = value.clone()
        tensors["gradient." + key] = gradients[key].grad
    keep = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
            "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_act",
            "max_position_embeddings", "initializer_range", "rms_norm_eps", "rope_parameters",
            "attention_bias", "mlp_bias", "use_sliding_window", "sliding_window",
            "max_window_layers", "layer_types", "query_pre_attn_scalar", "hidden_activation",
            "attn_logit_softcapping", "final_logit_softcapping", "model_type", "tie_word_embeddings")
    new = {k: v for k, v in config.to_dict().items() if k in keep}
    old = {k: v for k, v in new.items() if k not in ("rope_parameters", "layer_types")}
    rope = dict(new["rope_parameters"])
    if "full_attention" in rope:
        old["layer_types"] = new["layer_types"]
        old["rope_theta"] = rope["full_attention"]["rope_theta"]
        old["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
    else:
        old["rope_theta"] = rope.pop("rope_theta")
        old["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    save_file(tensors, here / f"{name}.safetensors",
              metadata={"config": json.dumps(new), "config_v4": json.dumps(old)})
    print(name, float(loss), "least margin", min(margins),
          (here / f"{name}.safetensors").stat().st_size, "bytes")
