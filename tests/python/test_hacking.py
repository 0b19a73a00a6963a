"""HACKING.md is the map: what it names exists, and every file of the sources is named."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "HACKING.md").read_text()
FOLDERS = ("src", "include", "bindings", "python/clebsch", "fuzz", "tests/support")
ENDINGS = {".cpp", ".hpp", ".h", ".cuh", ".in", ".map", ".py"}


def sources() -> list[Path]:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in ENDINGS]
    return [file for file in files if file.name != "__init__.py"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_source_is_named(folder: str) -> None:
    stems = {file.name.split(".")[0] for file in sources() if file.is_relative_to(ROOT / folder)}
    assert stems, f"{folder} has no sources"
    missing = [stem for stem in stems if not re.search(rf"(?<!\w){re.escape(stem)}(?!\w)", PAGE)]
    assert not missing, f"HACKING.md does not name {sorted(missing)} of {folder}"


def test_what_is_named_exists() -> None:
    """Names with a slash, in backquotes: files with or without their ending, folders, patterns; from the root, src/ or src/run/."""
    names = re.findall(r"`([\w.-]+/[\w./*-]*)`", PAGE)
    assert len(names) > 40
    places = [ROOT, ROOT / "src", ROOT / "src" / "run", ROOT / "tests"]
    missing = [
        name
        for name in names
        if "NAME" not in name and not any(list(place.glob(name.rstrip("/"))) or list(place.glob(f"{name}.*")) for place in places)
    ]
    assert not missing, f"HACKING.md names {missing}, which are not there"
