#pragma once
// A scheduled piece of a polynomial: some of its paths, packed for one family of loops.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "describe/polynomial.hpp"
#include "run/block.hpp"
#include "schedule/cpu_target.hpp"
#include "schedule/estimate.hpp"

namespace clebsch {

using OverwriteMap = std::vector<std::vector<bool>>;

/// Who asks for coming rows of operands whose rows follow one another.
enum class Fetch : std::uint8_t {
    own,       ///< the kernel, by itself; Block::ahead has rows reached through sorted indices that are needed next
    ahead,     ///< the kernel, from Block::ahead as it goes
    executor,  ///< the executor, for the whole of the next block before each block
};

/// Immutable after construction; run() may be called from many threads at once, each with its own scratch.
class Kernel {
 public:
    virtual ~Kernel() = default;
    virtual std::string name() const = 0;        ///< "fold", "terms", "mix", "lanes", "general"
    virtual std::string explain() const = 0;     ///< a few lines: groups, tiles, why
    virtual std::vector<int> paths() const = 0;  ///< the paths of the polynomial it computes
    virtual Estimate estimate() const = 0;       ///< multiply-adds it performs per iteration row (bytes may stay 0)
    /// Segments of `each` outputs, as [operand][segment], whose every path in the polynomial this kernel computes and which it therefore
    /// stores instead of adding to (empty: none). The executor zeroes all others before the first kernel of a block. Of sorted outputs all
    /// segments or none: the kernel stores where a row begins (Block::begins), and no row that it writes is zeroed.
    virtual OverwriteMap overwritten() const { return {}; }
    /// Operands in mul_ir, as [operand], whose rows the kernel reads or writes as they are stored, component by component of a channel, in
    /// the compute type (empty: none); only it does.
    virtual std::vector<bool> as_stored() const { return {}; }
    virtual int preferred_rows() const { return 32; }  ///< rows a block should have (upper bound of scratch use)
    virtual Fetch fetches() const { return Fetch::executor; }
    virtual std::size_t scratch_bytes(std::size_t element_size, int rows) const = 0;

    /// Work once per launch on operands that are shared by all rows (packing weights): inputs[o] is the row of operand o or null.
    virtual std::size_t prepared_bytes(std::size_t /*element_size*/) const { return 0; }
    virtual void prepare(const float* const* /*inputs*/, std::byte* /*prepared*/) const {}
    virtual void prepare(const double* const* /*inputs*/, std::byte* /*prepared*/) const {}

    virtual void run(const Block<float>& block) const = 0;
    virtual void run(const Block<double>& block) const = 0;
};

struct KernelRequest {
    const Polynomial* polynomial;  ///< validated; alive only during construction
    std::vector<int> paths;        ///< not yet taken by another kernel
    InstructionSet isa;
};

/// Each family takes the paths it suits out of the request and returns a kernel for them (null: none). Which family takes a path is decided
/// by choose_kernels (schedule/cpu.cpp) in this order; `general` takes everything.
std::unique_ptr<Kernel> make_fold_kernel(const KernelRequest& request, std::vector<int>& taken);
std::unique_ptr<Kernel> make_mix_kernel(const KernelRequest& request, std::vector<int>& taken);
std::unique_ptr<Kernel> make_terms_kernel(const KernelRequest& request, std::vector<int>& taken);
std::unique_ptr<Kernel> make_lanes_kernel(const KernelRequest& request, std::vector<int>& taken);
std::unique_ptr<Kernel> make_general_kernel(const KernelRequest& request, std::vector<int>& taken);

}  // namespace clebsch
