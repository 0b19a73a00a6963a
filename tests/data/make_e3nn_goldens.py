"""Writes e3nn.json: what e3nn 0.6.0 computes, in float64, for small inputs of every operation that Clebsch describes too.

Run with e3nn 0.6.0 and PyTorch installed:  python make_e3nn_goldens.py [output]
README.md beside this file documents the schema. The inputs are a formula (`number`), so only results are stored.
"""

import itertools
import json
import math
import sys
from pathlib import Path

import e3nn
import torch
from e3nn import nn, o3
from e3nn.math import soft_one_hot_linspace

# e3nn builds its constants in the default dtype at construction: float64 has to be set before anything is built.
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

X, Y, WEIGHT, COTANGENT, BIAS, TANGENT_X, TANGENT_Y, TANGENT_WEIGHT = range(8)
ROWS = 3


def number(stream: int, i: int) -> float:
    """Element `i` of input `stream`: never 0, between -2.003 and 2.003, the same double everywhere."""
    k = i + 1
    return ((37 * k**3 + 131 * k**2 + 7919 * k + 10477 * stream) % 2003 - 1001.5) / 500.0


def numbers(stream: int, *shape: int) -> torch.Tensor:
    values = torch.tensor([number(stream, i) for i in range(math.prod(shape))])
    return values.reshape(shape).requires_grad_()


def flat(tensor: torch.Tensor) -> list[float]:
    return tensor.detach().reshape(-1).tolist()


def gradients(output: torch.Tensor, inputs: dict[str, torch.Tensor]) -> dict[str, list[float]]:
    """Gradients of sum(cotangent * output), the cotangent being input COTANGENT, by the names of the inputs."""
    cotangent = numbers(COTANGENT, *output.shape).detach()
    given = {name: value for name, value in inputs.items() if value.numel() > 0}
    found = torch.autograd.grad((cotangent * output).sum(), list(given.values()), allow_unused=True)
    return {
        f"grad_{name}": flat(torch.zeros_like(value) if grad is None else grad)
        for (name, value), grad in zip(given.items(), found, strict=True)
    }


def instruction_lists(module) -> list[list]:
    return [[i.i_in1, i.i_in2, i.i_out, i.connection_mode, i.has_weight] for i in module.instructions]


def run_tensor_product(module, name: str, shared: bool, square: bool = False, **described) -> dict:
    x = numbers(X, ROWS, module.irreps_in1.dim)
    y = numbers(Y, ROWS, module.irreps_in2.dim)
    weight = numbers(WEIGHT, *(() if shared else (ROWS,)), module.weight_numel)
    inputs = {"x": x, "weight": weight} if square else {"x": x, "y": y, "weight": weight}
    arguments = (x,) if square else (x, y)
    output = module(*arguments, weight) if module.weight_numel > 0 else module(*arguments)
    return {
        "name": name,
        "irreps_in1": str(module.irreps_in1),
        "irreps_in2": str(module.irreps_in2),
        "irreps_out": str(module.irreps_out),
        **described,
        "shared_weights": shared,
        "instructions": instruction_lists(module),
        "coefficients": [i.path_weight for i in module.instructions],
        "weight_numel": module.weight_numel,
        "output_mask": [int(m) for m in module.output_mask.tolist()],
        "output": flat(output),
        **gradients(output, inputs),
    }


def tensor_product(
    name: str,
    in1: str,
    in2: str,
    out: str,
    instructions: list[tuple],
    *,
    shared: bool = True,
    irrep: str = "component",
    path: str = "element",
    in1_var: list[float] | None = None,
    in2_var: list[float] | None = None,
    out_var: list[float] | None = None,
) -> dict:
    module = o3.TensorProduct(
        in1, in2, out, instructions, in1_var, in2_var, out_var, irrep, path, internal_weights=False, shared_weights=shared
    )
    return run_tensor_product(
        module,
        name,
        shared,
        path_weights=[i[5] if len(i) > 5 else 1.0 for i in instructions],
        irrep_normalization=irrep,
        path_normalization=path,
        in1_var=in1_var,
        in2_var=in2_var,
        out_var=out_var,
    )


