#!/usr/bin/env python3
"""Verifies a folder that `longhand audit` wrote: python3 verify.py. Needs only NumPy.
Gradients: the folder contains the outputs y for each input x moved by +step and -step along a random
direction u. <dx, u> must equal (<dy, y of plus> - <dy, y of minus>) / (2 step). Outputs of the
operations in formulas.py are computed again."""
import json, os, sys
import numpy as np
sys.dont_write_bytecode = True
import formulas

folder, wrong, gradients, outputs = os.path.dirname(os.path.abspath(__file__)), [], 0, 0
audit = json.load(open(os.path.join(folder, 'audit.json')))
for case in audit['cases']:
    z = dict(np.load(os.path.join(folder, case['file'])), **case['attributes'])
    for x in case['gradients']:
        terms = np.hstack([(z['d' + y] * (z[f'{y}.plus.{x}'] - z[f'{y}.minus.{x}'])).ravel()
                           for y in case['seeded']]) / (2 * audit['step'])
        off = np.vdot(z['d' + x], z[x + '.direction']) - terms.sum()
        gradients += 1
        if not abs(off) <= 1e-6 * abs(terms).sum() + 1e-8:
            wrong.append(f"{case['file']}: the gradient of {x} is off by {off}")
    again = formulas.output(case, z)
    if again is not None:
        outputs += 1
        if not np.allclose(z[case['outputs'][0]].ravel(), np.ravel(again), 1e-9, 1e-11):
            wrong.append(f"{case['file']}: another output")
print(*wrong, f'{gradients} gradients and {outputs} outputs verified, {len(wrong)} wrong', sep='\n')
sys.exit(bool(wrong))
