"""A causal reranker: the probability of "yes" against "no" after the prompt of Qwen3-Reranker.

The prompt, left padding and the last position are those of the model card of Qwen/Qwen3-Reranker-0.6B.
"""

from __future__ import annotations

import math
from typing import Any

from crag_core.evaluators.named.reader import Reader, Reading, load_whole, local, read_as_text

SYSTEM = (
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".'
)
BEFORE = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"
AFTER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
INSTRUCT = "Given a web search query, retrieve relevant passages that answer the query"
BODY = "<Instruct>: {instruct}\n<Query>: {question}\n<Document>: {text}"


class YesNo(Reader):
    scale = "log-odds of yes against no"

    def _load(self) -> Any:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.files.folder, padding_side="left", **local())
        self._before, self._after = (
            tokenizer.encode(part, add_special_tokens=False) for part in (BEFORE, AFTER)
        )  # before the text is read as letters
        self._no, self._yes = (_piece(tokenizer, word) for word in ("no", "yes"))
        self._model = load_whole(AutoModelForCausalLM, self.files)
        return read_as_text(tokenizer)

    def _frame(self) -> int:
        # What stands around the text is no part of its window: such a model reads much longer prompts.
        return 0

    def _read(self, question: str, text: str) -> Reading:
        return self.read_together([(question, text)])[0]

    def read_together(self, pairs: list[tuple[str, str]]) -> list[Reading]:
        """Padded on the left, so that the last position of each is that of the answer."""
        import torch

        rows = [self.prompt(question, text) for question, text in pairs]
        batch = self.tokenizer.pad({"input_ids": rows}, padding=True, return_tensors="pt")
        logits = self._model(**batch, logits_to_keep=1).logits[:, -1, [self._no, self._yes]]
        said = torch.log_softmax(logits, dim=1).tolist()
        return [Reading(yes - no, f"P(yes) {math.exp(yes):.2f}") for no, yes in said]

    def prompt(self, question: str, text: str) -> list[int]:
        body = BODY.format(instruct=INSTRUCT, question=question, text=text)
        return [*self._before, *self.tokenizer.encode(body, add_special_tokens=False), *self._after]


def _piece(tokenizer: Any, word: str) -> int:
    found = tokenizer.convert_tokens_to_ids(word)
    if found is None or found == tokenizer.unk_token_id:
        raise ValueError(f"expected {word!r} among the pieces of the tokenizer, found none")
    return int(found)
