"""The command `settings`: prints the settings that hold, or the reference page of all of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import Field, fields
from typing import Any

from crag_core.app.config import Config, load

GROUPS: dict[str, dict[str, str]] = {
    "Documents": {
        "CRAG_HOME": "/var/lib/crag/home",
        "CRAG_STORE": "postgresql://crag:s3cret@db/crag",
        "CRAG_EMBEDDING": "/srv/models/my-embedder",
        "CRAG_CHUNK_TOKENS": "120",
        "CRAG_CHUNK_OVERLAP": "20",
        "CRAG_TOP_K": "8",
    },
    "Models": {
        "OLLAMA_HOST": "http://one:11434",
        "OPENAI_BASE_URL": "http://vllm:8000/v1",
        "OPENAI_API_KEY": "sk-…",
        "CRAG_MODEL": "ollama/llama3.2",
        "CRAG_SUPPORT": "ollama/llama3.2",
        "CRAG_MODEL_TIMEOUT": "60",
        "CRAG_MODEL_CALLS": "8",
    },
    "The web": {
        "CRAG_WEB": "off",
        "CRAG_WEB_TIMEOUT": "4",
        "CRAG_WEB_PROVIDERS": "searxng,duckduckgo",
        "CRAG_SEARXNG_URL": "http://searxng:8080",
        "TAVILY_API_KEY": "tvly-…",
        "CRAG_WEB_SNAPSHOT": "data/web",
    },
    "What is kept": {
        "CRAG_HISTORY": "postgresql://crag:s3cret@db/crag",
        "CRAG_HISTORY_DAYS": "90",
        "CRAG_CACHE": "redis://:s3cret@valkey:6379/0",
        "CRAG_CACHE_HOURS": "168",
        "CRAG_AUDIT": "off",
    },
    "Many people": {
        "CRAG_RUNS_AT_ONCE": "8",
        "CRAG_RUNS_WAITING": "50",
        "CRAG_SIGN_IN": "on",
        "CRAG_MAY_ENTER": "@example.org",
        "CRAG_MAY_INDEX": "ann@example.org,bob@example.org",
        "CRAG_MAY_TUNE": "@example.org",
        "CRAG_MAY_SEE_HISTORY": "ann@example.org",
        "CRAG_MAY_SET_UP": "nobody",
    },
    "Watching it": {
        "CRAG_METRICS_PORT": "9464",
        "CRAG_METRICS_ADDRESS": "0.0.0.0",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
        "CRAG_LOG": "json",
    },
    "Policy agentic": {
        "KB_AGENT_MAX_ITERATIONS": "5",
        "KB_AGENT_AUTO_APPROVE_MAX_ITEMS": "0",
        "KB_AGENT_VECTOR_SCORE_THRESHOLD": "0.9",
    },
}
"""Every variable in its group, with an example that is not its default."""

LISTS = (
    *("CRAG_WEB_PROVIDERS", "CRAG_MAY_ENTER", "CRAG_MAY_INDEX", "CRAG_MAY_TUNE"),
    *("CRAG_MAY_SEE_HISTORY", "CRAG_MAY_SET_UP"),
)
OTHERS = {
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION": "of an object store; the key is secret",
    "AWS_ENDPOINT_URL": "its address, where it is not Amazon's",
    "OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER": "spans, as "
    "OpenTelemetry's SDK documents them; headers may be secret",
    "HF_HUB_OFFLINE": "1: an embedding model of `CRAG_EMBEDDING` is never fetched; the image of the Dockerfile sets it",
}
_COMMAND = "python -m crag_core settings --markdown > docs/settings.md"


def add_commands(commands: Any) -> None:
    command = commands.add_parser("settings", help="print the settings that hold now, without what is secret")
    command.add_argument("--markdown", action="store_true", help="print docs/settings.md, the reference of all of them")
    command.set_defaults(command=settings)


def settings(options: argparse.Namespace) -> int:
    print(page() if options.markdown else "\n".join(now(load())))
    return 0


def now(config: Config) -> Iterator[str]:
    """A line for each, with what is secret left out."""
    by_variable = {variable_of(field): field for field in fields(Config)}
    for title, group in GROUPS.items():
        yield f"# {title}"
        for variable in group:
            field = by_variable[variable]
            value = getattr(config, field.name)
            is_default = value == field.default
            shown = value if is_default or field.repr else "(set, not shown)"
            yield f"{variable}={shown}" + ("  # default" if is_default else "")
        yield ""


def page() -> str:
    """docs/settings.md."""
    by_variable = {variable_of(field): field for field in fields(Config)}
    lines = [
        "# Settings",
        "",
        f"Made by `{_COMMAND}` from `crag_core/app/config.py`;",
        "`tests/deployment/test_settings_page.py` fails when it is stale.",
        "",
        "Environment variables, or lines `NAME=value` in a file `.env` in the folder of the application; the",
        "environment wins. They are read at the start. An empty value counts as none, a wrong one is refused by name.",
        "`python -m crag_core settings` prints those that hold now, without what is secret.",
        "",
        "**secret**: is, or may hold, a key or a password. It is never shown or logged; keep it out of repositories.",
        "**list**: several with commas between.",
    ]
    for title, group in GROUPS.items():
        lines += ["", f"## {title}", "", "| variable | default | example | | meaning |", "|---|---|---|---|---|"]
        lines += [_row(variable, by_variable[variable], example) for variable, example in group.items()]
    lines += [
        "",
        "## Of others",
        "",
        "From the environment only, not from `.env`.",
        "",
        "| variable | meaning |",
        "|---|---|",
    ]
    lines += [
        f"| {', '.join(f'`{one}`' for one in names.split(', '))} | {meaning} |" for names, meaning in OTHERS.items()
    ]
    return "\n".join(lines)


def variable_of(field: Field[Any]) -> str:
    return str(field.metadata["variable"])


def _row(variable: str, field: Field[Any], example: str) -> str:
    marks = [name for name, is_so in (("secret", not field.repr), ("list", variable in LISTS)) if is_so]
    default = f"`{field.default}`" if str(field.default) else "(empty)"
    return f"| `{variable}` | {default} | `{example}` | {', '.join(marks)} | {field.metadata['meaning']} |"
