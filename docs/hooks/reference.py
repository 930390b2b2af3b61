"""What MkDocs writes into the pages of commands, configuration and Python names, from the code."""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.pages import Page
from typer.main import get_command

from graphrag.api import search
from graphrag.eval.cli.app import app

ROOT = Path(__file__).parents[2]
SEARCHES = ("tog", "ppr", "bm25", "hybrid", "agentic")


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Write what the marks of a page stand for in their place."""
    if page.file.src_uri == "commands.md":
        return markdown.replace("<!-- commands -->", "\n\n".join(commands()))
    if page.file.src_uri == "configuration.md":
        return markdown.replace("<!-- configuration -->", "\n\n".join(configuration()))
    if page.file.src_uri == "api.md":
        return names(markdown).replace("<!-- searches -->", "\n\n".join(searches()))
    return markdown


def on_page_content(html: str, **_: object) -> str:
    """Leave out the roles of Sphinx, which docstrings have before a name."""
    return re.sub(r":(?:class|meth|func|attr|data|mod|exc):(?=<code)", "", html)


def commands() -> Iterator[str]:
    """Yield every command and flag, as ``--help`` has them."""
    group: Any = get_command(app)
    for name, each in {"": group, **group.commands}.items():
        if each.hidden:
            continue
        yield f"## graphrag eval {name}"
        yield inspect.cleandoc(each.callback.__doc__)
        shown = [flag for flag in each.params if flag.name != "help" and not flag.hidden]
        yield _rows("flag", "default", "what", *map(_flag, shown))


def _flag(flag: Any) -> tuple[str, str, str]:
    is_option = flag.param_type_name == "option"
    default = flag.default
    if default is None or isinstance(default, bool | list) or callable(default):
        default = flag.show_default if isinstance(flag.show_default, str) else None
    what = ", ".join(f"`{name}`" for name in flag.opts) if is_option else f"`{flag.name.upper()}`"
    return what, "" if default is None else f"`{default}`", flag.help or ""


def configuration() -> Iterator[str]:
    """Yield every key of ``eval_config.yaml``, as the JSON schema has them."""
    path = ROOT / "schemas" / "eval_config.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    sections: dict[str, str] = {}
    for owner, properties in [("", schema["properties"])] + [
        (name, each.get("properties", {})) for name, each in schema["$defs"].items()
    ]:
        for key, value in properties.items():
            for name in re.findall(r"#/\$defs/(\w+)", json.dumps(value)):
                sections.setdefault(name, f"{sections.get(owner, '')}.{key}".strip("."))
    yield "## Top level"
    yield _keys(schema["properties"])
    for name, each in schema["$defs"].items():
        if "properties" in each:
            yield f"## {sections[name]}"
            yield each["description"]
            yield _keys(each["properties"])


def _keys(properties: dict[str, Any]) -> str:
    rows: list[tuple[str, str, str, str]] = []
    for key, value in properties.items():
        default, what = value.get("default"), value.get("description", "")
        if "$ref" in value:
            default, what = None, f"See [{key}](#{key})."
        text = "" if default is None or len(str(default)) > 80 else f"`{json.dumps(default)}`"
        rows.append((f"`{key}`", _type(value), text, what))
    return _rows("key", "type", "default", "what", *rows)


def _type(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return "section"
    kinds = dict.fromkeys(_type(each) for each in value.get("anyOf", [])) or [
        value.get("type", value.get("const", ""))
    ]
    low = value.get("minimum", value.get("exclusiveMinimum"))
    high = value.get("maximum", value.get("exclusiveMaximum"))
    bounds = [f">= {low}" if low is not None else "", f"<= {high}" if high is not None else ""]
    return " ".join([" or ".join(map(str, kinds)), *filter(None, bounds)])


def _rows(*cells: str | tuple[str, ...]) -> str:
    """Return a table of a row of headings and, as tuples, the rows below it."""
    headings = tuple(each for each in cells if isinstance(each, str))
    rows = [each for each in cells if not isinstance(each, str)]
    lines = [headings, ("---",) * len(headings), *rows]
    shown = [" | ".join(" ".join(cell.split()) for cell in line) for line in lines]
    return "\n".join(f"| {re.sub(r'(?<!`)``(?!`)', '`', line)} |" for line in shown)


def names(markdown: str) -> str:
    """Put the public names of ``graphrag.eval`` where their modules are named."""
    text = (ROOT / "graphrag" / "eval" / "__init__.pyi").read_text(encoding="utf-8")
    left = re.findall(r"^from \.([\w.]+) import (\w+)", text, flags=re.MULTILINE)

    def fill(mark: re.Match[str]) -> str:
        rooms = mark[1].split(", ")
        here = [each for each in left if each[0].split(".")[0] in rooms]
        left[:] = [each for each in left if each not in here]
        return "\n\n".join(f"::: graphrag.eval.{module}.{name}" for module, name in here)

    filled = re.sub(r"<!-- names: ([\w, ]+) -->", fill, markdown)
    if left:
        msg = f"docs/api.md has no place for {left}"
        raise ValueError(msg)
    return filled


def searches() -> Iterator[str]:
    """Yield the search functions, whose signatures are known at run time alone."""
    for method in SEARCHES:
        function = getattr(search, f"{method}_search")
        given = ", ".join(
            each.name if each.default is each.empty else f"{each.name}={each.default!r}"
            for each in inspect.signature(function).parameters.values()
        )
        yield f"### {method}_search"
        yield f"```python\n{method}_search({given})\n```"
        yield inspect.getdoc(function) or ""
