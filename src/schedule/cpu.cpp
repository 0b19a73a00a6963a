#include "schedule/cpu.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.hpp"

namespace clebsch {
namespace {

struct Family {
    const char* name;
    std::unique_ptr<Kernel> (*make)(const KernelRequest&, std::vector<int>&);
};
// Most specialised first; `general` takes whatever is left.
constexpr std::array<Family, 3> families{{{"fold", make_fold_kernel}, {"mix", make_mix_kernel}, {"general", make_general_kernel}}};

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

}  // namespace

KernelChoice choose_kernels(const Polynomial& polynomial, InstructionSet isa, const std::string& family) {
    if (!family.empty() && std::ranges::none_of(families, [&](const Family& f) { return family == f.name; })) {
        std::string known;
        for (const Family& f : families) known += (known.empty() ? "" : ", ") + std::string(f.name);
        fail("kernel family '" + family + "' is unknown; expected one of " + known);
    }
    KernelChoice choice;
    KernelRequest request{.polynomial = &polynomial, .paths = std::vector<int>(polynomial.paths.size()), .isa = isa};
    std::iota(request.paths.begin(), request.paths.end(), 0);
    for (const Family& f : families) {
        const bool last = &f == &families.back();
        if (request.paths.empty() || (!family.empty() && family != f.name && !last)) continue;
        std::vector<int> taken;
        std::unique_ptr<Kernel> kernel = f.make(request, taken);
        if (kernel == nullptr) continue;
        std::ranges::sort(taken);
        choice.explain += kernel->name() + ": " + std::to_string(taken.size()) + (taken.size() == 1 ? " path (" : " paths (") + list_of(taken) + "); " +
                          kernel->explain() + "\n";
        choice.kernels.push_back(std::move(kernel));
        std::erase_if(request.paths, [&](int p) { return std::ranges::binary_search(taken, p); });
    }
    if (!request.paths.empty()) fail("no kernel takes path " + std::to_string(request.paths.front()));
    return choice;
}

}  // namespace clebsch
