"""A token pruner: one pass gives a score of the chunk and of each token the chance that it is kept.

Two layouts are known, from the code that their authors published; both are read here with code of ours:

- OpenProvence (MIT): config.json has `model_type` "open_provence" and the backbone under `base_model_config`; weights
  `ranking_model.*` are those of its sequence classifier, `pruning_head.classifier.*` a linear layer with two outputs.
- Provence (naver, DeBERTa-v3): `deberta.*`, `pooler.*` and `classifier.*` are transformers' sequence classifier,
  `token_classifier.*` the linear layer; the question is read without capitals and punctuation.

The first logit of the classifier ranks; the second output of the linear layer over the last hidden states is "keep".
"""

from __future__ import annotations

import string
from typing import Any

from crag_core.evaluators.named.files import ModelFiles
from crag_core.evaluators.named.reader import Reader, Reading, check_complete, local, read_as_text

OPEN_PROVENCE = "open_provence"
HEADS = ("pruning_head.classifier", "token_classifier")
KEEP_ABOVE = 0.1
"""Mean chance of a sentence above which it is kept, where the files name no other: of both authors' code."""
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def is_pruner(files: ModelFiles) -> bool:
    return any(f"{head}.weight" in files.tensors for head in HEADS)


def keep_above(files: ModelFiles) -> float:
    """The cut-off of sentences to start from."""
    told = files.config.get("default_threadshold")  # so written in these files
    return float(told) if isinstance(told, int | float) and 0 <= told <= 1 else KEEP_ABOVE


class Pruner(Reader):
    scale = "the model's logit of the chunk"
    scores_sentences = True

    def _load(self) -> Any:
        import torch
        from safetensors.torch import load_file
        from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

        config = dict(self.files.config)
        self._is_open = config.get("model_type") == OPEN_PROVENCE
        head = HEADS[0] if self._is_open else HEADS[1]
        if self._is_open:
            config = dict(config.get("base_model_config") or {}) | {"num_labels": config.get("num_labels", 1)}
            kind = config.pop("model_type", "")
        elif any(name.startswith("deberta.") for name in self.files.tensors):
            kind = "deberta-v2"
        else:
            raise ValueError("expected the layout of OpenProvence, or of Provence over DeBERTa, found another")
        for name in ("model_type", "auto_map", "architectures", "torch_dtype", "dtype", "_name_or_path"):
            config.pop(name, None)
        weights: dict[str, Any] = {}
        for path in sorted(self.files.folder.glob("*.safetensors")):
            weights |= load_file(path)
        labels = config.pop("num_labels", None)
        backbone = AutoConfig.for_model(kind, **config)
        if labels:
            backbone.num_labels = labels
        classifier: Any = AutoModelForSequenceClassification
        self._model = classifier.from_config(backbone, trust_remote_code=False).float().eval()
        own = {name.removeprefix("ranking_model."): value.float() for name, value in weights.items()}
        check_complete(self._model.load_state_dict(own, strict=False).missing_keys)
        self._head = torch.nn.Linear(backbone.hidden_size, 2)
        self._head.load_state_dict({part: own[f"{head}.{part}"] for part in ("weight", "bias")})
        return read_as_text(AutoTokenizer.from_pretrained(self.files.folder, config=backbone, **local()))

    def _read(self, question: str, text: str) -> Reading:
        asked = question if self._is_open else " ".join(question.lower().translate(_PUNCTUATION).split())
        pair = self.tokenizer(
            asked, text, return_tensors="pt", return_offsets_mapping=True, truncation="only_second",
            max_length=self.longest,
        )  # fmt: skip
        offsets, of = pair.pop("offset_mapping")[0].tolist(), pair.sequence_ids(0)
        found = self._model(**pair, output_hidden_states=True)
        keep = self._head(found.hidden_states[-1])[0].softmax(-1)[:, 1].tolist()
        kept = tuple((a, b, p) for (a, b), part, p in zip(offsets, of, keep, strict=True) if part == 1 and b > a)
        share = sum(p for _, _, p in kept) / len(kept) if kept else 0.0
        return Reading(float(found.logits[0, 0]), f"mean keep {share:.2f}", kept=kept)
