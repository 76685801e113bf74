#!/usr/bin/env python3
"""Verifies a folder that `longhand audit` wrote: python3 verify.py. Needs NumPy alone.
Gradients: each input x was moved by +step and -step along a random direction u; then
<dx, u> is (<dy, y of plus> - <dy, y of minus>) / (2 step). Outputs: those of the operations in
`formulas` are computed again here."""
import json, math, os, sys
import numpy as np

def sigmoid(x): return 1 / (1 + np.exp(-x))
def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
erf = np.vectorize(math.erf, otypes=[float])
act = {'none': lambda x: x, 'identity': lambda x: x, 'relu': lambda x: np.maximum(x, 0),
       'gelu': lambda x: x / 2 * (1 + erf(x / 2 ** .5)), 'silu': lambda x: x * sigmoid(x),
       'gelu_tanh': lambda x: x / 2 * (1 + np.tanh((2 / np.pi) ** .5 * (x + .044715 * x ** 3))),
       'sigmoid': sigmoid, 'tanh': np.tanh, 'exp': np.exp, 'log': np.log, 'square': np.square}
def turned(x, yes): return np.swapaxes(x, -1, -2) if yes else x
def normed(x, epsilon): return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
def centred(x): return x - x.mean(-1, keepdims=True)

def by_heads(z, p, head):
    """head(scores, q k^T, v, number), of every sequence and head."""
    q, lengths = z['q'], z['lengths']
    k = z.get('k', q)
    v, heads = z.get('v', k), p['heads']
    groups = p['key_heads'] or heads
    width, v_width = p['width'] or q.shape[1] // heads, p['v_width'] or v.shape[1] // groups
    y, at, of = np.zeros((len(q), heads * v_width)), 0, 0
    for n, m in zip(lengths, z.get('key_lengths', lengths)):
        i, j = np.arange(n)[:, None] + m - n, np.arange(m)[None]
        seen = (j <= i) & (j > i - (p.get('window') or m + n))
        for h in range(heads if n and m else 0):
            a, g = p['q_column'] + h * width, h * groups // heads
            b, c = p['k_column'] + g * width, p['v_column'] + g * v_width
            product = q[at:at + n, a:a + width] @ k[of:of + m, b:b + width].T
            s = product * (p.get('scale') or width ** -.5)
            if 'tau' in z: s = s * z['tau'][at:at + n, h:h + 1]
            if 'shift' in z:
                shift = z['shift'][of:of + m, h]
                s = s + shift[m - n:, None] - shift[None]
            y[at:at + n, h * v_width:(h + 1) * v_width] = head(
                np.where(seen, s, -np.inf), product, v[of:of + m, c:c + v_width], h)
        at, of = at + n, of + m
    return y
def weights(z, s, h):
    if 'sink' not in z: return softmax(s)
    return softmax(np.hstack([s, np.full((len(s), 1), z['sink'][h])]))[:, :-1]
def chacal(z, s, v, h):
    attention, gamma = weights(z, s, h), z['gamma'].ravel()[h % z['gamma'].size]
    system = np.eye(len(s)) - gamma * np.tril(attention, -1)
    return (1 - gamma) * np.linalg.solve(system, attention @ v)
def fal(product, v):
    more = len(v) - len(product)
    found = [np.flatnonzero(row[:i + more] > 0) for i, row in enumerate(product)]
    return [product[i, f[-1]] * v[f[-1] + 1] if len(f) else 0 * v[0] for i, f in enumerate(found)]
