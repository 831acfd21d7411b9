"""What the service says of itself: its OpenAPI document, and the examples of docs/service.md."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openapi_spec_validator import validate
from pydantic import TypeAdapter

from crag_core.app.choice import Request, choose
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.pipeline.run import VERSION
from crag_core.service import schemas
from crag_core.service.application import make_application
from crag_core.service.guards import Rules
from crag_core.service.service import Service

ENDPOINTS = {"/query": "post", "/route": "post", "/reroute": "post", "/health": "get"}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    workbench = Workbench(Config(home=tmp_path_factory.mktemp("home"), ollama_host="127.0.0.1:9"))
    return make_application(Service(workbench, choose(workbench, Request())), Rules()).openapi()


def test_it_is_an_openapi_document_of_these_endpoints(document: dict[str, Any]) -> None:
    validate(document)
    assert {path: next(iter(found)) for path, found in document["paths"].items()} == ENDPOINTS
    assert document["info"]["version"] == VERSION
    with_token = {path for path, found in document["paths"].items() if next(iter(found.values())).get("security")}
    assert with_token == set(ENDPOINTS) - {"/health"}


def test_every_request_and_every_answer_is_typed_faults_too(document: dict[str, Any]) -> None:
    for path, method in ENDPOINTS.items():
        told = document["paths"][path][method]
        assert told["summary"] and told["description"]
        if method == "post":
            (body,) = told["requestBody"]["content"].values()
            assert "$ref" in body["schema"], path
        for status, answer in told["responses"].items():
            schema = answer["content"]["application/json"]["schema"]
            wanted = "HealthResponse" if path == "/health" else "ErrorResponse" if status != "200" else "Response"
            assert schema["$ref"].endswith(wanted), (path, status)
        assert path == "/health" or {"400", "401", "413", "422", "503"} <= set(told["responses"])
    assert "HTTPValidationError" not in json.dumps(document), "faults have one form"


def test_the_examples_of_the_document_can_be_used(document: dict[str, Any]) -> None:
    for name in ("QueryRequest", "RouteRequest", "RerouteRequest"):
        examples = document["components"]["schemas"][name]["examples"]
        assert examples and all(TypeAdapter(getattr(schemas, name)).validate_python(one) for one in examples)
