"""The stage from start to checkpoint: drawn back to the base, exactly resumed; which base, and which is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from harnessctl.checkpoint.lineage import write_lineage
from harnessctl.checkpoint.policy import next_lineage, weights_digest
from harnessctl.errors import CheckpointError, RecordError, TrainingError, UsageError
from harnessctl.train.config import LoopConfig, LoraConfig, PolicyConfig
from harnessctl.train.job import Job
from harnessctl.train.metrics import Metrics, read_metrics
from harnessctl.train.opd.base import find_base, open_base
from harnessctl.train.opd.config import OpdConfig, PromptsConfig, StudentConfig
from harnessctl.train.opd.prompts import Prompts, Question, general_question, read_questions
from harnessctl.train.opd.stage import STAGE
from harnessctl.train.rl.config import RolloutConfig
from harnessctl.train.sft.rows import packed
from harnessctl.train.sft.token_loss import TokenLoss
from tests.train_sft.sft_models import sequences, tiny_llama, tiny_tokenizer

PROMPTS = ("Say hello.", "Name a colour.", "What is two and two?", "Write a word that rhymes with cat.")


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    tokenizer = tiny_tokenizer(PROMPTS, vocabulary=300)
    tiny_llama(vocabulary=tokenizer.get_vocab_size()).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="session")
def tuned(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy that has moved away from the base, and says so."""
    folder = tmp_path_factory.mktemp("tuned")
    for name in ("config.json", "generation_config.json", "tokenizer.json"):
        (folder / name).write_bytes((base / name).read_bytes())
    generator = torch.Generator().manual_seed(1)
    moved = {
        name: value + 0.1 * torch.randn(value.shape, generator=generator)
        for name, value in load_file(base / "model.safetensors").items()
    }
    save_file(moved, folder / "model.safetensors", metadata={"format": "pt"})
    lineage = next_lineage(base, stage="sft", recipe={})
    write_lineage(folder, msgspec.structs.replace(lineage, weights=weights_digest(folder)))
    return folder


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in PROMPTS))
    return path


def job_of(folder: Path, start: Path, prompts: Path | None, *, lora: bool = False, **keys: Any) -> Job:
    loop = {"steps": 4, "lr": 3e-3, "save_every": 2} | keys.pop("loop", {})
    policy = PolicyConfig(
        name="tiny", dtype="float32", device="cpu", lora=LoraConfig(rank=4, alpha=8.0) if lora else None
    )
    given: dict[str, Any] = {
        "prompts": PromptsConfig(path=None if prompts is None else str(prompts), general_share=0.0),
        "student": StudentConfig(max_tokens=12),
        "rollout": RolloutConfig(rows=4),
        "prompts_per_step": 4,
        "micro_tokens": 120,
    }
    config = OpdConfig(model=policy, loop=LoopConfig(**loop), **(given | keys))
    recipe = msgspec.to_builtins(config)
    return Job(
        folder,
        folder,
        config,
        None,
        {},
        start,
        Metrics(folder, board=False),
        lambda _: None,
        stage="opd",
        recipe=recipe,
    )


def trained(job: Job) -> dict[str, torch.Tensor]:
    STAGE.run(job)
    job.metrics.close()
    return load_file(job.checkpoint / "model.safetensors")


@pytest.mark.parametrize("lora", [False, True])
def test_the_policy_is_drawn_back_to_its_base(
    tuned: Path, base: Path, prompts: Path, tmp_path: Path, lora: bool
) -> None:
    job = job_of(tmp_path / "run", tuned, prompts, lora=lora, loop={"steps": 20, "lr": 1e-2, "schedule": "constant"})
    trained(job)
    losses = [line["loss"] for line in read_metrics(tmp_path / "run")]
    assert losses[0] > 0.2
    assert sum(losses[-3:]) / 3 < 0.75 * losses[0]
    lineage = json.loads((job.checkpoint / "lineage.json").read_text())
    assert lineage["stage"] == "opd" and lineage["base"] == weights_digest(base)
    assert lineage["parent"] == weights_digest(tuned)


def test_the_base_itself_has_nowhere_to_go(base: Path, prompts: Path, tmp_path: Path) -> None:
    """Adapters begin as nothing, so that the policy is its base."""
    said: list[str] = []
    job = job_of(tmp_path / "run", base, prompts, lora=True, loop={"steps": 1})
    object.__setattr__(job, "talk", said.append)
    trained(job)
    assert read_metrics(tmp_path / "run")[0]["loss"] == pytest.approx(0.0, abs=1e-6)
    assert any("without its adapters" in word for word in said)


