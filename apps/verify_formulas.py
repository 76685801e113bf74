"""Computes the outputs of longhand's common operations with NumPy in f64. An expression uses an
operation's inputs and attributes, which are members of z, by their names."""
import math
import numpy as np

act = {'none': lambda x: x, 'identity': lambda x: x, 'relu': lambda x: np.maximum(x, 0),
       'gelu': lambda x: x / 2 * (1 + np.vectorize(math.erf, [float])(x / 2 ** .5)),
       'gelu_tanh': lambda x: x / 2 * (1 + np.tanh((2 / np.pi) ** .5 * (x + .044715 * x ** 3))),
       'sigmoid': lambda x: 1 / (1 + np.exp(-x)), 'silu': lambda x: x / (1 + np.exp(-x)),
       'tanh': np.tanh, 'exp': np.exp, 'log': np.log, 'square': np.square}
def softmax(x): return (e := np.exp(x - x.max(-1, keepdims=True))) / e.sum(-1, keepdims=True)
def normed(x, epsilon): return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
def lower(rows, columns): return np.tri(rows, columns, columns - rows)
def turned(x, yes): return np.swapaxes(x, -1, -2) if yes else x
def cross_entropy(logits, targets, w):
    p = softmax(logits.reshape(targets.size, -1))[np.arange(targets.size), targets.ravel()]
    return -(w * np.log(p)).sum() / max(w.sum(), 1e-300)

def by_heads(z, head):
    """Calls head(scores, -inf for masked keys; q k^T; v; index of the head) for every head."""
    def columns(x, first, number, width): return x[:, first + number * width:][:, :width]
    q, n, m, far = z['q'], z['lengths'], z.get('key_lengths', z['lengths']), 10 ** 6
    k = z.get('k', q); v = z.get('v', k); heads = z['heads']; groups = z['key_heads'] or heads
    width, v_width = z['width'] or q.shape[1] // heads, z['v_width'] or v.shape[1] // groups
    j = np.hstack([s * far + np.arange(m[s]) for s in range(len(m))])  # positions of the keys
    i = np.hstack([s * far + np.arange(m[s] - n[s], m[s]) for s in range(len(m))])[:, None]
    seen, y = (j <= i) & (i - j < (z.get('window') or far / 2)), []
    if not z.get('causal', 1): seen = np.repeat(np.arange(len(n)), n)[:, None] == j // far
    for h in range(heads):
        g = h * groups // heads
        product = columns(q, z['q_column'], h, width) @ columns(k, z['k_column'], g, width).T
        s = product * (z.get('scale') or width ** -.5)
        if 'tau' in z: s = s * z['tau'][:, h:h + 1]
        if 'shift' in z: s = s + z['shift'][np.searchsorted(j, i), h] - z['shift'][:, h]
        s, values = np.where(seen, s, -np.inf), columns(v, z['v_column'], g, v_width)
        y.append(head(s, product, values, h))
    return np.hstack(y)
def attention(z, s, h):
    return softmax(np.c_[s, np.full(len(s), z['sink'][h])])[:, :-1] if 'sink' in z else softmax(s)
def gammas(z): return np.resize(z['gamma'], z['heads'])
def chacal(p, gamma, v):
    return (1 - gamma) * np.linalg.solve(np.eye(len(v)) - gamma * np.tril(p, -1), p @ v)
def fal(seen, product, v):  # a row's last visible token is its own; the last hit is before it
    hits = [(row := np.flatnonzero(a)[:-1])[p[row] > 0] for a, p in zip(seen, product)]
    return [p[f[-1]] * v[f[-1] + 1] if len(f) else 0 * v[0] for f, p in zip(hits, product)]

formulas = dict(
    add='a + b', subtract='a - b', multiply='a * b', divide='a / b', less='a < b',
    maximum='np.maximum(a, b)', minimum='np.minimum(a, b)', where='np.where(mask != 0, a, b)',
    activate='act[f](x)', gate='act[f](np.split(x, 2, 1)[0]) * np.split(x, 2, 1)[1]',
    add_bias='x + bias + residual', scale='alpha * x', embedding='table[ids]',
    gather='np.take_along_axis(x, index.astype(int), 1)', sum='x.sum()', mean='x.mean()',
    row_sum='x.sum(1)', column_sum='x.sum(0)', row_max='x.max(1)', argmax='x.argmax(-1)',
    squared_error='((x - targets) ** 2).mean()',
    layer_norm='normed(x - x.mean(-1, keepdims=True), epsilon) * gain + bias',
    rms_norm='normed(x, epsilon) * (offset + gain)',
    softmax='softmax(np.where(lower(*x.shape[-2:]) >= causal, x, -np.inf))',
    matmul='act[f](alpha * turned(a, transpose_a) @ turned(b, transpose_b) + bias) + residual',
    feed_forward='act[f](x @ up.T + up_bias) @ down.T + down_bias + residual',
    cross_entropy='cross_entropy(logits, targets, np.ravel((targets >= 0) * weights))',
    attention='by_heads(z, lambda s, product, v, h: attention(z, s, h) @ v)',
    chacal='by_heads(z, lambda s, _, v, h: chacal(attention(z, s, h), gammas(z)[h], v))',
    fal='by_heads(z, lambda s, product, v, h: fal(s > -np.inf, product, v))')

def output(case, z):
    """Returns the case's first output, or None if there is no formula for its operation."""
    absent = dict(bias=0, residual=0, up_bias=0, down_bias=0, weights=1)
    if case['op'] not in formulas: return None
    return eval(formulas[case['op']], {**globals(), **absent, **z, 'z': z})
