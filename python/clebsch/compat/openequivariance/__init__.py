"""OpenEquivariance's tensor products by one import: `from clebsch.compat import openequivariance as oeq`. On the CPU too.

Weights are in e3nn's order, as OpenEquivariance's are for `uvu`. Its order for `uvw` depends on the GPU it plans for: weights saved
in it go through its own `reorder_weights_to_e3nn` first. The functions of that name here return what they get.
"""

from ..e3nn.o3 import Instruction
from ._modules import TensorProduct, TensorProductConv, TPProblem

__all__ = ["Instruction", "TPProblem", "TensorProduct", "TensorProductConv"]
