"""Notices: what the runtime itself tells the model, in surface names, in one place so that it can be reviewed."""

from __future__ import annotations

from harnessctl.runtime.surface import SurfaceView

#: How much of what the model wrote is shown to it again.
QUOTED_CHARS = 200

EMPTY_MESSAGE = "Your last message was empty. Call a tool or write the reply."
NOT_RUN = "Not run: the request had ended."
NOT_LET = "Not run: see the message below."
WITHHELD = "Withheld: see the message below."


class Notices:
    """The runtime's own messages for one surface."""

    def __init__(self, surface: SurfaceView) -> None:
        self._surface = surface
        self._tools = ", ".join(f"`{tool['function']['name']}`" for tool in surface.tools) or "none"
        self._skills = ", ".join(f"`{offer['name']}`" for offer in surface.skill_offers) or "none"
        replies = ", ".join(f"`{offer['name']}`" for offer in surface.skill_offers if offer["kind"] == "reply")
        load = surface.tool_name(surface.load_skill.name) if surface.load_skill else ""
        self.need_skill = f"Load the skill that fits with `{load}` before you reply. Reply skills: {replies}."

    def unknown_tool(self, name: str) -> str:
        """The model called a tool that is not on offer."""
        return f"There is no tool `{_quote(name)}`. Tools: {self._tools}."

    def broken_arguments(self, name: str, raw: str, cause: str) -> str:
        """The arguments were not a JSON object."""
        return f"The arguments of `{name}` must be a JSON object: {cause}. You wrote: {_quote(raw)}"

    def hidden_argument(self, tool: str) -> str:
        """The model used names that this tool does not have."""
        names = ", ".join(f"`{name}`" for name in self._surface.schemas[tool].get("properties", {}))
        return f"`{self._surface.tool_name(tool)}` takes other arguments: {names}."

    def unknown_skill(self, name: object) -> str:
        """The model asked for a skill that is not on offer."""
        return f"There is no skill `{_quote(str(name))}`. Skills: {self._skills}."

    def already_loaded(self, skill: str) -> str:
        """A second load of a skill (canonical name); its body is in the context already."""
        return f"`{self._surface.skill_name(skill)}` is loaded already; its text stands above."

    def repeated(self, tool: str) -> str:
        """The call that made the repeat detector end the request."""
        return f"Not run: `{self._surface.tool_name(tool)}` was called again with the same arguments."

    def reply_format(self, cause: str) -> str:
        """The reply was not of the form that the harness asks for."""
        return f"Reply with JSON only, in the form that was asked for: {cause}."


def _quote(text: str) -> str:
    return text if len(text) <= QUOTED_CHARS else text[:QUOTED_CHARS] + "..."
