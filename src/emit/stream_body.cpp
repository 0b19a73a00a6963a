#include "emit/stream_body.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "emit/stream_names.hpp"
#include "emit/stream_terms.hpp"

namespace clebsch {
namespace {

using Kind = KernelArgument::Kind;

/// Whether a segment carries channels, and the channels of the paths that use it within this body if they end within the warp (else -1).
struct ChannelUse {
    bool channels = false;
    std::int64_t guard = -1;
};
ChannelUse use_of(const GpuProblem& problem, const BodyShare& share, SegmentName name) {
    ChannelUse use;
    for (std::size_t i = 0; i < share.paths.size(); ++i) {
        const Path& path = problem.polynomial.paths[static_cast<std::size_t>(share.paths[i])];
        for (const Factor& factor : path.factors)
            if (factor.operand == name.operand && factor.segment == name.segment && !factor.channels.empty()) {
                use.channels = true;
                if (share.partial[i]) use.guard = path.extents.front().second;
            }
    }
    return use;
}

double scale_of(const BodyShare& share, SegmentName name, int component) {
    const auto found = share.scales.find(name);
    return found == share.scales.end() ? 1 : found->second[static_cast<std::size_t>(component)];
}

}  // namespace

StreamBody stream_body(const GpuProblem& problem, const StreamSchedule& schedule, const std::vector<StreamShare>& shares) {
    StreamBody body;
    int parked = 0;
    for (const StreamShare& share : shares) {
        BodyShare result;
        result.blocks = share.block - shares.front().block;
        result.paths = share.paths;
        std::set<SegmentName> constants, sums;
        for (const int p : share.paths) {
            const Path& path = problem.polynomial.paths[static_cast<std::size_t>(p)];
            result.partial.push_back(path.extents.front().second < 32 * (share.block + 1));
            for (const Factor& factor : path.factors) {
                const StreamWay way = schedule.operands[static_cast<std::size_t>(factor.operand)].way;
                if (way == StreamWay::constant) constants.insert({factor.operand, factor.segment});
                if (way == StreamWay::accumulated) sums.insert({factor.operand, factor.segment});
            }
        }
        result.constants.assign(constants.begin(), constants.end());
        result.sums.assign(sums.begin(), sums.end());
        for (const SegmentName name : constants)
            if (schedule.is_parked(name.operand, name.segment)) {
                result.parked.emplace(name, parked);
                parked += components_of(problem, name);
            }
        result.scales = scales_of(problem, schedule, share.paths);
        body.shares.push_back(std::move(result));
    }
    return body;
}

void write_declarations(SourceText& source, const GpuProblem& problem, const StreamBody& body) {
    const std::string type = type_name(problem.compute);
    for (std::size_t s = 0; s < body.shares.size(); ++s) {
        const auto declare = [&](const char* letter, const std::vector<SegmentName>& names) {
            for (const SegmentName name : names) {
                if (body.shares[s].parked.contains(name)) continue;
                std::vector<std::string> list;
                list.reserve(static_cast<std::size_t>(components_of(problem, name)));
                for (int c = 0; c < components_of(problem, name); ++c)
                    list.push_back(number_name(letter, name, c) + share_suffix(s) + " = 0");
                source.line(type + " " + joined(list, ", ") + ";");
            }
        };
        declare("v", body.shares[s].constants);
        declare("d", body.shares[s].sums);
    }
}

void write_start(SourceText& source, const GpuProblem& problem, const StreamBody& body) {
    const std::string type = type_name(problem.compute);
    for (std::size_t s = 0; s < body.shares.size(); ++s) {
        const BodyShare& share = body.shares[s];
        for (const SegmentName name : share.sums)
            for (int c = 0; c < components_of(problem, name); ++c) source.line(number_name("d", name, c) + share_suffix(s) + " = 0;");
        for (const SegmentName name : share.constants) {
            const ChannelUse use = use_of(problem, share, name);
            const Operand& operand = problem.polynomial.operands[static_cast<std::size_t>(name.operand)];
            const Segment& segment = operand.segments[static_cast<std::size_t>(name.segment)];
            const bool mul_ir = operand.layout == Layout::mul_ir;
            const std::string row = operand.rows.kind == Addressing::Kind::shared
                                        ? ""
                                        : "target * a." + argument_name(problem, {Kind::stride, name.operand}) + " + ";
            const auto parked = share.parked.find(name);
            const auto number = [&](int c) {
                return parked == share.parked.end() ? number_name("v", name, c) + share_suffix(s) : parked_number(parked->second + c);
            };
            if (use.guard >= 0 && parked != share.parked.end())
                for (int c = 0; c < segment.components; ++c) source.line(number(c) + " = 0;");
            if (use.guard >= 0) source.line("if (" + channel_text(share) + " < " + literal(use.guard) + ") {");
            for (int c = 0; c < segment.components; ++c) {
                std::string place = literal(operand.offset(name.segment) + c * (mul_ir ? 1 : segment.multiplicity));
                if (use.channels) place += " + " + channel_text(share) + (mul_ir ? " * " + literal(std::int64_t{segment.components}) : "");
                const std::string load =
                    "number<" + type + ">(a." + argument_name(problem, {Kind::data, name.operand}) + "[" + row + place + "])";
                source.line(number(c) + " = " + times(scale_of(share, name, c), load, problem.compute) + ";");
            }
            if (use.guard >= 0) source.line("}");
        }
    }
}

void write_flush(SourceText& source, const GpuProblem& problem, const StreamBody& body, StreamSums way) {
    const auto argument = [&](Kind kind, int operand) { return "a." + argument_name(problem, {kind, operand}); };
    const auto stored = [&](int operand) { return argument(Kind::data, operand) + " + target * " + argument(Kind::stride, operand); };
    const auto part = [&](int operand) {
        return argument(Kind::parts, operand) + " + info.part * " +
               literal(problem.polynomial.operands[static_cast<std::size_t>(operand)].size());
    };
    if (way == StreamSums::either) {
        std::set<int> outputs;
        for (const BodyShare& share : body.shares)
            for (const SegmentName name : share.sums) outputs.insert(name.operand);
        for (const int o : outputs)
            source.line(std::string(type_name(problem.compute)) + "* const sums_" + std::to_string(o) + " = info.flags & sums_add ? " +
                        part(o) + " : " + stored(o) + ";");
    }
    const auto row = [&](SegmentName name) {
        if (way == StreamSums::either) return "sums_" + std::to_string(name.operand);
        return way == StreamSums::part ? part(name.operand) : stored(name.operand);
    };
    for (std::size_t s = 0; s < body.shares.size(); ++s) {
        const BodyShare& share = body.shares[s];
        for (const SegmentName name : share.sums) {
            std::vector<std::string> numbers;
            numbers.reserve(static_cast<std::size_t>(components_of(problem, name)));
            for (int c = 0; c < components_of(problem, name); ++c)
                numbers.push_back(times(scale_of(share, name, c), number_name("d", name, c) + share_suffix(s), problem.compute));
            write_numbers(source, problem,
                          {.name = name,
                           .base = row(name),
                           .channel = channel_text(share),
                           .adds = way == StreamSums::added,
                           .guard = use_of(problem, share, name).guard},
                          numbers);
        }
    }
}

}  // namespace clebsch
