"""Python tools: how they are called, what they may return and raise, and that one that hangs holds nobody up."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from harnessctl.bundle.state import Tool
from harnessctl.runtime.protocols import ToolContext


@pytest.mark.parametrize(
    "source",
    [
        "def tool(sku): return {'sku': sku}",
        "async def tool(sku): return {'sku': sku}",
        "def tool(sku): return {'sku': sku}\ntool.inline = True",
        "def tool(**arguments): return arguments",
        "class Call:\n    async def __call__(self, sku): return {'sku': sku}\ntool = Call()",
        "import functools\nasync def get(sku, more): return {'sku': sku}\ntool = functools.partial(get, more=1)",
        "async def get(sku): return {'sku': sku}\ndef tool(sku): return get(sku)",
        "import asyncio\nasync def tool(sku):\n    await asyncio.sleep(0)\n    return {'sku': sku}",
    ],
)
def test_arguments_are_keywords_however_the_function_is_written(bench: Any, source: str) -> None:
    outcome = bench.python(source, {"sku": "a"}, parameters={"properties": {"sku": {}}, "required": ["sku"]})
    assert (outcome.status, outcome.result, outcome.error, outcome.attempts) == ("ok", {"sku": "a"}, None, 1)


@pytest.mark.parametrize("define", ["def", "async def"])
def test_ctx_is_given_to_a_function_that_declares_it(bench: Any, define: str) -> None:
    ctx = bench.ctx()
    outcome = bench.python(f"{define} tool(ctx):\n    ctx.session['n'] = 1\n    return 'ok'", ctx=ctx)
    assert (outcome.result, ctx.session) == ("ok", {"n": 1})


@pytest.mark.parametrize("define", ["def", "async def", "inline"])
@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        ("KeyError('x')", "error", "the tool failed: KeyError: 'x' (m, line 2)"),
        ("ValueError()", "error", "the tool failed: ValueError (m, line 2)"),
        ("SystemExit(2)", "error", "the tool failed: SystemExit: 2 (m, line 2)"),
        ("StopIteration(2)", "error", "StopIteration"),
        ("KeyboardInterrupt()", "error", "KeyboardInterrupt"),
        ("GeneratorExit()", "error", "GeneratorExit"),
        ("type('Odd', (BaseException,), {})('x')", "error", "the tool failed: Odd: x (m, line 2)"),
        ("type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()", "error", "the tool failed: Mute (m, line 2)"),
        ("__import__('harnessctl.errors', fromlist=['x']).ToolError(42)", "error", "42"),
        ("__import__('harnessctl.errors', fromlist=['x']).ToolError('No.', hint='ask')", "error", "No. (ask)"),
        ("__import__('asyncio').CancelledError()", "error", "the tool was cancelled from within"),
        ("PermissionError('log in first')", "denied", "not permitted: log in first"),
        ("TimeoutError('the shop is slow')", "timeout", "the shop is slow"),
        ("TimeoutError()", "timeout", "the tool ran out of time"),
        ("__import__('harnessctl.errors', fromlist=['x']).ToolError('No product a.')", "error", "No product a."),
    ],
)
def test_what_a_function_raises_is_a_status_and_a_sentence(
    bench: Any, define: str, raised: str, status: str, said: str
) -> None:
    inline = "\ntool.inline = True" if define == "inline" else ""
    outcome = bench.python(f"{define.replace('inline', 'def')} tool():\n    raise {raised}{inline}")
    assert (outcome.status, outcome.result) == (status, None)
    assert said in outcome.error


def test_what_a_function_does_to_its_arguments_stays_with_it(bench: Any) -> None:
    args = {"skus": ["a"], "opts": {"n": 1}}
    outcome = bench.python(
        "def tool(skus, opts):\n    skus.append('b')\n    opts.clear()\n    return skus",
        args,
        parameters={"properties": {"skus": {}, "opts": {}}, "required": ["skus", "opts"]},
    )
    assert outcome.result == ["a", "b"]
    assert args == {"skus": ["a"], "opts": {"n": 1}}


def test_calls_that_hang_hold_up_no_other_tool(bench: Any) -> None:
    release = threading.Event()
    code = {"m": "import threading\ndef hang(wait): wait.wait()\ndef quick(): return 1"}
    hang = bench.tool("hang", run={"python": "m:hang"}, timeout_s=0.05)
    quick = bench.tool("quick", run={"python": "m:quick"})
    toolset = bench.make(hang, quick, code=code)

    async def many() -> tuple[Any, Any]:
        hung = await asyncio.gather(*(toolset.call(hang, {"wait": release}, bench.ctx(), 5) for _ in range(40)))
        return hung, await toolset.call(quick, {}, bench.ctx(), 5)

    try:
        hung, done = asyncio.run(many())
    finally:
        release.set()
    assert {outcome.status for outcome in hung} == {"timeout"}
    assert (done.status, done.result) == ("ok", 1)


def test_a_long_error_is_cut(bench: Any) -> None:
    assert len(bench.python("def tool(): raise ValueError('x' * 10_000_000)").error) <= 1000


def test_arguments_that_the_function_does_not_take_are_named_as_the_model_knows_them(bench: Any) -> None:
    tool = bench.tool(run={"python": "m:tool"}, parameters={"properties": {"sku": {}, "shop": {}}, "required": ["sku"]})
    toolset = bench.make(tool, code={"m": "def tool(sku, place): return sku"}, renames={"tool": {"sku": "item"}})
    assert toolset.warnings == [
        "tool `tool`: the function takes no argument `shop`; "
        "the function needs `place`, which the parameters do not require"
    ]
    assert bench.run(toolset, tool, {"sku": "a"}).error == "the tool does not take these arguments: `item`"


def test_a_type_error_of_the_functions_own_is_its_own(bench: Any) -> None:
    assert bench.python("def tool(): return 1 + 'a'").error.endswith("(m, line 1)")


def test_code_that_does_not_load_is_a_warning_and_an_error_at_the_call(bench: Any) -> None:
    good, bad = bench.tool("good", run={"python": "m:good"}), bench.tool("bad", run={"python": "m:bda"})
    toolset = bench.make(good, bad, code={"m": "def good(): return 1\ndef bad(): return 1"})
    said = "`m:bda` cannot be loaded: module `m` has no function `bda`"
    assert toolset.warnings == [f"tool `bad`: {said} (it has bad)"]

    async def both() -> list[Any]:
        await toolset.open()
        outcomes = [await toolset.call(tool, {}, bench.ctx(), 5.0) for tool in (good, bad)]
        await toolset.aclose()
        return outcomes

    first, second = asyncio.run(both())
    assert (first.status, first.result) == ("ok", 1)
    assert (second.status, second.error) == ("error", said)


def test_a_function_that_hangs_is_given_up_and_holds_nobody_up(bench: Any) -> None:
    release = threading.Event()
    tools = [bench.tool(name, run={"python": f"m:{name}"}) for name in ("hang", "quick")]
    source = "def hang(ctx): ctx.context['release'].wait()\ndef quick(): return 1"
    toolset = bench.make(*tools, code={"m": source})

    async def both() -> list[Any]:
        ctx = bench.ctx()
        ctx.context["release"] = release
        hung = asyncio.create_task(toolset.call(tools[0], {}, ctx, 0.05))
        outcomes = [await toolset.call(tools[1], {}, ctx, 5.0), await hung]
        await toolset.aclose()
        return outcomes

    quick, hung = asyncio.run(both())
    release.set()
    assert quick.result == 1
    assert (hung.status, hung.error) == ("timeout", "no answer within 0.05 s")


@pytest.mark.parametrize(
    "body",
    [
        "await asyncio.Event().wait()",
        "while True:\n        try: await asyncio.Event().wait()\n        except asyncio.CancelledError: pass",
    ],
)
def test_a_coroutine_that_hangs_is_given_up_even_if_it_swallows_its_cancellation(
    bench: Any, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setattr("harnessctl.runtime.tools.timing.GRACE_S", 0.01)
    outcome = bench.python(f"import asyncio\nasync def tool():\n    {body}", timeout_s=0.02)
    assert (outcome.status, outcome.attempts) == ("timeout", 1)


def test_the_deadline_of_the_request_ends_every_try(bench: Any) -> None:
    hang = "import asyncio\nasync def tool(): await asyncio.Event().wait()"
    assert bench.python(hang, timeout_s=60.0, ctx=bench.ctx(seconds=0.02)).status == "timeout"
    late = bench.python("def tool(): return 1", ctx=bench.ctx(seconds=-1))
    assert (late.status, late.attempts, late.error) == ("timeout", 0, "no time was left for the call")


def test_the_time_limit_of_the_tool_goes_before_the_harness_limit(bench: Any) -> None:
    tool = bench.tool(run={"python": "m:tool"}, timeout_s=0.02)
    toolset = bench.make(tool, code={"m": "import asyncio\nasync def tool(): await asyncio.Event().wait()"})
    assert bench.run(toolset, tool, timeout_s=60.0).error == "no answer within 0.02 s"


def test_a_cancelled_request_cancels_its_call(bench: Any) -> None:
    tool = bench.tool(run={"python": "m:tool"})
    source = (
        "import asyncio\nasync def tool(ctx):\n    ctx.context['begun'].set()\n"
        "    try: await asyncio.Event().wait()\n    finally: ctx.session['tidied'] = True"
    )
    toolset = bench.make(tool, code={"m": source})

    async def cancelled() -> ToolContext:
        ctx = bench.ctx()
        ctx.context["begun"] = asyncio.Event()
        call = asyncio.create_task(toolset.call(tool, {}, ctx, 5.0))
        await ctx.context["begun"].wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await toolset.aclose()
        return ctx

    assert asyncio.run(cancelled()).session == {"tidied": True}


FAILS_TWICE = (
    "def tool(ctx):\n    ctx.session['n'] = ctx.session.get('n', 0) + 1\n"
    "    if ctx.session['n'] < 3: raise {raised}\n    return ctx.session['n']"
)


@pytest.mark.parametrize("raised", ["OSError('down')", "TimeoutError()"])
def test_errors_and_timeouts_are_tried_again_with_back_off(bench: Any, raised: str) -> None:
    outcome = bench.python(FAILS_TWICE.format(raised=raised), retries=3)
    assert (outcome.status, outcome.result, outcome.attempts) == ("ok", 3, 3)
    assert bench.slept == [0.1, 0.2]


@pytest.mark.parametrize(
    ("raised", "fields"),
    [("OSError()", {"retries": 3, "effect": "write"}), ("PermissionError()", {"retries": 3}), ("OSError()", {})],
)
def test_a_write_and_a_refusal_are_tried_once(bench: Any, raised: str, fields: dict[str, Any]) -> None:
    outcome = bench.python(FAILS_TWICE.format(raised=raised), **fields)
    assert (outcome.status in ("error", "denied"), outcome.attempts, bench.slept) == (True, 1, [])


def test_no_try_begins_after_the_deadline(bench: Any) -> None:
    outcome = bench.python(FAILS_TWICE.format(raised="OSError()"), retries=3, ctx=bench.ctx(seconds=0.05))
    assert outcome.attempts == 1


def test_calls_run_side_by_side(bench: Any) -> None:
    tool = bench.tool(run={"python": "m:tool"})
    toolset = bench.make(
        tool, code={"m": "async def tool(n, ctx):\n    await ctx.context['gate'].wait()\n    return n"}
    )

    async def ten() -> list[Any]:
        ctx = bench.ctx()
        ctx.context["gate"] = asyncio.Barrier(10)
        outcomes = await asyncio.gather(*(toolset.call(tool, {"n": n}, ctx, 5.0) for n in range(10)))
        await toolset.aclose()
        return [outcome.result for outcome in outcomes]

    assert asyncio.run(ten()) == list(range(10))


def test_simulation_uses_the_replica_where_there_is_one(bench: Any) -> None:
    source = "def real(): return 'real'\ndef fake(): return 'fake'"
    both = bench.tool("both", run={"python": "m:real"}, simulate={"python": "m:fake"})
    only = bench.tool("only", run={"python": "m:real"})
    assert bench.run(bench.make(both, only, code={"m": source}, simulate=True), both).result == "fake"
    assert bench.run(bench.make(both, only, code={"m": source}, simulate=True), only).result == "real"
    assert bench.run(bench.make(both, only, code={"m": source}), both).result == "real"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "the tool has nothing to run"),
        ({"simulate": {"python": "m:tool"}}, "the tool has only a simulated replica, nothing to run"),
        ({"run": {"mcp": {"server": "x"}}}, "there is no MCP server `x`"),
    ],
)
def test_a_tool_without_anything_to_run_is_a_warning_and_an_error(
    bench: Any, fields: dict[str, Any], said: str
) -> None:
    tool = bench.tool(**fields)
    toolset = bench.make(tool, code={"m": "def tool(): return 1"})
    assert toolset.warnings == [f"tool `tool`: {said}"]
    outcome = bench.run(toolset, tool)
    assert (outcome.status, outcome.error) == ("error", said)


def test_a_tool_that_only_ends_the_loop_needs_no_code(bench: Any) -> None:
    tool = bench.tool(final={"reply": "No."})
    toolset = bench.make(tool)
    assert toolset.warnings == []
    assert bench.run(toolset, tool, {"why": "x"}).status == "ok"


def test_a_tool_that_the_bundle_does_not_have_and_closed_tools_are_errors(bench: Any) -> None:
    tool = bench.tool(run={"python": "m:tool"})
    toolset = bench.make(tool, code={"m": "def tool(): return 1"})

    async def calls() -> list[str | None]:
        other = Tool(name="other", description=["x"], group="x")
        first = await toolset.call(other, {}, bench.ctx(), 1.0)
        await toolset.aclose()
        await toolset.aclose()
        return [first.error, (await toolset.call(tool, {}, bench.ctx(), 1.0)).error]

    assert asyncio.run(calls()) == ["there is no such tool", "the tools are closed"]
