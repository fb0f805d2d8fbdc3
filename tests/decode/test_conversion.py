"""A GGUF file of two layers, made here, becomes a folder that loads and answers."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import gguf
import numpy as np
import pytest
from tokenizers import pre_tokenizers

from harnessctl.decode.conversion import convert_gguf
from harnessctl.decode.opening import open_local
from harnessctl.errors import UsageError
from harnessctl.runtime.protocols import ModelRequest, Sampling

WIDTH, HEADS, KV_HEADS, INNER = 32, 4, 2, 64


def write_gguf(path: Path) -> None:
    """Random weights in Q8_0, the tokenizer of bytes with ChatML's special tokens."""
    rng = np.random.default_rng(0)
    pieces = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "to"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_context_length(256)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(pieces)
    writer.add_token_merges(["t o"])
    writer.add_token_types([3] * 3 + [1] * (len(pieces) - 3))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    shapes = {"token_embd.weight": (len(pieces), WIDTH), "output_norm.weight": (WIDTH,)}
    for layer in range(2):
        shapes |= {
            f"blk.{layer}.attn_norm.weight": (WIDTH,),
            f"blk.{layer}.ffn_norm.weight": (WIDTH,),
            f"blk.{layer}.attn_q.weight": (WIDTH, WIDTH),
            f"blk.{layer}.attn_k.weight": (WIDTH // HEADS * KV_HEADS, WIDTH),
            f"blk.{layer}.attn_v.weight": (WIDTH // HEADS * KV_HEADS, WIDTH),
            f"blk.{layer}.attn_output.weight": (WIDTH, WIDTH),
            f"blk.{layer}.ffn_gate.weight": (INNER, WIDTH),
            f"blk.{layer}.ffn_up.weight": (INNER, WIDTH),
            f"blk.{layer}.ffn_down.weight": (WIDTH, INNER),
        }
    for name, shape in shapes.items():
        data = rng.standard_normal(shape).astype(np.float32) * 0.2
        if len(shape) == 1:
            writer.add_tensor(name, data)
        else:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("conversion")
    write_gguf(base / "tiny.gguf")
    (base / "model").mkdir()
    converted = convert_gguf(base / "tiny.gguf", base / "model")
    assert converted.dtype == "float32"
    assert converted.parameters == (259 + 1) * WIDTH + WIDTH + 2 * (2 * WIDTH + 3 * WIDTH * WIDTH + 3 * INNER * WIDTH)
    assert set(converted.versions) == {"torch", "transformers"}
    return base / "model"


@pytest.mark.parametrize("dtype", ["auto", "int8"])
def test_the_converted_folder_answers(folder: Path, dtype: str) -> None:
    model = open_local(str(folder), dtype=dtype, device="cpu")
    assert model.name == "model"

    async def ask() -> int:
        messages = [{"role": "user", "content": "hi"}]
        request = ModelRequest(
            messages=messages, tools=[], sampling=Sampling(max_tokens=4), deadline=time.monotonic() + 60
        )
        reply = await model.complete(request)
        await model.aclose()
        return reply.usage.completion_tokens

    assert asyncio.run(ask()) > 0


def test_a_folder_that_holds_no_model_is_a_usage_error(tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(UsageError, match="cannot load the model in"):
        open_local(str(tmp_path))


def test_int8_is_for_the_cpu(folder: Path) -> None:
    with pytest.raises(UsageError, match="dtype int8 is for the CPU; got device meta"):
        open_local(str(folder), dtype="int8", device="meta")


def test_a_template_of_ones_own(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "own.jinja").write_text("{% if message is none %}>{% else %}{{ message.content }}{% endif %}")
    own = open_local(str(folder), template=tmp_path / "own.jinja", end="<|endoftext|>")
    assert own.template != open_local(str(folder)).template
    (tmp_path / "latin.jinja").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="must be UTF-8; byte 0"):
        open_local(str(folder), template=tmp_path / "latin.jinja")
