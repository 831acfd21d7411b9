"""Corrective RAG whose decisions can be seen, moved and replayed. What a program needs of it, by name.

Nothing heavy is loaded before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crag_core.app.config import Config
    from crag_core.app.workbench import Workbench, build_pipeline
    from crag_core.base.errors import CragError
    from crag_core.base.types.decisions import Action, Decision
    from crag_core.base.types.grades import Grade
    from crag_core.base.types.passages import Passage
    from crag_core.decision.decide import decide
    from crag_core.decision.policy import Policy
    from crag_core.evaluators.policies import load_policies
    from crag_core.llamaindex.postprocessor import CRAGPostprocessor
    from crag_core.llamaindex.query_engine import CRAGQueryEngine
    from crag_core.llamaindex.reranker import RerankerEvaluator
    from crag_core.llamaindex.retriever import CRAGRetriever
    from crag_core.llamaindex.synthesizer import CRAGSynthesizer
    from crag_core.trace.reroute import Reroute, reroute
    from crag_core.trace.trace import Trace

_HOMES = {
    "Action": "crag_core.base.types.decisions",
    "Config": "crag_core.app.config",
    "CRAGPostprocessor": "crag_core.llamaindex.postprocessor",
    "CRAGQueryEngine": "crag_core.llamaindex.query_engine",
    "CRAGRetriever": "crag_core.llamaindex.retriever",
    "CRAGSynthesizer": "crag_core.llamaindex.synthesizer",
    "RerankerEvaluator": "crag_core.llamaindex.reranker",
    "CragError": "crag_core.base.errors",
    "Decision": "crag_core.base.types.decisions",
    "Grade": "crag_core.base.types.grades",
    "Passage": "crag_core.base.types.passages",
    "Policy": "crag_core.decision.policy",
    "Reroute": "crag_core.trace.reroute",
    "Trace": "crag_core.trace.trace",
    "Workbench": "crag_core.app.workbench",
    "build_pipeline": "crag_core.app.workbench",
    "decide": "crag_core.decision.decide",
    "load_policies": "crag_core.evaluators.policies",
    "reroute": "crag_core.trace.reroute",
}
__all__ = [
    "Action",
    "CRAGPostprocessor",
    "CRAGQueryEngine",
    "CRAGRetriever",
    "CRAGSynthesizer",
    "Config",
    "CragError",
    "Decision",
    "Grade",
    "Passage",
    "Policy",
    "RerankerEvaluator",
    "Reroute",
    "Trace",
    "Workbench",
    "build_pipeline",
    "decide",
    "load_policies",
    "reroute",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
