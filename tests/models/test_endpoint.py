from __future__ import annotations

import msgspec
import pytest

from harnessctl.errors import UsageError
from harnessctl.runtime.models.endpoint import Endpoint, resolve_endpoint


def refusal(**settings) -> str:
    with pytest.raises(UsageError) as caught:
        resolve_endpoint(Endpoint(model="m", **settings))
    return caught.value.message


def test_the_key_comes_from_the_environment(monkeypatch):
    assert "Authorization" not in resolve_endpoint(Endpoint(model="m")).headers
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234\n")
    monkeypatch.setenv("OTHER_KEY", "other-5678")
    assert resolve_endpoint(Endpoint(model="m")).headers["Authorization"] == "Bearer sk-1234"
    target = resolve_endpoint(Endpoint(model="m", key_env="OTHER_KEY", headers={"X-Team": "a ${OTHER_KEY}"}))
    assert target.headers["Authorization"] == "Bearer other-5678"
    assert target.headers["X-Team"] == "a other-5678"
    assert set(target.secrets) == {"other-5678"}
    gateway = resolve_endpoint(Endpoint(model="m", headers={"authorization": "Basic ${OTHER_KEY}"})).headers
    assert gateway["Authorization"] == "Basic other-5678"
    assert "authorization" not in gateway


def test_settings_hold_no_secret(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234")
    assert b"sk-1234" not in msgspec.json.encode(Endpoint(model="m"))


def test_the_base_url(monkeypatch):
    assert str(resolve_endpoint(Endpoint(model="m")).url) == "https://api.openai.com/v1/chat/completions"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:30000/v1/")
    assert str(resolve_endpoint(Endpoint(model="m")).url) == "http://127.0.0.1:30000/v1/chat/completions"
    azure = resolve_endpoint(Endpoint(model="m", base_url="https://x.example/openai/d?api-version=1"))
    assert str(azure.url) == "https://x.example/openai/d/chat/completions?api-version=1"
    assert azure.shown == "https://x.example/openai/d"


def test_wrong_settings(monkeypatch):
    assert "NO_SUCH_KEY (key_env of the endpoint) is not set" in refusal(key_env="NO_SUCH_KEY")
    assert "NO_SUCH (header X of the endpoint) is not set" in refusal(headers={"X": "${NO_SUCH}"})
    assert "control character" in refusal(headers={"X": "a\r\nHost: b"})
    assert "messages, model cannot be set there" in refusal(body={"model": "x", "messages": []})
    for url in ("127.0.0.1:30000", "ftp://x/v1", "http://", "http://[/v1"):
        assert url in refusal(base_url=url)
    assert "a user or a password" in refusal(base_url="http://me:pw@x/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "a\nb")
    assert "control character" in refusal()


def test_a_proxy_is_taken_from_the_environment_once(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "internal.example")
    assert resolve_endpoint(Endpoint(model="m")).proxy == "http://proxy.example:3128"
    assert resolve_endpoint(Endpoint(model="m", base_url="https://internal.example/v1")).proxy is None
    assert resolve_endpoint(Endpoint(model="m", base_url="http://x.example/v1")).proxy is None