def tensor_products() -> list[dict]:
    cases = []
    # Every channel mode, with and without weights where e3nn allows it, on two couplings into two slots.
    modes = {
        "uvw": ("2x1o+1x2e", "3x1o+2x0e", "2x1e+3x2e", [True]),
        "uvu": ("2x1o+1x2e", "3x1o+2x0e", "2x1e+1x2e", [True, False]),
        "uvv": ("2x1o+1x2e", "3x1o+2x0e", "3x1e+2x2e", [True, False]),
        "uuw": ("3x1o+2x2e", "3x1o+2x0e", "2x1e+3x2e", [True]),
        "uuu": ("3x1o+2x2e", "3x1o+2x0e", "3x1e+2x2e", [True, False]),
        "uvuv": ("2x1o+1x2e", "3x1o+2x0e", "6x1e+2x2e", [True, False]),
        "uvu<v": ("4x1o+3x2e", "4x1o+3x0e", "6x1e+3x2e", [True, False]),
        "u<vw": ("4x1o+3x2e", "4x1o+3x0e", "2x1e+3x2e", [True]),
    }
    for mode, (in1, in2, out, weighted) in modes.items():
        for has_weight in weighted:
            instructions = [(0, 0, 0, mode, has_weight), (1, 1, 1, mode, has_weight)]
            label = f"{mode} {'weighted' if has_weight else 'unweighted'}"
            for shared in (True, False) if has_weight else (True,):
                sharing = "" if not has_weight else ", shared" if shared else ", per row"
                cases.append(tensor_product(label + sharing, in1, in2, out, instructions, shared=shared))
    cases.append(tensor_product("uuw unweighted", "3x1o", "3x1o", "1x1e", [(0, 0, 0, "uuw", False)]))
    cases.append(
        tensor_product(
            "u<vw of one channel: no weight, masked",
            "1x1o+2x0e",
            "1x1o+2x0e",
            "2x1e+2x0e",
            [(0, 0, 0, "u<vw", True), (1, 1, 1, "uuu", True)],
        )
    )

    # Every normalization on several instructions into one slot, one with a path weight of 2 and one of 0.
    mixed = [
        (0, 0, 0, "uvu", True),
        (0, 1, 1, "uvw", True),
        (1, 0, 1, "uvu", False, 2.0),
        (1, 1, 0, "uvw", True),
        (1, 1, 0, "uvw", True, 0.0),
    ]
    operands = ("2x0e+3x1o", "2x0e+1x1o", "2x0e+3x1o")
    for irrep, path in itertools.product(("component", "norm", "none"), ("element", "path", "none")):
        cases.append(tensor_product(f"mixed, {irrep} {path}", *operands, mixed, irrep=irrep, path=path))
    variances = {"in1_var": [2.0, 3.0], "in2_var": [5.0, 7.0], "out_var": [11.0, 13.0]}
    for path in ("element", "path", "none"):
        cases.append(tensor_product(f"mixed, variances, {path}", *operands, mixed, path=path, shared=False, **variances))

    # Higher degrees, even and odd sums, and slots no instruction reaches.
    cases.append(
        tensor_product(
            "degrees up to 4, a slot without instruction, a block of multiplicity 0",
            "2x3o+1x4e",
            "1x2e+1x3o",
            "2x2o+0x1e+3x1e+2x4o+1x3o",
            [(0, 0, 0, "uvu", True), (0, 0, 3, "uvu", True), (1, 1, 4, "uvu", True), (1, 1, 4, "uvw", True, 0.25)],
            shared=False,
        )
    )
    cases.append(
        tensor_product(
            "all parities",
            "1x0e+1x0o+1x1e+1x1o",
            "1x0e+1x0o+1x1e+1x1o",
            "2x0e+2x0o+2x1e+2x1o",
            [
                (i, j, k, "uvw", True)
                for i, j, k in itertools.product(range(4), repeat=3)
                if o3.Irrep(["0e", "0o", "1e", "1o"][k])
                in o3.Irrep(["0e", "0o", "1e", "1o"][i]) * o3.Irrep(["0e", "0o", "1e", "1o"][j])
            ],
        )
    )
    return cases


