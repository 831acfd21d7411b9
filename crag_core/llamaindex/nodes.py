"""Converts LlamaIndex nodes to passages and back. Always copies."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crag_core.base.errors import BadRecord
from crag_core.base.protocols import RetrievalResult
from crag_core.base.types.decisions import ALWAYS
from crag_core.base.types.passages import UNNAMED, Origin, Passage, Scores
from crag_core.retrieval.hybrid import measure_agreement
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode, NodeWithScore

# What loaders and readers call these things.
_NAMES = ("file_name", "filename", "title", "source", "file_path", "url")
_PAGES = ("page_label", "page", "page_number")
_LONGEST_PAGE = 9  # digits
_SCORES, _FOUND_BY = "crag_scores", "found_by"
COSINE = "cosine"
_ROUNDING = 1e-3
"""What a cosine may exceed 1 by, where vectors are kept in half precision."""


def is_text(scored: NodeWithScore) -> bool:
    """Whether it is judged: an image passes by, and so does a node that holds a picture, sound or film and no text."""
    from llama_index.core.schema import ImageNode, Node

    node = scored.node
    holds = isinstance(node, Node) and any((node.image_resource, node.audio_resource, node.video_resource))
    return not isinstance(node, ImageNode) and (not holds or bool(node.get_content().strip()))


def to_passage(scored: NodeWithScore, score_name: str = "retriever") -> Passage:
    """A passage from any retriever's node; its score becomes the score `score_name`.

    "retriever" is on that retriever's own scale; "cosine" says that it is a cosine, which signals and rules use, and
    of dense retrieval, unless the node says what found it. Raises `BadRecord` for a cosine that is none. A node that
    `to_node` made gives back the passage that it was made from; metadata of others count where they have that shape.
    """
    node, metadata = scored.node, scored.node.metadata
    text = node.get_content()
    from_web = metadata.get("source") == Origin.WEB.value
    name = next((str(metadata[key]) for key in _NAMES if metadata.get(key) and metadata[key] != Origin.WEB.value), "")
    ordinal, found_by = metadata.get("ordinal"), metadata.get(_FOUND_BY)
    scores = _own_scores(metadata.get(_SCORES)) or _given_score(scored, score_name)
    if not isinstance(found_by, list | tuple):
        found_by = ("dense",) if scores and score_name == COSINE else ()
    return Passage(
        id=node.node_id or hashlib.sha256(text.encode()).hexdigest()[:32],
        text=text,
        source=name or UNNAMED,
        origin=Origin.WEB if from_web else Origin.CORPUS,
        document_id=node.ref_doc_id or "",
        page=_find_page(metadata),
        url=str(metadata["url"]) if metadata.get("url") else None,
        ordinal=ordinal if type(ordinal) is int and ordinal >= 0 else 0,
        found_by=tuple(one for one in found_by if isinstance(one, str)),
        scores=scores,
        section=str(metadata.get("section") or ""),
    )


def _own_scores(kept: object) -> Scores:
    items = kept.items() if isinstance(kept, dict) else ()
    numbers = ((str(key), value) for key, value in items if type(value) in (int, float))
    return tuple((key, float(value)) for key, value in numbers if abs(value) <= sys.float_info.max)


def _given_score(scored: NodeWithScore, name: str) -> Scores:
    score = None if scored.score is None else float(scored.score)
    if name == COSINE and score is not None and not abs(score) <= 1.0 + _ROUNDING:
        raise BadRecord(
            f'Expected cosines in -1..1, as node_scores="cosine" says, found {score} at node {scored.node.node_id}.',
            hint="Leave node_scores out, or have the retriever give cosines.",
        )
    if score is None or not math.isfinite(score):
        return ()
    return ((name, min(max(score, -1.0), 1.0) if name == COSINE else score),)


def found_in(nodes: Sequence[NodeWithScore], score_name: str, limit: int | None = None) -> RetrievalResult:
    """The first `limit` of what is judged of these nodes, and how far they agree, where all have vectors.

    Of two nodes with one id the first counts.
    """
    distinct: dict[str, tuple[Passage, BaseNode]] = {}
    for scored in filter(is_text, nodes):
        passage = to_passage(scored, score_name)
        distinct.setdefault(passage.id, (passage, scored.node))
    kept = list(distinct.values())[:limit]
    vectors = [node.embedding for _, node in kept if node.embedding]
    is_alike = len(vectors) == len(kept) and len({len(vector) for vector in vectors}) == 1
    agreement = measure_agreement(vectors) if is_alike else None
    is_measured = agreement is not None and math.isfinite(agreement)
    return RetrievalResult(tuple(passage for passage, _ in kept), agreement if is_measured else None)


def to_node(passage: Passage, text: str | None = None) -> NodeWithScore:
    """A new node with the passage's last score, and its text unless another is given.

    Web passages say source="web" and their URL.
    """
    from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

    metadata: dict[str, Any] = {"file_name": passage.source, "ordinal": passage.ordinal}
    if passage.page is not None:
        metadata["page_label"] = str(passage.page)
    if passage.section:
        metadata["section"] = passage.section
    if passage.origin is Origin.WEB:
        metadata["source"] = Origin.WEB.value
    if passage.url:
        metadata["url"] = passage.url
    kept = {_FOUND_BY: list(passage.found_by), _SCORES: dict(passage.scores)}
    node = TextNode(
        id_=passage.id,
        text=passage.text if text is None else text,
        metadata={**metadata, **kept},
        # A language model reads the source and the URL, not our bookkeeping.
        excluded_llm_metadata_keys=["ordinal", *kept],
        excluded_embed_metadata_keys=[*metadata, *kept],
    )
    if passage.document_id:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=passage.document_id)
    return NodeWithScore(node=node, score=passage.scores[-1][1] if passage.scores else None)


def kept_nodes(trace: Trace, retrieved: Sequence[NodeWithScore] = ()) -> list[NodeWithScore]:
    """What the run's own policy keeps, as new nodes in the order in which the answer sees them.

    Those without text come last. A node of `retrieved` keeps its id, metadata and relationships; its text is what is
    left of it. The score is the passage's grade, 1.0 where a rule approved it, None where it was not graded.
    """
    routed = reroute(trace, trace.settings.policy)
    decision = routed.decision
    given = {scored.node.node_id: scored.node for scored in reversed(retrieved)}
    approved = decision.deciding if decision.rule not in (None, ALWAYS) else ()
    textless = (one for one in routed.decision_path.kept if not one.text.strip() and one.id in given)
    kept = [(excerpt.passage, excerpt.text) for excerpt in routed.knowledge.excerpts]
    nodes = []
    for passage, text in (*kept, *((passage, passage.text) for passage in textless)):
        grade = trace.grade_of(passage.id)
        scored = _copied(given[passage.id], text) if passage.id in given else to_node(passage, text)
        scored.score = 1.0 if passage.id in approved else grade.score if grade else None
        action = decision.verdict
        scored.node.metadata |= {"crag_action": action.value if action else "", "crag_reason": decision.reason}
        for hidden in (scored.node.excluded_llm_metadata_keys, scored.node.excluded_embed_metadata_keys):
            hidden += ["crag_action", "crag_reason"]
        nodes.append(scored)
    return nodes


def _copied(node: BaseNode, text: str) -> NodeWithScore:
    from llama_index.core.schema import NodeWithScore

    copied = node.model_copy(deep=True)
    if text != copied.get_content():
        copied.set_content(text)
    return NodeWithScore(node=copied)


def _find_page(metadata: dict[str, Any]) -> int | None:
    """Labels like "iv" are not page numbers; LlamaIndex's own loaders write numbers as text."""
    for key in _PAGES:
        label = str(metadata.get(key, "")).strip()
        if label.isdecimal() and len(label) <= _LONGEST_PAGE and int(label) > 0:
            return int(label)
    return None
