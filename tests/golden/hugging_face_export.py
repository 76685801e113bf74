"""Compares the export of longhand with transformers. Development only:
    python tests/golden/hugging_face_export.py make FAMILY THEIRS   # a small random model
    longhand import THEIRS --out RUN; longhand export RUN --out OURS
    python tests/golden/hugging_face_export.py compare THEIRS OURS
"""
import sys

import torch
from transformers import (AutoModelForCausalLM, Gemma3TextConfig, GPT2Config, GPTNeoXConfig,
                          LlamaConfig, Qwen2Config)

if sys.argv[1] == "make":
    torch.manual_seed(3)
    config = {
        "gpt2": GPT2Config(vocab_size=37, n_positions=32, n_embd=48, n_layer=3, n_head=4),
        "gpt_neox": GPTNeoXConfig(vocab_size=37, hidden_size=48, num_hidden_layers=3,
                                  num_attention_heads=4, intermediate_size=144, rotary_pct=1.0),
        "llama": LlamaConfig(
            vocab_size=37, hidden_size=48, num_hidden_layers=3, num_attention_heads=6,
            num_key_value_heads=2, intermediate_size=80, head_dim=16, tie_word_embeddings=True,
            rope_parameters=dict(rope_type="llama3", rope_theta=1e4, factor=8.0, low_freq_factor=1.0,
                                 high_freq_factor=4.0, original_max_position_embeddings=64)),
        "qwen2": Qwen2Config(
            vocab_size=37, hidden_size=40, num_hidden_layers=3, num_attention_heads=5,
            num_key_value_heads=1, intermediate_size=64, use_sliding_window=True, sliding_window=4,
            max_window_layers=1, tie_word_embeddings=False),
        "gemma3": Gemma3TextConfig(
            vocab_size=37, hidden_size=24, num_hidden_layers=4, num_attention_heads=4,
            num_key_value_heads=2, intermediate_size=40, head_dim=8, query_pre_attn_scalar=10,
            sliding_window=4, pad_token_id=None),
    }[sys.argv[2]]
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(sys.argv[3], max_shard_size="100KB")  # in shards
else:
    theirs = AutoModelForCausalLM.from_pretrained(sys.argv[2], dtype=torch.float32).eval()
    ours, info = AutoModelForCausalLM.from_pretrained(sys.argv[3], dtype=torch.float32,
                                                      output_loading_info=True)
    assert not any(info.values()), info
    tokens = torch.randint(theirs.config.vocab_size, (2, 19))
    difference = (theirs(tokens).logits - ours.eval()(tokens).logits).abs().max().item()
    print(type(ours).__name__, "largest difference of a logit:", difference)
    assert difference < 1e-4
