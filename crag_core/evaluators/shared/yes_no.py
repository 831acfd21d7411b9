"""Whether a model says yes or no, by how probable each is as the first token of its reply. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from crag_core.base.protocols import Reply

THINKS = "the model thinks before it replies: switch that off at its server, or choose a model that does not think"
NEITHER = "neither yes nor no is among the likeliest first tokens"
_AROUND = " \t\r\n▁Ġ\"'“*`_.,:;!(["  # signs that tokenizers and models put around a word
_THOUGHTS = ("<think", "<thought", "<reason", "<seed:think", "[think", "<|channel", "<|start_of_think", "◁think")


@dataclass(frozen=True)
class YesOrNo:
    """The probabilities of all spellings of yes and of no; `cause` says why they do not count as a reply."""

    yes: float = 0.0
    no: float = 0.0
    cause: str = ""

    @property
    def share(self) -> float | None:
        """P(yes) where nothing but yes and no may be said, in 0..1; None with the cause."""
        return None if self.cause else self.yes / (self.yes + self.no)


def yes_or_no(reply: Reply) -> YesOrNo:
    """From a reply of `first_tokens`; a spelling that is not among the likeliest tokens counts as impossible."""
    if not reply.top_logprobs:
        return YesOrNo(cause="the reply was empty")
    if any(_begins_thought(said) for said in (reply.text, reply.top_logprobs[0][0])):
        return YesOrNo(cause=THINKS)
    yes, no = (_sum_of(word, reply.top_logprobs) for word in ("yes", "no"))
    return YesOrNo(yes, no, "" if yes + no > 0 else NEITHER)


def as_text(likely: Sequence[tuple[str, float]]) -> str:
    return json.dumps([[token, round(value, 4)] for token, value in likely], ensure_ascii=False)


def _sum_of(word: str, likely: Sequence[tuple[str, float]]) -> float:
    return min(math.fsum(math.exp(value) for token, value in likely if token.strip(_AROUND).casefold() == word), 1.0)


def _begins_thought(said: str) -> bool:
    return said.strip().casefold().startswith(_THOUGHTS)
