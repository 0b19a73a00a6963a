"""e3nn's modules on Clebsch's operations: `from clebsch.compat.e3nn import nn, o3` in place of `from e3nn import nn, o3`.

The same constructor arguments, state_dict names, order of weights and outputs as e3nn 0.6. What needs no kernels is here too: e3nn
need not be installed; names that are not here come from e3nn if it is.
"""

from . import nn, o3

__all__ = ["nn", "o3"]
