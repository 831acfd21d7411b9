"""Knowledge refinement: decompose passages into strips, filter, recompose (arXiv 2401.15884, 4.4)."""

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from crag_core.base.text.display import against, counted, readable
from crag_core.base.text.sentences import split
from crag_core.base.text.tokens import beginning
from crag_core.base.text.words import estimate_tokens
from crag_core.base.types.decisions import Action, CorrectionKind, Decision, Handling
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Excerpt, Extraction, Knowledge, Strip, StripVerdict
from crag_core.base.types.passages import TOPICAL, Passage
from crag_core.base.types.web import WebOutcome, WebSearch
from crag_core.decision.decide import set_aside
from crag_core.decision.policy import Policy, StripOrder
from crag_core.decision.reasons import NOT_COMPARABLE

Keep = Callable[[Strip], str]  # why a strip is struck out; the empty string keeps it
KEPT_ALREADY = "the same sentence is kept already"

Kept = tuple[tuple[Excerpt, ...], tuple[StripVerdict, ...]]

_tokens_of = lru_cache(8192)(estimate_tokens)  # of sentences, which are asked about at each move of a threshold


def decompose(passage: Passage) -> tuple[Strip, ...]:
    return tuple(
        Strip(passage.id, index, start, end, passage.text[start:end])
        for index, (start, end) in enumerate(split(passage.text))
    )


def as_passage(strip: Strip, passage: Passage) -> Passage:
    return replace(passage, id=strip.id, text=strip.text, scores=())


def recompose(
    policy: Policy,
    decision: Decision,
    passages: tuple[Passage, ...],
    strips: tuple[Strip, ...] | None,
    extractions: tuple[Extraction, ...] | None,
    web: WebSearch | None,
    web_grades: tuple[Grade, ...] | None = None,
) -> Knowledge:
    """What of `passages` reaches the answer under `policy`, from what was recorded.

    `strips` None: they were never scored; those of other passages are left aside.
    """
    notes: list[str] = []
    looked_at = {passage.id for passage in passages}
    strips = None if strips is None else tuple(strip for strip in strips if strip.passage_id in looked_at)
    internal, verdicts = _internal(policy, decision, passages, strips, extractions, notes)
    external: tuple[Excerpt, ...] = ()
    if decision.wants(CorrectionKind.WEB_SEARCH) and web is not None:
        external, web_verdicts = _external(policy, web, web_grades, _sentences(internal, strips or ()), notes)
        asked = web.outcome not in (WebOutcome.PENDING, WebOutcome.APPROVED)
        if asked and not external and "keep_if_nothing" in policy.steps(decision.action) and passages:
            internal, verdicts = _whole(passages, strips or (), policy.refinement.budget, {}, notes)
        verdicts += web_verdicts
    if internal and decision.verdict is Action.INCORRECT:
        why = "There are no web results" if web is not None and not external else "No more is retrieved"
        notes.append(f"{why}, so the retrieved chunks are used after all; they were graded as irrelevant.")
    return Knowledge(internal, external, verdicts, tuple(notes))


def left_after_refinement(
    policy: Policy,
    handling: Handling,
    passages: tuple[Passage, ...],
    strips: tuple[Strip, ...] | None,
    extractions: tuple[Extraction, ...] | None,
) -> int | None:
    """Of how many of `passages` refinement leaves something; None while their strips are not scored.

    A repetition, the most strips and the token budget leave out strips that were found relevant, so these count.
    """
    scored = {strip.passage_id for strip in strips or ()}
    if any(passage.id not in scored and passage.text.strip() for passage in passages):
        return None
    extracted = handling is Handling.EXTRACT and extractions is not None
    if not extracted and (unread := _unread(passages, strips or ())):
        return len(unread)
    why_struck = _keep_extracted(extractions or ()) if extracted else _keep_scored(policy.cutoff)
    kept = {strip.passage_id for strip in strips or () if not why_struck(strip)}
    return sum(passage.id in kept for passage in passages)


def _internal(
    policy: Policy,
    decision: Decision,
    passages: tuple[Passage, ...],
    strips: tuple[Strip, ...] | None,
    extractions: tuple[Extraction, ...] | None,
    notes: list[str],
) -> Kept:
    discarded = {c.passage_id: c.reason for c in decision.plan if c.kind is CorrectionKind.DISCARD}
    handling = decision.handling
    usable = () if None in discarded else tuple(p for p in passages if p.id not in discarded)
    if handling in (Handling.KEEP, Handling.DOCUMENTS):
        return _whole(usable, strips or (), policy.refinement.budget, discarded, notes)
    extracted = handling is Handling.EXTRACT and extractions is not None
    if not extracted and (unread := _unread(usable, strips or ())):
        notes.append("No sentence could be graded, so the chunks are used as they are.")
        return _whole(unread, strips or (), policy.refinement.budget, discarded, notes)
    keep = _keep_extracted(extractions or ()) if extracted else _keep_scored(policy.cutoff)
    verdicts = _choose(policy, strips or (), passages, lambda strip: _why_discarded(strip, discarded) or keep(strip))
    excerpts = _excerpts(policy, verdicts, passages)
    if handling is Handling.EXTRACT and not extracted and usable:
        notes.append("No LLM extracted sentences; they are kept by score instead.")
    if usable and not excerpts and strips and extracted:
        notes.append(f"The language model extracted no sentence from {counted(len(usable), 'chunk')}.")
    elif usable and not excerpts and strips:
        notes.append(_nothing_left(policy, tuple(strip for strip in strips if not _why_discarded(strip, discarded))))
    return excerpts, verdicts