def fully_connected() -> list[dict]:
    cases = []
    settings = [
        ("component", "element"),
        ("component", "path"),
        ("norm", "element"),
        ("norm", "path"),
        ("none", "element"),
        ("none", "path"),
    ]
    for irrep, path in settings:
        module = o3.FullyConnectedTensorProduct(
            "2x0e+1x1o", "1x0e+1x1o", "1x0e+2x1o+1x1e", irrep, path, internal_weights=False, shared_weights=True
        )
        cases.append(run_tensor_product(module, f"{irrep} {path}", True, irrep_normalization=irrep, path_normalization=path))
    for shared in (True, False):
        module = o3.FullyConnectedTensorProduct(
            "3x0e+2x1o+1x2e", "1x0e+1x1o+1x2e", "2x0e+1x0o+2x1o+1x1e+1x2e", internal_weights=False, shared_weights=shared
        )
        label = "repeated irreps and three degrees, " + ("shared" if shared else "per row")
        cases.append(run_tensor_product(module, label, shared, irrep_normalization="component", path_normalization="element"))
    module = o3.FullyConnectedTensorProduct(
        "1x0e+2x0e+1x1o", "1x1o+0x2e+1x0e", "1x1o+2x1o", internal_weights=False, shared_weights=True
    )
    cases.append(
        run_tensor_product(
            module, "equal neighbours are not merged", True, irrep_normalization="component", path_normalization="element"
        )
    )
    return cases


def full() -> list[dict]:
    cases = []
    for in1, in2, keep, irrep in [
        ("2x0e+1x1o", "1x1o+1x2e", None, "component"),
        ("2x0e+1x1o", "1x1o+1x2e", None, "norm"),
        ("2x0e+1x1o", "1x1o+1x2e", None, "none"),
        ("1x1o+1x0e+1x1o", "1x0e+1x1o", None, "component"),
        ("2x1o+1x1o+2x2e", "1x1o+2x3o", ["1o", "2e", "0e"], "component"),
    ]:
        module = o3.FullTensorProduct(in1, in2, keep, irrep)
        cases.append(
            {
                "given_in1": in1,
                "given_in2": in2,
                "keep": keep,
                **run_tensor_product(module, f"{in1} x {in2}, {irrep}", True, irrep_normalization=irrep),
            }
        )
    return cases


def elementwise() -> list[dict]:
    cases = []
    for in1, in2, keep, irrep in [
        ("2x1o+1x0e", "1x0e+2x1o", None, "component"),
        ("2x1o+1x0e", "1x0e+2x1o", None, "norm"),
        ("2x1o+1x0e", "1x0e+2x1o", None, "none"),
        ("3x2e+2x1o", "5x1e", ["1e", "1o", "3e"], "component"),
    ]:
        module = o3.ElementwiseTensorProduct(in1, in2, keep, irrep)
        cases.append(
            {
                "given_in1": in1,
                "given_in2": in2,
                "keep": keep,
                **run_tensor_product(module, f"{in1} x {in2}, {irrep}", True, irrep_normalization=irrep),
            }
        )
    return cases


def tensor_squares() -> list[dict]:
    cases = []
    for irreps, out, keep, irrep in [
        ("2x0e+2x1o", None, None, "component"),
        ("2x0e+2x1o", None, None, "norm"),
        ("2x0e+2x1o", None, None, "none"),
        ("1x1o+2x2e+1x1o", None, ["0e", "2e", "1o", "2o"], "component"),
        ("2x0e+2x1o", "2x0e+1x1o+1x2e", None, "component"),
        ("2x0e+2x1o", "2x0e+1x1o+1x2e", None, "norm"),
        ("2x0e+2x1o", "2x0e+1x1o+1x2e", None, "none"),
        ("3x1o+1x2e", "1x0e+2x2e+1x1o+1x1e", None, "component"),
    ]:
        for shared in (True, False) if out is not None else (True,):
            module = o3.TensorSquare(irreps, out, keep, irrep, internal_weights=False, shared_weights=shared)
            name = f"{irreps} squared to {out or 'all'}, {irrep}"
            case = run_tensor_product(module, name, shared, square=True, irrep_normalization=irrep)
            cases.append({"given": irreps, "given_out": out, "keep": keep, **case})
    return cases


