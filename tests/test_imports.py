"""Folders are the layers: an import points down, or stays in its folder. Read from the sources, folder by folder."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import crag_core

ROOT = Path(__file__).parents[1]
OURS = ("crag_core", "ui", "pages", "app")
HEAVY = (
    *("torch", "llama_index", "pyarrow", "transformers", "sentence_transformers", "onnxruntime", "tokenizers", "ddgs"),
    *("scipy", "sklearn", "fastapi", "opentelemetry"),
)

_RUN = ("base", "decision", "trace")
_ADAPTERS = ("llms", "websearch", "retrieval", "storage", "evaluators")
LAYERS = {
    "base": (),
    "decision": ("base",),
    "llms": ("base",),
    "websearch": ("base",),
    "retrieval": ("base", "decision"),
    "trace": ("base", "decision"),
    "view": _RUN,
    "pipeline": _RUN,
    "storage": ("base", "trace"),
    "evaluators": _RUN,
    "observability": (*_RUN, "pipeline", "llms"),
    "experiments": (*_RUN, "pipeline"),
    "report": (*_RUN, "view", "experiments"),
    "llamaindex": (*_RUN, "llms", "websearch", "retrieval", "evaluators", "pipeline"),
    "app": (*_RUN, *_ADAPTERS, "pipeline", "observability", "experiments", "view", "report", "llamaindex"),
    "service": (*_RUN, "view", "evaluators", "pipeline", "observability", "app"),
    "__main__": (*_RUN, "evaluators", "pipeline", "observability", "experiments", "report", "app", "service"),
    "ui": (
        *_RUN,
        "view",
        "pipeline",
        "storage",
        "evaluators",
        "llms",
        "observability",
        "experiments",
        "report",
        "llamaindex",
        "app",
    ),
    "pages": (*_RUN, "llms", "websearch", "app", "ui"),
}
"""Every folder of `crag_core`, then the screens, from the ground up, with the folders that it may import."""

OTHERS: dict[str, tuple[str, ...]] = {
    "base": ("llama_index", "httpx", "pydantic", "pydantic_core", "sqlalchemy", "psycopg"),
    "decision": (),
    "trace": (),
    "view": (),
    "pipeline": (),
    "observability": ("prometheus_client", "opentelemetry", "llama_index_instrumentation", "pydantic"),
    "experiments": ("numpy", "scipy", "sklearn"),
    "report": ("jinja2", "markupsafe"),
    "llamaindex": ("llama_index", "llama_index_instrumentation"),
    "app": ("dotenv", "pydantic"),
    "service": ("fastapi", "starlette", "uvicorn", "pydantic"),
    "__main__": (),
    "pages": ("streamlit",),
}
"""Packages of others; a folder that is not named here may import any, but not what `NEVER` says."""

NEVER = {
    "llms": ("streamlit",),
    "websearch": ("streamlit", "llama_index"),
    "retrieval": ("streamlit",),
    "storage": ("streamlit", "llama_index"),
    "evaluators": ("streamlit", "llama_index"),
    "ui": HEAVY,
}
MOST_ROOMS = 12


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
    """What is imported is a module of ours, or the package that it or something else is defined in."""
    return [
        Arrow(name, inner if inner in sources else base, is_for_types)
        for name, text in sources.items()
        for base, inner, is_for_types in _imports_of(name, text)
    ]


@cache
def _imports_of(name: str, text: str) -> tuple[tuple[str, str, bool], ...]:
    tree = ast.parse(text)
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, alias.name, id(node) in for_types) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*name.split(".")[: -node.level], *([base] if base else [])])
            found += [(base, f"{base}.{alias.name}", id(node) in for_types) for alias in node.names]
    return tuple(found)


# --- judging --------------------------------------------------------------------------------------------------------


def layer_of(module: str) -> str:
    """The folder below `crag_core`, or the top folder; "" for `crag_core` itself, which shows what others import."""
    top, _, rest = module.partition(".")
    if top == "crag_core":
        return rest.partition(".")[0]
    return "pages" if top == "app" else top


def find_wrong(sources: Mapping[str, str]) -> list[str]:
    wrong = [f"{name} has no place among the layers" for name in sources if layer_of(name) not in ("", *LAYERS)]
    return wrong + [str(arrow) for arrow in find_arrows(sources) if layer_of(arrow.importer) and not _is_allowed(arrow)]


def _is_allowed(arrow: Arrow) -> bool:
    home, top = layer_of(arrow.importer), arrow.imported.partition(".")[0]
    if home not in LAYERS:
        return True  # told once, as a module without a place
    if top in OURS:
        return layer_of(arrow.imported) in (home, *LAYERS[home], "")
    if top in sys.stdlib_module_names:
        return True
    return top not in NEVER.get(home, ()) if home not in OTHERS else top in OTHERS[home]


def find_circles(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Folder by folder: what lies in it, folders and modules, and imports each other in a circle."""
    rooms: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for arrow in find_arrows(sources):
        if arrow.imported in sources and not arrow.is_for_types:
            one, other = arrow.importer.split("."), arrow.imported.split(".")
            same = next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
            if same:
                rooms[".".join(one[:same])][one[same]].add(other[same])
    found = {}
    for folder, graph in rooms.items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            found[folder] = list(error.args[1])
    return found


