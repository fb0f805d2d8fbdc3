"""A fake SGLang server over a real tiny model: it says what the weights say that it was told to read, and nothing before."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch

from harnessctl.decode.weights import Weights, load_weights


class FakeServer:
    """Serves until `close`. `refuses` makes it refuse new weights."""

    def __init__(self) -> None:
        self.weights: Weights | None = None
        self.read: list[str] = []
        self.asked = 0
        self.refuses = False
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send({"speculative_algorithm": None})

            def do_POST(self) -> None:
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    self._send(server.answer(self.path, document))

            def _send(self, answer: dict[str, Any]) -> None:
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever)
        self._thread.start()

    def answer(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        if path == "/update_weights_from_disk":
            if self.refuses:
                return {"success": False, "message": "no"}
            self.read.append(Path(document["model_path"]).name)
            self.weights = load_weights(Path(document["model_path"]), dtype="float32", device="cpu")
            return {"success": True, "message": "ok"}
        assert path == "/generate"
        self.asked += 1
        return self._generated(document["input_ids"], document["sampling_params"])

    def _generated(self, prompt: list[int], sampling: dict[str, Any]) -> dict[str, Any]:
        assert self.weights is not None, "asked before it was given weights"
        generator = torch.Generator().manual_seed(sampling["sampling_seed"])
        said: list[tuple[float, int, None]] = []
        finish = "length"
        with torch.no_grad():
            out = self.weights.model(torch.tensor([prompt]), use_cache=True)
            while len(said) < sampling["max_new_tokens"]:
                log_probs = (out.logits[0, -1] / sampling["temperature"]).log_softmax(-1)
                token = int(torch.multinomial(log_probs.exp(), 1, generator=generator))
                said.append((float(log_probs[token]), token, None))
                if token in sampling["stop_token_ids"]:
                    finish = "stop"
                    break
                out = self.weights.model(torch.tensor([[token]]), cache=out.cache, use_cache=True)
        meta = {
            "finish_reason": {"type": finish},
            "output_token_logprobs": said,
            "prompt_tokens": len(prompt),
            "completion_tokens": len(said),
        }
        return {"output_ids": [token for _, token, _ in said], "meta_info": meta}

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