def test_broken_off_and_resumed_is_as_unbroken(
    tuned: Path, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(job_of(tmp_path / "whole", tuned, prompts, lora=True))
    from harnessctl.train.opd.student import Student

    real, calls = Student.answer, 0

    def breaks(self: Student, asked: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise RuntimeError("the machine stopped")
        return real(self, asked)

    with monkeypatch.context() as broken:
        broken.setattr(Student, "answer", breaks)
        with pytest.raises(RuntimeError, match="stopped"):
            trained(job_of(tmp_path / "broken", tuned, prompts, lora=True))
    again = trained(job_of(tmp_path / "broken", tuned, prompts, lora=True))
    for name, value in whole.items():
        assert torch.equal(value, again[name]), name
    lines = [read_metrics(tmp_path / name) for name in ("whole", "broken")]
    assert [line["loss"] for line in lines[0]] == [line["loss"] for line in lines[1]]


def states_of(job: Job, module: TokenLoss) -> Callable[[Any], torch.Tensor]:
    policy, config = job.policy, job.config
    found = open_base(find_base(policy, config, lambda _: None), module, policy, Accelerator(cpu=True))
    return lambda rows: found.logits(found.states(rows))


@pytest.mark.parametrize("start", ["base", "tuned"])
@pytest.mark.parametrize("way", ["auto", "copy"])
def test_the_base_is_the_lineages_whichever_way_it_is_had(
    request: pytest.FixtureRequest, base: Path, tmp_path: Path, start: str, way: str
) -> None:
    job = job_of(tmp_path, request.getfixturevalue(start), None, lora=True, base=way)
    policy = job.policy
    for name, parameter in policy.model.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(generator=torch.Generator().manual_seed(0))
    module = TokenLoss(policy.model)
    assert module.why_not_packed() is None
    rows = packed(sequences(9, 5, vocabulary=200))
    is_off = find_base(policy, job.config, lambda _: None).path is None
    assert is_off == (start == "base" and way == "auto")
    wanted_model = job_of(tmp_path, base, None).policy.model
    wanted = TokenLoss(wanted_model)
    assert wanted.why_not_packed() is None
    with torch.no_grad():
        expected = wanted.logits(wanted.states(rows))
        ours = module.logits(module.states(rows))
    torch.testing.assert_close(states_of(job, module)(rows), expected)
    assert not torch.allclose(ours, expected, atol=1e-2)


def test_a_folder_that_does_not_hold_the_base_is_refused(tuned: Path, tmp_path: Path) -> None:
    job = job_of(tmp_path, tuned, None, lora=True, base_path=str(tuned))
    with pytest.raises(TrainingError, match="does not hold the base"):
        find_base(job.policy, job.config, lambda _: None)


def test_a_base_of_another_tokenizer_is_refused(base: Path, tuned: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    for path in base.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    document = json.loads(Tokenizer.from_file(str(base / "tokenizer.json")).to_str())
    vocabulary = document["model"]["vocab"]
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    (folder / "tokenizer.json").write_text(json.dumps(document))
    job = job_of(tmp_path, tuned, None, base_path=str(folder))
    with pytest.raises(CheckpointError, match="tokenizers of"):
        find_base(job.policy, job.config, lambda _: None)


def test_prompts_are_the_steps_own_and_mixed(prompts: Path) -> None:
    given = read_questions(prompts)

    def made(number: int) -> Question:
        return Question([{"role": "user", "content": f"general {number}"}])

    source = Prompts(given, made, made_share=0.5, seed=3, fits=lambda question: "cat" not in str(question.messages))
    assert source.passed_over == 1
    first = source.step(4, 200)
    assert first == source.step(4, 200) and first != source.step(5, 200)
    general = sum("general" in str(prompt.question.messages) for prompt in first)
    assert 60 < general < 140
    assert len({prompt.seed for prompt in first}) == 200
    with pytest.raises(TrainingError, match="none of the 4 prompts"):
        Prompts(given, made, made_share=0.5, seed=3, fits=lambda _: False)


def test_general_questions_wait_for_an_answer() -> None:
    questions = [general_question(0, number) for number in range(60)]
    assert questions[7] == general_question(0, 7)
    assert all(question.messages[-1]["role"] in ("user", "tool") for question in questions)


@pytest.mark.parametrize(
    "line",
    [
        '{"prompt": ""}',
        '{"text": "a"}',
        '{"messages": [{"role": "assistant", "content": "a"}]}',
        '{"messages": [{"role": "zork", "content": "a"}, {"role": "user", "content": "a"}]}',
        '{"messages": [{"role": "user", "content": 5}]}',
        '{"messages": [{"role": "assistant", "tool_calls": "x"}, {"role": "user", "content": "a"}]}',
        '{"messages": [{"role": "assistant", "tool_calls": [{"function": 3}]}, {"role": "user", "content": "a"}]}',
        "[1]",
    ],
)
def test_what_is_no_prompt_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text(f'{{"prompt": "fine"}}\n{line}\n')
    with pytest.raises(RecordError, match=r"prompts\.jsonl:2"):
        read_questions(path)


def test_a_file_of_prompts_that_would_not_be_asked(tmp_path: Path, prompts: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(TrainingError, match="holds no prompt"):
        read_questions(tmp_path / "empty.jsonl")
    config = OpdConfig(
        model=PolicyConfig(name="tiny"), loop=LoopConfig(steps=1, lr=0.1), prompts=PromptsConfig(path=str(prompts))
    )
    with pytest.raises(UsageError, match=r"prompts\.general_share is 1"):
        config.check()
    msgspec.structs.replace(config, prompts=PromptsConfig(path=str(prompts), general_share=0.5)).check()


def test_servers_that_are_not_named() -> None:
    config = OpdConfig(
        model=PolicyConfig(name="tiny"), loop=LoopConfig(steps=1, lr=0.1), rollout=RolloutConfig(backend="sglang")
    )
    with pytest.raises(UsageError, match=r"needs rollout\.urls"):
        config.check()
