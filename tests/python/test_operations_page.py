"""docs/operations.md ends with every option of every builder. Run as a program, this file writes that part."""

from pathlib import Path

import clebsch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
HEADING = "## All options\n"


def all_options() -> str:
    lines = [HEADING]
    for name, builder in clebsch.builders().items():
        lines.append(f"\n**{name}**: {builder['help']}\n\n| option | type | default | |\n|---|---|---|---|\n")
        for option, facts in builder["options"].items():
            kind = ", ".join(f"`{choice}`" for choice in facts.get("choices", ())) or facts["type"]
            default = "required" if facts["required"] else f"`{facts['default']}`" if facts.get("default") else ""
            lines.append(f"| `{option}` | {kind} | {default} | {facts['help'].replace('|', chr(92) + '|')} |\n")
    return "".join(lines)


def test_the_page_lists_every_option() -> None:
    assert HEADING + PAGE.read_text().split(HEADING)[1] == all_options()


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text().split(HEADING)[0].rstrip() + "\n\n" + all_options())
