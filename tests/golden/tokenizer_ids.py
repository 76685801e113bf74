"""Writes tokenizer_ids.json: small tokenizers of each supported kind, texts, and the ids and decoded
texts that Hugging Face's tokenizers 0.23.3 returns for them.

    pip install tokenizers==0.23.3
    python3 tests/golden/tokenizer_ids.py build/release/apps/longhand

"trained" is the tokenizer that `longhand tokenize train` trains on "training_text".
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

ENGLISH = """The tokens of a text are what a model reads. A tokenizer cuts the text into words, and each word
into the longest pieces that its merges build; the pieces are numbered. It's simple, isn't it? We've
seen that they'll do, I'd say: 10 of 12, 345 of 6789, 2024-11-05. An index i <b>runs</b> over 0..n-1.
    def step(self, x):
        return self.weight @ x + self.bias  # one line
"""
OTHER = """Größe, café, naïve, Ελληνικά, русский язык, עברית, العربية, हिन्दी, ไทย, 日本語の文章, 中文句子。한국어.
"""
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + REST
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + REST

TEXTS = [
    "", " ", "  ", "\n", "Hello world", "  two  spaces", "a\n\n b\r\nc\r", "tab\tand\t\ttabs ",
    "It's it'S IT'LL we've I'd 'tis x'ſ", "12345 1 23 456", " 12 x 3", "x=1;\n\n\n  y", "!!\n\n??  \n z",
    "é e\u0301 \u1e69 s\u0323\u0307 s\u0307\u0323 \u212b \u2126 가 \u1100\u1161\u11a8 \uac00\u11a8",
    "\u0958 \u0f73\u0f71 \u0340\u0345 \u09c7\u09be", "日本語の文章。中文句子，你好", "हिन्दी में", "ไทยแลนด์",
    "नमस्ते दुनिया १२३", "مرحبا ١٢٣", "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪", "a\u00a0b\u3000c\u0085d\ufeffe\u0000f", "\u2028\u2029\u001c\u001f",
    "▁a▁▁b ▁ c", "<b>x</b> </b>  </i>> </b>", "<|end|>text<|end|><|start|> <|sta", "<|end|><|end|>more<|end", "\n\n\n\n\n\n",
    "\t\t\t x", " \n \n  \n", "a" * 70, "ab " * 40, " " * 120 + "x", "x" + "\n" * 60, "Ω≈ç√∫˜µ≤≥÷", "\U000e0101\U0010ffff\ue000",
    "²³¹½Ⅷ①一二三", "ſſ ﬁ ﬀ", "don''t '' ' 's", "snake_case CamelCase x_1", "\u200d\u200b\u2060", "\U0001d7d9\U00010107",
    "e\u0301  e\u0301   s\u0307\u0323     \ne\u0301\n  ", "d  d▁▁d ▁d▁ d", "!\0?\0\0) =\0\0=\0",
] + ENGLISH.splitlines() + OTHER.splitlines()


def trained(normalizer, splitter, special=("<|end|>", "<|start|>")):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=620, show_progress=False, special_tokens=list(special),
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([ENGLISH * 3 + OTHER], trainer)
    return json.loads(tokenizer.to_str())


def split_and_bytes(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2():
    return trained(None, pre_tokenizers.ByteLevel(add_prefix_space=False))


def llama3():
    """Has a template and, as in Llama 3, whole words in the vocabulary that no merge produces."""
    whole = trained(None, split_and_bytes(LLAMA3))
    whole["model"]["ignore_merges"] = True
    whole["model"]["vocab"]["Ġtokenizer"] = len(whole["model"]["vocab"])
    whole["post_processor"] = json.loads(processors.Sequence([
        processors.ByteLevel(),
        processors.TemplateProcessing(single="<|start|> $A", pair="<|start|> $A $B",
                                      special_tokens=[("<|start|>", 1)])]).__getstate__())
    return whole


def gpt_neox():
    """Has NFC, and added tokens that are matched after NFC: runs of spaces, which are also entries of
    the vocabulary, and a letter that NFC composes."""
    whole = trained(normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=False))
    assert "ĠĠ" in whole["model"]["vocab"]
    first = len(whole["model"]["vocab"])
    for i, content in enumerate(["    ", "   ", "  ", "s\u0323\u0307", "\n\u00e9\n"]):
        whole["added_tokens"].append({"id": first + i, "content": content, "single_word": False,
                                      "lstrip": False, "rstrip": False, "normalized": True,
                                      "special": False})
    return whole


def qwen2():
    return trained(normalizers.NFC(), split_and_bytes(QWEN2))


def smollm2():
    """Lacks some bytes, which are dropped."""
    whole = trained(None, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                   pre_tokenizers.ByteLevel(add_prefix_space=False)]))
    for character in "ÿóôĀĂ":
        whole["model"]["vocab"].pop(character)
    return whole


def gemma():
    """Has characters, bytes for all other characters, and a merge of a letter with a space."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                           decoders.Fuse()])
    special = ["<unk>", "<bos>"] + [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False, special_tokens=special)
    tokenizer.train_from_iterator([ENGLISH * 3 + "</b></i>"], trainer)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    whole = json.loads(tokenizer.to_str())
    whole["added_tokens"] = [t for t in whole["added_tokens"] if t["id"] < 2]
    vocabulary, merges = whole["model"]["vocab"], whole["model"]["merges"]
    for left, right in ((">", "▁</"), ("▁<", "/"), ("▁", "<")):
        vocabulary.setdefault(left + right, len(vocabulary))
        if [left, right] not in merges:
            merges.insert(0, [left, right])
    for content in ("\n\n", "\n\n\n", "\t\t", "<|end|>", "<|start|>", "d ▁d"):
        vocabulary.setdefault(content, len(vocabulary))
        whole["added_tokens"].append({"id": vocabulary[content], "content": content,
                                      "single_word": False, "lstrip": False, "rstrip": False,
                                      "normalized": content[0] == "d", "special": content[0] == "<"})
    whole["post_processor"] = json.loads(processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A $B", special_tokens=[("<bos>", 1)]).__getstate__())
    return whole


def by_longhand(program):
    with tempfile.TemporaryDirectory() as folder:
        text, out = pathlib.Path(folder, "text"), pathlib.Path(folder, "out.json")
        text.write_text(ENGLISH * 3 + OTHER)
        subprocess.run([program, "tokenize", "train", text, "--out", out, "--size", "500",
                        "--pattern", "llama3", "--special", "<|end|>", "--special", "<|start|>"],
                       check=True)
        return json.loads(out.read_text())


def main():
    kinds = {"gpt2": gpt2(), "gpt_neox": gpt_neox(), "llama3": llama3(), "qwen2": qwen2(),
             "smollm2": smollm2(), "gemma": gemma(), "trained": by_longhand(sys.argv[1])}
    result = {"training_text": ENGLISH * 3 + OTHER, "texts": TEXTS, "tokenizers": {}}
    for name, whole in kinds.items():
        tokenizer = Tokenizer.from_str(json.dumps(whole))
        ids = [tokenizer.encode(text).ids for text in TEXTS]
        bare = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
        size = tokenizer.get_vocab_size()
        # Ids in an order that no text produces. Their bytes include incomplete characters.
        mixed = [[(7 * i * k + k) % size for i in range(40)] for k in range(1, 9)]
        mixed = [[i for i in row if tokenizer.id_to_token(i) is not None] for row in mixed]
        result["tokenizers"][name] = {
            "tokenizer": whole, "ids": ids, "bare": bare,
            "decoded": [tokenizer.decode(row, skip_special_tokens=False) for row in ids],
            "plain": [tokenizer.decode(row, skip_special_tokens=True) for row in ids],
            "mixed": mixed,
            "mixed_decoded": [tokenizer.decode(row, skip_special_tokens=False) for row in mixed]}
    lines = [f'{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}' for k, v in
             result["tokenizers"].items()]
    out = pathlib.Path(__file__).parent / "tokenizer_ids.json"
    out.write_text('{"training_text": %s,\n"texts": %s,\n"tokenizers": {\n%s\n}}\n' % (
        json.dumps(result["training_text"], ensure_ascii=False),
        json.dumps(TEXTS, ensure_ascii=False), ",\n".join(lines)))
    print(out, out.stat().st_size, "bytes")


main()
