#pragma once
// Nequix checkpoints (.nqx): one line of JSON, then .npy arrays. Gives the hyperparameters and the arrays under their names; the equations
// that use them are in docs/files.md.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "algebra/irreps.hpp"

namespace clebsch {

/// float32 numbers in C order.
struct WeightArray {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
    friend bool operator==(const WeightArray&, const WeightArray&) = default;
};

/// One path of a layer's convolution: input block x harmonic -> output, `channels` weights per edge. Paths lie one after another in the
/// radial network's last axis and, per output irrep, in the channels of the summed message.
struct NequixPath {
    Irrep input, harmonic, output;
    std::int64_t channels = 0;
    friend bool operator==(const NequixPath&, const NequixPath&) = default;
};

struct NequixLayer {
    Irreps input;                          ///< node features that come in: species x 0e in the first layer, else the hidden irreps
    std::vector<NequixPath> paths;         ///< by output degree, then input degree, then harmonic degree
    Irreps message;                        ///< channels of all paths, one block per output irrep
    Irreps mixed;                          ///< after linear_2 and skip: scalars and gates in one block, then the gated irreps
    Irreps output;                         ///< after the gate
    std::vector<WeightArray> radial;       ///< [radial_basis_size, H], [H, H] x (radial_mlp_layers - 1), [H, sum of path channels]
    std::vector<WeightArray> linear_1;     ///< one [channels, channels] per block of `input`
    std::vector<WeightArray> linear_2;     ///< one [message channels, mixed channels] per block of `mixed`
    std::vector<Irrep> skip_irreps;        ///< those in both `input` and `mixed`
    std::vector<WeightArray> skip;         ///< one [input channels, mixed channels] each; with index_weights [species, ..., ...]
    std::vector<WeightArray> norm_scales;  ///< one [channels] per block of `mixed` if layer_norm, else none
    friend bool operator==(const NequixLayer&, const NequixLayer&) = default;
};

struct NequixCheckpoint {
    std::vector<int> atomic_numbers;  ///< of every species
    Irreps hidden;
    int lmax = 0;         ///< of the harmonics
    double cutoff = 0.0;  ///< in Angstrom
    std::int64_t radial_basis_size = 0, radial_mlp_size = 0, radial_mlp_layers = 0;
    double radial_polynomial_p = 0.0;
    double avg_n_neighbors = 0.0, shift = 0.0, scale = 0.0;
    bool layer_norm = false, index_weights = false;
    std::vector<std::string> unused_keys;  ///< JSON keys that do not define the model (training settings)

    WeightArray atom_energies;  ///< [species], in eV: the file's array, which its JSON map only repeats
    std::vector<NequixLayer> layers;
    WeightArray readout;              ///< [channels of the last layer, 1]
    std::int64_t unused_scalars = 0;  ///< zero-dimensional arrays after the model's own

    std::int64_t parameters() const;  ///< numbers in all arrays above
    friend bool operator==(const NequixCheckpoint&, const NequixCheckpoint&) = default;
};

/// The whole content of a checkpoint. `file` is named in errors.
/// Throws Error(parse) for a missing key, a value outside its range, an array whose shape or type is not the model's, a number that is not
/// finite, missing arrays, and anything after the last array other than unused zero-dimensional arrays and one newline;
/// Error(unsupported) for hidden irreps this reader has no array order for (it needs natural parity: 0e, 1o, 2e, ... each once, in order).
NequixCheckpoint parse_nequix(std::string_view content, std::string_view file);
NequixCheckpoint read_nequix(const std::filesystem::path& path);

}  // namespace clebsch
