"""Import of MCP captures: every shape in which people keep them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from import_project import compiles, contents

from harnessctl.importing import import_mcp
from harnessctl.importing.report import Entry

SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "description": "Its name"}}, "required": ["city"]}


def tool(name: str = "get_weather", **more) -> dict:
    return {"name": name, "description": "The weather of a city.", "inputSchema": SCHEMA, **more}


def only(folders, document: object, name: str = "weather.json") -> tuple[Entry, Path]:
    text = document if isinstance(document, (str, bytes)) else json.dumps(document, indent=1)
    theirs, ours = folders({name: text})
    (entry,) = import_mcp(theirs, ours).entries
    assert compiles(ours) == []
    return entry, ours


def manifest(root: Path, name: str = "weather") -> str:
    return (root / f"manifests/tools/{name}.yaml").read_text()


def messages(entry: Entry, kind: str) -> list[str]:
    return [f"{note.line}: {note.message}" for note in entry.notes if note.kind == kind]


def test_a_tool_as_it_is_written(folders) -> None:
    document = {
        "server": "weather",
        "url": "https://w.example/mcp",
        "tools": [tool(annotations={"readOnlyHint": True})],
    }
    entry, root = only(folders, document)
    assert (
        manifest(root)
        == """\
apiVersion: harnessctl/v1
kind: Tools
mcpServers:
  weather:
    type: http
    url: https://w.example/mcp
tools:
  - name: get_weather
    description: The weather of a city.
    group: weather
    parameters:
      type: object
      properties:
        city:
          type: string
          description: Its name
      required: [city]
    run:
      mcp:
        server: weather
