"""An operation of one's own, in a page: dipoles in a field.

Every row has 4 dipoles and one field vector; the operation gives the torque on each dipole (its cross product with the field) and
their weighted energy. The coefficients are written here, not taken from a table.

    pip install . && python examples/own_operation.py
"""

import clebsch
import numpy as np

# 1. Coefficients: entries "component of dipole, component of field, component of output : value".
CROSS = "0,1,2:1 1,2,0:1 2,0,1:1 1,0,2:-1 2,1,0:-1 0,2,1:-1"
MINUS_DOT = "0,0,0:-1 1,1,0:-1 2,2,0:-1"

# 2. Which segments meet, and how their channels do: uvu keeps the dipoles apart (torques), uvw sums them with weights (energy).
#    The irreps say how the results turn: torques are pseudovectors (1e), the energy is a scalar.
operation = clebsch.build(
    "custom_product",
    in1="4x1o",
    in2="1x1o",
    out="4x1e+1x0e",
    instructions="0,0,0,uvu,plain; 0,0,1,uvw,weighted",
    coefficients=f"{CROSS}; {MINUS_DOT}",
    irrep_normalization="none",
    path_normalization="none",
)
print(operation.text)

# 3. Its derivative is an operation again: cotangents in, gradients out. So is the derivative of that.
gradient = operation.vjp("x", "y", "weights")
curvature = gradient.vjp("x", "y")

# 4. Run them on this machine's CPU.
rng = np.random.default_rng(0)
dipoles, field, weights = rng.standard_normal((5, 12)), rng.standard_normal((5, 3)), np.ones((1, 4))
out = operation(x=dipoles, y=field, weights=weights)
torque, energy = out[:, :12].reshape(5, 4, 3), out[:, 12]
np.testing.assert_allclose(torque, np.cross(dipoles.reshape(5, 4, 3), field[:, None]))
np.testing.assert_allclose(energy, -np.einsum("rui,ri->r", dipoles.reshape(5, 4, 3), field))

of_energy = np.zeros_like(out)
of_energy[:, 12] = 1
found = gradient(x=dipoles, y=field, weights=weights, out_cotangent=of_energy)
np.testing.assert_allclose(found["x_gradient"].reshape(5, 4, 3), -np.broadcast_to(field[:, None], (5, 4, 3)))
print("the energy's gradient to a dipole is minus the field:", found["x_gradient"][0, :3], field[0])

# 5. The torques turn as 1e, the energy not at all.
rotation = clebsch.rotation_from_angles(0.1, 0.2, 0.3)
turned = operation(x=(dipoles.reshape(5, 4, 3) @ rotation.T).reshape(5, 12), y=field @ rotation.T, weights=weights)
np.testing.assert_allclose(turned[:, :12].reshape(5, 4, 3), torque @ rotation.T)
np.testing.assert_allclose(turned[:, 12], energy)
print("schedule:", next(line for line in operation.explain().splitlines() if ":" in line))
