"""Server-side request forgery by a configured URL: refused when it is set, in every spelling of a metadata address."""

from __future__ import annotations

import pytest

from crag_core.app.config import Config
from crag_core.base.errors import BadRecord
from crag_core.base.network.addresses import why_refused
from crag_core.websearch.http import read_address as read_provider

METADATA = [
    "169.254.169.254", "169.254.170.2", "169.254.0.1", "2852039166", "0xa9fea9fe", "0XA9FEA9FE", "025177524776",
    "0251.0376.0251.0376", "0xa9.0xfe.0xa9.0xfe", "0xa9.254.43518", "169.16689662", "169.254.43518",
    "169.254.169.254.", "169。254。169。254", "①⑥⑨.②⑤④.①⑥⑨.②⑤④", "%31%36%39.254.169.254", "[fe80::1]",
    "[fe80::1%25eth0]", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[0:0:0:0:0:ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[::169.254.169.254]", "[fd00:ec2::254]",
    "[fd00:0ec2:0:0:0:0:0:254]", "[fd20:ce::254]", "100.100.100.200", "192.0.0.192", "168.63.129.16",
    "metadata.google.internal", "METADATA.google.internal.", "metadata", "instance-data", "255.255.255.255",
    "224.0.0.1",
]  # fmt: skip
ALLOWED = [
    "127.0.0.1", "localhost", "[::1]", "10.0.0.5", "172.16.3.4", "192.168.1.10", "[fd12:3456::1]", "ollama",
    "ollama.example.org", "169-254-169-254.example.org", "metadata.example.org", "8.8.8.8", "0x7f000001",
    "1.169.254.169", "b169.254.169.254", "169.254.169.254.5", "169.254.169.2546",
]  # fmt: skip


@pytest.mark.parametrize("host", METADATA)
def test_a_metadata_address_is_refused_in_every_spelling(host: str) -> None:
    assert why_refused(host)


@pytest.mark.parametrize("host", ALLOWED)
def test_other_hosts_are_allowed_private_networks_among_them(host: str) -> None:
    assert why_refused(host) == ""


@pytest.mark.parametrize("host", [host for host in METADATA if "%" not in host or host.startswith("%")])
def test_no_setting_takes_a_metadata_address(host: str) -> None:
    url = f"http://{host}/v1"
    for settings in ({"ollama_host": url}, {"openai_url": url}):
        with pytest.raises(BadRecord) as refused:
            Config(**settings)
        assert "never asked" in str(refused.value) or "expected an address" in str(refused.value)
    with pytest.raises(BadRecord):
        read_provider("SearXNG", url)
    with pytest.raises(BadRecord):
        Config(web_providers="searxng", searxng_url=url)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://127.0.0.1/", "ftp://h/", "javascript:alert(1)", "//h"])
def test_only_http_and_https_are_taken(url: str) -> None:
    with pytest.raises(BadRecord):
        Config(openai_url=url)
    with pytest.raises(BadRecord):
        read_provider("SearXNG", url)
    with pytest.raises(BadRecord):
        Config(ollama_host=url if "://" in url else f"{url}://h")


def test_a_refusal_does_not_repeat_the_name_and_password() -> None:
    for make in (
        lambda url: Config(ollama_host=url),
        lambda url: Config(openai_url=url),
        lambda url: Config(web_providers="searxng", searxng_url=url),
    ):
        with pytest.raises(BadRecord) as refused:
            make("http://ann:s3cret@169.254.169.254/latest")
        assert "s3cret" not in f"{refused.value!r} {refused.value} {refused.value.hint}"
