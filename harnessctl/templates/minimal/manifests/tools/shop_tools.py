"""The code of the shop's tools; it is embedded in the bundle, so a bundle carries what it was tested with."""

PRICES = {"teapot": 89, "cup": 19, "tray": 45}


def get_price(article: str) -> dict:
    """The price of an article in yuan; the model reads the error when there is no such article."""
    if article not in PRICES:
        raise LookupError(f"no article {article!r}; there are {', '.join(PRICES)}")
    return {"article": article, "price": PRICES[article], "currency": "yuan"}
