"""The computation as a picture, forward and backward, and why a gradient is missing from it.

A tracer of a host makes one frozen value, `Graph`, of a function and its inputs; everything else here is a
pure function of that value: folding, DOT, Mermaid, SVG, text, and the answer of `why`.
"""
