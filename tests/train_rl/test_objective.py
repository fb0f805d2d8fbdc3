"""The objective over made-up rollouts: the loss by a naive loop, accumulation, several updates, the KL term, two processes."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator

from harnessctl.checkpoint.resume import ResumePoints
from harnessctl.errors import TrainingError, UsageError
from harnessctl.train.config import LoopConfig, LoraConfig, PolicyConfig
from harnessctl.train.loop import Loop
from harnessctl.train.metrics import Metrics, read_metrics
from harnessctl.train.policy import Policy, load_policy
from harnessctl.train.rl import objective as module
from harnessctl.train.rl.config import RlConfig
from harnessctl.train.rl.environment import Rollout
from harnessctl.train.rl.objective import RlObjective
from harnessctl.train.rl.penalty import Penalty
from harnessctl.train.rl.prefix import Reader
from tests.train_rl.rl_project import PROMPT, Made, made_up, rl_config, score_of, trajectory_of


def open_objective(policy: Policy, config: RlConfig, make: Any = made_up, **more: Any) -> RlObjective:
    reader = Reader.open(policy.inner, lambda _: None, share=config.prefix == "shared")
    given = {"accelerator": Accelerator(cpu=True)} | more
    return RlObjective(policy, config, Made(make), reader, **given)


def gradients(policy: Policy, objective: RlObjective, step: int = 0) -> tuple[float, dict[str, torch.Tensor], Any]:
    policy.model.zero_grad()
    data = objective.data(step)
    total = 0.0
    for micro in data.micro:
        loss, _ = objective.loss(micro)
        (loss / data.weight).backward()
        total += float(loss.detach()) / data.weight
    found = {n: p.grad.clone() for n, p in policy.model.named_parameters() if p.grad is not None}
    return total, found, data


def test_the_loss_is_the_mean_over_the_tokens_that_were_kept(policy: Policy) -> None:
    config = rl_config(groups=3, rollouts=4)
    objective = open_objective(policy, config, record=lambda step, judged: seen.extend(judged))
    seen: list[Any] = []
    total, found, data = gradients(policy, objective)
    policy.model.zero_grad()
    losses, tokens = [], 0
    for one in seen:
        if one.final is None:
            continue
        (path,) = one.rollout.trajectory.paths
        log_probs = policy.model(torch.tensor([path.ids])).logits[0].log_softmax(-1)
        for place, is_said in enumerate(path.mask):
            if is_said:
                ratio = (log_probs[place - 1, path.ids[place]] - log_probs[place - 1, path.ids[place]].detach()).exp()
                losses.append(-ratio * one.final.reply)
                tokens += 1
    loss = torch.stack(losses).sum() / tokens
    loss.backward()
    assert data.weight == tokens
    assert total == pytest.approx(float(loss.detach()), abs=1e-5)
    for name, parameter in policy.model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(found[name], parameter.grad, atol=1e-5, rtol=1e-4)
    assert len([one for one in seen if one.raw is None]) == 3  # no score: dropped, not taken for 0
    assert data.metrics["unscored"] == pytest.approx(3 / 12)


def test_padded_shared_and_in_pieces_come_to_the_same(policy: Policy) -> None:
    total, found, data = gradients(policy, open_objective(policy, rl_config(groups=3, rollouts=4)))
    for keys in (
        {"micro_tokens": 1},
        {"micro_tokens": 25},
        {"prefix": "padded"},
        {"prefix": "padded", "micro_tokens": 30},
    ):
        other, gradient, pieces = gradients(policy, open_objective(policy, rl_config(groups=3, rollouts=4, **keys)))
        assert pieces.weight == data.weight
        assert other == pytest.approx(total, abs=1e-5)
        for name, value in gradient.items():
            torch.testing.assert_close(value, found[name], atol=1e-5, rtol=1e-3)
        assert keys != {"micro_tokens": 1} or len(pieces.micro) > len(data.micro)


def test_what_was_sampled_is_compared_with_what_the_policy_says(policy: Policy) -> None:
    objective = open_objective(policy, rl_config())
    data = objective.data(0)
    shown = [objective.loss(micro)[1] for micro in data.micro]
    gaps: list[float] = []
    for micro in data.micro:
        for path in micro:
            with torch.no_grad():
                log_probs = policy.model(torch.tensor([list(path.ids)])).logits[0].log_softmax(-1)
            gaps += [float(log_probs[p - 1, path.ids[p]]) - s for p, s in zip(path.places, path.sampled, strict=True)]
    assert sum(s["mismatch"] for s in shown) == pytest.approx(sum(abs(g) for g in gaps), rel=1e-4)
    assert sum(s["mismatch_kl"] for s in shown) == pytest.approx(sum(math.exp(g) - g - 1 for g in gaps), rel=1e-3)
    assert sum(s["ratio"] for s in shown) == pytest.approx(data.weight, rel=1e-5)
    assert sum(s["clip_share"] for s in shown) == 0


def test_a_batch_without_a_difference_skips_the_update(policy: Policy) -> None:
    alike = trajectory_of([*PROMPT, 60, 61], 2, [-1.0, -1.0])
    objective = open_objective(policy, rl_config(), make=lambda number, which: Rollout(alike, score_of(1.0)))
    data = objective.data(0)
    assert data.weight == 0
    assert data.metrics["discarded"] == 1.0
    loss, _ = objective.loss(data.micro[0])
    loss.backward()  # a pass for nothing, for those whose weights are sharded


def test_several_updates_of_one_batch_clip(policy: Policy, tmp_path: Path) -> None:
    config = rl_config(groups=2, rollouts=4, updates=4, loop={"steps": 8, "lr": 0.01, "save_every": 4})
    objective = open_objective(policy, config)
    environment: Any = objective._environment
    loop = Loop(policy.model, config.loop, points=ResumePoints(tmp_path / "points"), accelerator=Accelerator(cpu=True))
    with Metrics(tmp_path, board=False) as metrics:
        loop.run(objective, metrics)
    assert environment.asked == [[0, 1], [2, 3]]
    lines = read_metrics(tmp_path)
    assert lines[0]["clip_share"] == 0
    assert lines[0]["ratio"] == pytest.approx(1.0, abs=1e-5)
    assert lines[3]["clip_share"] > 0
    assert lines[3]["ratio"] != pytest.approx(1.0, abs=1e-3)
    assert "rollouts" in lines[4]
    assert "rollouts" not in lines[3]


def test_a_batch_that_is_gone_is_not_made_up_anew(policy: Policy) -> None:
    objective = open_objective(policy, rl_config(updates=2))
    with pytest.raises(TrainingError, match="update 2 of its batch"):
        objective.data(3)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"updates": 2, "loop": {"steps": 4, "save_every": 3}}, "loop.save_every is 3"),
        ({"updates": 2, "loop": {"steps": 5, "save_every": 2}}, "loop.steps is 5"),
        ({"sampling": {"temperature": 0.0}}, "temperature is 0"),
        ({"sampling": {"top_p": 0.95}}, "top_p is 0.95"),
    ],
)
def test_keys_that_do_not_go_together(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rl_config(**keys).check()


def test_the_penalty_rises_with_the_steps(policy: Policy) -> None:
    def thinks(number: int, which: int) -> Rollout:
        said = policy.codec.encode_data("<think>" + "a" * (1 + which) + "</think>b")
        return Rollout(trajectory_of([*PROMPT, *said], len(said), [-1.0] * len(said)), score_of(1.0))

    raw: list[float] = []
    config = rl_config(groups=1, cot=Penalty(weight=0.1, ramp=4))
    objective = open_objective(
        policy, config, make=thinks, record=lambda _, judged: raw.extend(one.raw.reply for one in judged)
    )
    for step in (0, 1, 3):
        objective.data(step)
    assert raw == pytest.approx([0.025, -0.025, 0.05, -0.05, 0.1, -0.1])


def test_the_kl_term_draws_back_to_the_start(tiny: Path) -> None:
    policy = load_policy(PolicyConfig(name="tiny", dtype="float32", device="cpu"), tiny)
    start = load_policy(PolicyConfig(name="tiny", dtype="float32", device="cpu"), tiny).model
    objective = open_objective(policy, rl_config(kl=0.5), reference=start)
    data = objective.data(0)
    assert sum(objective.loss(micro)[1]["kl"] for micro in data.micro) == pytest.approx(0.0, abs=1e-4)
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    plain, _, _ = gradients(policy, open_objective(policy, rl_config()))
    held = open_objective(policy, rl_config(kl=0.5), reference=start)
    total, _, data = gradients(policy, held)
    kl = sum(held.loss(micro)[1]["kl"] for micro in data.micro) / data.weight
    assert kl > 0
    assert total == pytest.approx(plain + 0.5 * kl, rel=1e-4)


def test_with_adapters_the_start_is_the_policy_without_them(tiny: Path) -> None:
    lora = LoraConfig(rank=2)
    policy = load_policy(PolicyConfig(name="tiny", dtype="float32", device="cpu", lora=lora), tiny)
    objective = open_objective(policy, rl_config(kl=0.5))
    data = objective.data(0)
    before = [path.reference for micro in data.micro for path in micro]
    assert sum(objective.loss(micro)[1]["kl"] for micro in data.micro) == pytest.approx(0.0, abs=1e-4)
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(generator=torch.Generator().manual_seed(0))
    data = objective.data(0)
    after = [path.reference for micro in data.micro for path in micro]
    for one, other in zip(before, after, strict=True):
        assert other == pytest.approx(one, abs=1e-5)
    assert sum(objective.loss(micro)[1]["kl"] for micro in data.micro) > 0.01


def test_the_sequence_ratio_starts_at_the_same_gradient(policy: Policy) -> None:
    _, token, _ = gradients(policy, open_objective(policy, rl_config(groups=3, rollouts=4)))
    _, sequence, _ = gradients(policy, open_objective(policy, rl_config(groups=3, rollouts=4, ratio="sequence")))
    for name, value in token.items():
        torch.testing.assert_close(sequence[name], value, atol=1e-6, rtol=1e-4)


class Pair:
    """gather_object between two threads that stand for two processes."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2, timeout=30)
        self._held: dict[int, Any] = {}

    def gather(self, rank: int) -> Callable[[list[Any]], list[Any]]:
        def gather(given: list[Any]) -> list[Any]:
            self._held[rank] = given
            self._barrier.wait()
            found = [*self._held[0], *self._held[1]]
            self._barrier.wait()
            return found

        return gather


