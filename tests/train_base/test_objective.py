"""What a step learns from, and its loss against code that is as plain as can be."""

from __future__ import annotations

from itertools import chain

import msgspec
import pytest
import torch
from accelerate import Accelerator

from harnessctl.data.general import draw, is_right
from harnessctl.decode.output import parse_output
from harnessctl.train.base.config import ContextConfig, TasksConfig
from harnessctl.train.base.context import with_context
from harnessctl.train.base.encoding import Dialogue, encoded
from harnessctl.train.base.exactness import Exactness, right
from harnessctl.train.base.measures import measures
from harnessctl.train.base.objective import BaseObjective, ease_at, entries_at
from harnessctl.train.config import PolicyConfig
from harnessctl.train.policy import load_policy
from harnessctl.train.sft.rows import Tokens
from harnessctl.train.sft.token_loss import TokenLoss
from tests.train_base.conftest import base_config

MODEL = PolicyConfig(name="tiny", device="cpu", dtype="float32")


class Process:
    def __init__(self, index, count):
        self.process_index, self.num_processes = index, count


@pytest.fixture
def policy(source):
    return load_policy(MODEL, source)


def objective_of(policy, process=None, exactness=None, **options):
    module = TokenLoss(policy.model)
    return BaseObjective(
        module,
        policy,
        base_config(**options),
        accelerator=process or Accelerator(cpu=True),
        exactness=exactness,
    )


def plain_loss(model, dialogues):
    total = 0.0
    for tokens in dialogues:
        log_probs = torch.log_softmax(model(tokens.ids.long()[None]).logits[0], -1)
        for at in range(1, len(tokens)):
            if tokens.mask[at]:
                total = total - log_probs[at - 1, int(tokens.ids[at])]
    return total


def test_answers_are_what_the_policy_would_say(encoder):
    for number in range(40):
        item = draw(0, number)
        dialogue = encoded(item, encoder)
        ids, mask, at = dialogue.tokens.ids.tolist(), dialogue.tokens.mask.tolist(), 0
        for turn, count in enumerate(dialogue.turns):
            at = mask.index(1, at)
            said = ids[at : at + count]
            prompt = encoder.extend([], item.before(turn), item.tools)
            assert ids[:at] == prompt and said[-1] == encoder.end_id
            output = parse_output(encoder.decode(said[:-1]), calls=bool(item.tools))
            calls = [{"function": {"name": c.name, "arguments": c.arguments}} for c in output.calls]
            assert is_right(item, turn, {"content": output.content, "tool_calls": calls})
            at += count
        assert sum(mask) == sum(dialogue.turns) and 1 not in mask[at:]


def test_a_steps_data_is_a_function_of_seed_and_step(policy):
    first, again = (objective_of(policy).data(5) for _ in range(2))
    assert [[t.ids.tolist() for t in m] for m in first.micro] == [[t.ids.tolist() for t in m] for m in again.micro]
    assert first.weight == again.weight
    assert objective_of(policy).data(6).micro[0][0].ids.tolist() != first.micro[0][0].ids.tolist()
    assert objective_of(policy, seed=1).data(5).micro[0][0].ids.tolist() != first.micro[0][0].ids.tolist()


def test_tokens_are_bounded(policy):
    data = objective_of(policy).data(0)
    assert sum(len(t) for micro in data.micro for t in micro) == data.metrics["tokens"] <= 1500
    for micro in data.micro:
        assert len(micro) == 1 or max(map(len, micro)) * len(micro) <= 1000


def test_processes_share_a_step(policy):
    whole = objective_of(policy).data(3)
    parts = [objective_of(policy, Process(index, 3)).data(3) for index in range(3)]
    assert {len(part.micro) for part in parts} == {len(parts[0].micro)}
    assert {part.weight for part in parts} == {whole.weight}
    shared = [t.ids.tolist() for part in parts for micro in part.micro for t in micro]
    assert sorted(shared) == sorted(t.ids.tolist() for micro in whole.micro for t in micro)


def test_loss_equals_plain_code(policy):
    objective = objective_of(policy)
    data = objective.data(1)
    found = sum(objective.loss(micro)[0] for micro in data.micro)
    wanted = plain_loss(policy.model, [t for micro in data.micro for t in micro])
    torch.testing.assert_close(found, wanted)
    found.backward()
    mine = {name: p.grad.clone() for name, p in policy.model.named_parameters()}
    policy.model.zero_grad()
    wanted.backward()
    for name, parameter in policy.model.named_parameters():
        torch.testing.assert_close(mine[name], parameter.grad, atol=2e-3, rtol=1e-4)
    empty, shown = objective.loss([])
    assert float(empty.detach()) == 0.0 and shown == {"token_accuracy": 0.0}


