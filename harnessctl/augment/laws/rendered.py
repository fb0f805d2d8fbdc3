"""Rendered: everything that a model may read of a variant, as it reads it, the runtime's own notices included.

What always holds: this shares nothing with how `references` looks at texts in parts; both find the same hidden names.
"""

from __future__ import annotations

from collections.abc import Iterator

from harnessctl.augment.laws.foreign import strings_in
from harnessctl.augment.laws.known import Case
from harnessctl.augment.laws.marks import spans_in, words_of
from harnessctl.augment.laws.places import block_texts, hook_texts
from harnessctl.augment.laws.watched import Watched
from harnessctl.runtime.notices import Notices


def hidden_names(case: Case, watched: Watched) -> Iterator[tuple[str, str]]:
    """(place, reason) where a hidden name stands, in whatever way it came there."""
    for place, text in _seen(case):
        spans = set(spans_in(text))
        clean = text
        for name in watched.shown & spans:
            clean = clean.replace(f"`{name}`", "")
        words = words_of(clean) | (spans - watched.shown)
        for name, why in watched.hidden.items():
            if name in words:
                yield place, f"a model reads {name}, which is {why}"


def _seen(case: Case) -> Iterator[tuple[str, str]]:
    view, variant = case.view, case.variant
    for tool in view.tools:
        name = tool["function"]["name"]
        yield f"seen/tools/{name}", tool["function"]["description"]
        yield from ((f"seen/tools/{name}", text) for _, text in strings_in(tool["function"]["parameters"]))
    for offer in view.skill_offers:
        yield f"seen/skills/{offer['name']}", offer["description"]
    for skill in variant.skills:
        yield f"seen/skills/{skill.name}", view.skill_body(skill.name)
    for block in variant.prompt.blocks:
        yield f"seen/prompt/{block.id}", "\n".join(view.render(text) for _, text in block_texts(block))
    for hook in variant.hooks:
        yield from ((f"seen/hooks/{hook.id}", view.render(text)) for _, text in hook_texts(hook))
    if variant.prompt.framing is not None:
        yield "seen/prompt/framing", view.render(variant.prompt.framing.lead)
    for place, _, name in case.known.said:
        yield f"seen/{place}", view.shown(f"`{name}`")
    notices = Notices(view)
    yield "seen/notices", notices.need_skill
    for tool in variant.tools:
        yield "seen/notices", notices.repeated(tool.name)
    for skill in variant.skills:
        yield "seen/notices", notices.already_loaded(skill.name)
    yield (
        "seen/notices",
        notices.unknown_tool("-") + notices.unknown_skill("-"),
    )
