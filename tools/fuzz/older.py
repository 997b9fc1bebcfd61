"""Writes node cases of the ONNX suite under every older version of their operator that onnx's converter reaches, in several element
types, to standard output, in the form of `main.py`.

What must be given is what `recast.py` says of the newest version: the converter keeps the meaning of a model, or refuses it.
"""

import argparse
import math
import sys

import numpy as np
import onnx
from onnx import helper, version_converter
from recast import Subject, evaluated, subjects, write
from models import extends  # found by way of `recast`
from values import BOOL, DOUBLE, HALF, INT32, INT64, STRING, UINT8

# One of every class of types.
SAMPLES = (DOUBLE, HALF, INT32, INT64, UINT8, BOOL, STRING)
# The oldest operator set that Kilim and the converter are held to.
OLDEST = 7


def history():
    """The versions of each operator of the default domain."""
    versions = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain and not schema.deprecated:
            versions.setdefault(schema.name, {})[schema.since_version] = schema
    return versions


def at(model, version, same):
    """The model under an older operator set; `None` where it cannot be said there. `same`: all of what the old version has means the
    same in the newest one."""
    try:
        if same:
            old = onnx.ModelProto()
            old.CopyFrom(model)
            del old.opset_import[:]
            old.opset_import.append(helper.make_opsetid("", version))
        else:
            old = version_converter.convert_version(model, version)
        onnx.checker.check_model(old, full_check=True)
    except Exception:
        return None
    return old


def size(case):
    """Elements of the inputs."""
    return sum(math.prod(t.dims) if isinstance(t, onnx.TensorProto) else np.size(t) for t in case.data_sets[0][0])


def variants(subject):
    """The case in several types."""
    recasts = [r for r in subject.recasts() if r[1] in SAMPLES]
    first = subject.input_vars.get(next(iter(subject.node.input), None))
    for variable, kind, places, carrier in recasts:
        if variable == first and places:
            try:
                yield kind, evaluated(subject, variable, kind, places, carrier)
            except Exception:
                continue


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ops", nargs="?", default="", help="only these operators, separated by commas")
    args = parser.parse_args()
    versions, index = history(), 0
    for op, cases in sorted(subjects(args.ops.split(",") if args.ops else [], learned=False).items()):
        schemas = versions.get(op, {})
        older = sorted(v for v in schemas if v >= OLDEST)[:-1]
        steps = sorted(schemas)
        extended = {v: all(extends(schemas[b], schemas[a]) for a, b in zip(steps, steps[1:]) if a >= v) for v in older}
        done = set()
        for case in sorted(cases, key=size)[:4]:
            wanted = [v for v in older if not all((v, k) in done for k in SAMPLES)]
            if not wanted:
                break
            subject = Subject(case)
            if subject.domain or not subject.believed():
                continue
            for kind, (model, inputs, outputs) in variants(subject):
                for version in wanted:
                    skipped = (version, kind) in done or not outputs
                    old = None if skipped else at(model, version, extended[version])
                    if old is None:
                        continue
                    done.add((version, kind))
                    name = f"{op}_{version}_{case.name}_{index}"
                    subject.opset = version
                    write(sys.stdout.buffer, name, index, subject, old, inputs, outputs)
                    index += 1


if __name__ == "__main__":
    main()
