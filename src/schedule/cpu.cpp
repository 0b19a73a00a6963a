#include "schedule/cpu.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "base/error.hpp"
#include "schedule/letters.hpp"

namespace clebsch {
namespace {

bool mixes_channels(const Path& path) {
    return std::ranges::any_of(path.factors, [](const Factor& factor) { return factor.channels.size() > 1; });
}
/// Whether there are more coefficients than the widest operand has components. Else every component meets one number, and there is nothing
/// to fold.
bool folding_gains(const Polynomial& polynomial, const Path& path) {
    int most = 1;
    for (const Factor& factor : path.factors) {
        const Operand& operand = polynomial.operands[static_cast<std::size_t>(factor.operand)];
        if (!factor.channels.empty()) most = std::max(most, operand.segments[static_cast<std::size_t>(factor.segment)].components);
    }
    return static_cast<int>(reduced_entries(path).size()) > most;
}

/// Whether something without channels meets something with channels: what folding gains from. Products of channels with channels share
/// monomials instead, which `terms` finds among all of them, so they are kept together.
bool has_factor_without_channels(const Path& path) {
    return std::ranges::any_of(path.extents, [](const auto& extent) { return extent.second > 1; }) &&
           std::ranges::any_of(path.factors, [](const Factor& factor) { return factor.channels.empty(); });
}
/// Such a path that gains nothing, beside products with matrices: they have loops over vectors too.
bool is_beside_matrices(const Polynomial& polynomial, const Path& path) {
    return has_factor_without_channels(path) && std::ranges::any_of(polynomial.paths, mixes_channels) && !folding_gains(polynomial, path);
}
bool suits_fold(const Polynomial& polynomial, const Path& path) {
    return has_factor_without_channels(path) && !is_beside_matrices(polynomial, path);
}
bool suits_mix(const Polynomial& polynomial, const Path& path) { return mixes_channels(path) || is_beside_matrices(polynomial, path); }
bool any_path(const Polynomial&, const Path&) { return true; }
/// Too few channels to fill vectors: rows fill them instead, if every path is like that.
bool has_few_channels(const Polynomial&, const Path& path) {
    std::int64_t combinations = 1;
    for (const auto& [letter, extent] : path.extents)
        if (__builtin_mul_overflow(combinations, extent, &combinations)) return false;
    return combinations <= 4;
}

struct Family {
    const char* name;
    std::unique_ptr<Kernel> (*make)(const KernelRequest&, std::vector<int>&);
    bool (*suits)(const Polynomial&, const Path&);
};
// Most specialised first; `general` takes whatever is left.
constexpr std::array<Family, 5> families{{{"lanes", make_lanes_kernel, has_few_channels},
                                          {"fold", make_fold_kernel, suits_fold},
                                          {"mix", make_mix_kernel, suits_mix},
                                          {"terms", make_terms_kernel, any_path},
                                          {"general", make_general_kernel, any_path}}};

std::string list_of(const std::vector<int>& paths) {
    std::string text;
    for (std::size_t i = 0; i < paths.size();) {
        std::size_t end = i + 1;
        while (end < paths.size() && paths[end] == paths[end - 1] + 1) ++end;
        text += (text.empty() ? "" : ", ") + std::to_string(paths[i]);
        if (end - i > 1) text += ".." + std::to_string(paths[end - 1]);
        i = end;
    }
    return text;
}

/// Why `general` has these paths: what of them no other family has loops for.
std::string reason_for_general(const Polynomial& polynomial, const std::vector<int>& paths, const std::string& family) {
    if (!family.empty()) return "no family but '" + family + "' was asked";
    bool several = false, restricted = false;
    for (const int p : paths) {
        const Path& path = polynomial.paths[static_cast<std::size_t>(p)];
        const auto letters = std::ranges::count_if(path.extents, [](const auto& extent) { return extent.second > 1; });
        if (!restrictions(path).empty()) restricted = true;
        else if (letters > 1) several = true;
    }
    if (several && restricted) return "coefficients meet channels of several letters, and pairs u < v";
    if (several) return "coefficients meet channels of several letters";
    return restricted ? "channels are pairs u < v" : "other families need longer channels or fewer factors";
}

}  // namespace

KernelChoice choose_kernels(const Polynomial& polynomial, InstructionSet isa, const std::string& family) {
    if (!family.empty() && std::ranges::none_of(families, [&](const Family& f) { return family == f.name; })) {
        std::string known;
        for (const Family& f : families) known += (known.empty() ? "" : ", ") + std::string(f.name);
        fail("kernel family '" + family + "' is unknown; expected one of " + known);
    }
    KernelChoice choice;
    std::vector<int> left(polynomial.paths.size());
    std::iota(left.begin(), left.end(), 0);
    for (const Family& f : families) {
        const bool last = &f == &families.back();
        if (!family.empty() && family != f.name && !last) continue;
        KernelRequest request{.polynomial = &polynomial, .paths = {}, .isa = isa};
        std::ranges::copy_if(left, std::back_inserter(request.paths),
                             [&](int p) { return f.suits(polynomial, polynomial.paths[static_cast<std::size_t>(p)]); });
        if (request.paths.empty()) continue;
        std::vector<int> taken;
        std::unique_ptr<Kernel> kernel = f.make(request, taken);
        if (kernel == nullptr) continue;
        std::ranges::sort(taken);
        choice.explain += kernel->name() + ": " + std::to_string(taken.size()) + (taken.size() == 1 ? " path (" : " paths (") +
                          list_of(taken) + "); " + kernel->explain() + (last ? "; " + reason_for_general(polynomial, taken, family) : "") +
                          "\n";
        choice.kernels.push_back(std::move(kernel));
        std::erase_if(left, [&](int p) { return std::ranges::binary_search(taken, p); });
    }
    if (!left.empty()) fail("no kernel takes path " + std::to_string(left.front()));
    return choice;
}

}  // namespace clebsch