"""
    )
    assert messages(entry, "not carried over") == [
        "0: `annotations` of 1 tool (what it says of reading and writing is `effect`)"
    ]


@pytest.mark.parametrize(
    "document",
    [
        [tool()],
        {"tools": [tool()]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool()]}},
        {"server_info": {"name": "weather-server", "version": "1"}, "tools": [tool()]},
        {"parameters": {"command": "uvx", "args": ["weather"], "env": None}, "initialize_result": {"serverInfo": {"name": "w"}},
         "tools": [tool()]},
        tool(),
    ],
    ids=["list", "tools", "result", "snapshot", "interview", "one"],
)  # fmt: skip
def test_shapes(folders, document) -> None:
    entry, root = only(
        folders,
        document,
        "acme/weather.json" if not isinstance(document, dict) or "name" not in document else "weather/a.json",
    )
    assert entry.outcome == "imported"
    assert "name: get_weather" in manifest(root)


def test_a_server_that_nothing_says_how_to_start(folders) -> None:
    entry, root = only(folders, [tool()])
    assert "  weather:\n    command: ${WEATHER_COMMAND}\n" in manifest(root)
    assert "the capture does not say how the server `weather` is started" in messages(entry, "warning")[-1]


def test_a_server_that_the_project_names(folders) -> None:
    entry, root = only(folders, {"server": "shop", "tools": [tool()]})
    assert "mcpServers" not in manifest(root)
    assert "the server `shop` is the one of manifests/tools/shop.yaml" in messages(entry, "warning")[-1]


def test_what_writes(folders) -> None:
    tools = [
        tool("a", annotations={"readOnlyHint": True}),
        tool("b", annotations={"destructiveHint": False}),
        tool("c"),
    ]
    entry, root = only(folders, {"tools": tools})
    assert manifest(root).count("effect: write") == 2
    assert "1 tool without a word on whether it changes anything" in messages(entry, "warning")[0]


def test_older_drafts_are_declared_anew(folders) -> None:
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
    old = {
        **draft7,
        "type": "object",
        "definitions": {"c": {"type": "string"}},
        "properties": {"c": {"$ref": "#/definitions/c"}},
    }
    entry, root = only(folders, {"tools": [tool("a", inputSchema=SCHEMA | draft7), tool("b", inputSchema=old)]})
    assert manifest(root).count("$schema") == 1
    assert messages(entry, "changed") == [
        "0: 1 schemas of draft-07 are written without $schema: they say the same in 2020-12"
    ]


def test_names_that_no_model_can_call(folders) -> None:
    tools = [tool("get weather/now"), tool("获取"), tool("9lives"), tool("x" * 70), tool("get_weather.v2")]
    entry, root = only(folders, {"tools": tools})
    text = manifest(root)
    assert "name: get_weather_now" in text
    assert "        tool: get weather/now" in text
    assert "name: _9lives" in text
    assert f"name: {'x' * 64}\n" in text
    assert "name: get_weather.v2\n" in text
    assert "the tool 获取: nothing of its name '获取' can stand in a name" in messages(entry, "not carried over")[0]


def test_duplicates(folders) -> None:
    text = json.dumps({"tools": [tool(), tool(), tool("get_price", description="See get_price.")]}, indent=1)
    entry, root = only(folders, text)
    assert (
        messages(entry, "not carried over")[0]
        == "19: the tool get_weather: an earlier tool of the manifest has its name"
    )
    assert (
        "the tool `get_price` is called `weather_get_price` here: manifests/tools/shop.yaml has one"
        in messages(entry, "changed")[1]
    )
    assert "        tool: get_price\n" in manifest(root)
    assert "See `weather_get_price`." in manifest(root)


def test_descriptions(folders) -> None:
    tools = [
        tool("read_all", description=None, title="Reads everything"),
        tool("readNow", description="  "),
        tool("long_one", description="A sentence. " * 500),
        tool("other", description="Like read_all, and `read_all`; see x:read_all."),
    ]
    entry, root = only(folders, {"tools": tools})
    text = manifest(root)
    assert "description: Reads everything" in text
    assert "description: Read Now" in text or "description: Read now" in text
    assert "Like `read_all`, and `read_all`; see x:`read_all`." in text
    assert any("was cut from 5999 to 4091 characters" in m for m in messages(entry, "changed"))


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"inputSchema": None}, "it has no inputSchema"),
        ({"inputSchema": []}, "its inputSchema is no object"),
        ({"inputSchema": {"type": "array"}}, "its inputSchema is of type 'array', not an object"),
        ({"inputSchema": {"type": "objekt"}}, "its inputSchema is of type 'objekt', not an object"),
        ({"inputSchema": {"properties": {"a": {"type": "strin"}}}}, "its inputSchema is not a JSON Schema"),
        ({"inputSchema": {"properties": {"a": {"pattern": "("}}}}, "its inputSchema is not a JSON Schema"),
        ({"inputSchema": {"properties": {"a": {"$ref": "https://x.org/s.json"}}}}, "its inputSchema refers to https://x.org/s.json"),
        ({"inputSchema": {"$schema": "https://x.org/my-draft"}}, "its inputSchema is of a draft that is not known"),
        ({"inputSchema": {"properties": {"a": {"maximum": 2**60}}}}, "it cannot be written as YAML: the number cannot be kept"),
        ({"description": "See https://x.org/get_price."}, "a description mentions the known name `get_price` in a link"),
        ({"name": 3}, "it has no name"),
        ({"source": "read", "server": {"command": "x"}}, "it is made from another tool (read) by a proxy"),
    ],
    ids=range(12),
)  # fmt: skip
def test_a_tool_that_cannot_be_one_does_not_stop_the_others(folders, broken: dict, reason: str) -> None:
    entry, root = only(folders, {"tools": [tool(), tool("broken") | broken]})
    assert reason in messages(entry, "not carried over")[0]
    assert manifest(root).count("- name:") == 1


def test_required_parameters_that_are_not_declared(folders) -> None:
    entry, root = only(folders, {"tools": [tool(inputSchema={**SCHEMA, "required": ["city", "day"]})]})
    assert "`get_weather` requires parameters that it does not declare: day" in messages(entry, "not carried over")[0]
    assert "required: [city]" in manifest(root)


def test_results_and_what_is_left(folders) -> None:
    output = {"type": "object", "properties": {"t": {"type": "number"}}}
    one = tool(outputSchema=output, icons=[{"src": "x"}], _meta={}, execution={"a": 1})
    entry, root = only(folders, {"tools": [one], "resources": [], "prompts": [1]})
    assert "    result:\n      type: object\n" in manifest(root)
    assert [m.partition(": ")[2] for m in messages(entry, "not carried over")] == [
        "`execution` of 1 tool", "`icons` of 1 tool", "what is not tools: resources, prompts",
    ]  # fmt: skip


def test_yaml_1_1_words_in_schemas(folders) -> None:
    schema = {"type": "object", "properties": {"on": {"enum": ["yes", "no", "1.0", True]}, "y": {"type": "string"}}}
    _, root = only(folders, {"tools": [tool(inputSchema=schema)]})
    assert '"on":\n          enum: ["yes", "no", "1.0", true]\n        "y":' in manifest(root)


def test_snapshots_of_one_tool_each_make_one_manifest(folders) -> None:
    theirs, ours = folders(
        {
            "github/__toolsnaps__/get_issue.snap": json.dumps(tool("get_issue")),
            "github/__toolsnaps__/add_issue.snap": json.dumps(tool("add_issue")),
            "github/readme.md": "x",
        }
    )
    report = import_mcp(theirs, ours)
    assert [(e.source, e.files) for e in report.imported] == [
        ("github/__toolsnaps__/add_issue.snap", ["manifests/tools/github.yaml"]),
        ("github/__toolsnaps__/get_issue.snap", ["manifests/tools/github.yaml"]),
    ]
    assert manifest(ours, "github").count("- name:") == 2
    assert compiles(ours) == []
    assert {e.outcome for e in import_mcp(theirs, ours).imported} == {"unchanged"}


def test_a_map_of_servers_without_its_secrets(folders) -> None:
    servers = {
        "jira": {"command": "uvx", "args": ["mcp-jira", "--token=abc123", "--api-key", "k", "--fast"],
                 "env": {"JIRA_TOKEN": "s3cret", "JIRA_URL": "https://jira.example", "ID": "${JIRA_ID}", "X": "YOUR_X_HERE"},
                 "description": "Issues"},
        "docs": {"type": "http", "url": "https://d.example/mcp?api_key=abc&x=1", "headers": {"Authorization": "Bearer abc"}},
        "old": {"type": "sse", "url": "https://o.example/sse"},
        "off": {"command": "x", "disabled": True},
        "none": {}, "odd": 3, "shop": {"command": "x"}, "both": {"command": "x", "url": "https://b.example"},
    }  # fmt: skip
    entry, root = only(folders, {"mcpServers": servers, "inputs": []}, ".mcp.json")
    text = manifest(root, "theirs")
    assert (
        text.partition("mcpServers:\n")[2]
        == """\
  jira:
    command: uvx
    args: [mcp-jira, '--token=${TOKEN}', --api-key, '${API_KEY}', --fast]
    env:
      JIRA_TOKEN: ${JIRA_TOKEN}
      JIRA_URL: https://jira.example
      ID: ${JIRA_ID}
      X: ${X}
  docs:
    type: http
    url: https://d.example/mcp?api_key=${API_KEY}&x=1
    headers:
      Authorization: ${AUTHORIZATION}