def linears() -> list[dict]:
    cases = []
    for name, irreps_in, irreps_out, options in [
        ("shared", "4x0e+2x1o+3x0e", "5x0e+2x1o", {}),
        ("shared, path normalization", "4x0e+2x1o+3x0e", "5x0e+2x1o", {"path_normalization": "path"}),
        ("per row", "2x0e+2x1o+1x2e", "3x1o+1x0e+2x2e", {"shared_weights": False}),
        ("biases on every 0e, never on 0o", "2x0e+1x1o+1x0e", "2x0e+1x1o+1x0o", {"biases": True}),
        ("biases chosen, 0o input", "2x0e+2x0o+1x1o", "2x0e+1x0o+3x0e+1x1o", {"biases": [False, False, True, False]}),
        ("f_in 3, f_out 2", "2x0e+1x1o", "1x0e+2x1o", {"f_in": 3, "f_out": 2}),
        ("f_in 3, f_out 2, biases", "2x0e+1x1o", "2x0e+2x1o", {"f_in": 3, "f_out": 2, "biases": True}),
        ("instructions", "2x0e+3x0e+1x1o", "2x0e+2x1o+1x0e", {"instructions": [(2, 1), (1, 0), (0, 0), (0, 2)]}),
        ("blocks of multiplicity 0 and slots without input", "2x1o+0x0e", "1x0e+2x1o+1x2e", {}),
    ]:
        options = {"shared_weights": True, **options}
        module = o3.Linear(irreps_in, irreps_out, internal_weights=False, **options)
        f_in, f_out = options.get("f_in"), options.get("f_out")
        channels = () if f_in is None else (f_in,)
        x = numbers(X, ROWS, *channels, module.irreps_in.dim)
        weight = numbers(
            WEIGHT, *(() if options["shared_weights"] else (ROWS,)), *(() if f_in is None else (f_in, f_out)), module.weight_numel
        )
        bias = numbers(BIAS, *(() if f_out is None else (f_out,)), module.bias_numel)
        output = module(x, weight, bias)
        cases.append(
            {
                "name": name,
                "irreps_in": str(module.irreps_in),
                "irreps_out": str(module.irreps_out),
                "options": options,
                "instructions": [[i.i_in, i.i_out] for i in module.instructions],
                "coefficients": [i.path_weight for i in module.instructions],
                "weight_numel": module.weight_numel,
                "bias_numel": module.bias_numel,
                "output_mask": [int(m) for m in module.output_mask.tolist()],
                "output": flat(output),
                **gradients(output, {"x": x, "weight": weight, "bias": bias}),
            }
        )
    return cases


def spherical_harmonics() -> list[dict]:
    cases = []
    settings = list(itertools.product(("component", "norm", "integral"), (True, False)))
    for irreps, (normalization, normalize) in [
        *(("1x0e+1x1o+1x2e+1x3o+1x4e", setting) for setting in settings),
        ("1x0e+1x1e+1x2e+1x3e", ("component", True)),
        ("1x2e+1x0e+2x1o", ("component", True)),
        ("1x5o+1x6e", ("component", True)),
        ("+".join(f"1x{d}{'eo'[d % 2]}" for d in range(7, 13)), ("component", True)),
    ]:
        rows = 2 if "12e" in irreps else 4
        x = numbers(X, rows, 3)
        output = o3.spherical_harmonics(o3.Irreps(irreps), x, normalize, normalization)
        cases.append(
            {
                "name": f"{irreps}, {normalization}, {'normalized' if normalize else 'as given'}",
                "irreps_out": irreps,
                "normalization": normalization,
                "normalize": normalize,
                "rows": rows,
                "output": flat(output),
                **gradients(output, {"x": x}),
            }
        )
    return cases


FUNCTIONS = {
    "silu": torch.nn.functional.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "abs": torch.abs,
    "gelu": torch.nn.functional.gelu,
    "softplus": torch.nn.functional.softplus,
    "sin": torch.sin,
    "cos": torch.cos,
}


def constants() -> dict[str, float]:
    """c such that c f(z) has unit second moment, as e3nn samples it: f is multiplied by this in gates and networks."""
    return {name: e3nn.math.normalize2mom(f).cst for name, f in FUNCTIONS.items()}


