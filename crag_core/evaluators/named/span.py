"""Extractive question answering trained with unanswerable questions (SQuAD 2): best span minus no answer.

The score of a span is start plus end logit, that of no answer is both at the first piece, [CLS] (Devlin et al. 2019,
arXiv 1810.04805, section 4.3).
"""

from __future__ import annotations

from typing import Any

from crag_core.evaluators.named.reader import Reader, Reading, load_whole, local, read_as_text

LONGEST_SPAN = 30
"""Pieces of an answer at most, as transformers' own evaluation of SQuAD has it."""


class Span(Reader):
    scale = "score of the best span minus that of no answer"

    def _load(self) -> Any:
        from transformers import AutoModelForQuestionAnswering, AutoTokenizer

        self._model = load_whole(AutoModelForQuestionAnswering, self.files)
        return read_as_text(AutoTokenizer.from_pretrained(self.files.folder, **local()))

    def _read(self, question: str, text: str) -> Reading:
        import torch

        pair = self.tokenizer(
            question, text, return_tensors="pt", return_offsets_mapping=True, truncation="only_second",
            max_length=self.longest,
        )  # fmt: skip
        offsets = pair.pop("offset_mapping")[0].tolist()
        places = [place for place, of in enumerate(pair.sequence_ids(0)) if of == 1]
        found = self._model(**pair)
        start, end = found.start_logits[0], found.end_logits[0]
        null = float(start[0] + end[0])
        if not places:
            return Reading(-abs(null))
        spans = start[places][:, None] + end[places][None, :]
        reach = torch.ones_like(spans).triu().tril(LONGEST_SPAN - 1).bool()
        spans = spans.masked_fill(~reach, -torch.inf)
        first, last = divmod(int(spans.argmax()), len(places))
        answer = text[offsets[places[first]][0] : offsets[places[last]][1]]
        return Reading(float(spans.max()) - null, f"best span “{' '.join(answer.split())[:80]}”")
