"""Peers: the hook protocols of Claude Code and Gemini CLI, spoken to programs that were written for them.

| event      | claude           | gemini      | fields on standard input beside the common ones |
|------------|------------------|-------------|--------------------------------------------------|
| input      | UserPromptSubmit | BeforeAgent | prompt |
| pre_model  | BeforeModel      | BeforeModel | claude: prompt; gemini: llm_request |
| post_model | AfterModel       | AfterModel  | claude: prompt, last_assistant_message; gemini: llm_request, llm_response |
| pre_tool   | PreToolUse       | BeforeTool  | tool_name, tool_input |
| post_tool  | PostToolUse      | AfterTool   | tool_name, tool_input, tool_response |
| stop       | Stop             | AfterAgent  | stop_hook_active; claude: last_assistant_message; gemini: prompt, prompt_response |
| end        | SessionEnd       | SessionEnd  | reason |

Common: session_id, transcript_path (empty: there is none), cwd, hook_event_name; claude: permission_mode; gemini:
timestamp. Claude Code itself has no model events; its programs get them under Gemini's names. Tools have our names.

Exit 2 fails with standard error as the reason, another code but 0 passes with a warning. At exit 0 the answer is
standard output, a JSON object:

- `decision` block | deny, or `hookSpecificOutput.permissionDecision` deny, fails with `reason` or
  `permissionDecisionReason`; `ask` fails too, since there is nobody to ask; approve | allow passes;
- `continue: false` ends the loop (`stopReason`);
- claude `updatedInput` replaces the arguments, gemini `tool_input` is merged into them; claude `updatedToolOutput` and
  `updatedMCPToolOutput` and gemini `tool_output` replace the result; gemini `llm_response` replaces the output;
- `additionalContext` is appended to the message at input and to the result at post_tool (an object gets the key
  `additional_context`); elsewhere there is no place for it: a warning;
- `systemMessage`, and the keys of gemini that change how the model is called, are warnings.

Other text on standard output is context at claude's UserPromptSubmit and otherwise passed over (gemini: a warning).
A `{` that does not begin a JSON object, and a decision that is none of the above, are HookErrors.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson

from harnessctl.errors import HookError
from harnessctl.manifests.events import WRITABLE
from harnessctl.runtime.checks.check import PASSED, Moment, Outcome, as_text

EVENTS = {
    "claude": {
        "input": "UserPromptSubmit",
        "pre_model": "BeforeModel",
        "post_model": "AfterModel",
        "pre_tool": "PreToolUse",
        "post_tool": "PostToolUse",
        "stop": "Stop",
        "end": "SessionEnd",
    },
    "gemini": {
        "input": "BeforeAgent",
        "pre_model": "BeforeModel",
        "post_model": "AfterModel",
        "pre_tool": "BeforeTool",
        "post_tool": "AfterTool",
        "stop": "AfterAgent",
        "end": "SessionEnd",
    },
}
#: Variables that name the folder of the hook's files, as those agents set them.
FOLDER_VARIABLES = {
    "claude": ("CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT"),
    "gemini": ("GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
}
#: Keys of gemini's hookSpecificOutput that ask for what no hook of ours may do.
_NOT_CARRIED = ("llm_request", "clearContext", "toolConfig")
_FAILS = {"block", "deny", "ask"}
_PASSES = {"approve", "allow", "", None}


def claude_document(moment: Moment, hook: str, folder: str) -> dict[str, Any]:
    """Standard input of a Claude Code hook."""
    scene, event = moment.scene, moment.event
    document = _common(moment, "claude", folder) | {"permission_mode": "default"}
    if event in ("input", "pre_model", "post_model"):
        document["prompt"] = scene.message
    if event == "post_model":
        document["last_assistant_message"] = scene.output
    if event == "stop":
        document |= {"stop_hook_active": bool(scene.retries.get(hook)), "last_assistant_message": scene.reply}
    if event == "end":
        document["reason"] = "other"
    return document


def gemini_document(moment: Moment, hook: str, folder: str) -> dict[str, Any]:
    """Standard input of a Gemini CLI hook."""
    scene, event = moment.scene, moment.event
    document = _common(moment, "gemini", folder) | {"timestamp": datetime.now(UTC).isoformat()}
    if event in ("input", "stop"):
        document["prompt"] = scene.message
    if event == "post_tool":
        text = as_text(scene.result)
        failed = {} if scene.status == "ok" else {"error": {"type": scene.status, "message": text}}
        document["tool_response"] = {"llmContent": text, "returnDisplay": text, **failed}
    nothing: dict[str, Any] = {}
    if event in ("pre_model", "post_model"):
        document["llm_request"] = {"model": "", "messages": _messages(scene.messages), "config": nothing}
    if event == "post_model":
        candidate = {"content": {"role": "model", "parts": [scene.output]}, "finishReason": "STOP"}
        document["llm_response"] = {"candidates": [candidate], "usageMetadata": nothing}
    if event == "stop":
        document |= {"prompt_response": scene.reply, "stop_hook_active": bool(scene.retries.get(hook))}
    if event == "end":
        document["reason"] = "exit"
    return document


DOCUMENTS = {"claude": claude_document, "gemini": gemini_document}


def _common(moment: Moment, protocol: str, folder: str) -> dict[str, Any]:
    scene = moment.scene
    document: dict[str, Any] = {
        "session_id": scene.request.session or scene.request.id,
        "transcript_path": "",
        "cwd": folder,
        "hook_event_name": EVENTS[protocol][moment.event],
    }
    if moment.event in ("pre_tool", "post_tool"):
        document |= {"tool_name": scene.tool.name if scene.tool else "", "tool_input": scene.args}
    if moment.event == "post_tool":
        document["tool_response"] = scene.result
    return document


def _messages(messages: list[dict[str, Any]]) -> list[dict[str, str]]:
    roles = {"assistant": "model", "tool": "user"}
    return [
        {"role": roles.get(message["role"], message["role"]), "content": as_text(message.get("content"))}
        for message in messages
    ]


def read_answer(stdout: str, protocol: str, moment: Moment) -> Outcome:
    """What a program's standard output at exit 0 means; HookError when it means nothing."""
    text = stdout.strip()
    if not text:
        return PASSED
    if not text.startswith("{"):
        if protocol == "claude":
            return _changed(moment, msgspec.UNSET, text, []) if moment.event == "input" else PASSED
        return Outcome(ok=True, warning=f"standard output is not JSON: {text[:80]!r}")
    try:
        answer = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise HookError(f"standard output is not JSON: {error}: {text[:80]!r}") from error
    specific = answer.get("hookSpecificOutput") or {}
    if not isinstance(specific, dict):
        raise HookError(f"hookSpecificOutput is not an object: {str(specific)[:80]!r}")
    if answer.get("continue") is False:
        return Outcome(ok=False, stop=True, reason=_text(answer, "stopReason") or _text(answer, "reason"))
    reason = _decision(answer, specific)
    warnings = [f"{key} is not carried out" for key in _NOT_CARRIED if key in specific]
    if message := _text(answer, "systemMessage"):
        warnings.append(message)
    value = _replacement(specific, protocol, moment)
    if reason is not None:
        return Outcome(ok=False, reason=reason, told=bool(reason), value=value)
    return _changed(moment, value, _text(specific, "additionalContext"), warnings)


