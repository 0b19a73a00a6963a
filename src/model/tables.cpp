#include "model/tables.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.hpp"
#include "base/number.hpp"
#include "model/tabulate.hpp"
#include "run/program_plan.hpp"

namespace clebsch {
namespace {

constexpr double least_scale = 1e-3;      ///< errors are relative to no less than this share of the largest number
constexpr double shortest = 1.0 / 4096;   ///< piece, of the cutoff
constexpr std::size_t most_pieces = 512;  ///< a network of usual size takes 28 in float32
constexpr std::size_t rows_at_once = 256;

/// Polynomials through n points of [-1, 1], both ends among them, and the points between.
class Interpolation {
 public:
    explicit Interpolation(int n) : n_(static_cast<std::size_t>(n)), coefficients_(n_ * n_), between_((n_ - 1) * n_) {
        std::vector<long double> matrix(n_ * 2 * n_);  // powers of the points, beside the identity
        for (std::size_t i = 0; i < n_; ++i) {
            long double power = 1;
            for (std::size_t k = 0; k < n_; ++k, power *= static_cast<long double>(point(2 * i))) matrix[i * 2 * n_ + k] = power;
            matrix[i * 2 * n_ + n_ + i] = 1;
        }
        invert(matrix);
        for (std::size_t k = 0; k < n_; ++k)
            for (std::size_t i = 0; i < n_; ++i) coefficients_[k * n_ + i] = static_cast<double>(matrix[k * 2 * n_ + n_ + i]);
        for (std::size_t b = 0; b + 1 < n_; ++b) {
            for (std::size_t i = 0; i < n_; ++i) {
                long double power = 1, sum = 0;
                for (std::size_t k = 0; k < n_; ++k, power *= static_cast<long double>(point(2 * b + 1)))
                    sum += power * matrix[k * 2 * n_ + n_ + i];
                between_[b * n_ + i] = static_cast<double>(sum);
            }
        }
    }

    /// Points at even numbers are those the polynomials go through, at odd ones those between; from 1 to -1.
    std::size_t points() const { return 2 * n_ - 1; }
    double point(std::size_t number) const {
        return std::cos(std::numbers::pi * static_cast<double>(number) / static_cast<double>(2 * n_ - 2));
    }

    struct Quality {
        double largest = 0;  ///< number at any point
        double error = 0;    ///< at points between
    };
    /// `values`: [points][size].
    Quality quality(const double* values, std::size_t size) const {
        Quality result;
        for (std::size_t i = 0; i < points() * size; ++i) result.largest = std::max(result.largest, std::abs(values[i]));
        std::vector<double> sum(size);
        for (std::size_t b = 0; b + 1 < n_; ++b) {
            combine(between_.data() + b * n_, values, size, sum.data());
            for (std::size_t c = 0; c < size; ++c) result.error = std::max(result.error, std::abs(sum[c] - values[(2 * b + 1) * size + c]));
        }
        return result;
    }
    /// Coefficients of all powers, [n][size].
    void fit(const double* values, std::size_t size, double* coefficients) const {
        for (std::size_t k = 0; k < n_; ++k) combine(coefficients_.data() + k * n_, values, size, coefficients + k * size);
    }

 private:
    /// Sum over the points that polynomials go through.
    void combine(const double* weights, const double* values, std::size_t size, double* sum) const {
        std::fill_n(sum, size, 0.0);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t c = 0; c < size; ++c) sum[c] += weights[i] * values[2 * i * size + c];
    }

    /// Gauss and Jordan, with the largest pivot of a column.
    void invert(std::vector<long double>& matrix) const {
        const std::size_t width = 2 * n_;
        for (std::size_t column = 0; column < n_; ++column) {
            std::size_t pivot = column;
            for (std::size_t row = column; row < n_; ++row)
                if (std::abs(matrix[row * width + column]) > std::abs(matrix[pivot * width + column])) pivot = row;
            for (std::size_t k = 0; k < width; ++k) std::swap(matrix[pivot * width + k], matrix[column * width + k]);
            const long double inverse = 1 / matrix[column * width + column];
            for (std::size_t k = 0; k < width; ++k) matrix[column * width + k] *= inverse;
            for (std::size_t row = 0; row < n_; ++row) {
                const long double factor = matrix[row * width + column];
                if (row == column || factor == 0) continue;
                for (std::size_t k = 0; k < width; ++k) matrix[row * width + k] -= factor * matrix[column * width + k];
            }
        }
    }

