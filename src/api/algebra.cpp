// Irreps, coupling coefficients, rotations.
#include <algorithm>
#include <cmath>
#include <memory>

#include "algebra/irreps.hpp"
#include "algebra/rotation.hpp"
#include "algebra/wigner.hpp"
#include "api/guard.hpp"

struct clebsch_irreps {
    clebsch::Irreps value;
};

namespace {

using namespace clebsch;
using api::guarded;
using api::require;

clebsch_irreps* release(Irreps irreps) { return std::make_unique<clebsch_irreps>(clebsch_irreps{std::move(irreps)}).release(); }

Irrep checked_irrep(int degree, int parity) {
    if (degree < 0 || degree > max_degree) fail("degree: expected 0 to " + std::to_string(max_degree) + ", got " + std::to_string(degree));
    if (parity < -1 || parity > 1) fail("parity: expected 1 (even), -1 (odd) or 0 (SO(3)), got " + std::to_string(parity));
    return Irrep{degree, static_cast<Parity>(parity)};
}

/// The irreps of a list, whatever their multiplicities.
std::vector<Irrep> irreps_in(const clebsch_irreps* list) {
    std::vector<Irrep> result;
    for (const IrrepBlock& block : list->value) result.push_back(block.irrep);
    return result;
}

}  // namespace

clebsch_status clebsch_irreps_parse(const char* text, clebsch_irreps** irreps) {
    return guarded([&] {
        require(text, "text");
        require(irreps, "irreps");
        *irreps = release(Irreps(std::string_view(text)));
    });
}

void clebsch_irreps_destroy(clebsch_irreps* irreps) { delete irreps; }

clebsch_status clebsch_irreps_text(const clebsch_irreps* irreps, char** text) {
    return guarded([&] {
        require(irreps, "irreps");
        require(text, "text");
        *text = api::copy_text(to_text(irreps->value));
    });
}

int64_t clebsch_irreps_dim(const clebsch_irreps* irreps) { return irreps == nullptr ? -1 : irreps->value.dim(); }
size_t clebsch_irreps_count(const clebsch_irreps* irreps) { return irreps == nullptr ? 0 : irreps->value.size(); }

clebsch_status clebsch_irreps_block(const clebsch_irreps* irreps, size_t i, int64_t* multiplicity, int* degree, int* parity) {
    return guarded([&] {
        require(irreps, "irreps");
        if (i >= irreps->value.size())
            fail("i: expected a block below " + std::to_string(irreps->value.size()) + ", got " + std::to_string(i));
        const IrrepBlock& block = irreps->value[i];
        if (multiplicity != nullptr) *multiplicity = block.multiplicity;
        if (degree != nullptr) *degree = block.irrep.degree;
        if (parity != nullptr) *parity = static_cast<int>(block.irrep.parity);
    });
}

clebsch_status clebsch_irreps_sort(const clebsch_irreps* irreps, clebsch_irreps** sorted, int* permutation) {
    return guarded([&] {
        require(irreps, "irreps");
        require(sorted, "sorted");
        Irreps::Sorted result = irreps->value.sorted();
        if (permutation != nullptr) std::copy(result.permutation.begin(), result.permutation.end(), permutation);
        *sorted = release(std::move(result.irreps));
    });
}

clebsch_status clebsch_irreps_simplify(const clebsch_irreps* irreps, clebsch_irreps** simplified) {
    return guarded([&] {
        require(irreps, "irreps");
        require(simplified, "simplified");
        *simplified = release(irreps->value.simplified());
    });
}

clebsch_status clebsch_irreps_regroup(const clebsch_irreps* irreps, clebsch_irreps** regrouped) {
    return guarded([&] {
        require(irreps, "irreps");
        require(regrouped, "regrouped");
        *regrouped = release(irreps->value.regrouped());
    });
}

clebsch_status clebsch_irreps_repeat(const clebsch_irreps* irreps, int64_t times, clebsch_irreps** repeated) {
    return guarded([&] {
        require(irreps, "irreps");
        require(repeated, "repeated");
        *repeated = release(irreps->value.repeated(times));
    });
}