def gates() -> list[dict]:
    cases = []
    for scalars, act_scalars, gate_scalars, act_gates, gated in [
        ("4x0e+2x0o", ["silu", "tanh"], "3x0e", ["sigmoid"], "2x1o+1x2e"),
        ("2x0o", ["tanh"], "2x0o+1x0e", ["tanh", "sigmoid"], "2x1e+1x1o"),
        ("3x0e", ["silu"], "", [], ""),
        ("", [], "3x0e", ["sigmoid"], "1x1o+2x2o"),
        ("2x0e+1x0o", ["silu", "abs"], "2x0e", [None], "2x1o"),
    ]:
        module = nn.Gate(
            scalars, [FUNCTIONS.get(f) for f in act_scalars], gate_scalars, [FUNCTIONS.get(f) for f in act_gates], gated
        )
        x = numbers(X, ROWS, module.irreps_in.dim)
        output = module(x)
        cases.append(
            {
                "name": f"Gate({scalars}; {gate_scalars}; {gated})",
                "irreps_scalars": scalars,
                "act_scalars": act_scalars,
                "irreps_gates": gate_scalars,
                "act_gates": act_gates,
                "irreps_gated": gated,
                "irreps_in": str(module.irreps_in),
                "irreps_out": str(module.irreps_out),
                "output": flat(output),
                **gradients(output, {"x": x}),
            }
        )
    return cases


def norms() -> list[dict]:
    cases = []
    for irreps, squared in itertools.product(("2x1o+1x0e+1x2e", "1x0o+3x3o"), (False, True)):
        module = o3.Norm(irreps, squared)
        x = numbers(X, ROWS, module.irreps_in.dim)
        output = module(x)
        cases.append(
            {
                "name": f"{irreps}{', squared' if squared else ''}",
                "irreps_in": irreps,
                "squared": squared,
                "irreps_out": str(module.irreps_out),
                "output": flat(output),
                **gradients(output, {"x": x}),
            }
        )
    return cases


def radial() -> list[dict]:
    """Radial bases on [start, end], n functions, at the distances in `x`."""
    cases = []
    x = [0.05, 0.3, 0.7, 1.1, 1.6, 1.95, 2.3]
    for basis, cutoff in itertools.product(("gaussian", "cosine", "smooth_finite", "fourier", "bessel"), (True, False)):
        values = torch.tensor(x, requires_grad=True)
        output = soft_one_hot_linspace(values, 0.0, 2.0, 4, basis, cutoff)
        case = {"name": f"{basis}, cutoff {cutoff}", "basis": basis, "cutoff": cutoff, "start": 0.0, "end": 2.0, "n": 4, "x": x}
        cases.append({**case, "output": flat(output), **gradients(output, {"x": values})})
    return cases


def networks() -> list[dict]:
    cases = []
    for sizes, act in (([2, 3, 1], "silu"), ([3, 4, 4, 5], "tanh")):
        module = nn.FullyConnectedNet(sizes, FUNCTIONS[act])
        shapes = list(itertools.pairwise(sizes))
        weight = numbers(WEIGHT, sum(a * b for a, b in shapes))
        x = numbers(X, ROWS, sizes[0])
        begin = 0
        layers = {}
        for i, (a, b) in enumerate(shapes):
            layers[f"layer{i}.weight"] = weight[begin : begin + a * b].reshape(a, b)
            begin += a * b
        output = torch.func.functional_call(module, layers, (x,))
        cases.append(
            {
                "name": f"{sizes} {act}",
                "sizes": sizes,
                "act": act,
                "output": flat(output),
                **gradients(output, {"x": x, "weight": weight}),
            }
        )
    return cases


