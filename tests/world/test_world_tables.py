"""Tables of a world: what files hold, what types they get, and what is said of one that is wrong."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from world_project import ITEMS, MANIFEST, shop

from harnessctl.errors import FaultsError
from harnessctl.simulate.world import open_world


def rows(world, sql):
    return [tuple(row) for row in world.connection().execute(sql)]


def faults(manifest) -> str:
    with pytest.raises(FaultsError) as caught:
        open_world(manifest)
    return caught.value.render()


def test_types_are_read_off_the_values(project):
    with open_world(shop(project)) as world:
        found = rows(world, "SELECT id, price, weight, code, typeof(price), typeof(code) FROM items ORDER BY id")
    assert found == [
        (1, 89.0, 0.25, "007", "real", "text"),
        (2, 39.5, 1.0, "12", "real", "text"),
        (3, 59.0, 0.12, "A1", "real", "text"),
    ]


def test_quotes_commas_and_line_breaks_inside_cells(project):
    items = 'id,name\r\n1,"a ""quoted"", name"\r\n2,"two\r\nlines"\r\n'
    with open_world(shop(project, items=items)) as world:
        assert rows(world, "SELECT name FROM items ORDER BY id") == [('a "quoted", name',), ("two\r\nlines",)]


def test_byte_order_mark_and_empty_cells(project):
    items = "\ufeffid,name,price\n1,,5\n\n2,x,\n"
    with open_world(shop(project, items=items)) as world:
        assert rows(world, "SELECT * FROM items ORDER BY id") == [(1, None, 5), (2, "x", None)]


def test_numbers_that_a_spreadsheet_would_spoil_stay_text(project):
    items = "id,zip,code,big,yes\n1,00123,1E5,9223372036854775808,true\n"
    with open_world(shop(project, items=items)) as world:
        assert rows(world, "SELECT zip, code, big, yes FROM items") == [("00123", "1E5", "9223372036854775808", "true")]


def test_declared_types_and_json_cells(project):
    manifest = MANIFEST.replace("key: [id]}", "key: [id], types: {id: text, specs: json, weight: real}}", 1)
    items = 'id,weight,specs\n1,2e3,"{""Size"": ""26 cm"", ""Tags"": [1, 2]}"\n'
    with open_world(shop(project, manifest=manifest.replace("SELECT * FROM items WHERE id = :link", "SELECT * FROM items"),
                         items=items)) as world:  # fmt: skip
        from harnessctl.records.comment import CommentInput

        item = world.context(CommentInput(id="1", text="?"))["item"]
    assert item == {"id": "1", "weight": 2000, "specs": {"Size": "26 cm", "Tags": [1, 2]}}


def test_json_lines(project):
    manifest = MANIFEST.replace("items.csv", "items.jsonl")
    root = shop(project, manifest=manifest).parent
    lines = [{"id": 1, "price": 5, "tags": ["a"]}, {"id": 2, "price": 5.5, "new": True}]
    (root / "items.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    with open_world(root / "shop.yaml") as world:
        assert rows(world, "SELECT id, price, tags, new FROM items ORDER BY id") == [
            (1, 5.0, '["a"]', None),
            (2, 5.5, None, 1),
        ]


@pytest.mark.parametrize("as_map", [True, False])
def test_nested_json_at_a_pointer(project, as_map):
    manifest = MANIFEST.replace("{file: items.csv, key: [id]}", "{file: db.json, key: [id], path: /shop/all~1items}")
    root = shop(project, manifest=manifest).parent
    items = {"10": {"name": "a"}, "20": {"name": "b"}}
    value = items if as_map else [{"id": key, **item} for key, item in items.items()]
    (root / "db.json").write_text(json.dumps({"shop": {"all/items": value}}))
    with open_world(root / "shop.yaml") as world:
        assert rows(world, "SELECT id, name FROM items ORDER BY id") == [("10", "a"), ("20", "b")]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("", "manifests/worlds/items.csv:1:1: error[table-empty]: the file is empty"),
        ("id,name\n1,a\n1,b\n", "items.csv:3:1: error[table-key]: two rows have one key; got 1"),
        ("id,name\n,b\n", "items.csv:2:1: error[table-key]: a row has no key"),
        (
            "id,name\n1,a,b\n",
            "items.csv:2:5: error[table-ragged]: the row and the header differ in length; got 3 cells; allowed 2",
        ),
        ("id,name\n1\n", "items.csv:2:1: error[table-ragged]: the row and the header differ in length; got 1 cells"),
        ('id,name\n1,"a"x\n', "items.csv:2:1: error[table-csv]: the row cannot be read"),
        ('id,name\n1,"a\n', "items.csv:2:1: error[table-csv]: the row cannot be read: unexpected end of data"),
        ("id,name,ID\n1,a,2\n", "items.csv:1:9: error[table-header]: two columns have one name; got ID"),
        ("id,,x\n1,a,2\n", "items.csv:1:4: error[table-header]: a column has no name"),
        ("id;name\n1;a\n", "items.csv:1:1: error[table-header]: the cells are not separated by commas"),
        (b"id,name\n1,caf\xe9\n", "items.csv:2:6: error[table-encoding]: the file is not UTF-8 text; got byte 0xe9"),
        ("id,name\n1,a\x00b\n", "items.csv:2:4: error[table-encoding]: the file has NUL characters"),
        ("sku,name\n1,a\n", "shop.yaml:6:34: error[table-column]: manifests/worlds/items.csv has no column `id`"),
    ],
)
def test_bad_csv_is_named_by_its_place(project, items, expected):
    assert expected in faults(shop(project, items=items))


def test_gbk_is_recognised(project):
    told = faults(shop(project, items="id,name\n1,\u6d17\u9762\u5976\n".encode("gbk")))
    assert "it may be GBK" in told


def test_a_bad_type_names_cell_and_manifest(project):
    manifest = MANIFEST.replace("key: [id]}", "key: [id], types: {price: integer}}", 1)
    told = faults(shop(project, manifest=manifest))
    assert 'items.csv:3:17: error[table-type]: `price` is not of type integer; got "39.5"; allowed integer' in told
    assert "see `tables/items/types` in the manifest" in told


def test_a_cell_after_a_line_break_has_its_own_place(project):
    manifest = MANIFEST.replace("key: [id]}", "key: [id], types: {price: integer}}", 1)
    told = faults(shop(project, manifest=manifest, items='id,name,price\n1,"two\nlines",x\n'))
    assert "items.csv:3:8: error[table-type]" in told


def test_every_fault_of_every_file_at_once(project):
    told = faults(shop(project, items="id,name\n1,a\n1,b\n", orders=""))
    assert "items.csv:3:1" in told
    assert "orders.csv:1:1" in told


def test_many_faults_of_one_file_are_counted(project):
    told = faults(shop(project, items="id,name\n" + "1,a\n" * 40))
    assert told.count("table-key") == 20
    assert "error[table-more]: 19 more faults in this file" in told


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"id": 1}\n{"id": \n', "items.jsonl:2:8: error[table-json]: not JSON"),
        ('{"id": 1}\n[1]\n', "items.jsonl:2:1: error[table-json]: a line is not an object"),
        ('{"id": 1, "id": 2}\n', "items.jsonl:1:1: error[table-json]: an object has one key twice; got id"),
        ('{"id": NaN}\n', "items.jsonl:1:1: error[table-json]: not JSON: NaN is not JSON"),
        ('{"id": 1}\n{"id": 1}\n', "items.jsonl:2:1: error[table-key]: two rows have one key"),
        ("[" * 100_000 + "\n", "items.jsonl:1:1: error[table-json]: not JSON"),
    ],
)
def test_bad_json_lines(project, line, expected):
    root = shop(project, manifest=MANIFEST.replace("items.csv", "items.jsonl")).parent
    (root / "items.jsonl").write_text(line)
    assert expected in faults(root / "shop.yaml")


def test_a_pointer_to_nothing_says_what_is_there(project):
    manifest = MANIFEST.replace("{file: items.csv, key: [id]}", "{file: db.json, key: [id], path: /shop}")
    root = shop(project, manifest=manifest).parent
    (root / "db.json").write_text('{"items": {}, "orders": {}}')
    assert "db.json: error[table-json]: nothing at /shop; got shop; allowed items, orders" in faults(root / "shop.yaml")


def test_files_stay_inside_the_project(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("elsewhere") / "items.csv"
    outside.write_text(ITEMS)
    manifest = MANIFEST.replace("items.csv", str(outside))
    assert "shop.yaml:6:17: error[source-outside]: a table's file lies outside the project" in faults(
        shop(project, manifest=manifest)
    )


def test_a_missing_file_names_the_closest(project):
    manifest = MANIFEST.replace("file: items.csv", "file: item.csv")
    told = faults(shop(project, manifest=manifest))
    assert "shop.yaml:6:17: error[world-file]: a table's file is not there; got item.csv" in told
    assert "did you mean `items.csv`?" in told


def test_an_unknown_ending(project):
    root = shop(project, manifest=MANIFEST.replace("items.csv", "items.xlsx")).parent
    (root / "items.xlsx").write_text("x")
    assert "items.xlsx: error[table-file]: the kind of file is not known; got .xlsx" in faults(root / "shop.yaml")


def test_the_digest_is_over_content_and_not_over_bytes(project):
    plain = shop(project)
    with open_world(plain) as world:
        digest = world.digest
    with open_world(shop(project, items="\ufeff" + ITEMS.replace("\n", "\r\n"))) as world:
        assert world.digest == digest
    with open_world(shop(project, manifest="# a comment\n" + MANIFEST)) as world:
        assert world.digest == digest
    with open_world(shop(project, items=ITEMS.replace("89", "88"))) as world:
        assert world.digest != digest


cells = st.text(st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=5))
def test_what_a_csv_writer_wrote_is_read_back(project, written):
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(["id", "a", "b"])
    writer.writerows((f"k{n}", *row) for n, row in enumerate(written))
    manifest = MANIFEST.replace("key: [id]}", "key: [id], types: {a: text, b: text}}", 1)
    with open_world(shop(project, manifest=manifest, items=out.getvalue())) as world:
        found = rows(world, "SELECT a, b FROM items ORDER BY rowid")
    assert found == [tuple(cell or None for cell in row) for row in written]