def _external(
    policy: Policy, web: WebSearch, grades: tuple[Grade, ...] | None, said: set[str], notes: list[str]
) -> Kept:
    if web.outcome is not WebOutcome.USED or web.pages_waiting:
        return (), ()
    found = web.evidence(policy.web.pages)
    looked_at = {passage.id for passage in found}
    strips = tuple(strip for strip in web.strips or () if strip.passage_id in looked_at)
    off = _off_subject(policy, found, grades) if policy.web.on_subject else {}
    off |= dict.fromkeys(set_aside(policy, found, grades), NOT_COMPARABLE)
    usable = tuple(passage for passage in found if passage.id not in off)
    if off and not usable:
        notes.append(f"The web answered, but none of its {len(off)} results is on the subject.")
    if not policy.web.refine:
        return _whole(usable, strips, policy.refinement.budget, off, notes)
    if unread := _unread(usable, strips):
        notes.append("No sentence of the web could be graded, so its results are used as they are.")
        return _whole(unread, strips, policy.refinement.budget, off, notes)
    keep = _keep_scored(policy.cutoff)
    verdicts = _choose(policy, strips, found, lambda strip: _why_discarded(strip, off) or keep(strip), said)
    excerpts = _excerpts(policy, verdicts, found)
    if usable and not excerpts and any(verdict.reason == KEPT_ALREADY for verdict in verdicts):
        notes.append("The web answered, but it says only what is kept already.")
    elif usable and not excerpts:
        left = tuple(strip for strip in strips if strip.passage_id not in off)
        notes.append(f"The web answered, but {_nothing_left(policy, left).lower()}")
    return excerpts, verdicts


def _off_subject(
    policy: Policy, results: tuple[Passage, ...], grades: tuple[Grade, ...] | None
) -> dict[str | None, str]:
    ids = {passage.id for passage in results}
    scores = {one.passage_id: policy.ungraded if one.score is None else one.part(TOPICAL) for one in grades or ()}
    low = {id_: score for id_, score in scores.items() if id_ in ids and score is not None and score < policy.lower}
    return {id_: "topical {} < lower {}".format(*against(score, policy.lower)) for id_, score in low.items()}


def _unread(passages: tuple[Passage, ...], strips: tuple[Strip, ...]) -> tuple[Passage, ...]:
    """The passages to use as they are, since the scorer could judge none of their strips: it cannot read this text."""
    ids = {passage.id for passage in passages}
    own = [strip for strip in strips if strip.passage_id in ids]
    if any(strip.score is not None for strip in own):
        return ()
    unread = {strip.passage_id for strip in own}
    return tuple(passage for passage in passages if passage.id in unread)


def _keep_scored(cutoff: float) -> Keep:
    def why_struck(strip: Strip) -> str:
        if strip.score is None:
            return "not graded"
        return "" if strip.score > cutoff else "score {} ≤ cut-off {}".format(*against(strip.score, cutoff))

    return why_struck


def _keep_extracted(extractions: tuple[Extraction, ...]) -> Keep:
    picked = {(e.passage_id, index) for e in extractions for index in e.strip_indexes}
    failed = {e.passage_id: e.cause for e in extractions if e.cause}

    def why_struck(strip: Strip) -> str:
        if (strip.passage_id, strip.index) in picked:
            return ""
        return failed.get(strip.passage_id) or "not extracted by the language model"

    return why_struck


def _why_discarded(strip: Strip, discarded: dict[str | None, str]) -> str:
    reason = discarded.get(strip.passage_id) or discarded.get(None)
    return f"its chunk was discarded: {reason}" if reason else ""


def _verdicts(strips: Iterable[Strip], why_struck: Keep) -> tuple[StripVerdict, ...]:
    judged = ((strip, why_struck(strip)) for strip in strips)
    return tuple(StripVerdict(strip, not why, why or "kept") for strip, why in judged)


