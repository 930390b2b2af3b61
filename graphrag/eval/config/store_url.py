"""The address of a PostgreSQL store: checked, and written without its password."""

from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from graphrag.redaction import know_settings

_SCHEMES = ("postgresql", "postgres")
_SECRET = ("password", "sslpassword")


def check_store_url(url: str) -> str:
    """Return the address of a store, its password known for a secret from now on.

    Raises
    ------
    ValueError
        If it is none of PostgreSQL; what is wrong is said without the address.
    """
    try:
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query))
    except ValueError:
        parts, given = urlsplit(""), dict[str, str]()
    user, _, host = parts.netloc.rpartition("@")
    password = user.partition(":")[2]
    know_settings({"password": [password, *(given.get(name, "") for name in _SECRET)]})
    if parts.scheme not in _SCHEMES:
        msg = (
            "a store is named by an address such as postgresql://user@host/database, or is eval.db "
            "in the folder of the results"
        )
        raise ValueError(msg)
    if "@" in user or "@" in parts.path or parts.fragment or any(c.isspace() for c in url):
        msg = (
            "the address of the store can't be read; write what is no letter or digit of its "
            f"password as {quote('@', safe='')}, {quote('/', safe='')} and the like"
        )
        raise ValueError(msg)
    if not host and "host" not in given and len(parts.path) < 2:
        msg = "the address of the store names neither a host nor a database"
        raise ValueError(msg)
    return url


def without_password(url: str) -> str:
    """Return the address of a store without its password, as it can be given again.

    The user is written as a parameter, since whatever stands before ``@`` is taken for a secret
    where texts are shown.
    """
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    name = unquote(user.partition(":")[0])
    given = [(key, value) for key, value in parse_qsl(parts.query) if key not in _SECRET]
    query = urlencode([*([("user", name)] if name else []), *given])
    return f"{parts.scheme}://{host}{parts.path}{'?' if query else ''}{query}"


def name_store(url: str) -> str:
    """Return host and database of a store for a sentence."""
    return without_password(url).partition("?")[0]
