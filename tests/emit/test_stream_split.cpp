// Stream kernels that share the work of a polynomial. That they give its numbers is in test_host_kernels.cpp ("stream-split").
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "describe/derivative.hpp"
#include "describe/operations/named_problems.hpp"
#include "describe/text.hpp"
#include "emit/kernels.hpp"
#include "schedule/gpu_order.hpp"
#include "support/channelwise.hpp"

using namespace clebsch;

namespace {

GpuProblem problem_of(const char* label, int order, GpuNumber type) {
    Polynomial polynomial = random::gradients(std::get<Polynomial>(named_problem(label)), order);
    const std::size_t operands = polynomial.operands.size();
    return {.polynomial = std::move(polynomial),
            .storage = std::vector<GpuNumber>(operands, type),
            .compute = type,
            .target = gpu_target("sm_90")};
}

}  // namespace

TEST_CASE("kernels of a convolution's derivatives have every path once and share no segment with channels") {
    for (const auto& [label, order, type] : {std::tuple{"nequip-revmd17-benzene", 1, GpuNumber::float32},
                                             {"nequix-main", 2, GpuNumber::float32},
                                             {"nequix-main", 1, GpuNumber::float64},
                                             {"natural-l3-128", 2, GpuNumber::float32},
                                             {"natural-l3-128", 2, GpuNumber::float64}}) {
        const std::string which = std::string(label) + ", order " + std::to_string(order);
        CAPTURE(which);
        const GpuProblem problem = problem_of(label, order, type);
        std::string why_not;
        const std::vector<StreamKernel> kernels = stream_kernels(problem, why_not);
        REQUIRE(kernels.size() > 1);
        CHECK(why_not.empty());
        std::size_t paths = 0;
        std::map<std::pair<int, int>, std::size_t> owner;  // of a segment with channels
        std::set<int> begun;                               // channel-free outputs
        for (std::size_t k = 0; k < kernels.size(); ++k) {
            const auto& [own, schedule] = kernels[k];
            paths += own.polynomial.paths.size();
            REQUIRE(own.begun.size() == own.polynomial.operands.size());
            for (std::size_t o = 0; o < own.begun.size(); ++o) {
                CHECK(own.begun[o] == begun.contains(static_cast<int>(o)));
                const StreamOperand& operand = schedule.operands[o];
                std::int64_t numbers = 0;  // copied: those of the segments that the paths use
                for (const StreamRun& run : operand.runs) {
                    CHECK(run.place == numbers);
                    numbers += run.count;
                }
                CHECK(operand.numbers() == numbers);
            }
            for (const Path& path : own.polynomial.paths)
                for (const Factor& factor : path.factors) {
                    if (factor.channels.empty()) continue;
                    CHECK(owner.emplace(std::pair{factor.operand, factor.segment}, k).first->second == k);
                    CHECK(schedule.operands[static_cast<std::size_t>(factor.operand)].places[static_cast<std::size_t>(factor.segment)] >=
                          0);
                }
            for (std::size_t o = 0; o < schedule.operands.size(); ++o)
                if (schedule.operands[o].way == StreamWay::reduced) begun.insert(static_cast<int>(o));
        }
        CHECK(paths == problem.polynomial.paths.size());
    }
}

TEST_CASE("an operand stands on one axis in every path, so that derivatives share sums however their coefficients are arranged") {
    for (const int order : {1, 2}) {
        const GpuProblem problem = problem_of("natural-l3-128", order, GpuNumber::float32);
        bool moved = false;  // a path whose own arrangement is another
        std::string why_not;
        for (const StreamKernel& kernel : stream_kernels(problem, why_not)) {
            std::map<int, int> axis_of;  // operand -> axis
            for (std::size_t p = 0; p < kernel.schedule.axes.size(); ++p)
                for (int k = 0; k < 3; ++k) {
                    const int f = kernel.schedule.axes[p][static_cast<std::size_t>(k)];
                    if (f < 0) continue;
                    const Factor& factor = kernel.problem.polynomial.paths[p].factors[static_cast<std::size_t>(f)];
                    CHECK(axis_of.emplace(factor.operand, k).first->second == k);
                    moved = moved || (factor.axis >= 0 && factor.axis != k);
                }
        }
        CHECK(moved);
    }
}

TEST_CASE("a kernel stays whole where it is asked to; channel-free gradients of fewer bits than they are summed in do not keep it whole") {
    GpuProblem problem = problem_of("nequix-main", 1, GpuNumber::float32);
    std::string why_not;
    CHECK(stream_kernels(problem, why_not, StreamSplit::never).size() == 1);
    CHECK(stream_kernels(problem, why_not, StreamSplit::always).size() == 4);  // degrees of the input
    for (std::size_t o = 0; o < problem.storage.size(); ++o)
        if (problem.polynomial.operands[o].name == "y_gradient") problem.storage[o] = GpuNumber::bfloat16;
    const std::vector<StreamKernel> kernels = stream_kernels(problem, why_not, StreamSplit::always);
    REQUIRE(kernels.size() == 4);
    for (const StreamKernel& kernel : kernels)
        for (std::size_t o = 0; o < problem.storage.size(); ++o)
            CHECK(kernel.schedule.operands[o].summed == problem.polynomial.operands[o].name.starts_with("x_gradient") +
                                                            problem.polynomial.operands[o].name.starts_with("y_gradient"));
}