def cross_entropy(z, p):
    x, t = z['logits'].reshape(-1, z['logits'].shape[-1] // p['groups']), z['targets'].ravel()
    w = (t >= 0) * (z['weights'].ravel() if 'weights' in z else 1.)
    return (w * -np.log(softmax(x))[np.arange(len(t)), t]).sum() / max(w.sum(), 1e-300)
def feed_forward(z, p):
    inner = act[p['f']](z['x'] @ z['up'].T + z.get('up_bias', 0))
    return inner @ z['down'].T + z.get('down_bias', 0) + z.get('residual', 0)
def matmul(z, p):
    product = turned(z['a'], p['transpose_a']) @ turned(z['b'], p['transpose_b'])
    return act[p['f']](p['alpha'] * product + z.get('bias', 0)) + z.get('residual', 0)
def softmax_rows(z, p):
    rows, columns = z['x'].shape[-2:]
    seen = np.tri(rows, columns, columns - rows, bool) if p['causal'] else True
    return softmax(np.where(seen, z['x'], -np.inf))

formulas = {
    'add': lambda z, p: z['a'] + z['b'], 'subtract': lambda z, p: z['a'] - z['b'],
    'multiply': lambda z, p: z['a'] * z['b'], 'divide': lambda z, p: z['a'] / z['b'],
    'maximum': lambda z, p: np.maximum(z['a'], z['b']), 'scale': lambda z, p: p['alpha'] * z['x'],
    'minimum': lambda z, p: np.minimum(z['a'], z['b']), 'less': lambda z, p: z['a'] < z['b'],
    'where': lambda z, p: np.where(z['mask'] != 0, z['a'], z['b']),
    'activate': lambda z, p: act[p['f']](z['x']), 'embedding': lambda z, p: z['table'][z['ids']],
    'gate': lambda z, p: act[p['f']](np.split(z['x'], 2, 1)[0]) * np.split(z['x'], 2, 1)[1],
    'add_bias': lambda z, p: z['x'] + z.get('bias', 0) + z.get('residual', 0),
    'gather': lambda z, p: np.take_along_axis(z['x'], z['index'].astype(int), 1),
    'squared_error': lambda z, p: ((z['x'] - z['targets']) ** 2).mean(),
    'layer_norm': lambda z, p: normed(centred(z['x']), p['epsilon']) * z['gain'] + z.get('bias', 0),
    'rms_norm': lambda z, p: normed(z['x'], p['epsilon']) * (p['offset'] + z['gain']),
    'row_sum': lambda z, p: z['x'].sum(1), 'column_sum': lambda z, p: z['x'].sum(0),
    'sum': lambda z, p: z['x'].sum(), 'mean': lambda z, p: z['x'].mean(),
    'row_max': lambda z, p: z['x'].max(1), 'argmax': lambda z, p: z['x'].argmax(-1),
    'softmax': softmax_rows, 'matmul': matmul, 'feed_forward': feed_forward,
    'cross_entropy': cross_entropy,
    'attention': lambda z, p: by_heads(z, p, lambda s, product, v, h: weights(z, s, h) @ v),
    'chacal': lambda z, p: by_heads(z, p, lambda s, product, v, h: chacal(z, s, v, h)),
    'fal': lambda z, p: by_heads(z, p, lambda s, product, v, h: fal(product, v))}

folder = os.path.dirname(os.path.abspath(__file__))
audit = json.load(open(os.path.join(folder, 'audit.json')))
step, wrong, slopes, outputs = audit['step'], [], 0, 0
for case in audit['cases']:
    z, name = dict(np.load(os.path.join(folder, case['file']))), case['file']
    for x in case['gradients']:
        found = np.vdot(z['d' + x], z[x + '.direction'])
        terms = [z['d' + y] * (z[f'{y}.plus.{x}'] - z[f'{y}.minus.{x}']) / (2 * step)
                 for y in case['seeded']]
        wanted, size = sum(t.sum() for t in terms), sum(np.abs(t).sum() for t in terms)
        slopes += 1
        if not abs(found - wanted) <= 1e-6 * size + 1e-8:
            wrong.append((name, 'd' + x, found, wanted))
    if case['op'] in formulas:
        y, again = z[case['outputs'][0]], formulas[case['op']](z, case['attributes'])
        outputs += 1
        if not np.allclose(y.ravel(), np.ravel(again), 1e-9, 1e-11): wrong.append((name, 'output'))
for entry in wrong: print('WRONG', *entry)
print(f'{slopes} gradients and {outputs} outputs verified, {len(wrong)} wrong')
sys.exit(bool(wrong))
