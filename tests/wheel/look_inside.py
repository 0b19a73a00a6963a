"""What a built wheel holds: small, for every Python, its libraries, the program, nothing twice. usage: look_inside.py WHEEL"""

from __future__ import annotations

import platform as machine
import re
import sys
import zipfile
from collections import Counter
from pathlib import Path

LARGEST = 15 << 20  # bytes
NEWEST_GLIBC = 34  # as minor version: what RHEL 9 has. Built where glibc is newer than Debian 12's, a wheel may need more.
LIBRARIES = ["clebsch/lib/libclebsch.so", "clebsch/lib/libclebsch_jax.so", "clebsch/lib/libclebsch_torch.so"]


def _glibc() -> tuple[int, ...]:
    return tuple(int(part) for part in machine.libc_ver()[1].split("."))


def problems(wheel: Path) -> list[str]:
    """What is wrong with it; empty: nothing."""
    found = []
    with zipfile.ZipFile(wheel) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    names = [entry.filename for entry in entries]
    if wheel.stat().st_size >= LARGEST:
        found.append(f"{wheel.stat().st_size} bytes, expected fewer than {LARGEST}")
    if "-py3-none-" not in wheel.name:
        found.append("not tagged py3-none: it would not install on every Python")
    platform = re.search(r"-manylinux_2_(\d+)_\w+\.whl$", wheel.name)
    if platform is None:
        found.append("no manylinux platform: pip would refuse it, or install it where it cannot run")
    elif _glibc() <= (2, 36) and int(platform[1]) > NEWEST_GLIBC:
        found.append(f"needs glibc 2.{platform[1]}, expected at most 2.{NEWEST_GLIBC} (auditwheel show -v names the symbols)")
    libraries = [name for name in names if ".so" in Path(name).name]
    if sorted(libraries) != LIBRARIES:
        found.append(f"expected {', '.join(LIBRARIES)} and no other library, got {libraries}")
    if sum(name.endswith(".data/scripts/clebsch") for name in names) != 1:
        found.append("the clebsch program is missing (was CLI11 found? apt-get install libcli11-dev)")
    for needed in (
        "clebsch/__init__.py",
        "clebsch/py.typed",
        "clebsch/torch/__init__.py",
        "clebsch/jax/__init__.py",
        "clebsch/compat/e3nn/__init__.py",
    ):
        if needed not in names:
            found.append(f"{needed} is missing")
    copies = Counter((entry.CRC, entry.file_size) for entry in entries if entry.file_size > 100_000)
    found += [
        f"held {count} times: {[e.filename for e in entries if (e.CRC, e.file_size) == key]}"
        for key, count in copies.items()
        if count > 1
    ]
    strays = [
        name for name in names if not name.startswith("clebsch/") and ".dist-info/" not in name and ".data/scripts/" not in name
    ]
    return found + [f"unexpected: {name}" for name in strays]


def main() -> None:
    wheel = Path(sys.argv[1])
    found = problems(wheel)
    if found:
        raise SystemExit("\n".join(f"{wheel.name}: {problem}" for problem in found))
    print(f"{wheel.name}: {wheel.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
