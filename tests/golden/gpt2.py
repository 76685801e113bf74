"""Writes gpt2_*.safetensors: small random GPT-2 models, with the logits, the loss and every gradient
that transformers computes for a ragged batch, in f32. Development only:
    python tests/golden/gpt2.py
"""
import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

here = pathlib.Path(__file__).parent
cases = {
    "tied": dict(n_embd=16, n_head=2, n_inner=None),
    "separate": dict(n_embd=24, n_head=3, n_inner=40, activation_function="gelu",
                     layer_norm_epsilon=1e-3, tie_word_embeddings=False, scale_attn_weights=False),
}
lengths = [7, 1, 12, 5]

for name, sizes in cases.items():
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=11, n_layer=2, n_positions=14, attn_implementation="eager",
                        bos_token_id=None, eos_token_id=None, **sizes)
    model = GPT2LMHeadModel(config).eval()
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
    for key, parameter in model.named_parameters():  # a tied output layer is listed once
        tensors[key] = parameter.detach().clone()
        tensors["gradient." + key] = parameter.grad
    keep = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner",
            "activation_function", "layer_norm_epsilon", "initializer_range", "scale_attn_weights",
            "model_type", "tie_word_embeddings")
    config = {k: v for k, v in config.to_dict().items() if k in keep}
    save_file(tensors, here / f"gpt2_{name}.safetensors", metadata={"config": json.dumps(config)})
    print(name, loss.item(), (here / f"gpt2_{name}.safetensors").stat().st_size, "bytes")
