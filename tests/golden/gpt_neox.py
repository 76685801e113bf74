"""Writes gpt_neox_*.safetensors: small random GPT-NeoX models, with the logits, the loss and every
gradient that transformers computes for a ragged batch, in f32. Development only:
    python tests/golden/gpt_neox.py
"""
import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

here = pathlib.Path(__file__).parent
cases = {
    "parallel": dict(hidden_size=16, num_attention_heads=2, intermediate_size=48, rotary_pct=1.0),
    "sequential": dict(hidden_size=24, num_attention_heads=2, intermediate_size=40, rotary_pct=0.5,
                       rotary_emb_base=500, hidden_act="gelu_new", use_parallel_residual=False,
                       layer_norm_eps=1e-3),
    # 5 of 10 entries per head: transformers rotates 6 entries, with the frequencies base^(-2p/5)
    "odd": dict(hidden_size=20, num_attention_heads=2, intermediate_size=24, rotary_pct=0.5),
}
lengths = [7, 1, 12, 5]

for name, sizes in cases.items():
    torch.manual_seed(1)
    config = GPTNeoXConfig(vocab_size=11, num_hidden_layers=2, attn_implementation="eager", **sizes)
    model = GPTNeoXForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # random values for all parameters, including biases and gains
            parameter.add_(torch.randn_like(parameter) * 0.2)
    tokens = [torch.randint(11, (n,)) for n in lengths]
    targets = [torch.randint(11, (n,)) for n in lengths]
    for t in targets:
        t[torch.rand(t.shape) < 0.25] = -100
    logits = [model(t[None]).logits[0] for t in tokens]  # one by one, so that nothing is padded
    loss = torch.nn.functional.cross_entropy(torch.cat(logits), torch.cat(targets))
    loss.backward()

    tensors = {"golden.tokens": torch.cat(tokens).int(), "golden.lengths": torch.tensor(lengths).int(),
               "golden.targets": torch.cat(targets).int(), "golden.logits": torch.cat(logits).detach(),
               "golden.loss": loss.detach()[None]}
    gradients = dict(model.named_parameters())
    for key, value in model.state_dict().items():
        # transformers gives the output layer another name in files: embed_out.
        saved = key.replace("lm_head", "embed_out")
        tensors[saved] = value.clone()
        tensors["gradient." + saved] = gradients[key].grad
    keep = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
            "intermediate_size", "hidden_act", "max_position_embeddings", "initializer_range",
            "layer_norm_eps", "use_parallel_residual", "attention_bias", "rope_parameters",
            "model_type", "tie_word_embeddings")
    config = {k: v for k, v in config.to_dict().items() if k in keep}
    save_file(tensors, here / f"gpt_neox_{name}.safetensors", metadata={"config": json.dumps(config)})
    print(name, float(loss), (here / f"gpt_neox_{name}.safetensors").stat().st_size, "bytes")
