"""Customers: finding them, and their own data."""

from store import load, save


def find_user_id_by_email(email: str, ctx):
    """The id of the user with this e-mail address."""
    row = ctx.world.connection().execute("SELECT user_id FROM users WHERE lower(email) = lower(?)", (email,)).fetchone()
    return _found(ctx, row)


def find_user_id_by_name_zip(first_name: str, last_name: str, zip: str, ctx):
    """The id of the user of this name and zip code."""
    row = (
        ctx.world.connection()
        .execute(
            "SELECT user_id FROM users WHERE lower(json_extract(name, '$.first_name')) = lower(?) "
            "AND lower(json_extract(name, '$.last_name')) = lower(?) AND json_extract(address, '$.zip') = ?",
            (first_name, last_name, zip),
        )
        .fetchone()
    )
    return _found(ctx, row)


def get_user_details(user_id: str, ctx):
    """All that is kept of the customer of this session."""
    return load(ctx, "users", _own(ctx, user_id))


def modify_user_address(user_id: str, ctx, **address):
    """Set the default address."""
    user = load(ctx, "users", _own(ctx, user_id))
    user["address"] = address
    save(ctx, "users", user)
    return user


def _found(ctx, row):
    if row is None:
        raise LookupError("user not found")
    ctx.session["user_id"] = row[0]
    return row[0]


def _own(ctx, user_id):
    if user_id != ctx.session.get("user_id"):
        raise PermissionError("this is another customer's data")
    return user_id
