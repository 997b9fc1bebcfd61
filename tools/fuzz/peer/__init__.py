"""Single operators, compared with onnxruntime: attributes, ties, empty tensors and numbers at which the text of the standard is silent.

A generator takes a `Draw`, and returns a `Question`. What onnxruntime refuses is no case.
"""

import importlib

REGISTRY = {}
FAMILIES = ["sampling", "windows", "layers", "selection", "reductions", "numbers", "movement", "signals", "microsoft"]


def operator(*names, weight=1):
    def register(function):
        for name in names:
            REGISTRY[name] = (function, weight)
        return function

    return register


def load():
    for family in FAMILIES:
        importlib.import_module(f"peer.{family}")
    return REGISTRY
