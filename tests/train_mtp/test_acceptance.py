"""Acceptance against drafts that are really made, one token at a time, and judged by the policy itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from harnessctl.train.mtp.acceptance import accept_length, measure, probabilities
from harnessctl.train.mtp.collect import Example
from harnessctl.train.mtp.head import NextNHead
from harnessctl.train.mtp.rows import make_row
from tests.train_mtp.conftest import VOCAB, hidden_of, make_llama


def taught(model: Any, sequences: list[list[int]], steps: int = 40) -> NextNHead:
    """A head that has seen the sequences, so that some of its drafts are right."""
    torch.manual_seed(1)
    head = NextNHead(model)
    optimizer = torch.optim.AdamW(head.parameters(), lr=5e-3)
    rows = torch.tensor(sequences)
    hidden, positions = hidden_of(model, rows), torch.arange(rows.shape[1]).expand_as(rows)
    for _ in range(steps):
        loss = torch.zeros(())
        for depth, output in enumerate(head(hidden, rows, torch.ones_like(rows), positions, 3)):
            logits = head.logits(output[:, : rows.shape[1] - 2 - depth])
            loss = loss + torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 2 + depth :].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return head


def sampled(model: Any, length: int, seed: int, temperature: float = 0.7) -> list[int]:
    """A sequence of two given tokens and what the policy samples behind them."""
    generator = torch.Generator().manual_seed(seed)
    ids = [2 + seed % 3, 7]
    with torch.no_grad():
        while len(ids) < length:
            logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
            ids.append(int(torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)))
    return ids


@pytest.fixture(scope="module")
def drafted() -> tuple[Any, NextNHead, list[list[int]]]:
    model = make_llama(initializer_range=0.3)
    sequences = [sampled(model, 14, seed) for seed in range(6)]
    return model, taught(model, sequences[:4]), sequences


def examples(model: Any, sequences: list[list[int]], said: int = 3) -> list[Example]:
    return [
        Example(
            torch.tensor(ids),
            torch.tensor([0] * said + [1] * (len(ids) - said)),
            hidden_of(model, torch.tensor([ids]))[0],
        )
        for ids in sequences
    ]


def naive(model: Any, head: NextNHead, sequences: list[list[int]], depths: int, temperature: float) -> Any:
    """Drafts really chained (the head is fed its own tokens), each judged by a forward pass of the policy."""
    greedy, coins = [[] for _ in range(depths)], [[] for _ in range(depths)]
    for ids in sequences:
        for t in range(len(ids)):
            # y_{t+1} is a token of the policy, which said all from the fourth on.
            if t + 1 < 3:
                continue
            row, ones = torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.long)
            positions = torch.arange(len(ids))[None]
            with torch.no_grad():
                chain = head(hidden_of(model, row), row, ones, positions, depths, "argmax")
            is_greedy = True
            for depth in range(depths):
                if t + 2 + depth >= len(ids):
                    break
                draft = int(head.argmax(chain[depth])[0, t])
                with torch.no_grad():
                    logits = model(input_ids=row[:, : t + 2 + depth], use_cache=False).logits[0, -1]
                coins[depth].append(float((logits.double() / temperature).softmax(-1)[draft]))
                if is_greedy:
                    greedy[depth].append(float(int(logits.argmax()) == draft))
                is_greedy = is_greedy and int(logits.argmax()) == draft
                if draft != ids[t + 2 + depth]:
                    break
    return greedy, coins


def test_rates_are_those_of_drafts_that_are_chained(drafted: Any) -> None:
    model, head, sequences = drafted
    rows = [make_row(examples(model, part), head) for part in (sequences[:2], sequences[2:])]
    found = measure(head, rows, depths=3, temperature=0.7)
    greedy, coins = naive(model, head, sequences, 3, 0.7)
    assert found.greedy_judged == [len(part) for part in greedy]
    assert found.sampled_judged == [len(part) for part in coins]
    assert found.sampled_judged[2] > 5, "the example must reach the third depth"
    for depth in range(3):
        assert found.greedy[depth] == pytest.approx(sum(greedy[depth]) / len(greedy[depth]))
        assert found.sampled[depth] == pytest.approx(sum(coins[depth]) / len(coins[depth]), rel=1e-4)
    first, second, third = found.greedy
    assert found.greedy_length == pytest.approx(1 + first + first * second + first * second * third)
    assert (found.temperature, found.top_p, found.threshold_single, found.threshold_acc) == (0.7, 1.0, 1.0, 1.0)


def test_a_depth_that_is_never_reached_has_no_rate() -> None:
    model = make_llama()
    head = NextNHead(model)
    row = make_row(examples(model, [[3, 4, 5, 6, 7]], said=3), head)  # one draft: y_4 was sampled, and so was y_5
    found = measure(head, [row], depths=3)
    assert found.sampled_judged == [1, 0, 0]
    assert found.sampled[1:] == [None, None] and found.greedy[1:] == [None, None]
    nothing = measure(head, [make_row([], head)], depths=2)
    assert nothing.greedy == [None, None] and nothing.greedy_length == 1.0


def test_the_length_counts_the_token_that_comes_anyhow() -> None:
    assert accept_length([]) == 1.0
    assert accept_length([0.0, 1.0]) == 1.0
    assert accept_length([0.5, 0.5, 1.0]) == pytest.approx(2.0)
    assert accept_length([1.0, None, 1.0]) == 2.0


def test_probabilities_after_temperature_and_top_p() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.2]]).log().expand(3, 3)
    every = torch.arange(3)
    assert probabilities(logits, every, 1.0, 1.0).tolist() == pytest.approx([0.5, 0.3, 0.2])
    assert probabilities(logits, every, 1.0, 0.6).tolist() == pytest.approx([0.625, 0.375, 0.0])
    assert probabilities(logits, every, 1.0, 0.5).tolist() == pytest.approx([1.0, 0.0, 0.0])
    squared = [0.25 / 0.38, 0.09 / 0.38, 0.04 / 0.38]
    assert probabilities(logits, every, 0.5, 1.0).tolist() == pytest.approx(squared, rel=1e-5)
    assert VOCAB > 3
