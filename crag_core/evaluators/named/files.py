"""The files of a named model: a folder, or a snapshot of the hub, downloaded once. Pickled weights are never read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from pathlib import Path
from typing import Any

from crag_core.base.errors import EvaluatorUnavailable
from crag_core.evaluators.named.names import ModelName

CONFIG, WEIGHTS, ADAPTER = "config.json", ".safetensors", "adapter_config.json"
# Of the hub's files those that are read, one folder deep; not code, not pickles, not copies for other runtimes.
_ENDINGS = (".json", ".txt", ".model", ".jinja", WEIGHTS)
_OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".gguf", ".onnx", ".h5")
_OTHER_RUNTIMES = ("onnx/", "openvino/", "original/", "coreml/", "gguf/")

Tell = Callable[[str], None]
"""Is told in one line what takes long."""


def quiet(line: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class ModelFiles:
    """`revision` is the commit of the hub, or for a folder the digest of its files."""

    folder: Path
    revision: str

    @cached_property
    def config(self) -> dict[str, Any]:
        found = self.json(CONFIG)
        return found if isinstance(found, dict) else {}

    def json(self, name: str) -> Any:
        """Raises `EvaluatorUnavailable` where it is not there, or is no JSON."""
        path = self.folder / name
        try:
            return json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            found = getattr(error, "strerror", None) or "no JSON"
            raise EvaluatorUnavailable(
                f"Expected the file {name} in {self.folder}, found: {found}.",
                hint="Name the folder that transformers saved the model into.",
            ) from error

    def has(self, name: str) -> bool:
        return (self.folder / name).is_file()

    def check_weights(self) -> None:
        """Raises `EvaluatorUnavailable` where no file of weights, here or one folder deep, can be read."""
        _ = self.busy_parameters

    @cached_property
    def busy_parameters(self) -> int:
        """Those that every token passes: all but the vocabulary. Raises `EvaluatorUnavailable`."""
        from safetensors import SafetensorError, safe_open

        found, paths = 0, sorted(self.folder.glob(f"*{WEIGHTS}"))
        if not paths:
            others = sorted(path.name for path in self.folder.glob("*") if path.suffix in _OTHER_WEIGHTS)
            raise EvaluatorUnavailable(
                f"Expected weights in a file *{WEIGHTS} in {self.folder}, found "
                f"{', '.join(others[:3]) or 'none'}. Pickled weights are not read, since reading them runs code.",
                hint="Save the model again with safetensors, or choose a revision that has them.",
            )
        for path in paths:
            try:
                with safe_open(path, "numpy") as opened:
                    names = [name for name in opened.keys() if "embed" not in name]  # noqa: SIM118  # it is no dict
                    found += sum(prod(opened.get_slice(name).get_shape()) for name in names)
            except (OSError, SafetensorError) as error:
                raise EvaluatorUnavailable(
                    f"{path.name} in {path.parent} is no safetensors file ({str(error)[:100]}).",
                    hint="Download the model again; a stub of Git LFS holds no weights.",
                ) from error
        return found


def find_files(name: ModelName, tell: Tell = quiet, pinned: str = "") -> ModelFiles:
    """The newest files of `name`, or of its commit `pinned`; raises `EvaluatorUnavailable`."""
    return _folder(Path(name.source)) if name.is_folder else _snapshot(name, tell, pinned)


def find_kept(name: ModelName) -> ModelFiles | None:
    """What is on this machine, without asking the hub; None: nothing is. Raises `EvaluatorUnavailable`."""
    return _folder(Path(name.source)) if name.is_folder else _kept(name, _asked(name.revision))


def digest_of(folder: Path) -> str:
    """SHA-256 over names and contents of the files of a model; read again when size or time of a file changes."""
    stats = []
    for path in _files_of(folder):
        found = path.stat()
        stats.append((str(path.relative_to(folder)), found.st_size, found.st_mtime_ns))
    return _digest(folder, tuple(stats))


@lru_cache(64)
def _digest(folder: Path, stats: tuple[tuple[str, int, int], ...]) -> str:
    whole = hashlib.sha256()
    for name, _, _ in stats:
        with (folder / name).open("rb") as stream:
            whole.update(f"{name}\0{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()


def _files_of(folder: Path) -> list[Path]:
    found = [*folder.glob("*"), *folder.glob("*/*")]
    return sorted(path for path in found if path.suffix in _ENDINGS and path.is_file() and _is_read(path, folder))


def _is_read(path: Path, folder: Path) -> bool:
    return not path.relative_to(folder).as_posix().startswith((*_OTHER_RUNTIMES, "checkpoint", "."))


def _folder(folder: Path) -> ModelFiles:
    if not ((folder / CONFIG).is_file() or (folder / ADAPTER).is_file()):
        found = "no such file in it" if folder.is_dir() else "no such folder"
        hint = "Name the folder that transformers saved the model into, by its whole path."
        if folder.suffix == ".gguf" or any(folder.glob("*.gguf")):
            hint = "A GGUF file is for Ollama or llama.cpp: the evaluator llm-logprob asks it there."
        raise EvaluatorUnavailable(f"Expected the file {CONFIG} in {folder}, found: {found}.", hint=hint)
    try:
        return ModelFiles(folder, digest_of(folder))
    except OSError as error:
        raise EvaluatorUnavailable(
            f"The files in {folder} cannot be read ({error.strerror}).", hint="Check the rights of the folder."
        ) from error


# --- the hub ----------------------------------------------------------------------------------------------------------


def _snapshot(name: ModelName, tell: Tell, pinned: str) -> ModelFiles:
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()  # they would fill the server's log
    asked = _asked(pinned or name.revision)
    try:
        if pinned and (kept := _kept(name, asked)):
            return kept
        if not _is_offline():
            _announce(name, pinned or name.revision, tell)
        folder = Path(snapshot_download(name.source, **asked))
        return ModelFiles(folder, folder.name)
    except EvaluatorUnavailable:
        raise
    # The library raises errors of its own, of requests and of the disk.
    except Exception as error:
        if kept := _kept(name, asked):  # the hub is away, the files are here
            return kept
        raise _explain(name, pinned, error) from error


def _asked(revision: str) -> dict[str, Any]:
    wanted = [f"*{ending}" for ending in _ENDINGS]
    unwanted = [f"{other}*" for other in _OTHER_RUNTIMES]
    return {"revision": revision or None, "allow_patterns": wanted, "ignore_patterns": unwanted}


def _kept(name: ModelName, asked: dict[str, Any]) -> ModelFiles | None:
    """A revision that is on this machine: then nobody is asked."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name.source, local_files_only=True, **asked))
    except (LocalEntryNotFoundError, ValueError):  # the second for what the hub takes for no name
        return None
    return ModelFiles(folder, folder.name) if any(folder.glob(f"*{WEIGHTS}")) else None


