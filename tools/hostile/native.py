"""Gives each file of a folder to the command line: `native.py FOLDER KILIM`. It ends with a result or a typed error, in
time, and within the memory that it may take."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "assets/digits.onnx"
# What a service with a gigabyte and five seconds would ask for: a second is left for what is no load and no run.
SECONDS = ("load", "run")
BYTES = ("tensor", "weight", "intermediate", "output")
LIMITS = ",".join(["strict", *[f"{name}_seconds=2" for name in SECONDS], *[f"{name}_bytes={2**28}" for name in BYTES]])
TYPED = re.compile(r"error: [A-Z_]+: ")


def command(kilim, path, kind):
    shared = ["--backends", "cpu", "--limits", LIMITS]
    if kind == "model":
        return [kilim, "run", path, *shared]
    return [kilim, "run", DIGITS, "--input", f"image={path}", *shared]


def fault(arguments, name, kind):
    """What is wrong with how the program ended, and the seconds and bytes that it took."""
    began = time.monotonic()
    path = arguments.folder / name
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(command(arguments.kilim, path, kind), stdout=out, stderr=err)
        deadline = began + 2 * arguments.seconds
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                child.kill()
                _, status, usage = os.wait4(child.pid, 0)
                break
            time.sleep(0.005)
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        said = err.read(2000).decode(errors="replace")
    seconds, size = time.monotonic() - began, usage.ru_maxrss * 1024
    if child.returncode < 0:
        why = f"ended by signal {-child.returncode}"
    elif child.returncode == 101 or "panicked" in said:
        why = "panicked"
    elif child.returncode != 0 and not TYPED.search(said):
        why = f"exit code {child.returncode} without a typed error"
    elif seconds > arguments.seconds:
        why = f"took {seconds:.1f} s"
    elif size > arguments.bytes:
        why = f"took {size / 1e6:.0f} MB"
    else:
        why = None
    return why, said.strip().split("\n")[0][:200], child.returncode, seconds, size


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("kilim", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1, help="take each so manieth file")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--most-seconds", type=float, default=float("inf"), help="begin no more files after so many seconds")
    parser.add_argument("--bytes", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    index = json.loads((arguments.folder / "index.json").read_text())
    names = list(index)[:: arguments.every]
    end = time.monotonic() + arguments.most_seconds
    given, results, faults, slowest, largest = 0, 0, [], (0, ""), (0, "")
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        ended = pool.map(lambda name: time.monotonic() < end and fault(arguments, name, index[name]), names)
        for name, seen in zip(names, ended):
            if not seen:
                continue
            why, said, code, seconds, size = seen
            given += 1
            results += code == 0
            slowest, largest = max(slowest, (seconds, name)), max(largest, (size, name))
            if why:
                faults.append(name)
                print(f"failed: {name}: {why}: {said}", flush=True)
    print(f"{given} of {len(names)} files: {results} results, {given - results - len(faults)} typed errors, {len(faults)} faults")
    print(f"slowest: {slowest[0]:.1f} s, {slowest[1]}; largest: {largest[0] / 1e6:.0f} MB, {largest[1]}")
    print(f"{given - len(faults)} passed, {len(faults)} failed, {len(names) - given} skipped")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
