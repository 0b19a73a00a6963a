"""Operations as notebooks show them: a table of the arrays, a picture of the paths, and a table of them or of a program's steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from ._picture import paths_svg

if TYPE_CHECKING:
    from .operation import Operation

MOST_ROWS = 60


def operation_html(operation: Operation) -> str:
    """Operands and indices, then the paths of a polynomial, or the steps of a program with the polynomials they use."""
    arrays = []
    for operand in operation.operands:
        kind, space = "output" if operand.is_output else "input", operand.space or "one row"
        arrays.append((operand.name, kind, operand.segments, operand.layout, operand.row_size, space))
    indices = [(index.name, index.source, index.target, "non-decreasing" if index.sorted else "") for index in operation.indices]
    parts = [f"<b>Operation</b> <code>{operation.hash[:12]}</code>"]
    parts.append(_table(("array", "", "segments", "layout", "numbers per row", "row space"), arrays))
    if indices:
        parts.append(_table(("index", "for every row of", "a row of", ""), indices))
    lines = operation.text.splitlines()
    paths = [line for line in lines if line.startswith("path")]
    if lines[0].startswith("clebsch program"):
        steps = [line for line in lines if " = " in line and not line.startswith("path")]
        parts.append(_table(("value", "step"), [step.split(" = ", 1) for step in steps]))
        polynomials = sum(line.startswith("polynomial ") for line in lines)
        parts.append(f"{len(paths)} paths in {polynomials} polynomials: <code>.text</code>")
    else:
        parts.append(paths_svg(operation))
        parts.append(_table(("channels", "output", "term"), [_path(line) for line in paths]))
    return "".join(f"<div>{part}</div>" for part in parts if part)


def _path(line: str) -> tuple[str, str, str]:
    """Extents, output factor and product of a canonical path line."""
    head, product = line.split(" += ", 1)
    extents, output = head.removeprefix("path").split(": ", 1)
    return extents.strip(), output, product


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = list(rows)
    shown = cells[:MOST_ROWS]
    body = "".join("<tr>" + "".join(f"<td><code>{escape(_short(cell))}</code></td>" for cell in row) + "</tr>" for row in shown)
    if len(cells) > len(shown):
        body += f'<tr><td colspan="{len(head)}">and {len(cells) - len(shown)} more</td></tr>'
    return "<table><tr>" + "".join(f"<th>{escape(title)}</th>" for title in head) + f"</tr>{body}</table>"


def _short(cell: object, longest: int = 160) -> str:
    text = str(cell)
    return text if len(text) <= longest else text[: longest - 3] + "..."
