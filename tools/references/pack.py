"""Packs cases that lie in a folder in the layout of the ONNX suite, as `unzip` leaves them, for instance after an
edit by hand.

    python tools/references/pack.py FOLDER/index.json KIND

reads the cases of KIND from the index; their paths are relative to the folder of the index.
"""

import json
import pathlib
import sys

from common import Cases


def main(index, kind):
    index = pathlib.Path(index)
    told = json.loads(index.read_text())
    cases = Cases(kind, told["bfloat16_rtol"])
    for case in told["cases"]:
        if case["kind"] != kind:
            continue
        folder = index.parent / case["path"]
        files = {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        cases.add_files({**case, "path": case["name"]}, files)
    cases.write()


main(*sys.argv[1:])
