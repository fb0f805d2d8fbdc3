"""A server on 127.0.0.1 that answers in the form of SGLang's native API (0.5.x), as its script says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Self

from aiohttp import web
from tokenizers import Tokenizer

Handler = Callable[[dict[str, Any]], tuple[int, Any]]

EXACT = {
    "speculative_algorithm": "EAGLE",
    "speculative_accept_threshold_single": 1.0,
    "speculative_accept_threshold_acc": 1.0,
    "internal_states": [{"effective_max_running_requests_per_dp": 48}],
    "version": "0.5.23",
}


def said(ids: list[int], prompt: list[int], *, finish: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """What /generate answers: log-probability, id and text (null, as without `return_text_in_logprobs`)."""
    meta = {
        "id": "0c5b",
        "finish_reason": finish or {"type": "stop", "matched": ids[-1]},
        "prompt_tokens": len(prompt),
        "weight_version": "default",
        "total_retractions": 0,
        "input_token_logprobs": [],
        "output_token_logprobs": [[-0.5 - 0.25 * at, token, None] for at, token in enumerate(ids)],
        "completion_tokens": len(ids),
        "cached_tokens": 0,
        "e2e_latency": 0.01,
    }
    return {"text": "", "output_ids": ids, "meta_info": meta | more}


class FakeSGLang:
    """`says` are the replies in order (a function of the request's body, or the text that is said, ended by
    <|im_end|>); `told` is /server_info, `updated` the answer to a change of weights. `seen` are (path, body)."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        *says: str | Handler,
        told: dict[str, Any] | None = None,
        updated: tuple[int, Any] = (200, {"success": True, "message": "Succeeded to update", "num_paused_requests": 0}),
    ) -> None:
        self._tokenizer = tokenizer
        self._says = list(says)
        self.told = EXACT if told is None else told
        self.updated = updated
        self.seen: list[tuple[str, Any]] = []
        self.connections: set[Any] = set()

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/generate", self._handler(self._generate))
        app.router.add_get("/server_info", self._handler(lambda _: (200, self.told)))
        app.router.add_post("/update_weights_from_disk", self._handler(lambda _: self.updated))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def _handler(self, answer: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            body = await request.json() if request.can_read_body else None
            self.seen.append((request.path, body))
            self.connections.add(request.transport)
            status, document = answer(body)
            if isinstance(document, str):
                return web.Response(status=status, text=document)
            return web.json_response(document, status=status)

        return handle

    def _generate(self, body: dict[str, Any]) -> tuple[int, Any]:
        say = self._says.pop(0)
        if callable(say):
            return say(body)
        ids = self._tokenizer.encode(say + "<|im_end|>", add_special_tokens=False).ids
        return 200, said(ids, body["input_ids"])

    @property
    def generated(self) -> list[dict[str, Any]]:
        """The bodies that /generate was asked with."""
        return [body for path, body in self.seen if path == "/generate"]
