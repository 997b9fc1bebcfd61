"""Writes the node cases of the ONNX suite twice to standard output, in the form of `main.py`: with every attribute that the schema gives
a default, written out, which means the same; and with an attribute that no schema has, which a runtime must not pass over.

The names of the first begin with `default`, those of the second with `unknown`. What must be given is the suite's own, within its own
tolerances.
"""

import sys

import numpy as np
import onnx
from casting import kind_of, numbers
from onnx import AttributeProto, helper
from recast import Subject, subjects, write
from values import FLOATS

UNKNOWN = "no_schema_has_this"
# `tests/exclusions.txt` says why.
UNSETTLED = ("test_dft_inverse", "test_dft_inverse_opset19")


def with_defaults(subject):
    """The model with the defaults of its schema; `None` where it has them all."""
    model = onnx.ModelProto()
    model.CopyFrom(subject.model)
    node = model.graph.node[0]
    given = {a.name for a in node.attribute}
    for name, attribute in subject.schema.attributes.items():
        value = attribute.default_value
        if name not in given and value.type != AttributeProto.UNDEFINED:
            node.attribute.append(value)
    return model if len(node.attribute) > len(given) else None


def with_unknown(subject):
    model = onnx.ModelProto()
    model.CopyFrom(subject.model)
    model.graph.node[0].attribute.append(helper.make_attribute(UNKNOWN, 1))
    return model


def wanted(subject):
    outputs = []
    for array in subject.outputs:
        kind = kind_of(array)
        if kind in FLOATS:
            exact = numbers(array)
            # The suite holds bfloat16 to that.
            rtol = max(subject.rtol, 2.0**-6) if kind == onnx.TensorProto.BFLOAT16 else subject.rtol
            outputs.append((kind, exact, rtol * np.abs(exact) + subject.atol))
        else:
            outputs.append((kind, array))
    return outputs


def main():
    index = 0
    for op, cases in sorted(subjects([], learned=False).items()):
        asked = False
        for case in cases:
            if case.name in UNSETTLED:
                continue
            subject = Subject(case)
            variants = [("default", with_defaults(subject))]
            if not asked:
                variants.append(("unknown", with_unknown(subject)))
                asked = True
            for what, model in variants:
                if model is not None:
                    name = f"{what}_{op}_{case.name}"
                    write(sys.stdout.buffer, name, index, subject, model, subject.inputs, wanted(subject))
                    index += 1


if __name__ == "__main__":
    main()