def test_context_equals_plain_code(policy):
    objective = objective_of(policy, context={"share": 0.5, "weight": 0.25})
    data = objective.data(0)
    answers = objective_of(policy).data(0)
    assert data.weight == answers.weight  # what is only read is not counted
    found = sum(objective.loss(micro)[0] for micro in data.micro)
    wanted, drawn = 0.0, 0
    for tokens, plain in zip(chain(*data.micro), chain(*answers.micro), strict=True):
        places = [at for at in range(1, len(tokens)) if tokens.mask[at]]
        assert all(tokens.mask[at] for at in range(1, len(plain)) if plain.mask[at])
        log_probs = torch.log_softmax(policy.model(tokens.ids.long()[None]).logits[0], -1)
        for at, weight in zip(places, tokens.weights.tolist(), strict=True):
            assert weight == (1.0 if plain.mask[at] else 0.25)
            drawn += weight != 1.0
            wanted = wanted - weight * log_probs[at - 1, int(tokens.ids[at])]
    assert 0.4 < drawn / sum(len(t) - t.weight for t in chain(*answers.micro)) < 0.6
    torch.testing.assert_close(found, wanted)


def test_context_is_drawn_by_seed_and_step(policy):
    def drawn(step, **options):
        return [
            tokens.mask for tokens in chain(*objective_of(policy, context={"share": 0.5}, **options).data(step).micro)
        ]

    assert all(map(torch.equal, drawn(1), drawn(1)))
    tokens = Tokens(torch.zeros(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32))
    masks = [
        with_context(tokens, ContextConfig(share=0.5), torch.Generator().manual_seed(seed)).mask for seed in (0, 1)
    ]
    assert not torch.equal(*masks)


def test_lists_grow():
    tasks = TasksConfig(entries=(2, 10), grow_over=80)
    assert [entries_at(step, tasks) for step in (0, 39, 79, 200)] == [(2, 2), (2, 6), (2, 10), (2, 10)]
    assert entries_at(0, msgspec.structs.replace(tasks, grow_over=0)) == (2, 10)


def test_ease_falls_to_nothing():
    tasks = TasksConfig(ease=0.5, grow_over=80)
    assert [ease_at(step, tasks) for step in (0, 40, 80, 200)] == [0.5, 0.25, 0.0, 0.0]
    assert ease_at(0, msgspec.structs.replace(tasks, grow_over=0)) == 0.0


def said_greedily(policy, ids, count):
    context = torch.tensor([ids])
    for _ in range(count):
        with torch.no_grad():
            context = torch.cat([context, policy.model(context).logits[:, -1:].argmax(-1)], 1)
    return context[0, len(ids) :].tolist()


def test_exactness_equals_greedy_decoding(policy, encoder):
    """Dialogues whose answers are what the model says itself, and the same with one token changed in the second."""
    dialogues, wanted = [], []
    for length, wrong in ((12, None), (9, 0), (6, 2)):
        ids, mask = [], []
        for turn in range(3):
            ids += list(range(turn, turn + length))
            said = said_greedily(policy, ids, 4)
            if turn == 1 and wrong is not None:
                said[wrong] = (said[wrong] + 1) % 500
            ids += said
            mask += [0] * length + [1] * 4
            wanted.append(turn != 1 or wrong is None)
        tokens = Tokens(torch.tensor(ids, dtype=torch.int32), torch.tensor(mask, dtype=torch.int32))
        dialogues.append(Dialogue("copy", tokens, [4, 4, 4]))
    module = TokenLoss(policy.model)
    for micro_tokens in (1, 1000):
        assert right(dialogues, module, policy, micro_tokens=micro_tokens) == wanted
    measured = Exactness(measures(["copy", "lookup"]), encoder, seed=0, items=2)
    shares = measured.of(module, policy, micro_tokens=500)
    assert set(shares) == {"exact/copy", "exact/lookup", "exact/lookup-unseen"}


def test_what_is_measured_is_held_out_and_among_eight():
    for name, one in measures().items():
        for item in one.items(0, 3):
            assert item.task == one.task
            if name.startswith("lookup"):
                assert item.messages[0]["content"].count("> ") == 8
    assert set(measures(["copy"])) == {"copy"}
