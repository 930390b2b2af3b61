"""Computes every figure of an evaluation and its uncertainty, by pure functions on plain records.

None means "undefined"; NaN is never returned. Each function names its formula, or the library
function that it calls. Nothing here reads, writes or runs anything:

>>> from graphrag.eval.stats.intervals import mean_binary
>>> round(mean_binary([1, 1, 0, None]).mean, 3)
0.667
"""
