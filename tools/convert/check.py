#!/usr/bin/env python3
"""Hold ONNX files against the checker and the shape inference of the `onnx` package.

    check.py FOLDER

prints a line for each file of the folder that does not pass, and exits with 1 if there is one. `tests/tests/convert.rs` runs it on
what `kilim convert` makes of the cases in `tests/references`.
"""
from __future__ import annotations

import pathlib
import sys

import onnx

# The package's inference counts the elements of Range in double precision, the standard's formula in that of the operator.
OTHERWISE_COUNTED = ("range_down", "range_up")


def main() -> int:
    wrong = 0
    files = sorted(pathlib.Path(sys.argv[1]).glob("*.onnx"))
    for file in files:
        try:
            model = onnx.load(file)
            full = not any(case in file.name for case in OTHERWISE_COUNTED)
            onnx.checker.check_model(model, full_check=full)
        except Exception as error:  # noqa: BLE001 - whatever it says of a file is a finding
            wrong += 1
            print(f"{file.name}: {' '.join(str(error).split())[:300]}")
    print(f"{len(files)} files, {wrong} wrong")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
