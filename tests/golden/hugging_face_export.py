"""Holds our export against transformers. Development only:
    python tests/golden/hugging_face_export.py make gpt2|gpt_neox THEIRS   # a small random model
    longhand import THEIRS --out RUN; longhand export RUN --out OURS
    python tests/golden/hugging_face_export.py compare THEIRS OURS
"""
import sys

import torch
from transformers import AutoModelForCausalLM, GPT2Config, GPTNeoXConfig

if sys.argv[1] == "make":
    torch.manual_seed(3)
    config = {
        "gpt2": GPT2Config(vocab_size=37, n_positions=32, n_embd=48, n_layer=3, n_head=4),
        "gpt_neox": GPTNeoXConfig(vocab_size=37, hidden_size=48, num_hidden_layers=3,
                                  num_attention_heads=4, intermediate_size=144, rotary_pct=1.0),
    }[sys.argv[2]]
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(sys.argv[3], max_shard_size="100KB")  # in shards
else:
    theirs = AutoModelForCausalLM.from_pretrained(sys.argv[2]).eval()
    ours, info = AutoModelForCausalLM.from_pretrained(sys.argv[3], output_loading_info=True)
    assert not any(info.values()), info
    tokens = torch.randint(theirs.config.vocab_size, (2, 19))
    difference = (theirs(tokens).logits - ours.eval()(tokens).logits).abs().max().item()
    print(type(ours).__name__, "largest difference of a logit:", difference)
    assert difference < 1e-4
