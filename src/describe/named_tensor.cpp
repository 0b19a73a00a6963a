#include "describe/named_tensor.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <numeric>

#include "algebra/harmonics.hpp"
#include "algebra/wigner.hpp"
#include "base/error.hpp"
#include "describe/symmetric.hpp"

namespace clebsch {
namespace {

constexpr int largest_identity = 1 << 16;

[[noreturn]] void call_error(std::string_view call, const std::string& problem) {
    throw Error(ErrorKind::parse, "coefficients '" + std::string(call.substr(0, 200)) + "': " + problem);
}

std::vector<CoefficientEntry> coupling_entries(Irrep a, Irrep b, Irrep c, SignTable table) {
    std::vector<CoefficientEntry> entries;
    for (const CouplingEntry& entry : wigner_3j(a.degree, b.degree, c.degree, table))
        entries.push_back({{entry.i, entry.j, entry.k}, entry.value});
    return entries;
}

std::vector<CoefficientEntry> harmonic_terms(int degree) {
    std::vector<CoefficientEntry> terms;
    for (const Monomial& monomial : harmonic_monomials(degree)) {
        std::vector<int> index;
        index.insert(index.end(), static_cast<std::size_t>(monomial.x), 0);
        index.insert(index.end(), static_cast<std::size_t>(monomial.y), 1);
        index.insert(index.end(), static_cast<std::size_t>(monomial.z), 2);
        index.push_back(monomial.m);
        terms.push_back({std::move(index), monomial.value});
    }
    std::ranges::sort(terms, {}, &CoefficientEntry::index);
    return terms;
}

std::vector<CoefficientEntry> identity_entries(int n) {
    std::vector<CoefficientEntry> entries;
    entries.reserve(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) entries.push_back({{i, i}, 1.0});
    return entries;
}

/// name(arguments;arguments;...): lists separated by ';', arguments by ','. Spaces around arguments are allowed.
struct Call {
    std::string_view text, name;
    std::vector<std::vector<std::string_view>> lists;
};

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

std::vector<std::string_view> parts(std::string_view text, char separator) {
    std::vector<std::string_view> result;
    for (std::size_t end; (end = text.find(separator)) != text.npos; text.remove_prefix(end + 1))
        result.push_back(trimmed(text.substr(0, end)));
    result.push_back(trimmed(text));
    return result;
}

Call parse_call(std::string_view text) {
    Call call;
    call.text = trimmed(text);
    const std::size_t open = call.text.find('(');
    call.name = trimmed(call.text.substr(0, open));
    if (open == call.text.npos) return call;
    if (call.text.back() != ')') call_error(text, "expected ')' at the end");
    for (const std::string_view list : parts(call.text.substr(open + 1, call.text.size() - open - 2), ';'))
        call.lists.push_back(parts(list, ','));
    return call;
}

int parse_count(const Call& call, std::string_view text, int largest) {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > largest)
        call_error(call.text, "expected a whole number from 0 to " + std::to_string(largest) + ", got '" + std::string(text) + "'");
    return value;
}

std::vector<Irrep> parse_irreps_of(const Call& call, const std::vector<std::string_view>& texts) {
    std::vector<Irrep> irreps;
    for (const std::string_view text : texts) {
        try {
            irreps.push_back(parse_irrep(text));
        } catch (const Error& error) { call_error(call.text, error.what()); }
    }
    return irreps;
}

void expect_arguments(const Call& call, std::initializer_list<std::size_t> counts, const char* form) {
    bool fits = call.lists.size() == counts.size();
    for (std::size_t i = 0; fits && i < counts.size(); ++i) {
        const std::size_t count = *(counts.begin() + i);
        fits = count == 0 || call.lists[i].size() == count;  // 0: any number
    }
    if (!fits) call_error(call.text, std::string("expected ") + form);
}

std::vector<int> block_per_axis(std::size_t rank) {
    std::vector<int> block(rank);
    std::iota(block.begin(), block.end(), 0);
    return block;
}

NamedTensor one_tensor(const Call& call) {
    if (!call.lists.empty()) call_error(call.text, "expected no arguments");
    return {"one", {}, {}, [] { return std::vector<CoefficientEntry>{{{}, 1.0}}; }};
}

NamedTensor identity_tensor(const Call& call) {
    expect_arguments(call, {1}, "identity(n)");
    const int n = parse_count(call, call.lists[0][0], largest_identity);
    if (n == 0) call_error(call.text, "expected at least one component");
    return {"identity(" + std::to_string(n) + ")", {n, n}, block_per_axis(2), [n] { return identity_entries(n); }};
}

NamedTensor coupling_tensor(const Call& call) {
    expect_arguments(call, {3}, "three irreps, as in cg(1o,1o,2e)");
    const std::vector<Irrep> irreps = parse_irreps_of(call, call.lists[0]);
    const Irrep a = irreps[0], b = irreps[1], c = irreps[2];
    const bool one_group =
        (a.parity == Parity::none) == (b.parity == Parity::none) && (b.parity == Parity::none) == (c.parity == Parity::none);
    if (!one_group) call_error(call.text, "expected irreps of O(3) or of SO(3), got both");
    if (!couples(a, b, c)) call_error(call.text, to_text(c) + " does not appear in " + to_text(a) + " x " + to_text(b));
    const SignTable table = call.name == "cg04" ? SignTable::e3nn_0_4 : SignTable::e3nn_0_5;
    return {std::string(call.name) + "(" + to_text(a) + "," + to_text(b) + "," + to_text(c) + ")",
            {a.dim(), b.dim(), c.dim()},
            block_per_axis(3),
            [a, b, c, table] { return coupling_entries(a, b, c, table); }};
}

NamedTensor harmonic_tensor(const Call& call) {
    expect_arguments(call, {1}, "a degree, as in harmonic(2)");
    const int degree = parse_count(call, call.lists[0][0], max_degree);
    std::vector<int> shape(static_cast<std::size_t>(degree), 3), block(static_cast<std::size_t>(degree), 0);
    shape.push_back(2 * degree + 1);
    block.push_back(1);
    return {"harmonic(" + std::to_string(degree) + ")", std::move(shape), std::move(block), [degree] { return harmonic_terms(degree); }};
}

NamedTensor symmetric_tensor(const Call& call) {
    expect_arguments(call, {0, 1, 1}, "irreps; an irrep; a number, as in symmetric(1o,1o;2e;0)");
    const std::vector<Irrep> inputs = parse_irreps_of(call, call.lists[0]);
    const Irrep output = parse_irreps_of(call, call.lists[1])[0];
    const int number = parse_count(call, call.lists[2][0], 1 << 20);
    for (const Irrep& irrep : inputs)
        if ((irrep.parity == Parity::none) != (output.parity == Parity::none))
            call_error(call.text, "expected irreps of O(3) or of SO(3), got both");
    if (!std::ranges::is_sorted(inputs)) call_error(call.text, "expected the irreps in non-decreasing order (0o, 0e, 1o, 1e, ...)");
    const auto couplings = symmetric_couplings(inputs, output);
    if (static_cast<std::size_t>(number) >= couplings->size())
        call_error(call.text,
                   "there are " + std::to_string(couplings->size()) + " symmetric couplings, got number " + std::to_string(number));
    NamedTensor tensor;
    tensor.name = "symmetric(" + symmetric_text(inputs, output) + ";" + std::to_string(number) + ")";
    for (std::size_t a = 0; a < inputs.size(); ++a) {
        tensor.shape.push_back(inputs[a].dim());
        tensor.block.push_back(a > 0 && inputs[a] == inputs[a - 1] ? tensor.block.back() : static_cast<int>(a));
    }
    tensor.shape.push_back(output.dim());
    tensor.block.push_back(static_cast<int>(inputs.size()));
    tensor.terms = [couplings, number] { return (*couplings)[static_cast<std::size_t>(number)]; };
    return tensor;
}

}  // namespace

NamedTensor parse_named_tensor(std::string_view text) {
    const Call call = parse_call(text);
    if (call.name == "one") return one_tensor(call);
    if (call.name == "identity") return identity_tensor(call);
    if (call.name == "cg" || call.name == "cg04") return coupling_tensor(call);
    if (call.name == "harmonic") return harmonic_tensor(call);
    if (call.name == "symmetric") return symmetric_tensor(call);
    call_error(text, "expected one, identity(n), cg(a,b,c), cg04(a,b,c), harmonic(l) or symmetric(a,b,...;c;r)");
}

}  // namespace clebsch
