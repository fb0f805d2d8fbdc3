"""Law b: every reference resolves in every text that a model can see, and no text names what is hidden.

Looked at are all texts of the state, templates, what Python and scripts may say in code spans, and (thorough) the texts
as they are rendered, the runtime's own notices included. A hidden name is the canonical name of a tool or skill that is
renamed or masked, or of a parameter that no tool shows any more; a new name must not be read in what was there before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from harnessctl.augment.laws.broken import Broken
from harnessctl.augment.laws.foreign import code_spans, strings_in, template_names
from harnessctl.augment.laws.known import Case
from harnessctl.augment.laws.marks import NOTHING, Marks, words_of
from harnessctl.augment.laws.places import action_of, block_texts, hook_texts, skill_plain, skill_texts, tool_texts
from harnessctl.augment.laws.rendered import hidden_names
from harnessctl.augment.laws.watched import Watched
from harnessctl.bundle.state import Skill
from harnessctl.bundle.text import Text

Found = Iterator[tuple[str, str]]


def check(case: Case) -> list[Broken]:
    """What breaks law b."""
    watched = Watched(case)
    found = [
        *_names(case, watched),
        *_texts(case, watched),
        *_templates(case, watched),
        *_messages(case, watched),
        *_examples(case, watched),
    ]
    if case.thorough and not found:  # else what dangles could not be rendered
        found += hidden_names(case, watched)
    return [Broken("b", place, reason) for place, reason in dict.fromkeys(found)]


def _names(case: Case, watched: Watched) -> Found:
    """A new name is no name that there was, and no code span of the parent."""
    known = case.known
    taken = known.names
    for kind, renames, before, added in (
        ("tools", case.variant.surface.tools, known.parent.surface.tools, case.changes.added_tools),
        ("skills", case.variant.surface.skills, known.parent.surface.skills, case.changes.added_skills),
    ):
        shown = {name: new for name, new in renames.items() if new not in (name, before.get(name))}
        shown |= {member.name: member.name for member in added if member.name not in renames}
        for name, new in shown.items():
            if new in taken:
                yield f"surface/{kind}/{name}", f"`{new}` is a name of the parent"
    twice = dict.fromkeys(watched.shown, 0)
    for tool in case.variant.tools:
        twice[case.view.tool_name(tool.name)] += 1
    for skill in case.variant.skills:
        new = case.view.skill_name(skill.name)
        twice[new] += 1
        if twice[new] > 1 and new in watched.new:
            yield f"surface/skills/{skill.name}", f"`{new}` is a tool too"
    for new, tool in watched.new_parameters.items():
        if new in watched.shown or new in known.tools or new in known.skills:
            yield f"surface/parameters/{tool}", f"`{new}` is the name of a tool or a skill"
    for new in (watched.new | watched.new_parameters.keys()) & (known.spans | known.said_names):
        yield _where(case, new), f"`{new}` stands in a code span already and means something else there"


def _where(case: Case, shown: str) -> str:
    surface = case.variant.surface
    for what, names in (("tools", surface.tools), ("skills", surface.skills)):
        for name, new in names.items():
            if new == shown:
                return f"surface/{what}/{name}"
    tool = next((t for t, names in surface.parameters.items() if shown in names.values()), None)
    return f"surface/parameters/{tool}" if tool else f"surface/{shown}"


def _texts(case: Case, watched: Watched) -> Found:
    known, variant = case.known, case.variant
    for skill in variant.skills:
        rules = {rule.id for rule in skill.rules}
        if not _clean(case, watched, skill_plain(skill), rules):
            whole = skill is known.skills.get(skill.name)
            yield from _owner(case, watched, f"skills/{skill.name}/", skill_texts(skill), rules, whole)
    for tool in variant.tools:
        if not _clean(case, watched, (tool.description, *tool.docs.values()), ()):
            whole = tool is known.tools.get(tool.name)
            yield from _owner(case, watched, f"tools/{tool.name}/", tool_texts(tool), (), whole)
        renamed = variant.surface.parameters.get(tool.name)
        if renamed:
            gone = {name for name, new in renamed.items() if new != name and name not in renamed.values()}
            yield from _own_parameters(case, f"tools/{tool.name}/", tool_texts(tool), gone)
    for block in variant.prompt.blocks:
        items = {item.id for item in block.items}
        if not _clean(case, watched, (block.heading, *(item.text for item in block.items)), items):
            whole = block is known.blocks.get(block.id)
            yield from _owner(case, watched, f"prompt/{block.id}/", block_texts(block), items, whole)
    for hook in variant.hooks:
        action = action_of(hook)
        if action is None or action.message is None or _clean(case, watched, (action.message.text,), ()):
            continue
        whole = hook is known.hooks.get(hook.id)
        yield from _owner(case, watched, f"hooks/{hook.id}/", hook_texts(hook), (), whole)
    framing = variant.prompt.framing
    if framing is not None:
        yield from _owner(case, watched, "prompt/framing/", [("lead", framing.lead)], (), False)


def _clean(case: Case, watched: Watched, texts: Iterable[Text], rules: Collection[str]) -> bool:
    """Whether none of these texts needs a closer look; most variants consist of such."""
    marks_of, offered, words, spans = case.known.marks, watched.offered, watched.words, watched.spans
    known = marks_of.known
    for text in texts:
        held = known.get(id(text))
        marks = held[1] if held is not None else marks_of(text)
        if marks is not NOTHING and not (
            marks.names <= offered
            and marks.whole
            and marks.words.isdisjoint(words)
            and marks.spans.isdisjoint(spans)
            and (not marks.rules or marks.rules.issubset(rules))
        ):
            return False
    return True


def _owner(
    case: Case,
    watched: Watched,
    place: str,
    texts: Iterable[tuple[str, Text]],
    rules: Collection[str],
    is_whole: bool,
) -> Found:
    marks_of, offered, words, spans = case.known.marks, watched.offered, watched.words, watched.spans
    for path, text in texts:
        marks = marks_of(text)
        if not marks.names <= offered:
            for name in marks.names - offered:
                yield place + path, f"refers to the {name.replace(':', ' ')}, which is not there"
        if marks.rules and not marks.rules <= set(rules):
            for name in marks.rules - set(rules):
                yield place + path, f"refers to the rule #{name}, which is not there"
        if not marks.whole and not is_whole and place + path not in case.known.swallowed:
            yield place + path, "a reference is not a code span of its own"
        if not (marks.words.isdisjoint(words) and marks.spans.isdisjoint(spans)):
            yield from _named(watched, place + path, marks)


def _named(watched: Watched, place: str, marks: Marks) -> Found:
    for name in marks.meets(watched.words):
        if name in watched.hidden:
            yield place, f"names {name}, which is {watched.hidden[name]}"
        else:
            yield place, f"names {name}, which is a new name and meant something else"
    for name in marks.spans & watched.parameters.keys():
        yield place, f"names `{name}`, a parameter of {watched.parameters[name]} that is shown otherwise"
    for name in marks.spans & watched.new_parameters.keys():
        yield place, f"names `{name}`, now a parameter of {watched.new_parameters[name]}"


def _own_parameters(case: Case, place: str, texts: Iterable[tuple[str, Text]], gone: set[str]) -> Found:
    """A tool's own texts name none of its parameters that are shown otherwise, whoever else still shows that name."""
    for path, text in texts:
        for name in case.known.marks(text).meets(gone):
            yield place + path, f"names {name}, a parameter of this tool that is shown otherwise"


