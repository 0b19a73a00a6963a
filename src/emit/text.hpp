#pragma once
// Source text with indentation, and how numbers and names are written in it.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/gpu_kernel.hpp"

namespace clebsch {

class SourceText {
 public:
    /// One line; a line that ends in '{' indents what follows, one that begins with '}' ends that.
    void line(std::string_view text);
    void blank() { text_ += '\n'; }
    const std::string& text() const { return text_; }

 private:
    std::string text_;
    int depth_ = 0;
};

/// A literal of the type, exactly rounded: "0.57735026f", "0.57735026918962584".
std::string literal(double value, GpuNumber type);
std::string literal(std::int64_t value);
/// The type a number is stored as: "float", "double", "Bfloat16", "Float16".
const char* type_name(GpuNumber type);
/// A C identifier that shows where it came from: "x_gradient", with '.' as '_'.
std::string identifier(std::string_view name);
std::string joined(const std::vector<std::string>& parts, std::string_view separator);

/// struct Arguments with one 8-byte member per argument, named by argument_name.
void write_arguments(SourceText& source, const GpuProblem& problem, const std::vector<KernelArgument>& arguments);
std::string argument_name(const GpuProblem& problem, const KernelArgument& argument);

/// A kernel from its head to where its own code begins; the caller closes it. `bounds`: threads of a block and, behind a comma, blocks a
/// multiprocessor holds, as __launch_bounds__ takes them.
void begin_kernel(SourceText& source, const std::string& name, const std::string& bounds);

/// The row that an index leads to, as an expression; `index`: the name of its argument.
std::string look_up(const std::string& index, const std::string& row);
/// The row that a chain of indices leads to.
std::string look_up(const GpuProblem& problem, const std::vector<std::string>& chain, std::string row);

/// What every kernel begins with: numbers, atomic additions, lookups (skeletons/device.cuh).
std::string_view device_preamble();
/// The frame of stream kernels (skeletons/stream.cuh).
std::string_view stream_preamble();
/// Tiles of matrix products (skeletons/matrix.cuh).
std::string_view matrix_preamble();
/// Gradients of weights that rows share (skeletons/gradient.cuh), behind matrix_preamble.
std::string_view gradient_preamble();
/// Matrix products for many rows by half-precision parts (skeletons/halves.cuh), behind matrix_preamble.
std::string_view halves_preamble();
/// Rows with weight matrices of their own (skeletons/rows.cuh).
std::string_view rows_preamble();
/// Sorting of rows (skeletons/order.cuh).
std::string_view order_preamble();
/// Whether sorted indices ascend (skeletons/ascending.cuh).
std::string_view ascending_preamble();
/// The kernel that reads its coefficients when it runs (skeletons/table.cuh).
std::string_view table_preamble();

}  // namespace clebsch
