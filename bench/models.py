"""Finds or makes the models of models.json, and checks that each is the one that the list names.

    python bench/models.py --names squeezenet,ultraface --suite TARGET/conformance --made TARGET/bench/models --out FOUND.json

Files of the ONNX suite are where `cargo xtask test "conformance export"` has put them, made ones are written by networks.py, and
those of a collection lie in the folder --shared, if there is one. A model that is not here is skipped and said to be. Without --names
all are looked for.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import networks

HERE = Path(__file__).parent


def locate(model, args):
    """The model's file, made if it can be, or None."""
    origin = model["from"]
    if "suite" in origin:
        path = args.suite / origin["suite"]
    elif "made" in origin:
        path = args.made / f"{model['name']}.onnx"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            networks.write(origin["made"], path)
    else:
        path = args.shared / origin["shared"] if args.shared else None
    return path if path is not None and path.exists() else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--names", default="")
    parser.add_argument("--suite", type=Path, required=True)
    parser.add_argument("--made", type=Path, required=True)
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()

    listed = json.loads((HERE / "models.json").read_text())
    names = [name for name in args.names.split(",") if name]
    unknown = set(names) - {model["name"] for model in listed}
    if unknown:
        sys.exit(f"models.json has no {', '.join(sorted(unknown))}; it has {', '.join(m['name'] for m in listed)}")
    found = []
    for model in listed:
        if names and model["name"] not in names:
            continue
        path = locate(model, args)
        if path is None:
            print(f"{model['name']}: not here: skipped ({model['source']})")
            continue
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest != model["sha256"]:
            sys.exit(f"{path} is not the model of the list: its SHA-256 is {digest}")
        found.append({**model, "path": str(path.resolve())})
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(found, indent=1))


main()
