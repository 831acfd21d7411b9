"""A reranker with one logit, or a causal one with yes and no, through `CrossEncoder` of sentence-transformers.

Nothing is made up: weights or a tokenizer that the files lack, which the libraries would fill in, are refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from crag_core.base.errors import EvaluatorUnavailable, Stopped
from crag_core.base.protocols import Cancel
from crag_core.evaluators.named.files import ADAPTER, ModelFiles
from crag_core.evaluators.shared.pair_encoder import WordPieces, cut_windows

WINDOW = 512
"""Pieces of question and text that are read at once at most: these models were trained on no longer ones."""
OVERLAP = 64
QWEN3 = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
    "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n"
    "<Query>: {{ messages | selectattr('role', 'eq', 'query') | map(attribute='content') | first }}\n"
    "<Document>: {{ messages | selectattr('role', 'eq', 'document') | map(attribute='content') | first }}"
    "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>{{ '\n\n' }}"
)
"""The prompt of the model card of Qwen/Qwen3-Reranker-0.6B, for its files without one of sentence-transformers."""

_MODULES, _SENTENCE_TRANSFORMERS = "modules.json", "config_sentence_transformers.json"
_FEWEST_PIECES = 32  # an alphabet
_opening = Lock()


class Reader:
    """A loaded model, safe to share between threads. Constructing it raises `EvaluatorUnavailable`."""

    def __init__(self, files: ModelFiles) -> None:
        from crag_core.base.concurrency.loading import TRANSFORMERS

        self.files = files
        self._lock = Lock()
        with TRANSFORMERS, failing(files):
            self._model = _load(files, _check(files))
        self.tokenizer: Any = self._model.tokenizer
        self._marks = [one.content for one in self.tokenizer.added_tokens_decoder.values() if one.special]
        positions = int(files.config.get("max_position_embeddings") or WINDOW)
        # RoBERTa and its kin count positions from the one of padding on.
        positions -= 2 if "roberta" in str(files.config.get("model_type")) else 0
        self.longest = min(WINDOW, positions, self.tokenizer.model_max_length)
        # The prompt of a causal model is no part of its window: it reads much longer ones.
        frame = 0 if self.tokenizer.chat_template else self.tokenizer.num_special_tokens_to_add(pair=True)
        self._room = self.longest - int(frame)

    def read(self, question: str, texts: Sequence[str], cancel: Cancel) -> list[tuple[float, int]]:
        """Of each text the logit of its best window and how many windows it has, in order.

        One by one: a score does not depend on the company. Raises `Stopped` soon after `cancel` is set, or
        `EvaluatorUnavailable`.
        """
        import torch

        found = []
        with failing(self.files):
            torch.set_num_threads(max(1, min(4, (os.cpu_count() or 1) // 2)))  # as the embedder does, thread by thread
            for text in texts:
                asked, windows = self.windows(question, text)
                logits = []
                for window in windows:
                    if cancel.is_set():
                        raise Stopped()
                    with self._lock:
                        logits.append(float(self._model.predict([(asked, window)], show_progress_bar=False)[0]))
                found.append((max(logits), len(logits)))
        return found

    def windows(self, question: str, text: str) -> tuple[str, list[str]]:
        """The question, cut at half of what is read at once, and the text in overlapping windows."""
        asked, whole = self._pieces(question), self._pieces(text)
        most = self.longest // 2
        if len(asked.ids) > most:
            asked = WordPieces(asked.text[: asked.offsets[most - 1][1]], asked.ids[:most], asked.offsets[:most])
        room = self._room - len(asked.ids)
        windows = cut_windows(whole, room, min(OVERLAP, room // 4)) if len(whole.ids) > room else [whole]
        return asked.text, [one.text for one in windows]

    def _pieces(self, text: str) -> WordPieces:
        """A mark of the model, such as "[SEP]", is taken apart: no document ends itself and speaks in its marks."""
        for mark in self._marks:
            text = text.replace(mark, f"{mark[:1]} {mark[1:]}")
        found = self.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )
        return WordPieces(text, found["input_ids"], found["offset_mapping"])


_opened = lru_cache(2)(Reader)


def open_reader(files: ModelFiles) -> Reader:
    """The loaded model: the last two stay in memory. Raises `EvaluatorUnavailable`."""
    with _opening:
        return _opened(files)


def _check(files: ModelFiles) -> str:
    """The folder of the weights within that of the model; raises `EvaluatorUnavailable` for what is no reranker."""
    from transformers import CONFIG_MAPPING

    if files.has(ADAPTER):
        hint = "Merge it into that model, and save the whole in a folder of its own."
        raise _cannot(f"an adapter ({ADAPTER}), which changes another model", hint)
    files.check_weights()
    kind = str(files.config.get("model_type", ""))
    if files.config.get("auto_map") and kind not in CONFIG_MAPPING:
        raise _cannot(f"its model type {kind!r} needs code of its own, which is not run")
    if files.has(_MODULES):
        return _check_modules(files)
    architecture = str((files.config.get("architectures") or [""])[0])
    if architecture.endswith("ForCausalLM") and kind != "qwen3":
        hint = "Save it by CrossEncoder of sentence-transformers, with its prompt as the chat template."
        raise _cannot(f"a causal language model of type {kind!r}, whose prompt as a reranker is not known", hint)
    if not architecture.endswith(("ForCausalLM", "ForSequenceClassification")):
        raise _cannot(f"the architecture {architecture or 'none'}")
    return ""


def _check_modules(files: ModelFiles) -> str:
    """Of a model that sentence-transformers saved: a cross-encoder, of its own modules, without pickles."""
    known = files.json(_SENTENCE_TRANSFORMERS) if files.has(_SENTENCE_TRANSFORMERS) else {}  # older ones have none
    kind = known.get("model_type", "SentenceTransformer")
    if kind != "CrossEncoder":
        hint = "Choose a CrossEncoder; an embedding model is set by CRAG_EMBEDDING."
        raise _cannot(f"a {kind} of sentence-transformers, which embeds texts and does not judge pairs", hint)
    modules = files.json(_MODULES)
    for module in modules:
        name, folder = str(module["type"]), files.folder / str(module["path"])
        if not name.startswith("sentence_transformers."):
            raise _cannot(f"the module {name!r}, code of its own, which is not run")
        if any(folder.glob("*.bin")) and not any(folder.glob("*.safetensors")):
            raise _cannot(f"pickled weights in {folder.name}, which are not read", "Save it with safetensors.")
    return str(modules[0]["path"])


def _load(files: ModelFiles, first: str) -> Any:
    """The `CrossEncoder`, in 32 bits on the processor; `ValueError` for what it would make up."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]  # it would appear in the server's log
    options = {"use_safetensors": True, "dtype": torch.float32, "ignore_mismatched_sizes": True}
    is_plain = files.config.get("model_type") == "qwen3" and not files.has(_MODULES)
    model = CrossEncoder(
        str(files.folder), device="cpu", model_kwargs=options, activation_fn=torch.nn.Identity(),
        local_files_only=True, trust_remote_code=False, processor_kwargs={"chat_template": QWEN3} if is_plain else {},
    )  # fmt: skip
    if model.num_labels != 1:
        raise ValueError(f"expected one logit, found {model.num_labels}")
    tokenizer = model.tokenizer
    if len(tokenizer) < _FEWEST_PIECES or not tokenizer.is_fast:  # transformers makes one up where there are no files
        raise ValueError("expected the files of its tokenizer with tokenizer.json, found none")
    # CrossEncoder does not tell what it made up: its inner model is loaded again for that alone.
    _, told = type(model.model).from_pretrained(files.folder / first, output_loading_info=True, **options)
    missing = sorted({*told["missing_keys"], *(name for name, *_ in told["mismatched_keys"])})
    if missing:
        raise ValueError(f"expected weights for {', '.join(missing[:3])}, found none that fit config.json")
    return model


@contextmanager
def failing(files: ModelFiles) -> Iterator[None]:
    try:
        yield
    except (EvaluatorUnavailable, Stopped):
        raise
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        message = f"The model in {files.folder} cannot be read: {first[:300].rstrip('.')}."
        raise EvaluatorUnavailable(message, hint="Check that its files are whole, and those of a reranker.") from error


def _cannot(found: str, hint: str = "Choose another model.") -> EvaluatorUnavailable:
    return EvaluatorUnavailable(
        f"Expected a reranker with one logit, or a causal reranker with yes and no, found {found}.", hint=hint
    )
