#include "describe/coefficients.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/number.hpp"
#include "describe/exchange.hpp"
#include "describe/named_tensor.hpp"

namespace clebsch {
namespace {

std::string joined(std::span<const int> numbers) {
    std::string text;
    for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
    return text;
}

void check_literal(std::span<const int> shape, std::span<const CoefficientEntry> entries) {
    for (const int extent : shape)
        if (extent < 1) fail("coefficients of shape (" + joined(shape) + "): expected extents of at least 1");
    for (const CoefficientEntry& entry : entries) {
        const std::string where = "coefficients of shape (" + joined(shape) + "), entry (" + joined(entry.index) + "): ";
        if (entry.index.size() != shape.size())
            fail(where + "expected " + std::to_string(shape.size()) + " indices, got " + std::to_string(entry.index.size()));
        for (std::size_t a = 0; a < shape.size(); ++a)
            if (entry.index[a] < 0 || entry.index[a] >= shape[a])
                fail(where + "index " + std::to_string(entry.index[a]) + " is outside [0, " + std::to_string(shape[a]) + ")");
        if (!std::isfinite(entry.value)) fail(where + "expected a finite value");
    }
}

}  // namespace

/// Immutable once made; what is expensive is computed when first asked for.
struct Coefficients::Data {
    NamedTensor tensor;  // empty name: a literal

    explicit Data(NamedTensor named) : tensor(std::move(named)) {}
    const ExchangeForm& form() const {
        std::call_once(form_once_, [this] { form_ = {tensor.block, tensor.terms()}; });
        return form_;
    }
    const std::vector<CoefficientEntry>& entries() const {
        if (form().expanded()) return form().terms;
        std::call_once(entries_once_,
                       [this] { entries_ = clebsch::grouped(form(), std::vector<int>(tensor.shape.size(), -1), tensor.name); });
        return entries_;
    }

 private:
    mutable std::once_flag form_once_, entries_once_;
    mutable ExchangeForm form_;
    mutable std::vector<CoefficientEntry> entries_;
};

Coefficients::Coefficients() {
    static const Coefficients one = named("one");
    data_ = one.data_;
}

Coefficients Coefficients::named(std::string_view call) {
    // Named tensors are interned: the same name shares its data for the life of the process.
    static std::mutex mutex;
    static std::map<std::string, Coefficients, std::less<>> known;
    {
        const std::lock_guard lock(mutex);
        if (const auto found = known.find(call); found != known.end()) return found->second;
    }
    NamedTensor tensor = parse_named_tensor(call);
    std::string name = tensor.name;
    Coefficients made(std::make_shared<const Data>(std::move(tensor)));
    const std::lock_guard lock(mutex);
    return known.emplace(std::move(name), std::move(made)).first->second;
}

Coefficients Coefficients::literal(std::vector<int> shape, std::vector<CoefficientEntry> entries) {
    check_literal(shape, entries);
    sort_and_merge(entries);
    NamedTensor tensor;
    for (std::size_t a = 0; a < shape.size(); ++a) tensor.block.push_back(static_cast<int>(a));
    tensor.shape = std::move(shape);
    tensor.terms = [entries = std::move(entries)] { return entries; };
    return Coefficients(std::make_shared<const Data>(std::move(tensor)));
}

Coefficients Coefficients::cg(Irrep a, Irrep b, Irrep c, bool e3nn_0_4_signs) {
    return named((e3nn_0_4_signs ? "cg04(" : "cg(") + clebsch::to_text(a) + "," + clebsch::to_text(b) + "," + clebsch::to_text(c) + ")");
}
Coefficients Coefficients::harmonic(int degree) { return named("harmonic(" + std::to_string(degree) + ")"); }
Coefficients Coefficients::identity(int n) { return named("identity(" + std::to_string(n) + ")"); }

const std::string& Coefficients::name() const { return data_->tensor.name; }
const std::vector<int>& Coefficients::shape() const { return data_->tensor.shape; }
const std::vector<CoefficientEntry>& Coefficients::entries() const { return data_->entries(); }

std::vector<CoefficientEntry> Coefficients::grouped(std::span<const int> group) const {
    if (group.size() != rank())
        fail("coefficients " + to_text() + ": expected a group for each of " + std::to_string(rank()) + " axes, got " +
             std::to_string(group.size()));
    return clebsch::grouped(data_->form(), group, name());
}

bool Coefficients::symmetric_in(int a, int b) const {
    const int axes = static_cast<int>(rank());
    if (a < 0 || b < 0 || a >= axes || b >= axes)
        fail("coefficients " + to_text() + ": axes " + std::to_string(a) + " and " + std::to_string(b) + " are not both below " +
             std::to_string(axes));
    const auto first = static_cast<std::size_t>(a), second = static_cast<std::size_t>(b);
    if (data_->tensor.block[first] == data_->tensor.block[second]) return true;
    if (shape()[first] != shape()[second]) return false;
    std::vector<CoefficientEntry> exchanged = entries();
    for (CoefficientEntry& entry : exchanged) std::swap(entry.index[first], entry.index[second]);
    std::ranges::sort(exchanged, {}, &CoefficientEntry::index);
    return exchanged == entries();
}

std::string Coefficients::to_text() const {
    if (!name().empty()) return name();
    std::string text = "{" + joined(shape());
    for (const CoefficientEntry& entry : entries()) text += "; " + joined(entry.index) + ": " + number_text(entry.value);
    return text + "}";
}

bool operator==(const Coefficients& a, const Coefficients& b) {
    if (a.data_ == b.data_) return true;
    return a.name() == b.name() && a.name().empty() && a.shape() == b.shape() && a.entries() == b.entries();
}

}  // namespace clebsch
