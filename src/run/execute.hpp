#pragma once
// Running a polynomial over its rows: what comes before the parts, ranges of rows of a part one after another, what comes after them. A
// polynomial by itself runs a part as one range; steps of a program take turns, a chunk of rows each (run/step_group.hpp). Internal to
// run/.
#include <cstdint>

#include "run/call.hpp"
#include "run/workspace.hpp"

namespace clebsch {

/// A launch under way: its call has been checked, its memory laid out.
template <class T>
struct Running {
    const PlanData* plan = nullptr;
    Call call;
    LaunchState<T> state;
};

/// Converts what is read several times, prepares the kernels. The division's borders are known. Operands seen row by row are those of the
/// call until `see_each` says otherwise.
template <class T>
void start(Running<T>& running, const ParallelFor& parallel_for);
/// Before the first range of a part. One worker runs all of a part, its ranges in order and without gaps.
template <class T>
void start_part(Running<T>& running, std::int64_t part, int worker);
/// From now on iteration row `first` of an operand seen row by row lies at `data`, the others after it with the stride of the call.
template <class T>
void see_each(Running<T>& running, std::size_t operand, int worker, void* data, std::int64_t first);
/// Iteration rows [begin, end).
template <class T>
void run_rows(Running<T>& running, std::int64_t part, int worker, std::int64_t begin, std::int64_t end);
template <class T>
void end_part(Running<T>& running, std::int64_t part, int worker);
/// Adds up what parts share.
template <class T>
void finish(Running<T>& running, const ParallelFor& parallel_for);

/// All of it, for a polynomial by itself.
template <class T>
void execute(Running<T>& running, const ParallelFor& parallel_for);

}  // namespace clebsch
