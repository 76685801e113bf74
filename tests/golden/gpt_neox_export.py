"""Holds our export against transformers. Development only:
    python tests/golden/gpt_neox_export.py make THEIRS        # a small random model
    longhand import THEIRS RUN; longhand export RUN OURS
    python tests/golden/gpt_neox_export.py compare THEIRS OURS
"""
import sys

import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

if sys.argv[1] == "make":
    torch.manual_seed(3)
    model = GPTNeoXForCausalLM(GPTNeoXConfig(
        vocab_size=37, hidden_size=48, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=144, rotary_pct=1.0))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(sys.argv[2])
else:
    theirs = GPTNeoXForCausalLM.from_pretrained(sys.argv[2]).eval()
    ours, info = GPTNeoXForCausalLM.from_pretrained(sys.argv[3], output_loading_info=True)
    assert not any(info.values()), info
    tokens = torch.randint(theirs.config.vocab_size, (2, 19))
    difference = (theirs(tokens).logits - ours.eval()(tokens).logits).abs().max().item()
    print("largest difference of a logit:", difference)
    assert difference < 1e-4