def _templates(case: Case, watched: Watched) -> Found:
    for block in case.variant.prompt.blocks:
        if block.template is None:
            continue
        found = template_names(block.template)
        place = f"prompt/{block.id}/template"
        for name in found.names - watched.offered:
            yield place, f"refers to the {name.replace(':', ' ')}, which is not there"
        if not (found.marks.words.isdisjoint(watched.words) and found.marks.spans.isdisjoint(watched.spans)):
            yield from _named(watched, place, found.marks)


def _messages(case: Case, watched: Watched) -> Found:
    """What Python and scripts say in code spans, and what the runtime says of checks without a message."""
    known = case.known
    if not known.said_names.isdisjoint(watched.spans):
        for place, kind, name in known.said:
            yield from _said(watched, place, kind, name)
    if case.variant.code is not known.parent.code:
        for module, source in case.variant.code.items():
            if module not in known.parent.code:
                for kind, name in code_spans(source):
                    yield from _said(watched, f"code/{module}", kind, name)
    for tool in case.variant.tools:
        for name in known.values.get(tool.name, frozenset()) & watched.hidden.keys():
            yield f"tools/{tool.name}/parameters", f"has the value {name}, which is {watched.hidden[name]}"
    for hook, words in known.told.items():
        for name in words & watched.hidden.keys():
            yield f"hooks/{hook}/check", f"is told to the model as it is written, and names {name}"


def _said(watched: Watched, place: str, kind: str | None, name: str) -> Found:
    """The runtime shows canonical names of what is there by their new names; all else it leaves."""
    if kind != "skill" and f"tool:{name}" in watched.offered:
        return
    if kind != "tool" and f"skill:{name}" in watched.offered:
        return
    if name in watched.hidden:
        yield place, f"may say `{name}`, which is {watched.hidden[name]}"
    elif name in watched.new:
        yield place, f"may say `{name}`, which is a new name and meant something else"
    elif name in watched.parameters:
        yield place, f"may say `{name}`, a parameter of {watched.parameters[name]} that is shown otherwise"


def _examples(case: Case, watched: Watched) -> Found:
    for skill in case.variant.skills:
        if skill.examples:
            yield from _calls(case, watched, skill)


def _calls(case: Case, watched: Watched, skill: Skill) -> Found:
    load = case.view.load_skill
    for number, example in enumerate(skill.examples):
        for index, message in enumerate(example):
            place = f"skills/{skill.name}/examples/{number}/{index}"
            for call in message.calls:
                if f"tool:{call['tool']}" not in watched.offered:
                    yield place, f"calls {call['tool']}, which is not there"
                    continue
                for key, text in strings_in(call.get("arguments", {})):
                    if load is not None and call["tool"] == load.name and key == case.view.load_skill_argument:
                        if text not in watched.skills:
                            yield place, f"loads {text}, which is not there"
                    else:
                        for name in words_of(text) & watched.hidden.keys():
                            yield place, f"an argument names {name}, which is {watched.hidden[name]}"
