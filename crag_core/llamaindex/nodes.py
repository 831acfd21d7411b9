"""Converts LlamaIndex nodes to passages and back. Always copies."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crag_core.base.types import Origin, Passage
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode, NodeWithScore

# What loaders and readers call these things.
_NAMES = ("file_name", "filename", "title", "source", "file_path", "url")
_PAGES = ("page_label", "page", "page_number")
_SCORES = "crag_scores"


def is_text(scored: NodeWithScore) -> bool:
    """Whether it is judged: an image passes by."""
    from llama_index.core.schema import ImageNode

    return not isinstance(scored.node, ImageNode)


def to_passage(scored: NodeWithScore, score_name: str = "retriever") -> Passage:
    """A passage from any retriever's node; its score becomes the score `score_name`.

    "retriever" is on that retriever's own scale; "cosine" says that it is a cosine, which signals and rules can use.
    A node that `to_node` made gives back the passage that it was made from.
    """
    node = scored.node
    metadata = dict(node.metadata)
    text = node.get_content()
    from_web = metadata.get("source") == Origin.WEB.value
    name = next((str(metadata[key]) for key in _NAMES if metadata.get(key) and metadata[key] != Origin.WEB.value), "")
    scores = tuple((str(key), float(value)) for key, value in metadata.get(_SCORES, {}).items())
    if not scores and scored.score is not None:
        scores = ((score_name, float(scored.score)),)
    return Passage(
        id=node.node_id or hashlib.sha256(text.encode()).hexdigest()[:32],
        text=text,
        source=name or "unnamed source",
        origin=Origin.WEB if from_web else Origin.CORPUS,
        document_id=node.ref_doc_id or "",
        page=_find_page(metadata),
        url=str(metadata["url"]) if metadata.get("url") else None,
        ordinal=int(metadata["ordinal"]) if isinstance(metadata.get("ordinal"), int) else 0,
        found_by=tuple(metadata.get("found_by", ())),
        scores=scores,
        section=str(metadata.get("section") or ""),
    )


def to_passages(nodes: Sequence[NodeWithScore], score_name: str) -> tuple[Passage, ...]:
    """Of those that are judged; of two with one id the first."""
    found: dict[str, Passage] = {}
    for node in filter(is_text, nodes):
        passage = to_passage(node, score_name)
        found.setdefault(passage.id, passage)
    return tuple(found.values())


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
    kept = {"found_by": list(passage.found_by), _SCORES: dict(passage.scores)}
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

    A node of `retrieved` keeps its id, metadata and relationships; its text is what is left of it. The score is the
    passage's grade, None where it was not graded.
    """
    routed = reroute(trace, trace.settings.policy)
    given = {scored.node.node_id: scored.node for scored in reversed(retrieved)}
    nodes = []
    for excerpt in routed.knowledge.excerpts:
        passage, grade = excerpt.passage, trace.grade_of(excerpt.passage.id)
        scored = _copied(given[passage.id], excerpt.text) if passage.id in given else to_node(passage, excerpt.text)
        scored.score = grade.score if grade else None
        action = routed.decision.verdict
        scored.node.metadata |= {"crag_action": action.value if action else "", "crag_reason": routed.decision.reason}
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
        if label.isdecimal() and int(label) > 0:
            return int(label)
    return None
