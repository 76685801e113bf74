"""Writes llama_lora.safetensors: an adapter of peft for the model of llama_biased.safetensors, with
random numbers in all its matrices, and the logits of the model with the adapter. The metadata contains
adapter_config.json. Development only:
    python tests/golden/peft_lora.py
With a folder that `longhand export --adapter` wrote for this model and adapter, the script loads the
folder with peft and prints the largest difference of a logit:
    python tests/golden/peft_lora.py FOLDER
"""
import json
import pathlib
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

here = pathlib.Path(__file__).parent
base = safe_open(here / "llama_biased.safetensors", "pt")
config = LlamaConfig(**json.loads(base.metadata()["config"]), attn_implementation="eager")
model = LlamaForCausalLM(config).eval()
own = {name: base.get_tensor(name) for name in base.keys()
       if not name.startswith(("golden.", "gradient."))}
model.load_state_dict(own)
tokens = base.get_tensor("golden.tokens").long()
lengths = base.get_tensor("golden.lengths").tolist()


def logits(of):
    with torch.no_grad():
        return torch.cat([of(part[None]).logits[0] for part in tokens.split(lengths)])


plain = logits(model)
if len(sys.argv) > 1:
    golden = safe_open(here / "llama_lora.safetensors", "pt")
    theirs = logits(PeftModel.from_pretrained(model, sys.argv[1]).eval())
    print("largest difference of a logit:", float((theirs - golden.get_tensor("golden.logits")).abs().max()))
    sys.exit()

torch.manual_seed(3)
lora = LoraConfig(r=3, lora_alpha=7, lora_dropout=0.0, bias="none", task_type="CAUSAL_LM",
                  target_modules=["q_proj", "v_proj", "o_proj", "gate_proj", "down_proj"])
adapted = get_peft_model(model, lora).eval()
with torch.no_grad():
    for name, parameter in adapted.named_parameters():
        if "lora_" in name:
            parameter.copy_(torch.randn_like(parameter) * 0.3)
together = logits(adapted)
tensors = {name: value.clone() for name, value in get_peft_model_state_dict(adapted).items()}
tensors["golden.logits"] = together
tensors["golden.plain"] = plain
written = {k: sorted(v) if isinstance(v, set) else v for k, v in lora.to_dict().items()}
keep = ("r", "lora_alpha", "target_modules", "bias", "fan_in_fan_out")
save_file(tensors, here / "llama_lora.safetensors",
          metadata={"adapter_config": json.dumps({k: written[k] for k in keep})})
print(sorted(tensors), float((together - plain).abs().max()))
