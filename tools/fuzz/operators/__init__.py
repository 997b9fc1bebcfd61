"""What is drawn, and what it must give: a generator for every operator, by family.

A generator takes the builder and the operator's name, draws inputs and attributes, computes the
result in float64 (integers in their own type) and adds the node. It raises `Skip` where the
standard leaves a result open.
"""

import importlib

REGISTRY = {}
FAMILIES = [
    "pointwise", "choices", "reductions", "movement", "indexing", "windows", "products",
    "normalisation", "resampling", "quantisation", "recurrent", "control", "sequences", "texts", "narrow",
    "references",
]


def operator(*names, weight=1):
    def register(function):
        for name in names:
            REGISTRY[name] = (function, weight)
        return function

    return register


def load():
    for family in FAMILIES:
        importlib.import_module(f"operators.{family}")
    return REGISTRY