def test_two_processes_make_one_batch(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    config = rl_config(groups=5, rollouts=4, micro_tokens=40)
    alone = open_objective(policy, config)
    total, found, whole = gradients(policy, alone)
    pair, local = Pair(), threading.local()
    monkeypatch.setattr(module, "gather_object", lambda given: local.gather(given))
    made: dict[int, Any] = {}

    class Rank:
        num_processes = 2

        def __init__(self, rank: int) -> None:
            self.process_index = rank

    def work(rank: int) -> None:
        local.gather = pair.gather(rank)
        made[rank] = open_objective(policy, config, accelerator=Rank(rank))
        made[rank, "data"] = made[rank].data(0)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    halves = [made[rank, "data"] for rank in (0, 1)]
    assert [half.weight for half in halves] == [whole.weight] * 2
    assert len(halves[0].micro) == len(halves[1].micro)
    assert {k: v for k, v in halves[0].metrics.items() if "second" not in k} == pytest.approx(
        {k: v for k, v in whole.metrics.items() if "second" not in k}
    )
    policy.model.zero_grad()
    losses = 0.0
    for rank, half in enumerate(halves):
        for micro in half.micro:
            loss, _ = made[rank].loss(micro)
            (loss / half.weight).backward()
            losses += float(loss.detach()) / half.weight
    assert losses == pytest.approx(total, abs=1e-5)
    for name, parameter in policy.model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(parameter.grad, found[name], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("ratio", ["token", "sequence"])
@pytest.mark.parametrize("updates", [1, 2])
def test_what_is_rewarded_is_said_more_often(ratio: Any, updates: int, policy: Policy, tmp_path: Path) -> None:
    """Two tokens to choose from, one of which is rewarded: the sign of everything at once."""
    good, bad = 65, 66
    config = rl_config(
        groups=2, rollouts=8, ratio=ratio, updates=updates, loop={"steps": 12, "lr": 3e-3, "save_every": 12}
    )

    def chances() -> torch.Tensor:
        with torch.no_grad():
            logits = policy.model(torch.tensor([PROMPT])).logits[0, -1]
        return logits[[good, bad]].softmax(-1)

    chance: dict[int, float] = {}

    def make(number: int, which: int) -> Rollout:
        if number not in chance:
            chance[number] = float(chances()[0])
        token = good if random.Random(100 * number + which).random() < chance[number] else bad
        return Rollout(trajectory_of([*PROMPT, token], 1, [0.0]), score_of(float(token == good)))

    with torch.no_grad():  # begin with an even chance
        weight = policy.model.lm_head.weight
        weight[good] = weight[bad]
    assert float(chances()[0]) == pytest.approx(0.5, abs=1e-5)
    loop = Loop(
        policy.model,
        LoopConfig(steps=12, lr=3e-3, schedule="constant", save_every=12),
        points=ResumePoints(tmp_path / "points"),
        accelerator=Accelerator(cpu=True),
    )
    with Metrics(tmp_path, board=False) as metrics:
        loop.run(open_objective(policy, config, make), metrics)
    assert float(chances()[0]) > 0.8
    rewards = [line["reward/accuracy"] for line in read_metrics(tmp_path) if "reward/accuracy" in line]
    assert rewards[-1] > rewards[0]
