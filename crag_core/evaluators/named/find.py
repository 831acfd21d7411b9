"""Chooses the interface of a model from its own files, or takes the one that was told; opens it once in a process."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from crag_core.base.errors import EvaluatorUnavailable
from crag_core.evaluators.named.files import ADAPTER, MODULES, SENTENCE_TRANSFORMERS, ModelFiles
from crag_core.evaluators.named.names import KINDS, ONE_LOGIT, PRUNER, SPAN, YES_NO
from crag_core.evaluators.named.one_logit import OneLogit
from crag_core.evaluators.named.pruner import OPEN_PROVENCE, Pruner, is_pruner
from crag_core.evaluators.named.reader import Reader, failing
from crag_core.evaluators.named.span import Span
from crag_core.evaluators.named.yes_no import YesNo

INTERFACES: dict[str, type[Reader]] = {ONE_LOGIT: OneLogit, YES_NO: YesNo, SPAN: Span, PRUNER: Pruner}
"""By the name that one may be told by."""
_CAUSAL = ("qwen3",)
"""Model types of causal rerankers whose prompt is known (`yes_no`)."""
_MOST_LOADED = 2
_loaded: OrderedDict[tuple[str, str, str], Reader] = OrderedDict()
_opening = Lock()


def interface_of(files: ModelFiles, told: str = "") -> str:
    """Raises `EvaluatorUnavailable` for files that none can read, or that do not tell which can."""
    with failing(files):
        return _interface_of(files, told)


def _interface_of(files: ModelFiles, told: str) -> str:
    if files.has(ADAPTER):
        raise _cannot(
            f"an adapter ({ADAPTER}), which changes another model",
            "Merge it into that model, and save the whole in a folder of its own.",
        )
    _ = files.tensors  # weights that cannot be read are told first
    kind = str(files.config.get("model_type", ""))
    if is_pruner(files):
        return told or PRUNER
    if files.config.get("auto_map") and not _is_known(kind):
        raise _cannot(f"its model type {kind!r} needs code of its own, which is not run", "Choose another model.")
    if files.has(MODULES):
        _check_modules(files)
        return told or ONE_LOGIT
    if told:
        return told
    names = files.config.get("architectures") or [""]
    return _by_architecture(files, str(names[0]), kind)


def open_reader(files: ModelFiles, interface: str) -> Reader:
    """The loaded model: the last few stay in memory. Raises `EvaluatorUnavailable`."""
    key = (str(files.folder), files.revision, interface)
    with _opening:
        if key not in _loaded:
            _loaded[key] = INTERFACES[interface](files)
            while len(_loaded) > _MOST_LOADED:
                _loaded.popitem(last=False)
        _loaded.move_to_end(key)
        return _loaded[key]


def _by_architecture(files: ModelFiles, architecture: str, kind: str) -> str:
    if architecture.endswith("ForQuestionAnswering"):
        return SPAN
    if architecture.endswith("ForSequenceClassification"):
        labels = files.config.get("id2label") or {}
        count = len(labels) or int(files.config.get("num_labels", 2))
        if count == 1:
            return ONE_LOGIT
        found = ", ".join(str(label) for label in list(labels.values())[:5]) if isinstance(labels, dict) else ""
        raise _cannot(
            f"a classifier with {count} labels{f' ({found})' if found else ''}, expected one logit of relevance",
            "Choose a reranker.",
        )
    if architecture.endswith("ForCausalLM"):
        if kind in _CAUSAL:
            return YES_NO
        raise _cannot(
            f"a causal language model of type {kind!r}, whose prompt as a reranker is not known",
            f"If it answers yes or no to the prompt of Qwen3-Reranker, add ?as={YES_NO}.",
        )
    raise _cannot(
        f"the architecture {architecture or 'none'}",
        f"Name its interface with ?as= and one of {', '.join(KINDS)}, if it has one of them.",
    )


def _check_modules(files: ModelFiles) -> None:
    """Of a model that sentence-transformers saved: a cross-encoder, of its own modules, without pickles."""
    known = files.json(SENTENCE_TRANSFORMERS) if files.has(SENTENCE_TRANSFORMERS) else {}  # older ones have none
    kind = known.get("model_type", "SentenceTransformer")
    if kind != "CrossEncoder":
        raise _cannot(
            f"a {kind} of sentence-transformers, which embeds texts and does not judge pairs",
            "Choose a CrossEncoder; an embedding model is set by CRAG_EMBEDDING.",
        )
    for module in files.json(MODULES):
        name, folder = str(module.get("type", "")), files.folder / str(module.get("path", ""))
        if not name.startswith("sentence_transformers."):
            raise _cannot(f"the module {name!r}, code of its own, which is not run", "Choose another model.")
        pickles = [path.name for pattern in ("*.bin", "*.pt") for path in folder.glob(pattern)]
        if pickles and not any(folder.glob("*.safetensors")):
            raise _cannot(
                f"pickled weights {pickles[0]} in {folder.name}, which are not read", "Save it with safetensors."
            )


def _is_known(kind: str) -> bool:
    from transformers import CONFIG_MAPPING

    return kind in CONFIG_MAPPING or kind == OPEN_PROVENCE


def _cannot(found: str, hint: str) -> EvaluatorUnavailable:
    return EvaluatorUnavailable(
        "Expected a reranker with one logit, a causal reranker with yes and no, a model for extractive question "
        f"answering or a token pruner, found {found}.",
        hint=hint,
    )