    std::size_t n_;
    std::vector<double> coefficients_;  ///< [n][n]: from values to coefficients
    std::vector<double> between_;       ///< [n - 1][n]: from values to those between
};

const std::vector<double>& weights_of(const Model& model, const std::string& name) {
    return std::ranges::find(model.weights, name, &ModelWeights::name)->values;
}

/// Runs the functions in float64.
class Functions {
 public:
    Functions(const Model& model, const Tabulation& tabulation)
        : plan_(tabulation.functions,
                {.dtypes = std::vector<DType>(tabulation.functions.inputs.size() + tabulation.functions.outputs.size(), DType::float64)}) {
        const Program& program = tabulation.functions;
        buffers_.push_back({nullptr, DType::float64, 0, 0});
        for (std::size_t i = 1; i < program.inputs.size(); ++i) {
            const std::vector<double>& values = weights_of(model, program.values[static_cast<std::size_t>(program.inputs[i])].name);
            buffers_.push_back({const_cast<double*>(values.data()), DType::float64, 1, 0});
        }
        for (const int output : program.outputs)
            sizes.push_back(static_cast<std::size_t>(program.values[static_cast<std::size_t>(output)].size()));
    }

    /// Values of every output, [numbers][size].
    void evaluate(std::vector<double>& numbers, std::vector<std::vector<double>>& values) {
        const auto rows = static_cast<std::int64_t>(numbers.size());
        values.resize(sizes.size());
        buffers_.resize(plan_.program().inputs.size());
        buffers_.front() = {numbers.data(), DType::float64, rows, 0};
        for (std::size_t v = 0; v < sizes.size(); ++v) {
            values[v].resize(numbers.size() * sizes[v]);
            buffers_.push_back({values[v].data(), DType::float64, rows, 0});
        }
        const std::vector<std::int64_t> counts(plan_.spaces().size(), rows);
        workspace_.resize(plan_.workspace_bytes(counts, 1));
        plan_.launch({.buffers = buffers_, .indices = {}, .rows = counts}, {workspace_.data(), workspace_.size()});
    }

    std::vector<std::size_t> sizes;

 private:
    ProgramPlan plan_;
    std::vector<Buffer> buffers_;
    std::vector<std::byte> workspace_;
};

struct Piece {
    double begin = 0, end = 0;
    double slope = 0, offset = 0;
    std::vector<double> coefficients;  ///< of all values, one after another

    double number_at(double x) const { return (x - offset) / slope; }
};

class Tables {
 public:
    Tables(const Model& model, const Tabulation& tabulation, const TableOptions& options, int coefficients)
        : options_(options),
          functions_(model, tabulation),
          interpolation_(coefficients),
          n_(static_cast<std::size_t>(coefficients)),
          cutoff_(model.cutoff),
          tolerance_(options.tolerance),
          largest_(functions_.sizes.size(), 0.0) {}

    std::vector<Piece> run() {
        // The largest numbers anywhere set the scale of the errors, so all first pieces are looked at before any is judged.
        constexpr int first_pieces = 8;
        std::vector<Piece> pending, done;
        for (int p = 0; p < first_pieces; ++p) pending.push_back(piece(cutoff_ * p / first_pieces, cutoff_ * (p + 1) / first_pieces));
        for (bool judging = false; !pending.empty(); judging = true) {
            std::vector<Piece> next;
            const std::size_t together = std::max<std::size_t>(1, rows_at_once / interpolation_.points());
            for (std::size_t first = 0; first < pending.size(); first += together) {
                const std::size_t count = std::min(together, pending.size() - first);
                look_at(std::span(pending).subspan(first, count));
                for (std::size_t p = 0; p < count && judging; ++p) judge(pending[first + p], p, done, next);
            }
            if (judging) pending = std::move(next);
            if (done.size() + pending.size() > most_pieces)
                throw Error(ErrorKind::unsupported, "tables: polynomials of " + std::to_string(n_) + " coefficients would need more than " +
                                                        std::to_string(most_pieces) + " pieces for a tolerance of " +
                                                        number_text(tolerance_));
        }
        std::ranges::sort(done, {}, &Piece::begin);
        return done;
    }

    double largest_error() const { return largest_error_; }

 private:
    Piece piece(double begin, double end) const {
        Piece result{.begin = begin, .end = end, .slope = 2 / (end - begin), .offset = 0, .coefficients = {}};
        result.offset = -(begin + end) / 2 * result.slope;
        if (options_.dtype == DType::float32) {  // what will be read
            result.slope = static_cast<double>(static_cast<float>(result.slope));
            result.offset = static_cast<double>(static_cast<float>(result.offset));
        }
        return result;
    }

    void look_at(std::span<const Piece> pieces) {
        numbers_.clear();
        for (const Piece& piece : pieces)
            for (std::size_t i = 0; i < interpolation_.points(); ++i)
                numbers_.push_back(std::max(0.0, piece.number_at(interpolation_.point(i))));
        functions_.evaluate(numbers_, values_);
        for (std::size_t v = 0; v < values_.size(); ++v)
            for (const double value : values_[v]) {
                if (!std::isfinite(value)) fail("tables: a radial network gives numbers that are not finite");
                largest_[v] = std::max(largest_[v], std::abs(value));
            }
    }

