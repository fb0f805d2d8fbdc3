"""A catalog's cells: what is missing, what is no number, what is there twice; each named by its place."""

from __future__ import annotations

import json

import pytest
from catalog_shop import ITEMS, WORLD, changed, own_shop

from harnessctl.errors import FaultsError
from harnessctl.simulate.cells import has_money, how_to_clean, plain_number
from harnessctl.simulate.world import open_world

CSV = "manifests/worlds/shop/items.csv"
JSONL = "manifests/worlds/shop/items.jsonl"


def told(root) -> str:
    with pytest.raises(FaultsError) as caught:
        open_world(root / "manifests/worlds/shop.yaml")
    return caught.value.render()


def as_json_lines(text: str) -> str:
    """The items as JSON Lines; cells that are plain numbers become numbers, empty ones are left out."""
    head, *rows = [line.split(",") for line in text.splitlines()]
    objects = [{name: _plain(cell) for name, cell in zip(head, row, strict=True) if cell} for row in rows]
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in objects)


def _plain(cell: str):
    return float(cell) if cell.replace(".", "", 1).isdigit() else cell


def json_lines_shop(project, items: str):
    world = changed(WORLD, ("shop/items.csv", "shop/items.jsonl"))
    return own_shop(project, world=world, more={JSONL: as_json_lines(items)})


def test_missing_prices_are_named_each_by_its_cell(project):
    items = changed(ITEMS, ("Kettle,39.5", "Kettle,"), ("Cup,12", "Cup,"))
    message = told(own_shop(project, items=items))
    assert f"{CSV}:2:10: error[table-missing]: `price` is empty in the row of item_id 1; got nothing" in message
    assert f"{CSV}:4:7: error[table-missing]: `price` is empty in the row of item_id 3" in message
    assert "hint: fill it in, leave the row out, or remove `price` from `tables/items/required`" in message
    assert "2 errors found" in message


def test_missing_prices_in_json_lines(project):
    message = told(json_lines_shop(project, changed(ITEMS, ("Teapot,120", "Teapot,"))))
    assert f"{JSONL}:2:1: error[table-missing]: `price` is empty in the row of item_id 2.0" in message


def test_a_cell_of_spaces_is_empty_too(project):
    message = told(own_shop(project, items=changed(ITEMS, ("Teapot", "  "))))
    assert f"{CSV}:3:3: error[table-missing]: `name` is empty in the row of item_id 2" in message


def test_a_required_column_that_is_not_there(project):
    message = told(own_shop(project, world=changed(WORLD, ("required: [name, price]", "required: [name, prize]"))))
    assert "manifests/worlds/shop.yaml:6:88: error[table-column]" in message
    assert "got prize; allowed item_id, name, price\n    hint: did you mean `price`?" in message


@pytest.mark.parametrize(
    ("cell", "clean"),
    [("¥120", "120"), ("￥１２０", "120"), ("120元", "120"), ("120 yuan", "120"), ("$120", "120"), ('"1,299"', "1299"),
     ("120 g", "120"), ("5.5kg", "5.5"), ("RMB 88", "88")],
)  # fmt: skip
def test_signs_and_units_in_a_number_column(project, cell, clean):
    message = told(own_shop(project, items=changed(ITEMS, ("Teapot,120", f"Teapot,{cell}"))))
    assert f"{CSV}:3:10: error[table-type]: `price` is not of type real; got " in message
    assert "allowed real" in message
    assert f"hint: write {clean}: no currency sign, no unit, no separators of thousands" in message


def test_signs_in_json_lines(project):
    message = told(json_lines_shop(project, changed(ITEMS, ("Teapot,120", "Teapot,¥120"))))
    assert f'{JSONL}:2:1: error[table-type]: `price` is not of type real; got "¥120"' in message
    assert "hint: write 120: no currency sign" in message


def test_a_number_in_quotes_in_json_lines(project):
    items = as_json_lines(ITEMS).replace("120.0", '"120"')
    world = changed(WORLD, ("shop/items.csv", "shop/items.jsonl"))
    message = told(own_shop(project, world=world, more={JSONL: items}))
    assert "hint: write 120, without quotes" in message


def test_a_currency_sign_is_seen_where_no_type_was_declared(project):
    world = changed(WORLD, (", types: {price: real}", ""))
    message = told(own_shop(project, world=world, items=changed(ITEMS, ("Teapot,120", "Teapot,¥120"))))
    assert f"{CSV}:3:10: error[table-type]: `price` is a column of numbers, and this one has a currency sign" in message
    assert "hint: write 120: no currency sign, no unit, no separators of thousands; if it is text: `tables/items/types: {price: text}`" in message  # fmt: skip
    as_text = changed(WORLD, ("{price: real}", "{price: text}"))
    with open_world(own_shop(project, world=as_text, items=changed(ITEMS, ("120", "¥120"))) / "manifests/worlds/shop.yaml") as open_:  # fmt: skip
        assert open_.read("SELECT price FROM items WHERE item_id = 2")[1] == [{"price": "¥120"}]