def _decision(answer: dict[str, Any], specific: dict[str, Any]) -> str | None:
    """The reason of a decision against, or None."""
    for source, key, why in (
        (specific, "permissionDecision", "permissionDecisionReason"),
        (answer, "decision", "reason"),
    ):
        decision = source.get(key)
        if isinstance(decision, str) and decision in _FAILS:
            return _text(source, why) or ("there is nobody to ask for permission" if decision == "ask" else "")
        if not (decision is None or isinstance(decision, str)) or decision not in _PASSES:
            raise HookError(
                f"{key} {str(decision)[:80]!r} is not a decision", hint="allowed: block, deny, ask, allow, approve"
            )
    return None


def _replacement(specific: dict[str, Any], protocol: str, moment: Moment) -> Any:
    """What the event's target is to become, or UNSET."""
    if moment.event == "pre_tool":
        key = "updatedInput" if protocol == "claude" else "tool_input"
        if key in specific:
            given = specific[key]
            if not isinstance(given, dict):
                raise HookError(f"{key} is not an object: {str(given)[:80]!r}")
            return given if protocol == "claude" else moment.scene.args | given
    if moment.event == "post_tool":
        for key in ("updatedToolOutput", "updatedMCPToolOutput") if protocol == "claude" else ("tool_output",):
            if key in specific:
                return specific[key]
    if moment.event == "post_model" and protocol == "gemini" and "llm_response" in specific:
        try:
            parts = specific["llm_response"]["candidates"][0]["content"]["parts"]
            return "".join(part if isinstance(part, str) else part["text"] for part in parts)
        except (LookupError, TypeError) as error:
            raise HookError("llm_response has no candidates[0].content.parts of text") from error
    return msgspec.UNSET


def _changed(moment: Moment, value: Any, context: str, warnings: list[str]) -> Outcome:
    """A pass that may replace the target and add context to it."""
    if context:
        target = WRITABLE.get(moment.event)
        current = getattr(moment.scene, target) if target and value is msgspec.UNSET else value
        if moment.event == "input" or (moment.event == "post_tool" and isinstance(current, str)):
            value = f"{current}\n\n{context}"
        elif moment.event == "post_tool":
            value = {**(current if isinstance(current, dict) else {"result": current}), "additional_context": context}
        else:
            warnings = [*warnings, f"additionalContext has no place at {moment.event}"]
    if value is msgspec.UNSET and not warnings:
        return PASSED
    return Outcome(ok=True, value=value, warning="; ".join(warnings))


def _text(source: dict[str, Any], key: str) -> str:
    value = source.get(key)
    return value if isinstance(value, str) else ""