    void judge(Piece& piece, std::size_t place, std::vector<Piece>& done, std::vector<Piece>& next) {
        double error = 0;
        for (std::size_t v = 0; v < values_.size(); ++v) {
            const auto quality = interpolation_.quality(values_of(v, place), functions_.sizes[v]);
            const double scale = std::max(quality.largest, least_scale * largest_[v]);
            if (scale > 0) error = std::max(error, quality.error / scale);
        }
        if (error <= tolerance_) {
            for (std::size_t v = 0; v < values_.size(); ++v) {
                const std::size_t before = piece.coefficients.size();
                piece.coefficients.resize(before + n_ * functions_.sizes[v]);
                interpolation_.fit(values_of(v, place), functions_.sizes[v], piece.coefficients.data() + before);
            }
            largest_error_ = std::max(largest_error_, error);
            done.push_back(std::move(piece));
            return;
        }
        const double middle = (piece.begin + piece.end) / 2;
        if (piece.end - middle < shortest * cutoff_) {
            char text[160];
            std::snprintf(text, sizeof text, "tables: polynomials of %zu coefficients differ by %.1e next to %.4f A, expected %.1e", n_,
                          error, middle, tolerance_);
            throw Error(ErrorKind::unsupported, text);
        }
        next.push_back(this->piece(piece.begin, middle));
        next.push_back(this->piece(middle, piece.end));
    }

    const double* values_of(std::size_t v, std::size_t place) const {
        return values_[v].data() + place * interpolation_.points() * functions_.sizes[v];
    }

    const TableOptions& options_;
    Functions functions_;
    Interpolation interpolation_;
    std::size_t n_;
    double cutoff_, tolerance_;
    std::vector<double> largest_;  ///< number of every value
    std::vector<double> numbers_;
    std::vector<std::vector<double>> values_;
    double largest_error_ = 0;
};

}  // namespace

TabulatedModel tabulated(const Model& model, const TableOptions& options) {
    validate(model);
    const bool is_double = options.dtype == DType::float64;
    TableOptions chosen = options;
    if (chosen.coefficients == 0) chosen.coefficients = is_double ? 16 : 12;
    if (chosen.tolerance == 0) chosen.tolerance = is_double ? 1e-12 : 1e-7;
    if (!(chosen.tolerance > 0 && chosen.tolerance < 1))
        fail("tables: expected a tolerance between 0 and 1, got " + number_text(options.tolerance));
    TabulateOptions tabulate_options;
    tabulate_options.coefficients = chosen.coefficients;
    const std::optional<Tabulation> tabulation = tabulate(model.program, tabulate_options);
    if (!tabulation || tabulation->space != "edge")
        throw Error(ErrorKind::unsupported, "tables: model '" + model.name + "' has no values of at least " +
                                                std::to_string(tabulate_options.least_numbers) +
                                                " numbers that follow from the length of an edge alone");

    Tables tables(model, *tabulation, chosen, chosen.coefficients);
    const std::vector<Piece> pieces = tables.run();
    TabulatedModel result{.model = model, .report = {}};
    result.model.program = tabulation->tabulated;
    result.model.weights.clear();
    const auto add = [&](const std::string& name, auto&& numbers_of) {
        ModelWeights weights{name, {}};
        for (const Piece& piece : pieces) numbers_of(piece, weights.values);
        result.model.weights.push_back(std::move(weights));
    };
    const Program& program = tabulation->tabulated;
    const std::size_t made = program.inputs.size() - tabulation->tables.size();  // inputs that come before the tables
    for (std::size_t i = 1; i + 1 < made; ++i) {
        const std::string& name = program.values[static_cast<std::size_t>(program.inputs[i])].name;
        result.model.weights.push_back({name, weights_of(model, name)});
    }
    add(program.values[static_cast<std::size_t>(program.inputs[made - 1])].name, [](const Piece& piece, std::vector<double>& to) {
        to.insert(to.end(), {piece.slope, piece.offset});
    });
    std::ptrdiff_t before = 0;
    for (std::size_t t = 0; t < tabulation->tables.size(); ++t) {
        const Value& table = program.values[static_cast<std::size_t>(program.inputs[made + t])];
        const std::ptrdiff_t size = table.size();
        add(table.name, [&](const Piece& piece, std::vector<double>& to) {
            to.insert(to.end(), piece.coefficients.begin() + before, piece.coefficients.begin() + before + size);
        });
        before += size;
        result.report.numbers += size / chosen.coefficients;
    }
    result.report.pieces = static_cast<std::int64_t>(pieces.size());
    result.report.coefficients = chosen.coefficients;
    result.report.largest_error = tables.largest_error();
    result.report.bytes = static_cast<double>(pieces.size()) * static_cast<double>(before) * static_cast<double>(size_of(chosen.dtype));
    result.report.shortest_piece = model.cutoff;
    for (const Piece& piece : pieces) {
        result.model.piece_ends.push_back(piece.end);
        result.report.shortest_piece = std::min(result.report.shortest_piece, piece.end - piece.begin);
    }
    validate(result.model);
    return result;
}

}  // namespace clebsch