def count_rooms(sources: Mapping[str, str]) -> dict[str, int]:
    rooms = defaultdict(set)
    for name in sources:
        folder, _, room = name.rpartition(".")
        rooms[folder].add(room)
    return {folder: len(found) for folder, found in rooms.items() if folder}


# --- our sources ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    found = read_sources()
    assert len(found) > 50
    return found


@pytest.fixture(scope="module")
def wrong_now(sources: dict[str, str]) -> set[str]:
    return set(find_wrong(sources))


def test_every_import_points_down(wrong_now: set[str]) -> None:
    assert wrong_now == set()


def test_layers_are_in_order() -> None:
    order = list(LAYERS)
    assert all(order.index(below) < order.index(layer) for layer, allowed in LAYERS.items() for below in allowed)


def test_no_folder_holds_a_circle(sources: dict[str, str]) -> None:
    assert find_circles(sources) == {}


def test_no_folder_holds_more_than_one_can_overlook(sources: dict[str, str]) -> None:
    exempt = {"crag_core": len(LAYERS) - 2, "ui": MOST_ROOMS + 1}  # one a page, and what they share
    rooms = count_rooms(sources)
    assert {folder: count for folder, count in rooms.items() if count > exempt.get(folder, MOST_ROOMS)} == {}


def test_every_folder_says_what_it_is_for(sources: dict[str, str]) -> None:
    folders = set(count_rooms(sources)) - {"pages"}
    assert {folder for folder in folders if not ast.get_docstring(ast.parse(sources[folder]))} == set()


# --- can these tests fail? ------------------------------------------------------------------------------------------