clebsch_status clebsch_irreps_filter(const clebsch_irreps* irreps, const clebsch_irreps* keep, const clebsch_irreps* drop, int lmax,
                                     clebsch_irreps** filtered) {
    return guarded([&] {
        require(irreps, "irreps");
        require(filtered, "filtered");
        Irreps result = irreps->value;
        if (keep != nullptr) result = result.filtered(irreps_in(keep));
        if (drop != nullptr) result = result.without(irreps_in(drop));
        if (lmax >= 0) result = result.up_to_degree(lmax);
        *filtered = release(std::move(result));
    });
}

clebsch_status clebsch_irreps_product(const clebsch_irreps* a, const clebsch_irreps* b, const clebsch_irreps* keep,
                                      clebsch_irreps** product) {
    return guarded([&] {
        require(a, "a");
        require(b, "b");
        require(product, "product");
        std::vector<Irrep> kept;
        if (keep != nullptr) kept = irreps_in(keep);
        std::vector<IrrepBlock> blocks;
        for (const IrrepBlock& first : a->value)
            for (const IrrepBlock& second : b->value)
                for (const Irrep irrep : clebsch::product(first.irrep, second.irrep)) {
                    if (keep != nullptr && std::find(kept.begin(), kept.end(), irrep) == kept.end()) continue;
                    std::int64_t multiplicity = 0;
                    if (__builtin_mul_overflow(first.multiplicity, second.multiplicity, &multiplicity))
                        fail("product: " + std::to_string(first.multiplicity) + " times " + std::to_string(second.multiplicity) +
                             " channels do not fit in 64 bits");
                    blocks.push_back({multiplicity, irrep});
                }
        *product = release(Irreps(std::move(blocks)));
    });
}

clebsch_status clebsch_wigner_3j(int l1, int l2, int l3, int sign_table, double* coefficients) {
    return guarded([&] {
        require(coefficients, "coefficients");
        const Irrep a = checked_irrep(l1, 0), b = checked_irrep(l2, 0), c = checked_irrep(l3, 0);
        if (sign_table != 4 && sign_table != 5)
            fail("sign_table: expected 5 (e3nn 0.5 and newer) or 4 (e3nn 0.4), got " + std::to_string(sign_table));
        std::fill_n(coefficients, a.dim() * b.dim() * c.dim(), 0.0);
        for (const CouplingEntry& entry : wigner_3j(l1, l2, l3, sign_table == 4 ? SignTable::e3nn_0_4 : SignTable::e3nn_0_5))
            coefficients[(entry.i * b.dim() + entry.j) * c.dim() + entry.k] = entry.value;
    });
}

clebsch_status clebsch_wigner_d(int degree, int parity, const double rotation[9], double* matrix) {
    return guarded([&] {
        require(rotation, "rotation");
        require(matrix, "matrix");
        Matrix3 values;
        std::copy_n(rotation, 9, values.begin());
        const std::vector<double> result = wigner_d(checked_irrep(degree, parity), values);
        std::copy(result.begin(), result.end(), matrix);
    });
}

clebsch_status clebsch_rotation_from_angles(double alpha, double beta, double gamma, double rotation[9]) {
    return guarded([&] {
        require(rotation, "rotation");
        if (!std::isfinite(alpha) || !std::isfinite(beta) || !std::isfinite(gamma)) fail("angles: expected finite numbers");
        const Matrix3 result = rotation_matrix(Angles{alpha, beta, gamma});
        std::copy(result.begin(), result.end(), rotation);
    });
}

clebsch_status clebsch_rotation_from_quaternion(const double quaternion[4], double rotation[9]) {
    return guarded([&] {
        require(quaternion, "quaternion");
        require(rotation, "rotation");
        const Matrix3 result = rotation_matrix(Quaternion{quaternion[0], quaternion[1], quaternion[2], quaternion[3]});
        std::copy(result.begin(), result.end(), rotation);
    });
}
