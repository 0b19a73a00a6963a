"""clang-tidy over sources of a build, skipping those that passed before and of which nothing changed since.

    python cmake/clang_tidy.py BUILD FILE...

A file is the same when its compile commands, .clang-tidy and every file of this project that it includes (as the build
recorded them) are.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAMPS = ROOT / ".cache" / "clang-tidy"


def recorded_includes(build: Path) -> dict[str, list[Path]]:
    """Object file to the project's files that went into it."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True).stdout
    includes: dict[str, list[Path]] = {}
    current: list[Path] = []
    for line in listing.splitlines():
        if line.startswith(" "):
            path = (build / line.strip()).resolve()
            if path.is_relative_to(ROOT) and not path.is_relative_to(build):
                current.append(path)
        elif ": #deps" in line:
            current = includes[line.split(": #deps")[0]] = []
    return includes


def fingerprint(commands: list[dict[str, str]], includes: dict[str, list[Path]]) -> str | None:
    """Of everything that clang-tidy would read; None when the build does not know."""
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for command in commands:
        files = includes.get(command.get("output", ""))
        if not files or not all(path.exists() for path in files):
            return None
        digest.update(command["command"].encode())
        for path in files:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def without_precompiled_headers(entries: list[dict[str, str]]) -> list[dict[str, str]]:
    """The compile commands without GCC's precompiled headers, which Clang cannot read; sources include what they use."""
    return [e | {"command": re.sub(r"-include \S*cmake_pch\.hxx", "", e["command"])} for e in entries]


def check(source: str, database: Path) -> tuple[str, int, str]:
    run = subprocess.run(
        ["clang-tidy-14", "-p", database, "--quiet", source], cwd=ROOT, capture_output=True, text=True, check=False
    )
    problems = "\n".join(line for line in run.stderr.splitlines() if not line.endswith("warnings generated."))
    return source, run.returncode, run.stdout + problems


def main() -> int:
    build, sources = Path(sys.argv[1]).resolve(), sys.argv[2:]
    commands: dict[str, list[dict[str, str]]] = {}
    entries = json.loads((build / "compile_commands.json").read_text())
    for entry in entries:
        commands.setdefault(str(Path(entry["file"]).resolve().relative_to(ROOT)), []).append(entry)
    includes = recorded_includes(build)
    fresh = {}
    for source in sources:
        fresh[source] = fingerprint(commands.get(source, []), includes) if source in commands else None
    stamps = {source: STAMPS / source.replace("/", "_") for source in sources}
    todo = [s for s in sources if fresh[s] is None or not stamps[s].exists() or stamps[s].read_text() != fresh[s]]
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / "compile_commands.json").write_text(json.dumps(without_precompiled_headers(entries)))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for source, status, text in pool.map(lambda s: check(s, STAMPS), todo):
            if status == 0:
                stamps[source].write_text(fresh[source] or "")
            else:
                failed += 1
                print(text, flush=True)
    print(f"clang-tidy: {len(todo)} of {len(sources)} files read, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
