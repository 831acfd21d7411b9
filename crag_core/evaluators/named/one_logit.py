"""A cross-encoder with one logit, through `CrossEncoder` of sentence-transformers: ms-marco, bge, mxbai, ettin."""

from __future__ import annotations

from typing import Any

from crag_core.evaluators.named.files import MODULES
from crag_core.evaluators.named.reader import Reader, Reading, load_whole, local, read_as_text


class OneLogit(Reader):
    scale = "the model's logit"

    def _load(self) -> Any:
        import torch
        from sentence_transformers import CrossEncoder

        options = {"use_safetensors": True, "dtype": torch.float32, "ignore_mismatched_sizes": True}
        self._model = CrossEncoder(
            str(self.files.folder), device="cpu", model_kwargs=options, activation_fn=torch.nn.Identity(), **local()
        )
        first = self.files.json(MODULES)[0]["path"] if self.files.has(MODULES) else ""
        load_whole(type(self._model.model), self.files, first)  # CrossEncoder does not tell what it made up
        if self._model.num_labels != 1:
            raise ValueError(f"expected one logit, found {self._model.num_labels}")
        tokenizer = self._model.tokenizer
        # The template of a chat is made of special pieces, which have to be read as such.
        return tokenizer if getattr(tokenizer, "chat_template", None) else read_as_text(tokenizer)

    def _read(self, question: str, text: str) -> Reading:
        (found,) = self._model.predict([(question, text)], show_progress_bar=False)
        return Reading(float(found))
