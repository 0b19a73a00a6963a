#include "emit/emitted.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "base/error.hpp"
#include "emit/host_kernels.hpp"
#include "emit/order.hpp"
#include "schedule/gpu_order.hpp"

namespace clebsch::testing {
namespace {

/// A polynomial's passes with sums in a fixed order, or the one pass without.
class PassRunner {
 public:
    PassRunner(const EmittedCase& one, HostKernels& host) : one_(one) {
        passes_ = gpu_passes(one.polynomial, one.ordered);
        for (const OrderedPass& pass : passes_) {
            std::vector<bool> messages;
            for (std::size_t o = 0; o < pass.operands.size(); ++o)
                messages.push_back(pass.messages[o] && pass.polynomial.operands[o].role == Role::output);
            std::vector<GpuNumber> storage;
            for (std::size_t o = 0; o < pass.operands.size() && !one.storage.empty(); ++o)
                storage.push_back(pass.messages[o] ? GpuNumber::float64 : one.storage[static_cast<std::size_t>(pass.operands[o])]);
            prepared_.push_back(prepare(pass.polynomial, one.schedule, one.ordered, std::move(messages), std::move(storage), one.spare));
            first_stage_.push_back(-1);
            for (const GpuStage& stage : prepared_.back().kernels.stages) {
                const int number = host.add(stage.kernel);
                if (first_stage_.back() < 0) first_stage_.back() = number;
            }
            first_order_.push_back(-1);
            if (pass.order.empty()) continue;
            first_order_.back() = host.add(emit_order_targets(static_cast<int>(pass.order.size())));
            for (const char* step : {"count", "scan", "place"}) host.add(emit_order_step(step));
        }
    }

    /// `arrays`: of the polynomial's operands.
    void run(const HostKernels& host, const std::vector<double*>& arrays) {
        std::map<int, std::vector<double>> messages;  // of operands
        for (std::size_t p = 0; p < passes_.size(); ++p) {
            Indices indices = one_.inputs.indices;
            if (!passes_[p].order.empty()) order(host, p, indices);
            std::vector<double*> own;
            for (std::size_t o = 0; o < passes_[p].operands.size(); ++o) {
                const int given = passes_[p].operands[o];
                if (!passes_[p].messages[o]) {
                    own.push_back(arrays[static_cast<std::size_t>(given)]);
                    continue;
                }
                std::vector<double>& message = messages[given];
                message.resize(static_cast<std::size_t>(rows_of(one_.inputs.rows, passes_[p].polynomial.rows) *
                                                        passes_[p].polynomial.operands[o].size()) +
                               8);
                own.push_back(message.data());
            }
            run_stages(host, first_stage_[p], prepared_[p], own, indices, one_.inputs.rows, one_.aligned, one_.gap);
        }
    }

 private:
    const EmittedCase& one_;
    std::vector<OrderedPass> passes_;
    std::vector<Prepared> prepared_;
    std::vector<int> first_stage_, first_order_;

