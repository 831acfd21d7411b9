"""What the readers of all interfaces share: windows of long texts, one reading at a time, the last ones remembered."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, ClassVar

from crag_core.base.concurrency import remembered
from crag_core.base.errors import EvaluatorUnavailable, Stopped
from crag_core.base.protocols import Cancel
from crag_core.evaluators.named.files import ModelFiles
from crag_core.evaluators.shared.pair_encoder import Pieces, cut_windows

WINDOW = 512
"""Pieces of question and text that are read at once at most: these models were trained on no longer ones."""
OVERLAP = 64
_REMEMBERED = 512
_FEWEST_PIECES = 32  # an alphabet
_UNBOUNDED = 1_000_000  # what tokenizers say of a length that they do not know

Kept = tuple[tuple[int, int, float], ...]
"""Of pieces of a text: from, to, and the probability that the piece is kept."""


@dataclass(frozen=True)
class Reading:
    """What a model says of a question and a text: the logit of its best window, what `note` tells of it, and of how
    many windows it is the best. `kept` only of a token pruner."""

    logit: float
    note: str = ""
    windows: int = 1
    kept: Kept = ()


class Reader(ABC):
    """A loaded model, safe to share between threads. Constructing it raises `EvaluatorUnavailable`.

    `scale` is what its logit means. `scores_sentences`: its readings have `kept`.
    """

    scale: ClassVar[str]
    scores_sentences: ClassVar[bool] = False

    def __init__(self, files: ModelFiles) -> None:
        self.files = files
        with loading(files):
            self.tokenizer = self._load()
            self.longest = read_at_once(files, self.tokenizer, WINDOW)
        self._lock = Lock()
        self._last: OrderedDict[tuple[str, str], Reading] = OrderedDict()
        remembered.register(self)

    def forget(self) -> None:
        with self._lock:
            self._last.clear()

    @abstractmethod
    def _load(self) -> Any:
        """Load the model; its tokenizer."""

    @abstractmethod
    def _read(self, question: str, text: str) -> Reading:
        """One window; `kept` with places in `text`."""

    def read(self, question: str, texts: Sequence[str], cancel: Cancel) -> list[Reading]:
        """Each text, in order; raises `Stopped` soon after `cancel` is set, `EvaluatorUnavailable`.

        One by one: a score does not depend on the company, and padding costs more on a CPU than batches save.
        """
        found = []
        for text in texts:
            if cancel.is_set():
                raise Stopped("Stopped by you.")
            with self._lock:
                found.append(self._remember(question, text))
        return found

    def _remember(self, question: str, text: str) -> Reading:
        key = (question, text)
        if key not in self._last:
            with at_work(self.files):
                self._last[key] = self._best(question, text)
            if len(self._last) > _REMEMBERED:
                self._last.popitem(last=False)
        self._last.move_to_end(key)
        return self._last[key]

    def _best(self, question: str, text: str) -> Reading:
        asked, windows = self.windows(question, text)
        readings = []
        for start, window in windows:
            one = self._read(asked, window)
            readings.append(replace(one, kept=tuple((a + start, b + start, p) for a, b, p in one.kept)))
        best = max(readings, key=lambda one: one.logit)
        kept = tuple(piece for one in readings for piece in one.kept)
        return replace(best, windows=len(readings), kept=kept)

    def windows(self, question: str, text: str) -> tuple[str, list[tuple[int, str]]]:
        """The question, cut at half of what is read at once, and the text in overlapping windows, each with where it
        begins: the text as it is where it fits."""
        asked, whole = self._pieces(question), self._pieces(text)
        most = self.longest // 2
        if len(asked.ids) > most:
            asked = replace(asked, text=question[: asked.offsets[most - 1][1]], ids=asked.ids[:most])
        room = self.longest - self._frame() - len(asked.ids)
        if len(whole.ids) <= room:
            return asked.text, [(0, text)]
        cut = cut_windows(whole, room, min(OVERLAP, room // 4))
        return asked.text, [(whole.offsets[window.start][0], window.text) for window in cut]

    def _frame(self) -> int:
        """Special pieces around question and text."""
        return int(self.tokenizer.num_special_tokens_to_add(pair=True))

    def _pieces(self, text: str) -> Pieces:
        found = self.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )
        return Pieces(text, found["input_ids"], found["offset_mapping"])


def read_as_text(tokenizer: Any) -> Any:
    """`tokenizer`, which from now on reads "[SEP]" and its like in a text as letters: a document must not be able to
    end itself and speak in the model's own marks. Raises `ValueError` for one without places, or without pieces."""
    if len(tokenizer) < _FEWEST_PIECES:  # transformers makes an empty one where there are no files
        raise ValueError("expected the files of its tokenizer, found none")
    if not tokenizer.is_fast:
        raise ValueError("expected a tokenizer with the file tokenizer.json, found one without")
    tokenizer.split_special_tokens = True
    return tokenizer


def read_at_once(files: ModelFiles, tokenizer: Any, most: int) -> int:
    """Pieces that are read at once: `most`, or fewer where config.json or the tokenizer says so."""
    positions = int(files.config.get("max_position_embeddings") or WINDOW)
    # RoBERTa and its kin count positions from the one of padding on.
    positions -= 2 if "roberta" in str(files.config.get("model_type")) else 0
    known = getattr(tokenizer, "model_max_length", _UNBOUNDED)
    return min(most, positions, known if known < _UNBOUNDED else most)


BROKEN = "Check that its files are whole, or name another interface with ?as=."
"""What to do about a model that cannot be read."""


@contextmanager
def loading(files: ModelFiles, hint: str = BROKEN) -> Iterator[None]:
    from crag_core.base.concurrency.loading import TRANSFORMERS

    with TRANSFORMERS, failing(files, hint):
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # type: ignore[no-untyped-call]  # it would appear in the server's log
        yield


@contextmanager
def at_work(files: ModelFiles, hint: str = BROKEN) -> Iterator[None]:
    """Without gradients, on half of the cores; raises `EvaluatorUnavailable`."""
    import torch

    torch.set_num_threads(max(1, min(4, (os.cpu_count() or 1) // 2)))  # as the embedder does, thread by thread
    with failing(files, hint), torch.inference_mode():
        yield


@contextmanager
def failing(files: ModelFiles, hint: str = BROKEN) -> Iterator[None]:
    """The libraries underneath raise nearly anything for a model that is broken."""
    try:
        yield
    except (EvaluatorUnavailable, Stopped):
        raise
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise EvaluatorUnavailable(
            f"The model in {files.folder} cannot be read: {first[:300].rstrip('.')}.", hint=hint
        ) from error


def local(**more: Any) -> dict[str, Any]:
    """What every loading by transformers is given: files of this machine, safetensors, and no code of theirs."""
    return {"local_files_only": True, "trust_remote_code": False, **more}


def load_whole(kind: Any, files: ModelFiles, subfolder: str = "") -> Any:
    """The model by a class of transformers such as `AutoModelForCausalLM`, ready to be read with."""
    import torch

    options = local(use_safetensors=True, dtype=torch.float32, output_loading_info=True, ignore_mismatched_sizes=True)
    model, told = kind.from_pretrained(files.folder / subfolder, **options)
    check_complete({*told["missing_keys"], *(name for name, *_ in told["mismatched_keys"])})
    return model.eval()


def check_complete(missing: Collection[str]) -> None:
    """Weights that a file does not have, or in another shape, would be made up at random."""
    if missing:
        raise ValueError(f"expected weights for {', '.join(sorted(missing)[:3])}, found none that fit config.json")
