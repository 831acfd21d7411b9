"""The guard of offline.py: without it, none of the other tests proves that nothing leaves the machine."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx
import pytest

from tests.offline import NetworkUsed
from tests.stand_ins.local_server import LocalServer


def test_other_machines_cannot_be_reached() -> None:
    with pytest.raises(NetworkUsed, match=r"192\.0\.2\.1"):
        socket.create_connection(("192.0.2.1", 80), timeout=0.2)
    with socket.socket() as raw, pytest.raises(NetworkUsed):
        raw.connect_ex(("192.0.2.1", 80))
    with pytest.raises(NetworkUsed, match=r"example\.org"):
        socket.getaddrinfo("example.org", 80)
    with pytest.raises(NetworkUsed), httpx.Client(trust_env=False) as client:
        client.get("http://example.org")


def test_clients_outside_python_cannot_reach_them_either() -> None:
    from ddgs.exceptions import DDGSException
    from ddgs.http_client import HttpClient

    with pytest.raises(DDGSException):
        HttpClient(timeout=2).get("http://192.0.2.1/")


def test_this_machine_can_be_reached() -> None:
    with LocalServer({}) as server:
        assert httpx.get(server.url).status_code == 404


def test_shared_data_is_a_folder_or_the_test_is_skipped(shared_data: Path) -> None:
    assert shared_data.is_dir()