    void order(const HostKernels& host, std::size_t p, Indices& indices) {
        const OrderedPass& pass = passes_[p];
        const std::int64_t rows = one_.inputs.rows.at(pass.polynomial.rows);
        const auto count = static_cast<std::size_t>(rows);
        std::array<std::vector<std::int64_t>, 4> arrays;  // targets and rows, twice
        for (auto& array : arrays) array.resize(count + 1);
        const std::int64_t blocks = (rows + order_tile - 1) / order_tile;
        std::vector<std::int64_t> counts(static_cast<std::size_t>(256 * (blocks + 1)));
        unsigned error = 0;
        std::vector<std::uint64_t> words;
        std::int64_t masked = 0;
        for (const std::string& name : pass.order) {
            masked = one_.inputs.rows.at(one_.polynomial.indices[static_cast<std::size_t>(one_.polynomial.find_index(name))].to);
            words.insert(words.end(),
                         {reinterpret_cast<std::uintptr_t>(one_.inputs.indices.at(name).data()), static_cast<std::uint64_t>(masked), 1});
        }
        const auto pointer = [](std::vector<std::int64_t>& array) { return reinterpret_cast<std::uintptr_t>(array.data()); };
        words.insert(words.end(),
                     {static_cast<std::uint64_t>(rows), reinterpret_cast<std::uintptr_t>(&error), pointer(arrays[0]), pointer(arrays[1])});
        if (rows > 0) {
            host.run(first_order_[p], words, {.grid = {2, 1}, .threads = order_threads});
            for (int digit = 0; digit < 2; ++digit) {  // more than needed for few targets
                const std::size_t from = digit == 0 ? 0 : 2;
                words = {pointer(arrays[from]),
                         pointer(arrays[from + 1]),
                         pointer(arrays[2 - from]),
                         pointer(arrays[3 - from]),
                         pointer(counts),
                         static_cast<std::uint64_t>(rows),
                         static_cast<std::uint64_t>(blocks),
                         static_cast<std::uint64_t>(8 * digit),
                         static_cast<std::uint64_t>(masked),
                         digit == 1 ? std::uint64_t{1} : std::uint64_t{0}};
                for (int step = 1; step <= 3; ++step)
                    host.run(first_order_[p] + step, words, {.grid = {step == 2 ? 256 : blocks, 1}, .threads = order_threads});
            }
        }
        for (std::size_t a = 0; a < 2; ++a) arrays[a].resize(count);
        const std::size_t made = pass.polynomial.indices.size() - 2;
        indices[pass.polynomial.indices[made].name] = arrays[1];
        indices[pass.polynomial.indices[made + 1].name] = arrays[0];
    }
};

}  // namespace

bool has_host_compiler() {
    if (std::system("c++ --version > /dev/null 2>&1") == 0) return true;
    MESSAGE("skipped: there is no host compiler called c++");
    return false;
}

std::vector<std::map<std::string, ReferenceArray>> run_emitted(const std::vector<EmittedCase>& cases) {
    HostKernels host;
    std::vector<PassRunner> runners;
    runners.reserve(cases.size());
    for (const EmittedCase& one : cases) runners.emplace_back(one, host);
    host.compile();
    std::vector<std::map<std::string, ReferenceArray>> results;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const Polynomial& polynomial = cases[i].polynomial;
        std::vector<std::vector<double>> arrays;
        std::vector<double*> pointers;
        const auto storage_of = [&](std::size_t o) { return cases[i].storage.empty() ? GpuNumber::float64 : cases[i].storage[o]; };
        for (const Operand& operand : polynomial.operands) {
            const std::int64_t rows = rows_of(cases[i].inputs.rows, polynomial.space_of(operand)), size = operand.size();
            const std::int64_t stride = size + (operand.role == Role::input ? cases[i].gap : 0);
            arrays.emplace_back(static_cast<std::size_t>(rows * stride) + 8, 0.0);
            if (operand.role != Role::input) continue;
            const ReferenceArray& numbers = cases[i].inputs.arrays.at(operand.name);
            for (std::int64_t n = 0; n < std::ssize(numbers); ++n)
                put_number(arrays.back().data(), storage_of(arrays.size() - 1), n / size * stride + n % size,
                           numbers[static_cast<std::size_t>(n)]);
        }
        pointers.reserve(arrays.size());
        for (std::vector<double>& array : arrays) pointers.push_back(array.data());
        runners[i].run(host, pointers);
        std::map<std::string, ReferenceArray>& outputs = results.emplace_back();
        for (std::size_t o = 0; o < arrays.size(); ++o) {
            if (polynomial.operands[o].role != Role::output) continue;
            ReferenceArray& numbers = outputs[polynomial.operands[o].name];
            for (std::size_t n = 0; n + 8 < arrays[o].size(); ++n)
                numbers.push_back(number_at(arrays[o].data(), storage_of(o), static_cast<std::int64_t>(n)));
        }
    }
    return results;
}

std::vector<bool> shown_as_nan(const std::vector<AscendingCase>& cases) {
    HostKernels host;
    KernelText text = emit_ascending();
    text.text += "typedef AscendingArguments Arguments;\n";
    const int kernel = host.add(text);
    host.compile();
    std::vector<bool> shown;
    for (const AscendingCase& one : cases) {
        const std::vector<std::int32_t> narrow(one.index.begin(), one.index.end());
        std::vector<double> packed(3 * 5, 1.0);
        std::vector<std::uint16_t> strided(4 * 9, 1);  // rows of 7 numbers, 9 apart
        std::vector<std::uint64_t> words = {
            one.wide ? reinterpret_cast<std::uintptr_t>(one.index.data()) : reinterpret_cast<std::uintptr_t>(narrow.data()),
            one.wide ? std::uint64_t{1} : std::uint64_t{0},
            one.index.size(),
            static_cast<std::uint64_t>(one.rows),
            2,
            reinterpret_cast<std::uintptr_t>(packed.data()),
            20,
            20,
            3,
            reinterpret_cast<std::uintptr_t>(strided.data()),
            9,
            7,
            4};
        words.resize(5 + 4 * ascending_outputs);
        host.run(kernel, words, {.grid = {2, 1}, .threads = ascending_threads});
        bool between = false;
        std::int64_t filled = 0;
        for (const double number : packed) filled += std::isnan(number) ? 1 : 0;
        for (std::size_t i = 0; i < strided.size(); ++i) {
            if (i % 9 < 7) filled += strided[i] == 0xffff ? 1 : 0;
            else between = between || strided[i] != 1;
        }
        if (between || (filled != 0 && filled != 3 * 5 + 4 * 7)) fail("outputs were not filled row by row");
        shown.push_back(filled != 0);
    }
    return shown;
}

}  // namespace clebsch::testing
