#include "run/program_memory.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace clebsch {
namespace {

struct Life {
    int value = 0;
    int first = -1, last = -1;  ///< steps
    std::int64_t bytes = 0;     ///< per row
    std::int64_t offset = 0;
};

/// The lowest offset at which `life` meets no placed value that is alive with it. `placed` is sorted by offset.
std::int64_t lowest_offset(const Life& life, const std::vector<Life>& placed) {
    std::int64_t offset = 0;
    for (const Life& other : placed) {
        const bool together = other.first <= life.last && life.first <= other.last;
        if (!together || other.offset + other.bytes <= offset) continue;
        if (offset + life.bytes <= other.offset) break;
        offset = other.offset + other.bytes;
    }
    return offset;
}

}  // namespace

ProgramMemory plan_memory(const StepRequest& request, std::span<const ValueUse> uses, const std::vector<bool>& placed) {
    const auto& values = request.program->values;
    const std::size_t spaces = request.spaces->size();
    std::vector<Life> lives(values.size());
    for (std::size_t u = 0; u < uses.size(); ++u) {
        for (const int value : uses[u].writes)
            lives[static_cast<std::size_t>(value)].first = lives[static_cast<std::size_t>(value)].last = static_cast<int>(u);
        for (const int value : uses[u].reads) lives[static_cast<std::size_t>(value)].last = static_cast<int>(u);
    }
    ProgramMemory memory;
    memory.places.resize(values.size());
    memory.peak_bytes.assign(spaces + 1, 0);
    memory.total_bytes.assign(spaces + 1, 0);
    std::vector<std::vector<Life>> by_space(spaces + 1);
    for (std::size_t v = 0; v < values.size(); ++v) {
        if (!placed[v] || lives[v].first < 0) continue;
        const auto element = static_cast<std::int64_t>(size_of(request.dtypes[v]));
        const int space = request.space_of(values[v].space);
        const std::int64_t size = values[v].size();
        // Long rows begin at multiples of 64 bytes, short ones follow one another.
        const std::int64_t stride =
            size * element < 128 ? size : static_cast<std::int64_t>(round_up(static_cast<std::size_t>(size * element), 64)) / element;
        memory.places[v] = {.own = true, .space = space, .offset = 0, .row_stride = stride};
        Life life = lives[v];
        life.value = static_cast<int>(v);
        life.bytes = static_cast<std::int64_t>(round_up(static_cast<std::size_t>(stride * element), space < 0 ? 64 : 8));
        by_space[space < 0 ? spaces : static_cast<std::size_t>(space)].push_back(life);
    }
    for (std::size_t space = 0; space <= spaces; ++space) {
        std::ranges::stable_sort(by_space[space], std::greater<>{}, &Life::bytes);
        std::vector<Life> done;
        for (Life life : by_space[space]) {
            life.offset = lowest_offset(life, done);
            memory.places[static_cast<std::size_t>(life.value)].offset = life.offset;
            memory.peak_bytes[space] = std::max(memory.peak_bytes[space], life.offset + life.bytes);
            memory.total_bytes[space] += life.bytes;
            done.insert(std::ranges::upper_bound(done, life.offset, {}, &Life::offset), life);
        }
    }
    return memory;
}

double ProgramMemory::size(std::span<const std::int64_t> rows) const {
    double bytes = 0;
    for (std::size_t s = 0; s < peak_bytes.size(); ++s)
        bytes += (s < rows.size() ? static_cast<double>(rows[s]) : 1.0) * static_cast<double>(peak_bytes[s]);
    return bytes;
}

void ProgramMemory::regions(std::span<const std::int64_t> rows, std::size_t* begins) const {
    std::size_t at = 0;
    for (std::size_t s = 0; s < peak_bytes.size(); ++s) {
        begins[s] = at;
        const std::int64_t count = s < rows.size() ? padded(rows[s]) : 1;
        at += round_up(static_cast<std::size_t>(count * peak_bytes[s]), 64);
    }
}

std::size_t ProgramMemory::bytes(std::span<const std::int64_t> rows) const {
    std::int64_t sum = 0;
    for (std::size_t s = 0; s < peak_bytes.size(); ++s) {
        std::int64_t bytes = 0;
        if ((s < rows.size() && (__builtin_add_overflow(rows[s], std::int64_t{15}, &bytes) ||
                                 __builtin_mul_overflow(padded(rows[s]), peak_bytes[s], &bytes))) ||
            __builtin_add_overflow(sum, (s < rows.size() ? bytes : peak_bytes[s]) + 64, &sum))
            fail("the intermediates of the program exceed 2^63 bytes for this number of rows");
    }
    return static_cast<std::size_t>(sum);
}

}  // namespace clebsch
