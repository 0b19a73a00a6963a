"""What every test of this folder starts from."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _default_dtype(request: pytest.FixtureRequest) -> Iterator[None]:
    """PyTorch's default dtype is what the test's module says as DEFAULT_DTYPE, else float32; it ends with the test."""
    torch = sys.modules.get("torch")  # not there in JAX's environment
    if torch is None:
        yield
        return
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(request.module, "DEFAULT_DTYPE", torch.float32))
    yield
    torch.set_default_dtype(before)