def _choose(
    policy: Policy,
    strips: tuple[Strip, ...],
    passages: tuple[Passage, ...],
    why_struck: Keep,
    said: Collection[str] = (),
) -> tuple[StripVerdict, ...]:
    """Filter, drop repetitions (passages of one document overlap), then fill the token budget best strip first."""
    rank = {passage.id: i for i, passage in enumerate(passages)}
    reasons = {strip.id: why_struck(strip) for strip in strips}
    rules = policy.refinement
    seen: set[str] = set()
    tokens = 0
    for strip in sorted(strips, key=lambda s: (-(s.score or 0.0), rank[s.passage_id], s.start)):
        if reasons[strip.id]:
            continue
        words = _as_words(strip.text)
        size = _tokens_of(strip.text)
        if words in seen or words in said:
            reasons[strip.id] = KEPT_ALREADY
        elif rules.top is not None and len(seen) >= rules.top:
            reasons[strip.id] = f"over the {rules.top}-sentence limit"
        elif rules.budget is not None and tokens + size > rules.budget:
            reasons[strip.id] = f"the token budget of {rules.budget} is full"
        else:
            seen.add(words)
            tokens += size
    return _verdicts(strips, lambda strip: reasons[strip.id])


def _excerpts(policy: Policy, verdicts: tuple[StripVerdict, ...], passages: tuple[Passage, ...]) -> tuple[Excerpt, ...]:
    by_id = {passage.id: passage for passage in passages}
    kept = [verdict.strip for verdict in verdicts if verdict.kept]
    if policy.refinement.order is StripOrder.RELEVANCE:
        kept.sort(key=lambda strip: -(strip.score or 0.0))
    elif policy.refinement.order is StripOrder.RANK:
        places = {passage.id: place for place, passage in enumerate(passages)}
        kept.sort(key=lambda strip: (places[strip.passage_id], strip.start))
    else:
        first: dict[str, int] = {}
        for rank, passage in enumerate(passages):
            first.setdefault(passage.document_id or passage.id, rank)
        kept.sort(
            key=lambda s: (first[by_id[s.passage_id].document_id or s.passage_id], by_id[s.passage_id].ordinal, s.start)
        )
    excerpts = []
    for passage_id, group in groupby(kept, key=lambda strip: strip.passage_id):
        run = list(group)
        text = " ".join(strip.text for strip in run)
        excerpts.append(Excerpt(by_id[passage_id], text, tuple(strip.id for strip in run)))
    return tuple(excerpts)


def _whole(
    passages: tuple[Passage, ...],
    strips: tuple[Strip, ...],
    budget: int | None,
    discarded: dict[str | None, str],
    notes: list[str],
) -> Kept:
    """Passages as they are, in rank order, as many as the budget holds; one that does not fit stops no smaller one.

    Of the first, the beginning goes in where it is longer than the budget by itself. `budget` None: all of them.
    """
    excerpts: list[Excerpt] = []
    ends: dict[str, int] = {}
    left, over = math.inf if budget is None else budget, 0
    for passage in (one for one in passages if one.text.strip()):
        text = passage.text if excerpts or budget is None else beginning(passage.text, budget, estimate_tokens)
        tokens = estimate_tokens(text)
        if not text or tokens > left:
            over += 1
            continue
        excerpts.append(_beginning(passage, text, strips))
        ends[passage.id] = len(text)
        left -= tokens
    if over:
        notes.append(f"The token budget of {budget} holds {len(excerpts)} of {counted(len(excerpts) + over, 'chunk')}.")
    if excerpts and excerpts[0].text != excerpts[0].passage.text:
        whole = estimate_tokens(excerpts[0].passage.text)
        used = estimate_tokens(excerpts[0].text)
        notes.append(
            f"The first chunk alone is longer than the token budget of {budget}: about {used:,} of its {whole:,} "
            "tokens are used, from its beginning."
        )

    def why_struck(strip: Strip) -> str:
        if strip.start < ends.get(strip.passage_id, 0):
            return ""
        return _why_discarded(strip, discarded) or "the token budget was full"

    return tuple(excerpts), _verdicts(strips, why_struck)


def _sentences(excerpts: tuple[Excerpt, ...], strips: tuple[Strip, ...]) -> set[str]:
    texts = {strip.id: strip.text for strip in strips}
    own = (
        [texts[id_] for id_ in one.strip_ids if id_ in texts] or [one.text[start:end] for start, end in split(one.text)]
        for one in excerpts
    )
    return {_as_words(text) for found in own for text in found}


@lru_cache(8192)
def _as_words(text: str) -> str:
    """What makes two sentences the same: everything but white space, capitals, and quotes and full stops around it."""
    return " ".join(text.split()).casefold().strip(" .…\"'“”„«»")


def _beginning(passage: Passage, text: str, strips: tuple[Strip, ...]) -> Excerpt:
    if len(text) == len(passage.text):
        return Excerpt(passage, text)
    inside = (strip.id for strip in strips if strip.passage_id == passage.id and strip.start < len(text))
    return Excerpt(passage, text, tuple(inside))


def _nothing_left(policy: Policy, strips: tuple[Strip, ...]) -> str:
    best = max((strip.score for strip in strips if strip.score is not None), default=None)
    if best is None:
        return f"No sentence is kept at the cut-off {readable(policy.cutoff)[0]}: none was graded."
    value, limit = against(best, policy.cutoff)
    ungraded = sum(strip.score is None for strip in strips)
    others = f", {ungraded} could not be graded" if ungraded else ""
    return f"No sentence is kept at the cut-off {limit}: the best scores {value}{others}."