BAD = {
    "pure module with a package of others": ("crag_core.base.types", "import requests"),
    "pure module, inside a function": ("crag_core.decision.decide", "def decide():\n    import numpy"),
    "pure module, for types only": ("crag_core.trace.trace", "if TYPE_CHECKING:\n    import llama_index.core"),
    "pure module that knows the pipeline": ("crag_core.decision.policy", "import crag_core.pipeline.pipeline"),
    "pure module that knows settings": ("crag_core.base.prompts", "from crag_core.app import config"),
    "adapter that knows another": (
        "crag_core.evaluators.judges.llm",
        "from crag_core.llms.client import LlamaIndexClient",
    ),
    "adapter, by a relative import": ("crag_core.websearch.search_chain", "from ..retrieval import hybrid"),
    "adapter that knows the pipeline": ("crag_core.retrieval.hybrid", "import crag_core.pipeline"),
    "evaluator with LlamaIndex": ("crag_core.evaluators.embedding", "from llama_index.core import Settings"),
    "pipeline with an adapter": ("crag_core.pipeline.pipeline", "from crag_core.llms import ollama"),
    "pipeline with a package of others": ("crag_core.pipeline.stages", "import requests"),
    "LlamaIndex with the store": ("crag_core.llamaindex.nodes", "from crag_core.storage import cache"),
    "LlamaIndex that builds": ("crag_core.llamaindex.nodes", "from crag_core.app.workbench import build_pipeline"),
    "application with the screen": ("crag_core.app.workbench", "import streamlit"),
    "adapter with the screen": ("crag_core.llms.ollama", "import streamlit as st"),
    "core that knows the UI": ("crag_core.pipeline.run", "from ui.session import app_state"),
    "core that knows a page": ("crag_core.__main__", "import pages.ask"),
    "UI with an adapter": ("ui.session.app_state", "from crag_core.websearch.duckduckgo import DuckDuckGo"),
    "UI that knows a page": ("ui.shell.text", "import pages.ask"),
    "page with an adapter": ("pages.ask", "from crag_core.evaluators import cards"),
    "page with a package of others": ("pages.ask", "import pandas"),
    "module without a place": ("crag_core.helpers", ""),
}


@pytest.mark.parametrize(("name", "text"), BAD.values(), ids=BAD)
def test_wrong_import_is_found(sources: dict[str, str], wrong_now: set[str], name: str, text: str) -> None:
    found = set(find_wrong({**sources, name: text})) - wrong_now
    assert [wrong.split()[0] for wrong in found] == [name]


GOOD = {
    "standard library": ("crag_core.base.types", "import json, collections.abc"),
    "within a folder": ("crag_core.base.types", "from crag_core.base.text import words"),
    "by a relative import": ("crag_core.llms.ollama", "from .client import LlamaIndexClient"),
    "adapter with its package": ("crag_core.retrieval.index.index_file", "import filelock"),
}


@pytest.mark.parametrize(("name", "text"), GOOD.values(), ids=GOOD)
def test_right_import_is_not_found(sources: dict[str, str], wrong_now: set[str], name: str, text: str) -> None:
    assert set(find_wrong({**sources, name: text})) <= wrong_now


def test_circles_are_found_between_modules_and_between_folders(sources: dict[str, str]) -> None:
    back = "from crag_core.base import serialization"
    assert set(find_circles({**sources, "crag_core.base.errors": back})) == {"crag_core.base"}
    assert find_circles({**sources, "crag_core.base.errors": f"if TYPE_CHECKING:\n    {back}"}) == {}
    between = {"crag_core.retrieval.readers.page": "from crag_core.retrieval.index import store"}
    assert set(find_circles({**sources, **between})) == {"crag_core.retrieval"}


def test_too_many_rooms_are_found(sources: dict[str, str]) -> None:
    more = {f"crag_core.decision.more_{number}": "" for number in range(MOST_ROOMS)}
    assert count_rooms({**sources, **more})["crag_core.decision"] > MOST_ROOMS


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
    assert heavy_after("import crag_core.app.workbench, crag_core.__main__, crag_core.llamaindex.nodes") == []


def test_importing_the_ui_and_any_page_loads_nothing_heavy(sources: dict[str, str]) -> None:
    screens = [f"import {name}" for name in sources if name.startswith("ui")]
    pages = [name for name in sources if name.startswith("pages") or name == "app"]
    assert len(pages) >= 2 and "import ui.session.app_state" in screens
    assert heavy_after("\n".join([*screens, imports_of(sources, *pages)])) == []


def test_public_names_are_there_and_cost_nothing_until_they_are_used() -> None:
    assert set(crag_core._HOMES) == set(crag_core.__all__)
    assert all(getattr(crag_core, name).__name__ == name for name in crag_core.__all__)
    with pytest.raises(AttributeError, match="no attribute 'postprocessor'"):
        crag_core.postprocessor  # noqa: B018
    assert heavy_after("from crag_core import Action, Policy, Workbench, build_pipeline, reroute") == []