def _announce(name: ModelName, revision: str, tell: Tell) -> None:
    """In one line what is about to be downloaded; raises `EvaluatorUnavailable` where there is nothing to read."""
    from huggingface_hub import HfApi

    found = HfApi().model_info(name.source, revision=revision or None, files_metadata=True)
    files = [one for one in found.siblings or () if one.rfilename.endswith(_ENDINGS)]
    if not any(one.rfilename.endswith(WEIGHTS) for one in files):
        raise EvaluatorUnavailable(
            f"{name}: expected weights in a file *{WEIGHTS}, found none on the hub. Pickled weights are not read, "
            "since reading them runs code.",
            hint="Choose another model, or a revision that has them.",
        )
    if _kept(name, _asked(str(found.sha))) is None:
        size = sum(one.size or 0 for one in files if not one.rfilename.startswith(_OTHER_RUNTIMES))
        tell(f"Downloading {name}: {size / 1e6:.0f} MB")


def _is_offline() -> bool:
    from huggingface_hub.constants import is_offline_mode

    return bool(is_offline_mode())


def _explain(name: ModelName, pinned: str, error: Exception) -> EvaluatorUnavailable:
    from huggingface_hub import errors

    at = f" at {pinned[:12]}" if pinned else ""
    offline = " HF_HUB_OFFLINE is set, so it is not downloaded." if _is_offline() else ""
    told = {
        errors.GatedRepoError: ("the hub gives it only to who has accepted its terms", "Accept them and set HF_TOKEN."),
        errors.RepositoryNotFoundError: (
            "no model of that name on the hub, or it is private",
            "Check the name, or set HF_TOKEN.",
        ),
        errors.RevisionNotFoundError: ("no such revision on the hub", "Leave out @REVISION for the newest."),
        errors.LocalEntryNotFoundError: (
            f"neither in the cache of this machine nor the hub within reach.{offline}",
            "Download it where there is a network, or name its folder: hf:/a/folder.",
        ),
    }
    for kind, (found, hint) in told.items():
        if isinstance(error, kind):
            return EvaluatorUnavailable(f"{name}{at} cannot be had: {found.rstrip('.')}.", hint=hint)
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    where = os.environ.get("HF_ENDPOINT", "")
    return EvaluatorUnavailable(
        f"{name}{at} cannot be had{f' from {where}' if where else ''}: {first[:200].rstrip('.')}.{offline}",
        hint="Check the network and the disk; what was downloaded is kept.",
    )