@pytest.mark.parametrize(
    ("cell", "clean"), [('"1,299"', "1299"), ("5 kg", "5"), ("１２０", "120"), (" 120", "120"), ("15%", "15")]
)
def test_a_number_as_people_write_it_is_seen_among_plain_ones(project, cell, clean):
    world = changed(WORLD, (", types: {price: real}", ""))
    message = told(own_shop(project, world=world, items=changed(ITEMS, ("Teapot,120", f"Teapot,{cell}"))))
    assert (
        f"{CSV}:3:10: error[table-type]: `price` is a column of numbers, and this one is not written as one" in message
    )
    assert f"hint: write {clean}: no currency sign" in message


@pytest.mark.parametrize("cells", [("1.2 kg", "800 g", "300 g"), ("007", "012", "1E5"), ("12 M", "14 M", "16")])
def test_a_column_of_other_things_stays_text(project, cells):
    items = "item_id,name,price,more\n" + "".join(f"{n},Cup,{n},{cell}\n" for n, cell in enumerate(cells, 1))
    with open_world(own_shop(project, items=items) / "manifests/worlds/shop.yaml") as world:
        assert [row["more"] for row in world.read("SELECT more FROM items")[1]] == list(cells)


def test_other_texts_with_signs_are_left_alone(project):
    items = "item_id,name,price,note\n1,Kettle,39.5,¥20 off\n2,Teapot,120,5 kg\n3,Cup,12,\n"
    with open_world(own_shop(project, items=items) / "manifests/worlds/shop.yaml") as world:
        assert [row["note"] for row in world.read("SELECT note FROM items")[1]] == ["¥20 off", "5 kg", None]


def test_items_with_one_number(project):
    message = told(own_shop(project, items=ITEMS + "2,Pot,88\n"))
    assert f"{CSV}:5:1: error[table-key]: two rows have one key; got 2; allowed item_id once each" in message
    assert "hint: the first is at line 3" in message


def test_many_faults_of_a_file_are_counted(project):
    items = "item_id,name,price\n" + "".join(f"{number},Cup,\n" for number in range(1, 41))
    message = told(own_shop(project, items=items))
    assert message.count("table-missing") == 20
    assert "error[table-more]: 20 more faults in this file" in message


@pytest.mark.parametrize(
    ("cell", "number", "money"),
    [("¥1,299.50", "1299.50", True), ("-3", "-3", False), ("１２", "12", False), ("12块钱", "12", True),
     ("about 12", None, False), ("", None, False), ("1,2", None, False), (12, None, False), ("12 pieces of", None, False),
     ("€ 3", "3", True), ("15%", "15", False)],
)  # fmt: skip
def test_numbers_as_people_write_them(cell, number, money):
    assert (plain_number(cell), has_money(cell)) == (number, money)
    assert bool(how_to_clean(cell, is_text=False)) == (number is not None)


@pytest.mark.parametrize(
    ("name", "says"),
    [("\\ud800", "not JSON: half of a surrogate pair, U+D800"), ("a\\u0000b", "not JSON: a text holds U+0000")],
)
def test_escapes_that_are_no_text(project, name, says):
    message = told(json_lines_shop_of(project, f'{{"item_id": 1, "name": "{name}", "price": 3}}\n'))
    assert f"{JSONL}:1:1: error[table-json]: {says}" in message


def test_escapes_that_are_text(project):
    items = '{"item_id": 1, "name": "\\ud83d\\ude00 \\\\u0000", "price": 3}\n'
    with open_world(json_lines_shop_of(project, items) / "manifests/worlds/shop.yaml") as world:
        assert world.read("SELECT name FROM items")[1] == [{"name": "😀 \\u0000"}]


def test_keys_of_objects_that_differ_by_case_alone(project):
    items = '{"item_id": 1, "name": "Kettle", "price": 3}\n{"item_id": 2, "name": "Cup", "price": 4, "Price": 5}\n'
    message = told(json_lines_shop_of(project, items))
    assert f"{JSONL}:2:1: error[table-header]: two columns have one name; got Price" in message
    assert "hint: the other is `price`; SQL knows no case" in message


def test_a_name_that_sqlite_keeps_for_itself(project):
    message = told(own_shop(project, world=changed(WORLD, ("  orders: {", "  sqlite_orders: {"))))
    assert "manifests/worlds/shop.yaml:7:3: error[world-table]" in message
    assert "got sqlite_orders; allowed another name" in message


def json_lines_shop_of(project, lines: str):
    """The shop with these lines as its items."""
    return own_shop(project, world=changed(WORLD, ("shop/items.csv", "shop/items.jsonl")), more={JSONL: lines})
