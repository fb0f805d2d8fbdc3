"""A small project with a world, for tests to change one file of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

MANIFEST = """\
apiVersion: harnessctl/v1
kind: World
name: shop
version: 1.0.0
tables:
  items: {file: items.csv, key: [id]}
  faq: {file: faq.csv, key: [id]}
  orders: {file: orders.csv, key: [order_id], mutable: true}
faq: {table: faq, filter: [lang, item]}
context:
  item: {one: true, sql: "SELECT * FROM items WHERE id = :link"}
  orders: {sql: SELECT order_id FROM orders WHERE buyer = :viewer ORDER BY order_id}
  faq: {search: faq, where: {lang: lang}, top_k: 2}
"""
ITEMS = """\
id,name,price,weight,code
1,Sunscreen,89,0.25,007
2,"Lamp, small",39.5,1,12
3,\u6d17\u9762\u5976,59,0.12,A1
"""
FAQ = """\
id,lang,item,question,answer
1,en,,How much is shipping?,Free from 59 yuan.
2,en,1,Is the sunscreen sticky?,No.
3,zh,,\u5305\u90ae\u5417\uff1f,\u6ee159\u5143\u5305\u90ae\u3002
4,zh,,\u4e03\u5929\u53ef\u4ee5\u9000\u8d27\u5417\uff1f,\u53ef\u4ee5\u3002
"""
ORDERS = """\
order_id,buyer,state
A1,ann,paid
A2,bob,sent
"""

Write = Callable[[Mapping[str, str | bytes]], Path]


def shop(project: Write, **changed: str | bytes) -> Path:
    """The world's manifest, after `manifest`, `items`, `faq` or `orders` was replaced."""
    files = {"manifest": MANIFEST, "items": ITEMS, "faq": FAQ, "orders": ORDERS} | changed
    root = project(
        {
            "manifests/harness.yaml": "",
            "manifests/worlds/shop.yaml": files["manifest"],
            "manifests/worlds/items.csv": files["items"],
            "manifests/worlds/faq.csv": files["faq"],
            "manifests/worlds/orders.csv": files["orders"],
        }
    )
    return root / "manifests/worlds/shop.yaml"
