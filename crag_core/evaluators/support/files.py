"""A model by name, from a folder or a snapshot of the hub: safetensors alone, and no code of theirs is run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from crag_core.base.errors import EvaluatorUnavailable, Stopped

FORMS = "hf:OWNER/NAME, hf:OWNER/NAME@REVISION or hf:/a/folder"
LONGEST = 4096
"""Tokens that are read at once at most, where a model reads more."""

_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
_NAME = re.compile(r"hf:(?:(?P<folder>/.+)|(?P<name>[\w-][\w.-]*(?:/[\w-][\w.-]*)?)(?:@(?P<revision>[\w./-]+))?)")
_WINDOW = 512
_TRANSFORMERS = Lock()  # it imports its modules lazily, and not thread-safe


def is_name(setting: str) -> bool:
    return bool(_NAME.fullmatch(setting)) and ".." not in setting


def find_files(setting: str) -> Path:
    """The folder of a model, downloaded once; raises `EvaluatorUnavailable`."""
    found = _NAME.fullmatch(setting)
    if not found or not is_name(setting):
        message = f"Expected a model such as {FORMS}, found {setting[:80]!r}."
        raise EvaluatorUnavailable(message, hint="Set CRAG_SUPPORT.")
    folder = Path(found["folder"]) if found["folder"] else _snapshot(found["name"], found["revision"])
    if not (folder / "config.json").is_file():
        message = f"Expected the file config.json in {folder}, found none."
        raise EvaluatorUnavailable(message, hint="Name the folder of a model, with its weights.")
    if not any(folder.glob("*.safetensors")):
        raise EvaluatorUnavailable(
            f"Expected weights in a file *.safetensors in {folder}, found none. Pickled weights are not read.",
            hint="Save the model again with safetensors, or choose a revision that has them.",
        )
    return folder


@lru_cache(8)
def _snapshot(name: str, revision: str | None) -> Path:
    """Asked for once a process."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(_FILES)))
    except Exception as error:  # the hub's, those of requests and of the disk
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise EvaluatorUnavailable(
            f"hf:{name} cannot be had: {first[:200].rstrip('.')}.",
            hint="Check the name and the network, or name a folder: hf:/a/folder.",
        ) from error


class Reading:
    """One model's tokenizer, configuration and weights; one text is read at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()
        with self.failing():
            self.config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
            known = int(self.config.get("max_position_embeddings") or _WINDOW)
            # RoBERTa and its kin count positions from the one of padding on.
            self.longest = min(LONGEST, known - 2 if "roberta" in str(self.config.get("model_type")) else known)

    def open(self, kind: str) -> tuple[Any, Any]:
        """Tokenizer and model, by a class of transformers; raises `EvaluatorUnavailable`."""
        with _TRANSFORMERS, self.failing():
            import torch
            import transformers

            given: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
            # "[SEP]" and its like in a document are read as letters.
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, split_special_tokens=True, **given)
            if not tokenizer.is_fast:
                raise ValueError("expected a tokenizer with the file tokenizer.json, found one without")
            model, told = getattr(transformers, kind).from_pretrained(
                self.folder, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **given
            )
            if told["missing_keys"]:  # they would be made up at random
                raise ValueError(f"expected weights for {', '.join(sorted(told['missing_keys'])[:3])}, found none")
            return tokenizer, model.eval()

    @property
    def labels(self) -> dict[int, str]:
        """The names of what it tells apart, by their place."""
        given = self.config.get("id2label")
        found = given if isinstance(given, dict) else {}
        return {int(place): str(name) for place, name in found.items() if str(place).isdecimal()}

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """One text at a time, without gradients; raises `EvaluatorUnavailable`."""
        import torch

        torch.set_num_threads(max(1, min(4, (os.cpu_count() or 1) // 2)))  # as the embedder does, thread by thread
        with self._lock, self.failing(), torch.inference_mode():
            yield

    @contextmanager
    def failing(self) -> Iterator[None]:
        """The libraries underneath raise nearly anything for a model that is broken."""
        try:
            yield
        except (EvaluatorUnavailable, Stopped):
            raise
        except Exception as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            message = f"The model in {self.folder} cannot be read: {first[:300].rstrip('.')}."
            raise EvaluatorUnavailable(message, hint="Check that its files are whole.") from error
