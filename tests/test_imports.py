"""Who may import whom, read from the sources: a wrong arrow fails here before it is an architecture."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("crag_core", "ui", "pages", "app")
HEAVY = (
    "torch",
    "llama_index",
    "lancedb",
    "transformers",
    "sentence_transformers",
    "onnxruntime",
    "tokenizers",
    "ddgs",
    "scipy",
)


@dataclass(frozen=True)
class Ring:
    """Modules (a package stands for all in it) with the rings they may import, and packages of others.

    `outside` None: any package, except those in `never`.
    """

    members: tuple[str, ...]
    may_import: tuple[str, ...]
    outside: tuple[str, ...] | None = ()
    never: tuple[str, ...] = ()


def core(*names: str) -> tuple[str, ...]:
    return tuple(f"crag_core.{name}" for name in names)


PURE = core(
    *("types", "records", "errors", "words", "figures", "signals", "split", "policy", "plan", "decide", "loop"),
    *("stability", "refine", "fusion", "expand", "reroute", "corrections", "summary", "trace", "replies", "extraction"),
    *("query", "answer", "budget", "prompts", "protocols", "waiting", "overall", "edits", "opinions", "difference"),
    *("judges", "language", "claims", "support", "unanswered", "side_by_side", "model_servers", "documents"),
    *("labels", "kept", "selection", "stage", "story", "story_corpus", "story_web", "database_urls", "rights"),
    *("identity", "auth_section", "measured", "over_time", "rota", "turnstile", "addresses", "suspicion"),
    *(
        "suspicion_words",
        "redaction",
        "silence",
        "ending",
        "closing",
        "cells",
        "quantities",
        "quantity_words",
        "tokens",
    ),
    "look_alikes",
)
RUNNING = ("pure", "pipeline")
ADAPTERS = ("evaluators", "websearch", "llms", "retrieval", "cache", "history", "laboratory")
RINGS = {
    "pure": Ring(PURE, ("pure",)),
    "tuning": Ring(core("tuning"), ("pure", "tuning"), ("numpy", "scipy")),
    "measuring": Ring(core("measuring"), ("pure", "tuning", "measuring"), ("numpy",)),
    "evaluators": Ring(core("evaluators"), ("pure", "evaluators"), None, ("streamlit", "llama_index")),
    "outgoing": Ring(core("outgoing"), ("pure",), ("httpx",)),
    "websearch": Ring(core("websearch"), ("pure", "websearch", "outgoing"), None, ("streamlit", "llama_index")),
    "llama import": Ring(core("llama_import"), (), ("llama_index",)),
    "llms": Ring(core("llms"), ("pure", "llms", "llama import", "outgoing"), None, ("streamlit",)),
    "retrieval": Ring(core("retrieval"), ("pure", "retrieval", "llama import"), None, ("streamlit",)),
    "sqlite files": Ring(core("sqlite_files"), (), ("filelock",)),
    "cache": Ring(core("cache"), ("pure", "cache", "sqlite files"), None, ("streamlit", "llama_index")),
    "history": Ring(core("history"), ("pure", "history", "sqlite files"), None, ("streamlit", "llama_index")),
    "backup": Ring(core("backup"), ("pure", "backup"), ("filelock",)),
    "laboratory": Ring(core("laboratory"), ("pure", "tuning", "measuring", "laboratory", "sqlite files")),
    "scoring": Ring(
        core("batch", "scoring", "drafts", "shared_work", "comparing", "warming"),
        (*RUNNING, "tuning", "measuring", "scoring"),
    ),
    "pipeline": Ring(
        core("run", "stages", "grading", "again", "web_stages", "writing", "checking", "pipeline"), RUNNING
    ),
    "observers": Ring(
        core(
            *("audit", "metrics", "gauges", "run_counts", "kept_metrics", "logs", "run_log"),
            *("telemetry", "spans", "llama_spans"),
        ),
        (*RUNNING, "observers"),
        # LlamaIndex's instrumentation is a package of its own: telemetry hears its calls and imports no LlamaIndex.
        ("prometheus_client", "opentelemetry", "llama_index_instrumentation", "pydantic"),
    ),
    "config": Ring(core("config"), ("pure",), ("dotenv",)),
    "policies": Ring(core("policies"), ("pure", "config", "policies")),
    "llama": Ring(core("nodes", "postprocessor", "query_engine"), (*RUNNING, "llama"), ("llama_index",)),
    "report": Ring(core("report"), ("pure", "report", "tuning", "measuring"), ("jinja2", "markupsafe")),
    "build": Ring(core("build"), (*RUNNING, "config", "policies", "observers", "tuning", "measuring", *ADAPTERS)),
    "configurations": Ring(core("configurations"), (*RUNNING, "config", "policies", "build")),
    "command line": Ring(
        core(
            *("__main__", "tuning_commands", "tuning_options", "tuning_told", "labelled_sets"),
            *("compare_commands", "compare_earlier", "metrics_commands", "backup_commands", "settings_commands"),
        ),
        (
            *(*RUNNING, "config", "policies", "build", "configurations", "observers"),
            *("tuning", "measuring", "scoring", "report", "backup", "command line"),
        ),
    ),
    "ui": Ring(
        ("ui",),
        (
            *(*RUNNING, "config", "policies", "build", "configurations", "observers"),
            *("tuning", "measuring", "scoring", "report", "ui", "outgoing"),
        ),
        None,
        HEAVY,
    ),
    "pages": Ring(("pages", "app"), (*RUNNING, "config", "build", "tuning", "report", "ui"), ("streamlit",)),
}
EXCEPTIONS = {
    ("ui.sidebar", "crag_core.evaluators"): "the cards that evaluators declare",
    ("crag_core.policies", "crag_core.evaluators"): "the cards that evaluators declare",
}


@dataclass(frozen=True)
class Arrow:
    importer: str
    imported: str
    is_for_types: bool

    def __str__(self) -> str:
        return f"{self.importer} imports {self.imported}"


# --- reading --------------------------------------------------------------------------------------------------------


def read_sources() -> dict[str, str]:
    """Every module of ours by its dotted name; a package's `__init__` under the package's name."""
    sources = {}
    for top in OURS:
        files = [ROOT / f"{top}.py"] if top == "app" else sorted((ROOT / top).rglob("*.py"))
        for file in files:
            parts = file.relative_to(ROOT).with_suffix("").parts
            sources[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file.read_text("utf-8")
    return sources


def find_arrows(sources: Mapping[str, str]) -> list[Arrow]:
    return [arrow for name, text in sources.items() for arrow in _arrows_of(name, text, sources)]


def _arrows_of(name: str, text: str, sources: Mapping[str, str]) -> Iterator[Arrow]:
    tree = ast.parse(text)
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Arrow(name, alias.name, id(node) in for_types)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*name.split(".")[: -node.level], *([base] if base else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"  # a module of that package, or something defined in it
                yield Arrow(name, inner if inner in sources else base, id(node) in for_types)


# --- judging --------------------------------------------------------------------------------------------------------


def ring_of(module: str) -> str | None:
    for name, ring in RINGS.items():
        if any(module == member or module.startswith(f"{member}.") for member in ring.members):
            return name
    return None


def find_wrong(sources: Mapping[str, str]) -> list[str]:
    wrong = [f"{name} has no place among the rings" for name in sources if name != "crag_core" and not ring_of(name)]
    for arrow in find_arrows(sources):
        home = ring_of(arrow.importer)
        if home is not None and not _is_allowed(arrow, RINGS[home]):
            wrong.append(str(arrow))
    return wrong


def _is_allowed(arrow: Arrow, home: Ring) -> bool:
    top = arrow.imported.partition(".")[0]
    if top in OURS:
        known = (arrow.importer, arrow.imported) in EXCEPTIONS
        return known or arrow.imported == "crag_core" or ring_of(arrow.imported) in home.may_import
    if top in sys.stdlib_module_names:
        return True
    return top not in home.never if home.outside is None else top in home.outside


def find_cycle(sources: Mapping[str, str]) -> list[str]:
    graph: dict[str, set[str]] = {name: set() for name in sources}
    for arrow in find_arrows(sources):
        if arrow.imported in sources and arrow.imported != arrow.importer and not arrow.is_for_types:
            graph[arrow.importer].add(arrow.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


# --- our sources ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    found = read_sources()
    assert len(found) > 50
    return found


@pytest.fixture(scope="module")
def wrong_now(sources: dict[str, str]) -> set[str]:
    return set(find_wrong(sources))


def test_every_arrow_points_inwards(wrong_now: set[str]) -> None:
    assert wrong_now == set()


def test_no_module_imports_itself_in_a_circle(sources: dict[str, str]) -> None:
    assert find_cycle(sources) == []


def test_only_build_knows_concrete_adapters(sources: dict[str, str]) -> None:
    importers = {
        arrow.importer
        for arrow in find_arrows(sources)
        if ring_of(arrow.imported) in ADAPTERS and ring_of(arrow.importer) not in ADAPTERS
    }
    assert importers <= {"crag_core.build", *(importer for importer, _ in EXCEPTIONS)}


def test_exceptions_are_still_needed(sources: dict[str, str]) -> None:
    assert set(EXCEPTIONS) <= {(arrow.importer, arrow.imported) for arrow in find_arrows(sources)}


def test_every_pure_module_is_there(sources: dict[str, str]) -> None:
    assert set(PURE) <= set(sources)


# --- can these tests fail? ------------------------------------------------------------------------------------------

BAD = {
    "pure module with a package of others": ("crag_core.types", "import httpx"),
    "pure module, inside a function": ("crag_core.decide", "def decide():\n    import numpy"),
    "pure module, for types only": ("crag_core.trace", "if TYPE_CHECKING:\n    import llama_index.core"),
    "pure module that knows the pipeline": ("crag_core.policy", "from crag_core.pipeline import Pipeline"),
    "pure module that knows settings": ("crag_core.prompts", "from crag_core import config"),
    "adapter that knows another": ("crag_core.evaluators.llm", "from crag_core.llms.model import LlamaIndexModel"),
    "adapter, by a relative import": ("crag_core.websearch.cached", "from ..retrieval import store"),
    "adapter that knows the pipeline": ("crag_core.retrieval.hybrid", "import crag_core.pipeline"),
    "evaluator with LlamaIndex": ("crag_core.evaluators.embedding", "from llama_index.core import Settings"),
    "pipeline with an adapter": ("crag_core.pipeline", "from crag_core.llms import ollama"),
    "pipeline with a package of others": ("crag_core.stages", "import requests"),
    "face with an adapter": ("crag_core.query_engine", "from crag_core.retrieval.store import PassageStore"),
    "face that builds": ("crag_core.postprocessor", "from crag_core.build import build_pipeline"),
    "build with the screen": ("crag_core.build", "import streamlit"),
    "adapter with the screen": ("crag_core.llms.ollama", "import streamlit as st"),
    "core that knows the UI": ("crag_core.run", "from ui import state"),
    "core that knows a page": ("crag_core.__main__", "import pages.ask"),
    "UI with an adapter": ("ui.state", "from crag_core.websearch.duckduckgo import DuckDuckGo"),
    "UI with an exception of another": ("ui.state", "from crag_core.retrieval.store import PassageStore"),
    "UI that knows a page": ("ui.text", "import pages.ask"),
    "page with an adapter": ("pages.ask", "from crag_core.evaluators import cards"),
    "page with a package of others": ("pages.ask", "import pandas"),
    "module without a place": ("crag_core.helpers", ""),
}


@pytest.mark.parametrize(("name", "text"), BAD.values(), ids=BAD)
def test_wrong_arrow_is_found(sources: dict[str, str], wrong_now: set[str], name: str, text: str) -> None:
    found = set(find_wrong({**sources, name: text})) - wrong_now
    assert [wrong.split()[0] for wrong in found] == [name]


GOOD = {
    "standard library": ("crag_core.types", "import json, collections.abc"),
    "pure in pure": ("crag_core.types", "from crag_core import words"),
    "own package": ("crag_core.llms.ollama", "from .model import LlamaIndexModel"),
    "adapter with its package": ("crag_core.retrieval.backends.lance_tables", "import lancedb"),
    "known exception": ("ui.sidebar", "from crag_core.evaluators import cards"),
}


@pytest.mark.parametrize(("name", "text"), GOOD.values(), ids=GOOD)
def test_right_arrow_is_not_found(sources: dict[str, str], wrong_now: set[str], name: str, text: str) -> None:
    assert set(find_wrong({**sources, name: text})) <= wrong_now


def test_circle_is_found(sources: dict[str, str]) -> None:
    circle = find_cycle({**sources, "crag_core.errors": "from crag_core import records"})
    assert {"crag_core.errors", "crag_core.records"} <= set(circle)
    for_types = "if TYPE_CHECKING:\n    from crag_core import records"
    assert find_cycle({**sources, "crag_core.errors": for_types}) == []


# --- what importing costs -------------------------------------------------------------------------------------------


def heavy_after(statements: str) -> list[str]:
    """The heavy packages that a fresh interpreter holds after these statements."""
    report = f"import sys; print('HEAVY', *[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", f"{statements}\n{report}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("HEAVY")[1].split()


def imports_of(sources: Mapping[str, str], *modules: str) -> str:
    """The import statements that these modules run when they are loaded."""
    return "\n".join(
        ast.unparse(node)
        for module in modules
        for node in ast.parse(sources[module]).body
        if isinstance(node, ast.Import | ast.ImportFrom) and ast.unparse(node) != "from __future__ import annotations"
    )


def test_importing_build_and_the_command_line_loads_nothing_heavy() -> None:
    assert heavy_after("import crag_core.build, crag_core.__main__, crag_core.nodes") == []


def test_importing_the_ui_and_any_page_loads_nothing_heavy(sources: dict[str, str]) -> None:
    screens = [f"import {name}" for name in sources if name.startswith("ui")]
    pages = [name for name in sources if name.startswith("pages") or name == "app"]
    assert len(pages) >= 2 and "import ui.state" in screens
    assert heavy_after("\n".join([*screens, imports_of(sources, *pages)])) == []


def test_heavy_import_is_found() -> None:
    assert "ddgs" in heavy_after("import ddgs")