"""
    )
    assert "s3cret" not in json.dumps([n.message for n in entry.notes]) + text
    left = "\n".join(messages(entry, "not carried over"))
    for reason in (
        "`old`: it speaks SSE", "`off`: it is switched off there", "`none`: it has no command and no http url",
        "`odd`: it is no object", "`shop`: manifests/tools/shop.yaml has one of this name",
        "`both`: it has both a command and a url", "fields of servers: description (1)", "what is not servers: inputs",
    ):  # fmt: skip
        assert reason in left


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Error: No initialize response\n", "not JSON: 1:1: Expecting value; got 'Error: No initialize response'"),
        ('{"tools": [\n  {"name": "a"},\n]}', "not JSON: "),
        ("3", "it is neither an object nor a list"),
        ("[1]", "it is a list, and not one of tools with names"),
        ("[]", "it is a list, and not one of tools with names"),
        ('{"tools": []}', "its list of tools is empty"),
        (
            '{"tools": {"a": {"example_input": {}}}}',
            "its `tools` are examples of calls by name, without an inputSchema",
        ),
        ('{"error": {"code": -1}}', "it is an error of the server, not a list of tools"),
        (
            '{"examples": []}',
            "it lists no tools: there is no `tools`, `result` or `mcpServers` in it; its keys: examples",
        ),
        ('{"tools": [{"name": "a"}]}', "none of its 1 tools can be carried over: the tool a: it has no inputSchema"),
        ('{"mcpServers": {"a": {"type": "sse", "url": "https://x"}}}', "none of its servers can be carried over"),
        ('{"mcpServers": {}}', "none of its servers can be carried over: it names none"),
    ],
    ids=range(12),
)
def test_what_is_refused_and_why(folders, text: str, reason: str) -> None:
    theirs, ours = folders({"weather.json": text})
    before = contents(ours)
    (entry,) = import_mcp(theirs, ours).entries
    assert entry.outcome == "refused"
    assert entry.reason.startswith(reason)
    assert contents(ours) == before


def test_a_key_that_is_given_twice(folders) -> None:
    entry, _ = only(folders, '{"tools": [{"name": "a", "description": "x", "description": "y", "inputSchema": {}}]}')
    assert "the key 'description' is given twice in one object; the last one counts" in messages(entry, "warning")[0]


def test_nothing_is_overwritten_unless_forced(folders) -> None:
    theirs, ours = folders({"weather.json": json.dumps([tool()])})
    import_mcp(theirs, ours)
    (theirs / "weather.json").write_text(json.dumps([tool(description="Other.")]))
    (entry,) = import_mcp(theirs, ours).refused
    assert entry.reason == "manifests/tools/weather.yaml exists with other content; --force replaces it"
    import_mcp(theirs, ours, force=True)
    assert "description: Other." in manifest(ours)


def test_older_texts_that_mention_a_new_name(folders) -> None:
    theirs, ours = folders({"weather.json": json.dumps([tool()])})
    (ours / "skills/greet-viewers/SKILL.md").write_text(
        "---\nname: greet-viewers\ndescription: Greets.\n---\nCall get_weather.\n"
    )
    (entry,) = import_mcp(theirs, ours).imported
    assert "skills/greet-viewers/SKILL.md:5 mentions `get_weather` bare" in messages(entry, "warning")[-1]