TEST_CASE("a warp takes all channels of 16-bit rows of which nothing but sums leaves; what every row has without channels is carried") {
    const auto chosen = [](const char* label, int order, GpuNumber type, const char* target = "sm_90") {
        GpuProblem problem = problem_of(label, order, type);
        problem.compute = GpuNumber::float32;
        problem.target = gpu_target(target);
        std::string why_not;
        const std::optional<StreamSchedule> schedule = schedule_stream(problem, why_not);
        REQUIRE_MESSAGE(schedule, why_not);
        return *schedule;
    };
    const auto carried = [](const StreamSchedule& schedule) {
        return std::ranges::count(schedule.operands, true, &StreamOperand::carried);
    };
    for (const GpuNumber type : {GpuNumber::bfloat16, GpuNumber::float16}) {
        const StreamSchedule forward = chosen("natural-l2-128", 0, type);
        REQUIRE(forward.warps.size() == 1);
        CHECK(forward.warps[0].size() == 4);
        CHECK(carried(forward) == 1);
        CHECK(chosen("natural-l2-128", 1, type).warps.size() == 4);
        CHECK(carried(chosen("natural-l3-128", 0, type)) == 1);  // 32 bytes, which each warp would convert
        CHECK(carried(chosen("natural-l3-128", 2, type)) == 0);  // and with another such operand
        CHECK(carried(chosen("natural-l2-128", 0, type, "sm_80")) == 0);
    }
    CHECK(chosen("natural-l2-128", 0, GpuNumber::float32).warps.size() == 4);
    CHECK(carried(chosen("natural-l2-128", 2, GpuNumber::float32)) == 2);  // 36 bytes each
    CHECK(carried(chosen("natural-l3-128", 1, GpuNumber::float32)) == 0);  // 64
}

TEST_CASE("what no kernel may take alone is not split: paths of different indices, sums over channels beside numbers with channels") {
    const auto refused = [](const char* text) {
        const Polynomial polynomial = parse_polynomial(text);
        const std::size_t operands = polynomial.operands.size();
        const GpuProblem problem{.polynomial = polynomial,
                                 .storage = std::vector<GpuNumber>(operands, GpuNumber::float32),
                                 .compute = GpuNumber::float32,
                                 .target = gpu_target("sm_90")};
        for (const StreamSplit split : {StreamSplit::chosen, StreamSplit::always}) {
            std::string why_not;
            CHECK(stream_kernels(problem, why_not, split).empty());
            CHECK_FALSE(why_not.empty());
        }
    };
    // A row whose receiver is masked has z.0 all the same.
    refused(
        "clebsch polynomial 0\nbasis e3nn-0.5\nrows edge\nindex sender: edge -> node\nindex receiver: edge -> node sorted\n"
        "input x: 64x1o ir_mul @ sender\ninput h: 1x1o mul_ir @ each\ninput w: 64x(1)+64x(1) mul_ir @ each\n"
        "input y: 64x1o ir_mul @ receiver\noutput z: 64x1e+64x1e ir_mul @ each\n"
        "path u=64: z.0[u|k] += cg(1o,1o,1e)[i,j,k] * x.0[u|i] * h.0[|j] * w.0[u]\n"
        "path u=64: z.1[u|k] += cg(1o,1o,1e)[i,j,k] * y.0[u|i] * h.0[|j] * w.1[u]\n");
    // A kernel that stores sums over channels would store the row of z.
    refused(
        "clebsch polynomial 0\nbasis e3nn-0.5\nrows edge\ninput x: 64x(1)+64x(1) mul_ir @ each\n"
        "input w: 64x(1)+64x(1) mul_ir @ each\noutput z: 64x(1)+1x(1) ir_mul @ each\n"
        "path u=64: z.0[u] += x.0[u] * w.0[u]\npath u=64: z.1 += x.1[u] * w.1[u]\n");
}

TEST_CASE("a stage that the copy engine fills again is given back behind a fence, whatever a kernel's outputs are") {
    const std::string fence = "visible_to_bulk();", given_back = "barrier_arrive(&control->empty);";
    for (const char* label : {"natural-l2-128", "nequix-main"})
        for (int order = 0; order < 2; ++order)
            for (const bool ordered : {false, true}) {
                const GpuProblem problem = problem_of(label, order, GpuNumber::float32);
                int kernels = 0;
                for (const OrderedPass& pass : gpu_passes(problem.polynomial, ordered)) {
                    GpuProblem own = problem;
                    own.polynomial = pass.polynomial;
                    own.storage.assign(pass.operands.size(), GpuNumber::float32);
                    own.ordered = ordered;
                    for (const GpuStage& stage : gpu_kernels(own).stages) {
                        if (stage.kind != GpuStageKind::stream) continue;
                        const std::string& text = stage.kernel.text;
                        CHECK(text.find("copy_bulk<") != std::string::npos);
                        for (std::size_t at = text.find(given_back); at != std::string::npos;
                             at = text.find(given_back, at + 1), ++kernels) {
                            const std::size_t reads = text.rfind("while (true)", at), fenced = text.rfind(fence, at);
                            REQUIRE(fenced != std::string::npos);
                            CHECK(fenced > reads);
                            CHECK(text.find("number<", fenced) > at);
                        }
                    }
                }
                CHECK(kernels > 0);
            }
}
