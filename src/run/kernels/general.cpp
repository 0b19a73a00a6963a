// Any path as loops over letters. The innermost letter runs over contiguous channels where the description allows it, so that the compiler
// vectorises those loops; everything else is bookkeeping.
#include "run/kernels/general.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

constexpr int most_letters = 26;
constexpr int most_inner = 3;  ///< inner loops are written out for up to this many inputs that run with the letter

/// out[i] += scale * product of the n inputs' [i].
template <class T>
void add_products(std::int64_t count, T scale, const T* const* in, int n, T* __restrict out) {
    switch (n) {
        case 0:
            for (std::int64_t i = 0; i < count; ++i) out[i] += scale;
            break;
        case 1:
            for (std::int64_t i = 0; i < count; ++i) out[i] += scale * in[0][i];
            break;
        case 2:
            for (std::int64_t i = 0; i < count; ++i) out[i] += scale * in[0][i] * in[1][i];
            break;
        default:
            for (std::int64_t i = 0; i < count; ++i) out[i] += scale * in[0][i] * in[1][i] * in[2][i];
            break;
    }
}

/// The sum over i of the product of the n inputs' [i], in lanes that are added in a fixed order.
template <class T>
T sum_of_products(std::int64_t count, const T* const* in, int n) {
    constexpr int lanes = 16;
    T sums[lanes] = {};
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        switch (n) {
            case 1:
                for (int k = 0; k < lanes; ++k) sums[k] += in[0][i + k];
                break;
            case 2:
                for (int k = 0; k < lanes; ++k) sums[k] += in[0][i + k] * in[1][i + k];
                break;
            default:
                for (int k = 0; k < lanes; ++k) sums[k] += in[0][i + k] * in[1][i + k] * in[2][i + k];
                break;
        }
    }
    for (; i < count; ++i) {
        T product = in[0][i];
        for (int f = 1; f < n; ++f) product *= in[f][i];
        sums[0] += product;
    }
    for (int width = lanes / 2; width > 0; width /= 2)
        for (int k = 0; k < width; ++k) sums[k] += sums[k + width];
    return sums[0];
}

template <class T>
struct RowOfPath {
    const GeneralPath& path;
    const Block<T>& block;
    int row;

    const T* input(int factor) const { return block.inputs[path.operand[factor]][row]; }
    T* output() const { return block.outputs[path.operand[path.factors - 1]][row]; }
};

/// All entries at fixed outer letters: place[f] is where factor f stands when the inner letter is `start`.
template <class T>
void run_entries(const RowOfPath<T>& at, const std::int64_t* place, std::int64_t count) {
    const GeneralPath& path = at.path;
    const int inputs = path.factors - 1, last = path.letters - 1;
    const auto step = [&](int factor) { return last < 0 ? std::int64_t{0} : path.linear[factor * path.letters + last]; };
    const std::int64_t out_step = step(inputs);
    int moving = 0;
    bool contiguous = out_step == 0 || out_step == 1;
    for (int f = 0; f < inputs; ++f) {
        moving += step(f) != 0;
        contiguous = contiguous && (step(f) == 0 || step(f) == 1);
    }
    // Entries that give one number are added up before they meet what other paths and rows gave, which may be far greater.
    const bool one_number = out_step == 0 || count == 1;
    T* target = nullptr;
    T sum = 0;
    for (std::int64_t e = 0; e < path.entries; ++e) {
        const std::int64_t* offset = path.entry_offset + e * path.factors;
        T* out = at.output() + place[inputs] + offset[inputs];
        if (one_number && out != target) {
            if (target != nullptr) *target += sum;
            target = out;
            sum = 0;
        }
        T scale = static_cast<T>(path.value[e]);
        if (contiguous && moving <= most_inner) {
            const T* in[most_inner] = {};
            int n = 0;
            for (int f = 0; f < inputs; ++f) {
                const T* number = at.input(f) + place[f] + offset[f];
                if (step(f) == 0) scale *= *number;
                else in[n++] = number;
            }
            if (!one_number) add_products(count, scale, in, n, out);
            else sum += n == 0 ? scale * static_cast<T>(count) : scale * sum_of_products(count, in, n);
            continue;
        }
        for (std::int64_t i = 0; i < count; ++i) {
            T product = scale;
            for (int f = 0; f < inputs; ++f) product *= at.input(f)[place[f] + offset[f] + i * step(f)];
            (one_number ? sum : out[i * out_step]) += product;
        }
    }
    if (target != nullptr) *target += sum;
}

template <class T>
void run_path(const RowOfPath<T>& at) {
    const GeneralPath& path = at.path;
    const int outer = path.letters > 0 ? path.letters - 1 : 0;
    std::int64_t value[most_letters] = {};
    constexpr int most_factors = 64;  // schedule/general.cpp keeps to it
    std::int64_t place[most_factors];
    const auto start_of = [&](int letter) {
        std::int64_t start = 0;
        for (int k = 0; k < letter; ++k)
            if ((path.after[letter] >> k & 1U) != 0 && value[k] + 1 > start) start = value[k] + 1;
        return start;
    };
    int level = 0;
    if (outer > 0) value[0] = start_of(0);
    while (true) {
        // Go down to the innermost letter; a letter without values sends us back up.
        while (level < outer && value[level] < path.extent[level]) {
            ++level;
            if (level < outer) value[level] = start_of(level);
        }
        if (level == outer) {
            const std::int64_t start = path.letters > 0 ? start_of(outer) : 0;
            const std::int64_t count = path.letters > 0 ? path.extent[outer] - start : 1;
            if (count > 0) {
                for (int f = 0; f < path.factors; ++f) {
                    const std::int64_t* linear = path.linear + f * path.letters;
                    const std::int64_t* triangular = path.triangular + f * path.letters;
                    std::int64_t sum = path.base[f];
                    for (int l = 0; l < outer; ++l) sum += linear[l] * value[l] + triangular[l] * (value[l] * (value[l] + 1) / 2);
                    if (path.letters > 0) sum += linear[outer] * start;
                    place[f] = sum;
                }
                run_entries(at, place, count);
            }
        }
        if (level == 0) return;
        --level;
        ++value[level];
    }
}

template <class T>
void run(const GeneralPath* paths, int count, const Block<T>& block) {
    for (int r = 0; r < block.rows; ++r)
        for (int p = 0; p < count; ++p) run_path(RowOfPath<T>{paths[p], block, r});
}

}  // namespace

void run_general(const GeneralPath* paths, int count, const Block<float>& block) { run(paths, count, block); }
void run_general(const GeneralPath* paths, int count, const Block<double>& block) { run(paths, count, block); }

}  // namespace clebsch::CLEBSCH_ISA
