"""Each thing that can be wrong between and within sources: place, code, what was found, what is allowed, the hint."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Faults = Callable[..., list[str]]
SKILL = "skills/item-qa/SKILL.md"
TOOLS = "manifests/tools/catalog.yaml"
HOOKS = "manifests/hooks/guards.yaml"
PROMPT = "manifests/prompts/main.yaml"
HARNESS = "manifests/harness.yaml"
WORLD = "manifests/worlds/stall.yaml"
EXAMPLES = "skills/item-qa/examples.yaml"


def are(found: list[str], *expected: str) -> bool:
    """Each expected text is in a fault, and there are no other faults than those; fails with what is amiss."""
    for text in expected:
        assert any(text in fault for fault in found), (text, found)
    assert len(found) == len(expected), found
    return True


REFERENCES = {
    "bare": ("Offer one more.", "First get_product, then offer.", "skills/upsell/SKILL.md:6:7: error[ref-bare]: a bare mention of the tool "
             "get_product would be missed by a renaming; got get_product; allowed a code span that is exactly the name: `get_product`\n"
             "    hint: write `get_product`; what goes with it stands outside the code span"),
    "longer span": ("Offer one more.", "Call `get_product(link_id=3)`.", "SKILL.md:6:7: error[ref-bare]"),
    "fence": ("Offer one more.", "```\nget_product\n```", "SKILL.md:7:1: error[ref-bare]"),
    "skill": ("Offer one more.", "As item-qa says.", "SKILL.md:6:4: error[ref-bare]: a bare mention of the skill item-qa"),
    "next to Chinese": ("Offer one more.", "调用get_product查询", "SKILL.md:6:3: error[ref-bare]"),
    "unknown tool": ("Offer one more.", "Call `tool:get_prodct`.", "SKILL.md:6:6: error[ref-unknown]: there is no tool of this name; "
                     "got get_prodct; allowed add_to_cart, get_product, load_skill, refuse, search_faq\n    hint: did you mean `get_product`?"),
    "unknown skill": ("Offer one more.", "Load `skill:item`.", "error[ref-unknown]: there is no skill of this name"),
    "unknown rule": ("Offer one more.", "## Rules\n- a {#one}\n- see `#two`", "SKILL.md:8:7: error[ref-unknown]: there is no rule of this id "
                     "here; got #two; allowed one"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), REFERENCES.values(), ids=REFERENCES.keys())
def test_references(faults: Faults, old: str, new: str, expected: str) -> None:
    assert are(faults({"skills/upsell/SKILL.md": (old, new)}), expected)


def test_words_that_only_resemble_names_are_words(faults: Faults) -> None:
    text = "A get_product_info of item-qa-like things, refuse, `refuse it`, `#3`, `#W12`, `#`, non-item, GET_PRODUCT."
    assert faults({"skills/upsell/SKILL.md": ("Offer one more.", text)}) == []


def test_a_name_that_is_a_tool_and_a_skill(faults: Faults) -> None:
    tool = "  - name: upsell\n    description: Shows `upsell`.\n    final: {}\n  - name: refuse\n"
    assert are(
        faults({TOOLS: ("  - name: refuse\n", tool)}),
        "catalog.yaml:28:24: error[ref-ambiguous]: `upsell` is a tool and a skill; allowed `tool:upsell` or `skill:upsell`",
    )


def test_names_of_other_harnesses_are_not_mentioned(faults: Faults) -> None:
    assert are(
        faults({HARNESS: ("[item-qa, upsell]", "[upsell]"), HOOKS: ("    enforces: [item-qa#lookup]\n", ""),
                "skills/upsell/SKILL.md": ("kind: strategy", "kind: reply")}),
        "catalog.yaml:5:56: error[ref-not-included]: `item-qa` is a skill of skills/item-qa/SKILL.md; got item-qa; "
        "allowed names that harness shop includes\n    hint: include it in the harness, or do not mention it",
        "main.yaml:15:56: error[ref-unknown]: there is no skill of this name; got item-qa; allowed upsell\n"
        "    hint: it is a skill of skills/item-qa/SKILL.md, which harness shop does not include",
    )  # fmt: skip


RULES = {
    "two numbers": ("at most 80 characters", "at most 80 characters in 2 lines", "SKILL.md:11:3: error[limit-digits]: a text with "
                    "limit=reply_max_chars has exactly one number, which the limit governs; got 80, 2; allowed one number"),
    "no number": ("at most 80 characters", "few characters", "error[limit-digits]"),
    "unknown limit": ("limit=reply_max_chars", "limit=reply_max_char", "SKILL.md:11:49: error[limit-unknown]: there is no limit of this "
                      "name; got reply_max_char; allowed deadline_s, max_message_chars, max_parallel_tools, max_repeats, max_rounds, "
                      "max_turns, model_retries, reply_max_chars, tool_result_max_chars, tool_timeout_s\n    hint: did you mean"),
    "unknown requires": ("requires=lookup", "requires=lookups", "SKILL.md:12:58: error[rule-unknown]: `requires` names a rule that is not "
                         "here; got lookups; allowed ask, lookup, short\n    hint: did you mean `lookup`?"),
    "requires cycle": ("{#lookup .protected}", "{#lookup requires=ask}", "error[rule-cycle]: rules that are joined by `requires` go round "
                       "in a circle; got ask -> lookup -> ask"),
    "after cycle": ("{#lookup .protected}", "{#lookup after=lookup}", "error[rule-cycle]: rules that are joined by `after`"),
    "after above": ("{#lookup .protected}", "{#lookup after=ask}", "error[rule-order]: #lookup stands before the rule that it is said to "
                    "stand after"),
    "differs": ("at most 80 characters", "at most 90 characters", "warning[limit-differs]: the text says 90 and the limit "
                "`reply_max_chars` another number; got 90; allowed 80"),
    "allowed tools": ("get_product search_faq", "get_product, search_faq", "SKILL.md:5:16: error[tool-unknown]: allowed-tools names a tool "
                      "that there is not; got get_product,"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), RULES.values(), ids=RULES.keys())
def test_rules(faults: Faults, old: str, new: str, expected: str) -> None:
    assert are(faults({SKILL: (old, new)}), expected)


def test_skill_headers(faults: Faults) -> None:
    assert are(
        faults({SKILL: ("name: item-qa\n", "name: item_qa\n")}),
        'SKILL.md:2:7: error[schema-pattern]: `name` is not of the form that is allowed; got "item_qa"',
        "SKILL.md:2:7: error[skill-name]: the skill's name is not its folder's; got item_qa; allowed item-qa",
    )
    assert are(faults({SKILL: ("kind: reply", "kind: answer")}), "SKILL.md:4:36: error[skill-kind]")
    assert are(faults({SKILL: ('"1.2.0"', '"1.2"')}), "SKILL.md:4:21: error[skill-version]")
    assert are(faults({"skills/upsell/SKILL.md": ("Offer one more.\n", "")}), "SKILL.md: error[skill-empty]")
    assert are(faults({"skills/upsell/SKILL.md": ("Offer one more.\n", "x\n" * 501)}), "warning[skill-long]")


EXAMPLE_FAULTS = {
    "tool": ("tool: get_product", "tool: get_products", "examples.yaml:7:24: error[tool-unknown]"),
    "arguments": ("link_id: 3", "link_id: three", "error[example-arguments]: the arguments do not fit the tool `get_product`; got \"three\""),
    "calls of a user": ('role: user, content', "role: user, calls: [{tool: refuse}], content", "examples.yaml:5:22: error[example-form]"),
    "nothing said": (', content: "get_product of 3?"', "", "examples.yaml:5:9: error[example-form]: a message says nothing"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), EXAMPLE_FAULTS.values(), ids=EXAMPLE_FAULTS.keys())
def test_examples(faults: Faults, old: str, new: str, expected: str) -> None:
    assert are(faults({EXAMPLES: (old, new)}), expected)


TOOL_FAULTS = {
    "two of one name": ("name: add_to_cart", "name: get_product", "catalog.yaml:13:11: error[tool-duplicate]: two tools are called "
                        "`get_product`; got get_product; allowed one of each name; the other is at manifests/tools/catalog.yaml:4:11"),
    "schema": ("minimum: 1", "minimum: one", "catalog.yaml:10:43: error[json-schema]: not a JSON Schema; got \"one\" is not of type"),
    "schema type": ("link_id: {type: integer, minimum: 1", "link_id: {type: int, minimum: 1", "catalog.yaml:10:25: error[json-schema]"),
    "reference": ("minimum: 1", "$ref: '#/$defs/link'", "catalog.yaml:10:40: error[json-schema]: a reference leads to nothing; got #/$defs/link"),
    "reference out": ("minimum: 1", "$ref: 'https://x.example/s'", "error[json-schema]: a reference leads out of the schema"),
    "draft": ("      type: object\n      properties:\n", "      $schema: http://nowhere/\n      type: object\n      properties:\n",
              "catalog.yaml:8:16: error[json-schema]: an unknown draft of JSON Schema"),
    "not an object": ("      type: object\n      properties:\n", "      type: array\n      properties:\n",
                      "catalog.yaml:8:13: error[tool-parameters]"),
    "required": ("required: [link_id]\n    run", "required: [link]\n    run", "catalog.yaml:11:18: error[tool-parameters]: `required` names a "
                 "parameter that is not declared; got link; allowed link_id\n    hint: did you mean `link_id`?"),
    "nothing to run": ("    run: {builtin: search_faq}\n", "", "catalog.yaml:24:5: error[tool-run]: the tool `search_faq` has nothing"),
    "two ways": ("{builtin: search_faq}", "{builtin: search_faq, python: 'json:dumps'}", "error[tool-run]: a call is carried out in exactly one way"),
    "server": ("{builtin: search_faq}", "{mcp: {server: campaigns}}", "catalog.yaml:26:25: error[server-unknown]: there is no MCP server of "
               "this name; got campaigns; allowed nothing: there are none"),
    "environment in url": ("shop.example/cart", "shop.example/${KEY}", "catalog.yaml:20:14: error[http-environment]"),
    "placeholder": ("cart/{link_id}", "cart/{cart_id}", "error[http-placeholder]: a placeholder is not a parameter of the tool; got {cart_id}; "
                    "allowed count, link_id"),
    "placeholder in body": ('"{count}"', '"{counts}"', "catalog.yaml:23:23: error[http-placeholder]"),
    "host": ("https://shop.example/cart/{link_id}", "https://{link_id}.example/", "error[http-host]: the host of a URL is fixed"),
    "pick": ("method: POST", "method: POST\n        pick: answer", "error[http-pick]"),
    "secret": ("Bearer ${SHOP_TOKEN}", "Bearer abcdef", "catalog.yaml:22:34: error[secret-literal]: the value of `Authorization` looks like a "
               "secret written out; got a literal value; allowed ${NAME}: taken from the environment\n    hint: write ${AUTHORIZATION}"),
    "environment name": ("${SHOP_TOKEN}", "${SHOP TOKEN}", "error[http-environment]: not the name of an environment variable"),
    "final": ("Sorry: {why}", "Sorry: {reason}", "catalog.yaml:31:20: error[tool-final]"),
    "silent final": ('{reply: "Sorry: {why}"}', '{reply: "Sorry: {why}", route: silent}', "warning[tool-final]: a silent ending has a reply"),
    "retried write": ("    effect: write\n", "    effect: write\n    retries: 2\n", "warning[tool-retry-write]"),
    "no module": ("shelf:get_product", "shelves:get_product", 'catalog.yaml:12:19: error[code-missing]: there is no module `shelves`; got '
                  "shelves:get_product; allowed manifests/tools/shelves.py and shelves.py, or an installed package\n    hint: did you mean `shelf`?"),
    "no function": ("shelf:get_product", "shelf:get_products", "catalog.yaml:12:19: error[code-function]: the module has no function "
                    "`get_products`; got shelf:get_products; allowed get_product (manifests/tools/shelf.py)\n    hint: did you mean `get_product`?"),
    "installed": ("shelf:get_product", "json:load_all", "error[code-function]: the module has no function `load_all`"),
    "no version": ("    tags: [lookup]\n", "    version: 1.0\n", 'catalog.yaml:6:14: error[schema-type]: `version` has a value of another type; got 1.0'),
    "kind": ("kind: Tools", "kind: Hooks", "catalog.yaml:2:7: error[manifest-kind]: a manifest of kind Hooks in the place of one of kind Tools"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), TOOL_FAULTS.values(), ids=TOOL_FAULTS.keys())
def test_tools(faults: Faults, old: str, new: str, expected: str) -> None:
    found = faults({TOOLS: (old, new)})
    if "kind: Hooks" in new:
        found = found[:1]
    found = [fault for fault in found if "example-arguments" not in fault]
    assert are(found, expected)


CODE_FAULTS = {
    "syntax": ("return {", "return {{", "manifests/tools/shelf.py:5:12: error[code-syntax]: the module is not Python:"),
    "parameter": ("(link_id, ctx)", "(link, ctx)", "error[code-signature]: the function `get_product` does not take the parameter `link_id`"),
    "needed": ("(link_id, ctx)", "(link_id, size, ctx)", "error[code-signature]: the function `get_product` needs `size`, which no call must have"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CODE_FAULTS.values(), ids=CODE_FAULTS.keys())
def test_code(faults: Faults, old: str, new: str, expected: str) -> None:
    found = [f for f in faults({"manifests/tools/shelf.py": (old, new)}) if "needs `link`" not in f]
    assert are(found, expected)


HOOK_FAULTS = {
    "no otherwise": ('    otherwise: {action: block, message: {text: "Call `get_product` first."}}\n', "",
                     "guards.yaml:4:5: error[hook-form]: the hook `look-up-first` does nothing, or more than one thing; got check; allowed check "
                     "with otherwise, then, or observe\n    hint: say under `otherwise` what happens when the check fails"),
    "check and then": ("    order: -1\n", "    then: {action: warn}\n", "error[hook-form]"),
    "two ids": ("id: short-reply", "id: look-up-first", "guards.yaml:10:9: error[hook-duplicate]"),
    "two checks": ("{max_chars: {limit: reply_max_chars}}", "{max_chars: 80, expr: 'true'}", "error[hook-check]: a check is exactly one"),
    "tool": ("tools: [get_product]", "tools: [get_prodcut]", "guards.yaml:7:35: error[tool-unknown]: there is no tool of this name; got "
             "get_prodcut; allowed add_to_cart, get_product, load_skill, refuse, search_faq\n    hint: did you mean `get_product`?"),
    "tag": ("tools: [get_product]", "tags: [looup]", "error[tag-unknown]: there is no tag of this name; got looup; allowed lookup\n    hint: did "
            "you mean `lookup`?"),
    "group": ("effects: [write]", "groups: [comerce]", "error[group-unknown]"),
    "argument": ("same_args: [link_id]", "same_args: [link]", "error[parameter-unknown]"),
    "when at stop": ("    order: -1\n", "    when: {tools: [refuse]}\n", "guards.yaml:12:12: error[hook-when]: `tools` looks at a call, and there is "
                     "none at stop; got stop; allowed pre_tool, post_tool"),
    "result at pre_tool": ("effects: [write]", "result: [ok]", "error[hook-when]: `result` looks at a result"),
    "target": ("{max_chars: {limit: reply_max_chars}}", "{regex: {must: a, target: args}}", "error[hook-target]: there is no args at stop; got args; "
               "allowed reply, message, output"),
    "same_args at stop": ("{max_chars: {limit: reply_max_chars}}", "{tool_called: {tools: [refuse], same_args: true}}", "error[hook-target]: same_args"),
    "limit": ("limit: reply_max_chars", "limit: reply_max", "error[limit-unknown]"),
    "value and limit": ("{limit: reply_max_chars}", "{limit: reply_max_chars, value: 3}", "error[hook-check]: max_chars is a number or a limit"),
    "pattern": ("{max_chars: {limit: reply_max_chars}}", "{regex: {must: '(a'}}", "error[hook-regex]: the pattern does not compile; got (a: missing )"),
    "no pattern": ("{max_chars: {limit: reply_max_chars}}", "{regex: {}}", "error[hook-check]: regex looks for nothing"),
    "schema": ("{max_chars: {limit: reply_max_chars}}", "{json_schema: {schema: {type: x}}}", "error[json-schema]"),
    "skill": ("{max_chars: {limit: reply_max_chars}}", "{skill_loaded: {skill: item}}", "error[skill-unknown]"),
    "no skill": ("{max_chars: {limit: reply_max_chars}}", "{skill_loaded: {}}", "error[hook-check]: skill_loaded names nothing"),
    "order": ("{max_chars: {limit: reply_max_chars}}", "{tool_order: {order: [get_product, pay]}}", "error[tool-unknown]"),
    "judge": ("{max_chars: {limit: reply_max_chars}}", "{judge: {harness: judge}}", "error[harness-unknown]: there is no harness of this name to judge"),
    "own judge": ("{max_chars: {limit: reply_max_chars}}", "{judge: {harness: shop}}", "hint: a harness cannot judge itself"),
    "name in expression": ("{max_chars: {limit: reply_max_chars}}", "{expr: contxt.x == 1}", "error[template-undeclared]: `contxt` is not declared; got "
                           "contxt; allowed calls, context, limits, message, output, reply, round, session, skills_loaded\n    hint: did you mean `context`?"),
    "expression": ("{max_chars: {limit: reply_max_chars}}", "{expr: 'reply =='}", "error[template-syntax]: an expression cannot be read"),
    "expression escapes": ("{max_chars: {limit: reply_max_chars}}", "{expr: \"reply.__class__ == ''\"}", "error[template-unsafe]"),
    "limit in expression": ("{max_chars: {limit: reply_max_chars}}", "{expr: round < limits.rounds}", "error[limit-unknown]"),
    "inside all": ("{max_chars: {limit: reply_max_chars}}", "{all: [{not: {tool_called: {tools: [x]}}}]}", "guards.yaml:13:48: error[tool-unknown]"),
    "min and max": ("ok: true, same_args: [link_id]", "max: 0", "error[hook-check]: no number of calls is at least"),
    "python": ("{max_chars: {limit: reply_max_chars}}", "{python: 'guards:check'}", "error[code-missing]: there is no module `guards`"),
    "enforces skill": ("[item-qa#lookup]", "[item-qu#lookup]", "guards.yaml:9:16: error[skill-unknown]: the hook enforces a rule of a skill that there is "
                       "not; got item-qu#lookup; allowed item-qa, upsell\n    hint: did you mean `item-qa`?"),
    "enforces rule": ("[item-qa#lookup]", "[item-qa#look]", "guards.yaml:9:16: error[rule-unknown]: the skill `item-qa` has no such rule"),
    "fallback": (', fallback: {reply: "One moment."}', "", "error[hook-action]: the fallback is not given"),
    "unused fallback": ("exhausted: fallback, ", "", "error[hook-action]: a fallback that no action uses"),
    "retries of a block": ("{action: block,", "{action: block, max_retries: 1,", "error[hook-action]: max_retries goes with retry only"),
    "too many retries": ("max_retries: 2", "max_retries: 3", "warning[hook-retries]: the retries do not fit into the rounds; got 3 retries; one round "
                         "loads a skill, one replies: 5 rounds; allowed max_rounds: 4"),
    "exhausted": ("max_retries: 2, exhausted", "exhausted", "error[hook-action]: without max_retries a retry is never exhausted"),
    "retry at input": ("event: stop\n    order: -1\n    check: {max_chars: {limit: reply_max_chars}}", "event: input\n    check: {max_chars: "
                       "{limit: reply_max_chars}}", "error[hook-action]: a retry at input gives the model nothing to do again"),
    "rewrite without": ("{action: block,", "{action: rewrite,", "error[hook-action]: the action rewrite says nothing to rewrite with"),
    "rewrite target": ('{action: block, message: {text: "Call `get_product` first."}}', "{action: rewrite, rewrite: {target: reply, to: x}}",
                       "error[hook-target]: this cannot be rewritten at pre_tool; got reply; allowed args"),
    "rewrite template": ('{action: block, message: {text: "Call `get_product` first."}}', "{action: rewrite, rewrite: {target: args, to: '{{ result }}'}}",
                         "error[template-undeclared]: `result` is not declared"),
    "role": ("max_retries: 2, exhausted", "message: {text: x, role: tool}, max_retries: 2, exhausted", "error[hook-action]: there is no tool call at stop"),
    "message": ("Call `get_product` first.", "Call get_product first.", "guards.yaml:8:54: error[ref-bare]"),
    "slow": ("    order: -1\n", "    timeout_s: 60\n", "warning[hook-timeout]"),
    "unknown field": ("    order: -1\n", "    oder: -1\n", "guards.yaml:12:5: error[schema-unknown-field]: unknown field `oder`"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), HOOK_FAULTS.values(), ids=HOOK_FAULTS.keys())
def test_hooks(faults: Faults, old: str, new: str, expected: str) -> None:
    found = faults({HOOKS: (old, new)})
    if "rewrite," in new and "rewrite:" not in new:
        found = [fault for fault in found if "nobody reads" not in fault]
    assert are(found, expected)


def test_end_decides_nothing(faults: Faults) -> None:
    hook = "    event: end\n    check: {max_chars: 80}\n    otherwise: {action: block}\n"
    text = "apiVersion: harnessctl/v1\nkind: Hooks\nhooks:\n  - id: late\n" + hook
    assert are(
        faults({HOOKS: text, HARNESS: ("require_skill: reply", "require_skill: none")}),
        "guards.yaml:7:25: error[hook-action]: at the end nothing can be decided any more; got block; allowed warn, or observe",
    )


PROMPT_FAULTS = {
    "variable": ("{{ room.title }}", "{{ romm.title }}", "main.yaml:14:19", "error[template-undeclared]: `romm` is not declared; got romm; allowed limits, "
                 "links, messages, room, skill, skills, tool\n    hint: did you mean `room`?"),
    "field": ("{{ room.title }}", "{{ room.titel }}", "main.yaml:14", "error[template-field]: the input has no field `titel`; got titel; allowed title"),
    "syntax": ("You host {{ room.title }}.", "You host {{ room.title }.", "main.yaml:14", "error[template-syntax]: a template cannot be read"),
    "filter": ("{{ room.title }}", "{{ room.title | shout }}", "main.yaml:14", "error[template-syntax]: a template cannot be read; got No filter named 'shout'"),
    "sandbox": ("{{ room.title }}", "{{ room.__class__.__mro__ }}", "main.yaml:14", "error[template-unsafe]: the sandbox refuses this access; got __class__"),
    "include": ("{{ room.title }}", "{% include 'x' %}", "main.yaml:14", "error[template-unsafe]"),
    "computed tool": ("tool('get_product')", "tool(room.title)", "main.yaml:15", "error[template-reference]: tool() is called with something that is not a name"),
    "unknown tool": ("tool('get_product')", "tool('get_products')", "main.yaml:15:20", "error[ref-unknown]: there is no tool of this name"),
    "unknown skill": ("skill('item-qa')", "skill('item')", "main.yaml:15:56", "error[ref-unknown]: there is no skill of this name"),
    "bare": ("Use {{ tool('get_product') }}", "Use `get_product`", "main.yaml:15:12", "error[ref-bare]: a bare mention of the tool get_product would be missed "
             "by a renaming; got get_product; allowed {{ tool('get_product') }}"),
    "limit": ("{{ room.title }}", "{{ limits.reply_max }}", "main.yaml:14", "error[limit-unknown]"),
    "when": ("when: links", "when: lnks", "main.yaml:23:11", "error[template-undeclared]"),
    "two blocks": ("id: links", "id: role", "main.yaml:22:9", "error[block-duplicate]"),
    "after unknown": ("after: role", "after: rolle", "main.yaml:18:12", "error[block-unknown]"),
    "after later": ("after: role", "after: viewer", "main.yaml:18:12", "error[block-order]"),
    "after itself": ("after: role", "after: always", "main.yaml:18:12", "error[block-cycle]"),
    "template and heading": ("    when: links\n", "    heading: Links\n", "main.yaml:23:5", "error[block-form]: a heading goes with items only"),
    "neither": ('    role: user\n    template: "{% for m in messages %}{{ m.viewer }}: {{ m.text }}{% endfor %}"\n', "    role: user\n", "main.yaml:25:5",
                "error[block-form]"),
    "inputs": ("room: {type: object,", "room: {type: thing,", "main.yaml:7:18", "error[json-schema]"),
    "taken name": ("    links: {type", "    skills: {type", "main.yaml:8:5", "error[prompt-inputs]: the input `skills` has a meaning of its own"),
    "required input": ("required: [room]", "required: [rooms]", "main.yaml:9:14", "error[prompt-inputs]"),
    "items": ("Say what `get_product` said.", "Say what get_product said.", "main.yaml:20:37", "error[ref-bare]"),
    "item digits": ("At most 80 characters.", "At most 80 of 90.", "main.yaml:21:16", "error[limit-digits]"),
    "item id": ("{text: At", "{id: honest, text: At", "main.yaml:21:14", "error[rule-duplicate]"),
    "name": ("name: main", "name: other", "main.yaml:3:7", "error[prompt-name]"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "place", "expected"), PROMPT_FAULTS.values(), ids=PROMPT_FAULTS.keys())
def test_prompts(faults: Faults, old: str, new: str, place: str, expected: str) -> None:
    found = faults({PROMPT: (old, new)})
    matching = [fault for fault in found if expected in fault]
    assert matching and place in matching[0], found
    if "skills: {type" not in new and "__class__" not in new and new != "id: role":
        assert len(found) == 1, found


HARNESS_FAULTS = {
    "include": ("[item-qa, upsell]", "[item-qa, upsel, upsell]", "harness.yaml:6:21: error[include-unknown]: no skill of this name; got upsel; allowed "
                "item-qa, upsell\n    hint: did you mean `upsell`?"),
    "prompt": ("prompt: main", "prompt: man", "harness.yaml:9:9: error[prompt-unknown]: there is no prompt of this name; got man; allowed main\n    hint: did "
               "you mean `main`?"),
    "world": ("world: stall", "world: stal", "error[world-unknown]"),
    "range": ("value: 80", "value: 20", "harness.yaml:13:28: error[limit-range]: the value of `reply_max_chars` is outside its range; got 20; allowed 50 to 120"),
    "range backwards": ("[50, 120]", "[120, 50]", "error[limit-range]: the range is the wrong way round"),
    "rounds": ("value: 4", "value: 4.5", "error[limit-range]: `max_rounds` counts something; got 4.5"),
    "unused": ("  max_rounds:", "  emoji_max: 2\n  max_rounds:", "harness.yaml:12:3: warning[limit-unused]: nothing reads the limit `emoji_max`"),
    "misspelt": ("  max_rounds:", "  max_round: 2\n  max_rounds:", "warning[limit-name]: `max_round` is no limit of the runtime"),
    "route": ("'address' in message", "'address' in mesage", "error[template-undeclared]"),
    "json": ("reply:\n  route", "reply:\n  format: json\n  route", "error[reply-schema]: a reply in JSON has a schema"),
    "text": ("reply:\n  route", "reply:\n  schema: {type: object}\n  route", "error[reply-schema]: a reply in text has no schema"),
    "scores": ("reply:\n  route", "scores: {accuracy: /a}\nreply:\n  route", "error[scores-form]: scores are parts of a reply in JSON"),
    "score": ("reply:\n  route", "scores: {accuracy: /b}\nreply:\n  format: json\n  schema: {properties: {a: {}}}\n  route", "error[scores-form]: the score is no "
              "part of the reply's schema; got /b; allowed /a"),
    "field": ("require_skill: reply", "require_skil: reply", "error[schema-unknown-field]"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), HARNESS_FAULTS.values(), ids=HARNESS_FAULTS.keys())
def test_harnesses(faults: Faults, old: str, new: str, expected: str) -> None:
    found = faults({HARNESS: (old, new)})
    if "max_round: 2" in new or "value: 20" in new:
        found = [fault for fault in found if expected.split("]")[0].split("[")[1] in fault]
    if new.startswith(("prompt: man", "world: stal")):
        found = [fault for fault in found if "harness.yaml" in fault]
    assert are(found, expected)


def test_two_harnesses_of_one_name(faults: Faults, shop: Callable[..., object]) -> None:
    text = "apiVersion: harnessctl/v1\nkind: Harness\nname: shop\nversion: 1.0.0\ninclude: {}\nprompt: empty\n"
    prompt = "apiVersion: harnessctl/v1\nkind: PromptPipeline\nname: empty\nblocks: [{id: a, template: Hi.}]\n"
    found = faults({"manifests/mini.yaml": text, "manifests/prompts/empty.yaml": prompt})
    assert are(found, "manifests/mini.yaml:3:7: error[harness-duplicate]: two harnesses are called `shop`")


def test_a_required_reply_skill_is_there(faults: Faults) -> None:
    found = faults({SKILL: ("kind: reply", "kind: strategy")})
    assert are(
        found, "harness.yaml:14:16: error[require-skill]: a reply skill is required and the harness includes none"
    )


def test_judges_do_not_judge_each_other(faults: Faults) -> None:
    judge = (
        "apiVersion: harnessctl/v1\nkind: Harness\nname: judge\nversion: 1.0.0\ninclude: {hooks: [second]}\nprompt: judge\n"
        "reply: {format: json, schema: {type: object, properties: {a: {type: number}}}}\nscores: {accuracy: /a}\n"
    )
    prompt = "apiVersion: harnessctl/v1\nkind: PromptPipeline\nname: judge\nblocks: [{id: a, template: Judge.}]\n"
    hook = (
        "apiVersion: harnessctl/v1\nkind: Hooks\nhooks:\n  - id: second\n    event: stop\n"
        "    check: {judge: {harness: shop}}\n    otherwise: {action: block}\n"
    )
    found = faults(
        {
            "manifests/judge.yaml": judge,
            "manifests/prompts/judge.yaml": prompt,
            "manifests/hooks/second.yaml": hook,
            HOOKS: (
                "{max_chars: {limit: reply_max_chars}}",
                "{judge: {harness: judge, input: {text: reply}, pass: accuracy > 0}}",
            ),
        }
    )
    assert are(found, "second.yaml:6:30: error[judge-cycle]: a harness is judged by itself; got judge -> shop -> judge")


WORLD_FAULTS = {
    "file": ("stall/faq.csv", "stall/faqs.csv", "stall.yaml:6:15: error[world-file]"),
    "outside": ("stall/faq.csv", "../../../x.csv", "error[source-outside]"),
    "faq": ("{table: faq}", "{table: faqs}", "error[world-table]: the FAQ names a table that there is not; got faqs; allowed faq"),
    "context": ("faq: {table", "context: {room: {}}\nfaq: {table", "error[world-context]: `room` is asked for in exactly one way"),
    "search": ("faq: {table", "context: {room: {search: qa}}\nfaq: {table", "error[world-context]: there is nothing of this name to search in"),
    "name": ("name: stall", "name: stalls", "error[world-name]"),
    "no faq": ("faq: {table: faq}\n", "", "catalog.yaml:24:11: error[tool-world]: `search_faq` searches a FAQ that there is not"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), WORLD_FAULTS.values(), ids=WORLD_FAULTS.keys())
def test_worlds(faults: Faults, old: str, new: str, expected: str) -> None:
    assert are(faults({WORLD: (old, new)}), expected)


def test_all_faults_of_all_sources_come_at_once(faults: Faults) -> None:
    found = faults(
        {
            SKILL: ("limit=reply_max_chars", "limit=nothing"),
            TOOLS: ("shelf:get_product", "shelf:missing"),
            HOOKS: ("tools: [get_product]", "tools: [nobody]"),
            PROMPT: ("{{ room.title }}", "{{ nobody }}"),
            HARNESS: ("value: 80", "value: 1"),
            WORLD: ("{table: faq}", "{table: faqs}"),
            EXAMPLES: ("tool: get_product", "tool: nobody"),
        }
    )
    codes = [fault.split("error[")[1].split("]")[0] for fault in found if "error[" in fault]
    assert codes == [
        "limit-range", "tool-unknown", "template-undeclared", "code-function", "world-table", "limit-unknown", "tool-unknown",
    ]  # fmt: skip


def test_a_source_that_cannot_be_read_does_not_make_its_names_unknown(faults: Faults) -> None:
    assert are(faults({TOOLS: ("kind: Tools", "kind: Tools\n  x: 1")}), "catalog.yaml:3:4: error[yaml-colon]")
    assert are(faults({HARNESS: ("kind: Harness", "kind: [Harness")}), "harness.yaml:2:7: error[yaml-bracket]")


def test_sources_that_no_harness_includes_are_checked_too(faults: Faults) -> None:
    found = faults(
        {
            HARNESS: ("[item-qa, upsell]", "[item-qa]"),
            "skills/upsell/SKILL.md": ("Offer one", "With get_product offer one"),
        }
    )
    assert are(found, "skills/upsell/SKILL.md:6:6: error[ref-bare]")


def test_a_harness_with_a_wrong_field_is_checked_without_it(faults: Faults) -> None:
    found = faults(
        {HARNESS: ("require_skill: reply", "require_skil: reply"), HOOKS: ("[item-qa#lookup]", "[item-qa#look]")}
    )
    assert are(found, "harness.yaml:14:1: error[schema-unknown-field]", "guards.yaml:9:16: error[rule-unknown]")


def test_a_broken_harness_does_not_hide_the_rest(faults: Faults) -> None:
    found = faults({HARNESS: ("prompt: main", "prompt: [main]"), HOOKS: ("[item-qa#lookup]", "[item-qa#look]")})
    assert are(found, "harness.yaml:9:9: error[schema-type]", "guards.yaml:9:16: error[rule-unknown]")


def test_a_wrong_version_does_not_hide_the_rest(faults: Faults) -> None:
    found = faults({HARNESS: ("version: 1.0.0", "version: 1"), SKILL: ("Call `get_product`", "Call get_product")})
    assert are(found, "harness.yaml:4:10: error[schema-type]", "skills/item-qa/SKILL.md:10:8: error[ref-bare]")
