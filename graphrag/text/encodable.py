"""Text that can be written: a service may send half of a character."""


def mend_text(text: str) -> str:
    """Return a text with "?" for each lone surrogate, which neither UTF-8 nor a database holds."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
