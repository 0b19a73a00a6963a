"""Writes mace_contraction.json: a symmetric contraction of mace-torch 0.3.16 (e3nn 0.4.4) in float64, its own basis included.

Run with mace-torch installed:  TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 python make_mace_goldens.py [output]
Inputs follow the formula of README.md (streams x 0, weight 2, cotangent 3); x is in e3nn's mul_ir layout.
"""

import json
import sys
from pathlib import Path

import torch

torch.set_default_dtype(torch.float64)

from e3nn import o3  # noqa: E402  (builds its constants in the default dtype)
from mace.modules.symmetric_contraction import SymmetricContraction  # noqa: E402

CHANNELS, ELEMENTS, NODES, CORRELATION = 2, 2, 3, 3
IRREPS_IN, IRREPS_OUT = "2x0e+2x1o+2x2e", "2x0e+2x1o"
SPECIES = [0, 1, 0]


def numbers(stream: int, count: int) -> torch.Tensor:
    return torch.tensor(
        [((37 * k**3 + 131 * k**2 + 7919 * k + 10477 * stream) % 2003 - 1001.5) / 500.0 for k in range(1, count + 1)]
    )


def channels_apart(row: torch.Tensor, irreps: o3.Irreps) -> torch.Tensor:
    """(nodes, mul_ir features) to (nodes, channels, components of one channel)."""
    blocks = [row[:, s].reshape(len(row), block.mul, -1) for s, block in zip(irreps.slices(), irreps, strict=True)]
    return torch.cat(blocks, dim=2)


def bases_and_weights(module: SymmetricContraction, correlation: int) -> tuple[str, list[torch.Tensor]]:
    """The module's U tensors as text (the builder's option `bases`), its weights (elements, parameters, channels) in that order."""
    texts, weights = [], []
    for segment, contraction in enumerate(module.contractions):
        by_correlation = {correlation: contraction.weights_max}
        by_correlation |= {correlation - 1 - i: w for i, w in enumerate(contraction.weights)}
        for degree in range(1, correlation + 1):
            basis = contraction.U_tensors(degree)  # (m,) components..., parameter; no m axis for scalars
            if basis.dim() == degree + 1:
                basis = basis[None]
            entries = []
            for m, *components, parameter in basis.nonzero().tolist():
                value = basis[(m, *components, parameter)].item()
                entries.append(",".join(map(str, [*components, parameter, m])) + f":{value!r}")
            texts.append(f"{segment},{degree},{basis.shape[-1]}: " + " ".join(entries))
            weights.append(by_correlation[degree])
    return ";".join(texts), weights


def main() -> None:
    irreps_in, irreps_out = o3.Irreps(IRREPS_IN), o3.Irreps(IRREPS_OUT)
    module = SymmetricContraction(irreps_in, irreps_out, correlation=CORRELATION, num_elements=ELEMENTS)
    bases, weights = bases_and_weights(module, CORRELATION)

    count = sum(w.shape[1] * CHANNELS for w in weights)
    flat = numbers(2, ELEMENTS * count).reshape(ELEMENTS, count).requires_grad_()
    begin = 0
    with torch.no_grad():
        for w in weights:
            size = w.shape[1] * CHANNELS
            w.copy_(flat[:, begin : begin + size].reshape(w.shape))
            begin += size
    x = numbers(0, NODES * irreps_in.dim).reshape(NODES, -1).requires_grad_()
    one_hot = torch.nn.functional.one_hot(torch.tensor(SPECIES), ELEMENTS).double()
    output = module(channels_apart(x, irreps_in), one_hot)
    cotangent = numbers(3, output.numel()).reshape(output.shape)
    grads = torch.autograd.grad((cotangent * output).sum(), [x, *weights])
    golden = {
        "mace": "0.3.16",
        "irreps_in": IRREPS_IN,
        "irreps_out": IRREPS_OUT,
        "species": SPECIES,
        "elements": ELEMENTS,
        "bases": bases,
        "output": output.reshape(-1).tolist(),
        "grad_x": grads[0].reshape(-1).tolist(),
        "grad_weight": torch.cat([g.reshape(ELEMENTS, -1) for g in grads[1:]], dim=1).reshape(-1).tolist(),
    }
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("mace_contraction.json")
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
