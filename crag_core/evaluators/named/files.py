"""The files of a named model: a folder, or a snapshot of the hub, downloaded once. Pickled weights are never read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from crag_core.base.errors import EvaluatorUnavailable
from crag_core.evaluators.named.names import ModelName

CONFIG, WEIGHTS, ADAPTER = "config.json", ".safetensors", "adapter_config.json"
# Of the hub's files those that are read, one folder deep; not code, not pickles, not copies for other runtimes.
_ENDINGS = (".json", ".txt", ".model", ".jinja", WEIGHTS)
_OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".gguf", ".onnx", ".h5")
_OTHER_RUNTIMES = ("onnx/", "openvino/", "original/", "coreml/", "gguf/")
_REFUSALS = {
    "GatedRepoError": ("the hub gives it only to who has accepted its terms", "Accept them and set HF_TOKEN."),
    "RepositoryNotFoundError": (
        "no model of that name on the hub, or it is private",
        "Check the name, or set HF_TOKEN.",
    ),
    "RevisionNotFoundError": ("no such revision on the hub", "Leave out @REVISION for the newest."),
    "LocalEntryNotFoundError": (
        "neither in the cache of this machine nor the hub within reach",
        "Download it where there is a network, or name its folder: hf:/a/folder.",
    ),
}
"""By the hub's own error: what was found, and what to do."""

OnStatus = Callable[[str], None]
"""Is told in one line what takes long."""


def no_status(line: str) -> None:
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
        try:
            return json.loads((self.folder / name).read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            found = getattr(error, "strerror", None) or "no JSON"
            raise EvaluatorUnavailable(
                f"Expected the file {name} in {self.folder}, found: {found}.",
                hint="Name the folder that transformers saved the model into.",
            ) from error

    def has(self, name: str) -> bool:
        return (self.folder / name).is_file()

    def check_weights(self) -> None:
        """Raises `EvaluatorUnavailable` without safetensors."""
        if any(self.folder.glob(f"*{WEIGHTS}")):
            return
        others = sorted(path.name for path in self.folder.glob("*") if path.suffix in _OTHER_WEIGHTS)
        raise EvaluatorUnavailable(
            f"Expected weights in a file *{WEIGHTS} in {self.folder}, found {', '.join(others[:3]) or 'none'}. "
            "Pickled weights are not read, since reading them runs code.",
            hint="Save the model again with safetensors, or choose a revision that has them.",
        )


def find_files(name: ModelName, tell: OnStatus = no_status, pinned: str = "") -> ModelFiles:
    """The newest files of `name`, or of its commit `pinned`; raises `EvaluatorUnavailable`."""
    return _folder(Path(name.source)) if name.is_folder else _snapshot(name, tell, pinned)


# --- a folder ---------------------------------------------------------------------------------------------------------


def _folder(folder: Path) -> ModelFiles:
    if not ((folder / CONFIG).is_file() or (folder / ADAPTER).is_file()):
        found = "no such file in it" if folder.is_dir() else "no such folder"
        hint = "Name the folder that transformers saved the model into, by its whole path."
        if folder.suffix == ".gguf" or any(folder.glob("*.gguf")):
            hint = "A GGUF file is for Ollama or llama.cpp: the evaluator llm-logprob asks it there."
        raise EvaluatorUnavailable(f"Expected the file {CONFIG} in {folder}, found: {found}.", hint=hint)
    try:
        paths = sorted(path for path in (*folder.glob("*"), *folder.glob("*/*")) if _is_read(path, folder))
        stats = ((str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in paths)
        return ModelFiles(folder, _digest(folder, tuple(stats)))
    except OSError as error:
        raise EvaluatorUnavailable(
            f"The files in {folder} cannot be read ({error.strerror}).", hint="Check the rights of the folder."
        ) from error


def _is_read(path: Path, folder: Path) -> bool:
    below = path.relative_to(folder).as_posix()
    return path.suffix in _ENDINGS and path.is_file() and not below.startswith((*_OTHER_RUNTIMES, "checkpoint", "."))


@lru_cache(64)
def _digest(folder: Path, stats: tuple[tuple[str, int, int], ...]) -> str:
    """SHA-256 over names and contents; worked out again when size or time of a file changes."""
    whole = hashlib.sha256()
    for name, _, _ in stats:
        with (folder / name).open("rb") as stream:
            whole.update(f"{name}\0{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()


# --- the hub ----------------------------------------------------------------------------------------------------------


def _snapshot(name: ModelName, tell: OnStatus, pinned: str) -> ModelFiles:
    from huggingface_hub.errors import LocalEntryNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()  # they would fill the server's log
    revision = pinned or name.revision
    try:
        kept = _downloaded(name, revision, local_files_only=True)
    except (LocalEntryNotFoundError, ValueError):  # the second for what the hub takes for no name
        kept = None
    if kept and not any(kept.folder.glob(f"*{WEIGHTS}")):
        kept = None
    if pinned and kept:
        return kept
    if kept is None and not _is_offline():
        tell(f"Downloading {name}")
    try:
        return _downloaded(name, revision)
    # The library raises errors of its own, of requests and of the disk.
    except Exception as error:
        if kept:  # the hub is away, the files are here
            return kept
        raise _explain(name, pinned, error) from error


def _downloaded(name: ModelName, revision: str, **options: Any) -> ModelFiles:
    from huggingface_hub import snapshot_download

    found = snapshot_download(
        name.source,
        revision=revision or None,
        allow_patterns=[f"*{ending}" for ending in _ENDINGS],
        ignore_patterns=[f"{other}*" for other in _OTHER_RUNTIMES],
        **options,
    )
    return ModelFiles(Path(found), Path(found).name)


def _is_offline() -> bool:
    from huggingface_hub.constants import is_offline_mode

    return bool(is_offline_mode())


def _explain(name: ModelName, pinned: str, error: Exception) -> EvaluatorUnavailable:
    first = (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
    other = (first, "Check the network and the disk; what was downloaded is kept.")
    kinds = (kind.__name__ for kind in type(error).__mro__)
    found, hint = next((_REFUSALS[kind] for kind in kinds if kind in _REFUSALS), other)
    at = f" at {pinned[:12]}" if pinned else ""
    offline = " HF_HUB_OFFLINE is set, so it is not downloaded." if _is_offline() else ""
    return EvaluatorUnavailable(f"{name}{at} cannot be had: {found}.{offline}", hint=hint)
