"""The messages of every request to a language model, in the wording of the files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from crag_core.base.errors import BadRecord
from crag_core.base.prompts import replies
from crag_core.base.prompts.delimiters import EVIDENCE_IS_DATA, as_evidence, harmless
from crag_core.base.prompts.templates import FOLDER, NEEDED, Template, read_templates
from crag_core.base.protocols import Messages
from crag_core.base.serialization import fingerprint
from crag_core.base.types.knowledge import Consolidation, Excerpt
from crag_core.base.types.passages import Origin
from crag_core.base.types.questions import Turn

VERSION = "7"
"""Of the shipped wording, and of what the code puts into it: raise it where a change of either changes a request."""

SHIPPED = "96b175cd0150d19c"

JUDGED_CHARACTERS = 2000
JUDGED_TOGETHER = 800
"""Characters of a passage that is judged alone, and of one that is judged with others (descriptions 004 and 002)."""

JUDGED_ROOM = 18_000
"""Bytes of passages in one call: some 6000 tokens in any script. A server cuts a longer prompt without saying so."""

_WEB_LINE = 200  # characters of a web page's title or address


@dataclass(frozen=True)
class Prompts:
    templates: Mapping[str, Template]

    @property
    def version(self) -> str:
        made = fingerprint(sorted((name, one.system, one.user) for name, one in self.templates.items()))
        return VERSION if made == SHIPPED else f"{VERSION}+{made[:8]}"

    def judge(self, question: str, passage: str) -> Messages:
        """One passage against one question; the passage is cut to its first 2000 characters (description 004)."""
        shown = as_evidence(passage[:JUDGED_CHARACTERS])
        return self._asked("judge", question=question, evidence=shown, reply=replies.SCORE_FORM)

    def judge_yes_no(self, question: str, passage: str) -> Messages:
        shown = as_evidence(passage[:JUDGED_CHARACTERS])
        return self._asked("judge-yes-no", question=question, evidence=shown, reply=replies.YES_NO_FORM)

    def judge_batch(self, question: str, texts: Sequence[str]) -> Messages:
        """Several passages at once, 0 to 10 with a reason each, by their first 800 characters (description 002)."""
        return self._judge_together("judge-batch", question, texts, replies.BATCH_FORM)

    def judge_list(self, question: str, texts: Sequence[str]) -> Messages:
        """Several passages at once, one number each and no reasons (description 001), as much of each as has room."""
        most = min(JUDGED_ROOM // max(len(texts), 1), JUDGED_CHARACTERS)
        if sum(len(text[:most].encode("utf-8", "replace")) for text in texts) > JUDGED_ROOM:
            most = JUDGED_TOGETHER
        return self._judge_together("judge-list", question, texts, replies.LIST_FORM, most)

    def sufficient(self, question: str, texts: Sequence[str]) -> tuple[Messages, int]:
        """Whether all documents together are enough (arXiv 2411.06037), and how many, the first ones, are shown."""
        shown: list[str] = []
        room = JUDGED_ROOM
        for text in texts:
            room -= len(text.encode("utf-8", "replace"))
            if room < 0 and shown:
                break
            shown.append(text)
        most = JUDGED_ROOM // 4 if room < 0 else JUDGED_ROOM  # characters; of four bytes at most
        asked = self._judge_together("sufficient", question, shown, replies.SUFFICIENT_FORM, most)
        return asked, len(shown)

    def classify(self, question: str) -> Messages:
        """How much has to be looked up for a question (arXiv 2403.14403)."""
        return self._asked("classify", question=question, reply=replies.CLASS_FORM)

    def alone(self, question: str) -> Messages:
        return self._asked("alone", question=question, cannot_answer=replies.CANNOT_ANSWER)

    def again(self, messages: Messages, reply: str, failure: str) -> Messages:
        said = ("assistant", harmless(reply[:1000]) or "(empty)")
        return (*messages, said, *self._asked("again", failure=failure))

    def extract(self, question: str, passage: str) -> Messages:
        shown = as_evidence(passage)
        return self._asked("extract", question=question, evidence=shown, reply=replies.EXTRACTION_FORM)

    def check(self, statement: str, evidence: Sequence[str]) -> Messages:
        """One sentence of an answer beside numbered sentences of the evidence, each cut as one to be judged is."""
        shown = (f"[{number}] {as_evidence(text[:JUDGED_CHARACTERS])}" for number, text in enumerate(evidence, start=1))
        said = " ".join(statement.split())[:JUDGED_CHARACTERS]
        return self._asked("check", statement=said, evidence="\n\n".join(shown), reply=replies.CHECK_FORM)

    def condense(self, question: str, history: Sequence[Turn]) -> Messages:
        """A question that stands alone in place of one that follows these turns, or what to ask back."""
        turns = (as_evidence(_told(turn)) for turn in history)
        return self._asked("condense", question=question, history="\n\n".join(turns), reply=replies.CONDENSE_FORM)

    def rewrite(self, question: str, word_limit: int) -> Messages:
        return self._asked("rewrite", question=question, words=word_limit)

    def phrases(self, question: str, limit: int) -> Messages:
        """Key phrases for a web search (arXiv 2401.15884, 4.5)."""
        return self._asked("phrases", question=question, count=limit)

    def keywords(self, question: str, tried: Sequence[str], word_limit: int) -> Messages:
        before = "".join(f"\n- {_line(query)}" for query in tried)
        shown = f"Tried before:{before}" if tried else ""
        return self._asked("keywords", question=question, tried=shown, words=word_limit)

    def rephrase(self, question: str) -> Messages:
        return self._asked("rephrase", question=question)

    def answer(self, question: str, excerpts: Sequence[Excerpt]) -> Messages:
        """An answer from evidence, documents and web apart; the n-th excerpt is cited as [n] wherever it stands."""
        blocks = _by_origin(excerpts, "Evidence from the {}:", "[{}]")
        evidence = "\n\n".join(blocks)
        return self._asked("answer", question=question, evidence=evidence, cannot_answer=replies.CANNOT_ANSWER)

    def recall(self, question: str, most: int) -> Messages:
        """What the model knows itself, in none to `most` passages (arXiv 2410.07176)."""
        return self._asked("recall", question=question, count=most, reply=replies.RECALL_FORM)

    def consolidate(self, question: str, excerpts: Sequence[Excerpt], own: Sequence[str]) -> Messages:
        """What excerpts and passages from memory say together, each source named (arXiv 2410.07176)."""
        blocks = _by_origin(excerpts, "From the {}:", "Document {}:")
        blocks += ["From a language model's memory:"] if own else []
        blocks += [f"M{n}: {as_evidence(text)}" for n, text in enumerate(own, start=1)]
        evidence = "\n\n".join(blocks)
        return self._asked("consolidate", question=question, evidence=evidence, reply=replies.CONSOLIDATION_FORM)

    def consolidated(self, question: str, found: Consolidation) -> Messages:
        """An answer from consolidated passages, each with the numbers of its excerpts (arXiv 2410.07176)."""
        blocks = []
        for number, piece in enumerate(found.pieces, start=1):
            sources = [f"[{n}]" for n in piece.excerpts] + ["a language model's memory"] * bool(piece.memory)
            others = [str(b if a == number else a) for a, b in found.conflicts if number in (a, b)]
            against = f" It contradicts passage {', '.join(others)}." if others else ""
            blocks.append(f"Passage {number}, from {', '.join(sources)}.{against}\n{as_evidence(piece.text)}")
        return self._asked(
            "consolidated",
            question=question,
            evidence="\n\n".join(blocks),
            cannot_answer=replies.CANNOT_ANSWER,
            from_memory=replies.FROM_MEMORY,
        )

    def _judge_together(
        self, name: str, question: str, texts: Sequence[str], reply: str, most: int = JUDGED_TOGETHER
    ) -> Messages:
        cut = (text if len(text) <= most else f"{text[:most]}..." for text in texts)
        shown = (f"Document {n}:\n{as_evidence(text)}" for n, text in enumerate(cut, start=1))
        evidence = "\n\n".join(shown)
        return self._asked(name, question=question, evidence=evidence, reply=reply, count=len(texts))

    def _asked(self, name: str, **values: object) -> Messages:
        values |= {one: harmless(str(values[one])) for one in ("question", "statement", "failure") if one in values}
        return self.templates[name].filled(evidence_is_data=EVIDENCE_IS_DATA, **values)


@cache
def prompts_in(folder: str) -> Prompts:
    """Those of a folder, and the shipped ones where it has no file; "": all shipped. Read once a process."""
    if not folder:
        found = read_templates(FOLDER)
        if missing := [name for name in NEEDED if name not in found]:
            message = f"{FOLDER}: {missing[0]}.txt is missing; expected a file for each of {', '.join(NEEDED)}."
            raise BadRecord(message, hint="Put it back: it came with this version.")
        return Prompts(found)
    return Prompts({**prompts_in("").templates, **read_templates(Path(folder).expanduser())})


def shipped() -> Prompts:
    return prompts_in("")


def _told(turn: Turn) -> str:
    replied = "Asked back" if turn.asks_back else "Answer"
    return f"Question: {turn.question}" + (f"\n{replied}: {turn.answer}" if turn.answer else "")


def _by_origin(excerpts: Sequence[Excerpt], heading: str, name: str) -> list[str]:
    blocks: list[str] = []
    for origin, place in ((Origin.CORPUS, "documents"), (Origin.WEB, "web")):
        numbered = enumerate(excerpts, start=1)
        shown = [f"{name.format(n)} {_shown(one)}" for n, one in numbered if one.passage.origin == origin]
        blocks += [heading.format(place), *shown] if shown else []
    return blocks


def _shown(excerpt: Excerpt) -> str:
    passage = excerpt.passage
    if passage.origin != Origin.WEB:
        return as_evidence(excerpt.text)
    known = (("Title", _line(passage.source)), ("URL", _line(passage.url or "")), ("Snippet", excerpt.text))
    return as_evidence("\n".join(f"{name}: {value}" for name, value in known if value))


def _line(text: str) -> str:
    return harmless(" ".join(text.split())[:_WEB_LINE])