def convolution(name: str, x_irreps: str, sh_irreps: str, out: str, instructions: list[tuple], shared: bool, second: bool) -> dict:
    """output[r] = sum over the edges e with receiver[e] = r of the weighted tensor product of x[sender[e]] and sh[e]."""
    nodes = 5
    # Node 3 receives nothing, node 4 sends nothing, edges repeat (0 -> 1 twice), one loop (2 -> 2), receivers unsorted.
    sender = [0, 1, 0, 2, 3, 0, 2, 3, 1]
    receiver = [1, 0, 2, 2, 4, 1, 0, 4, 4]
    module = o3.TensorProduct(x_irreps, sh_irreps, out, instructions, internal_weights=False, shared_weights=shared)
    x = numbers(X, nodes, module.irreps_in1.dim)
    sh = numbers(Y, len(sender), module.irreps_in2.dim)
    weight = numbers(WEIGHT, *(() if shared else (len(sender),)), module.weight_numel)
    cotangent = numbers(COTANGENT, nodes, module.irreps_out.dim)

    messages = module(x[torch.tensor(sender)], sh, weight)
    output = torch.zeros(nodes, module.irreps_out.dim).index_add(0, torch.tensor(receiver), messages)
    first = torch.autograd.grad((cotangent * output).sum(), (x, sh, weight), create_graph=True)
    case = {
        "name": name,
        "irreps_x": x_irreps,
        "irreps_sh": sh_irreps,
        "irreps_out": out,
        "instructions": instruction_lists(module),
        "shared_weights": shared,
        "nodes": nodes,
        "sender": sender,
        "receiver": receiver,
        "coefficients": [i.path_weight for i in module.instructions],
        "weight_numel": module.weight_numel,
        "output": flat(output),
        **{f"grad_{n}": flat(g) for n, g in zip(("x", "sh", "weight"), first, strict=True)},
    }
    if second:  # gradients of <grad_x, tangent_x> + <grad_sh, tangent_y> + <grad_weight, tangent_weight>
        tangents = [
            numbers(s, *v.shape).detach() for s, v in zip((TANGENT_X, TANGENT_Y, TANGENT_WEIGHT), (x, sh, weight), strict=True)
        ]
        total = sum((g * t).sum() for g, t in zip(first, tangents, strict=True))
        grads = torch.autograd.grad(total, (x, sh, weight, cotangent))
        case |= {f"second_{n}": flat(g) for n, g in zip(("x", "sh", "weight", "cotangent"), grads, strict=True)}
    return case


def convolutions() -> list[dict]:
    channelwise = [(0, 0, 0), (1, 1, 1), (0, 1, 2), (1, 0, 3), (1, 2, 4), (0, 2, 5), (1, 1, 6)]
    unequal = [(0, 0, 0), (1, 1, 1), (2, 2, 2), (0, 1, 3), (1, 0, 4), (1, 2, 5), (2, 1, 6), (0, 2, 7), (2, 0, 8), (1, 1, 9)]
    return [
        convolution(
            "channel-wise, slots sorted",
            "2x0e+2x1o",
            "1x0e+1x1o+1x2e",
            "2x0e+2x0e+2x1o+2x1o+2x1o+2x2e+2x2e",
            [(*i, "uvu", True) for i in channelwise],
            False,
            True,
        ),
        convolution(
            "channel-wise, unequal multiplicities",
            "3x0e+2x1o+1x2e",
            "1x0e+1x1o+1x2e",
            "3x0e+2x0e+1x0e+3x1o+2x1o+2x1o+1x1o+3x2e+1x2e+2x2e",
            [(*i, "uvu", True) for i in unequal],
            False,
            True,
        ),
        convolution(
            "channel-wise, both parities, summed slots, shared weights",
            "2x1o+2x1e",
            "1x1o+1x2e",
            "2x1e+2x1o",
            [(0, 0, 0, "uvu", True), (1, 0, 1, "uvu", True), (0, 1, 1, "uvu", True), (1, 1, 0, "uvu", True, 3.0)],
            True,
            False,
        ),
        convolution(
            "fully connected",
            "2x0e+1x1o",
            "1x0e+1x1o",
            "3x0e+2x1o",
            [(0, 0, 0, "uvw", True), (1, 1, 0, "uvw", True), (0, 1, 1, "uvw", True), (1, 0, 1, "uvw", True)],
            False,
            True,
        ),
    ]


def main() -> None:
    if e3nn.__version__ != "0.6.0":
        sys.exit(f"expected e3nn 0.6.0, found {e3nn.__version__}")
    e3nn.set_optimization_defaults(jit_mode="eager")
    golden = {
        "e3nn": e3nn.__version__,
        "torch": torch.__version__.split("+")[0],
        "rows": ROWS,
        "constants": constants(),
        "tensor_products": tensor_products(),
        "fully_connected": fully_connected(),
        "full": full(),
        "elementwise": elementwise(),
        "tensor_squares": tensor_squares(),
        "linears": linears(),
        "spherical_harmonics": spherical_harmonics(),
        "gates": gates(),
        "norms": norms(),
        "radial": radial(),
        "networks": networks(),
        "convolutions": convolutions(),
    }
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("e3nn.json")
    # One case a line: small, and a change shows as the lines of its cases.
    parts = []
    for key, value in golden.items():
        if isinstance(value, list):
            lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in value)
            parts.append(f"{json.dumps(key)}:[\n{lines}\n]")
        else:
            parts.append(f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
