#include "emit/gradient.hpp"

#include "emit/text.hpp"

namespace clebsch {

std::string gradient_preambles() { return std::string(matrix_preamble()) + std::string(gradient_preamble()); }

KernelText emit_gradient(GpuNumber compute, const GradientTile& tile) {
    KernelText kernel{.name = "clebsch_gradient", .text = {}, .arguments = {}};
    const std::string type = type_name(compute);
    const auto number = [](int value) { return std::to_string(value); };
    SourceText source;
    source.line("// Gradients of weights, by tiles of " + number(tile.rows) + " x " + number(tile.columns) + ".");
    source.line("typedef GradientSlabs<" + type + ", " + number(tile.rows) + ", " + number(tile.columns) + ", " + number(tile.depth) +
                ", " + number(tile.stages) + "> Slabs;");
    source.line(std::string("typedef ") + (tile.tensor ? "WarpTile" : "ThreadTile") + "<Slabs, " + number(tile.own_rows) + ", " +
                number(tile.own_columns) + "> Tile;");
    source.line("typedef GradientArguments Arguments;");
    begin_kernel(source, kernel.name, number(GradientTile::threads) + ", " + number(GradientTile::blocks));
    source.line("__align__(32) __shared__ " + type + " shared[Tile::shared_numbers];");
    source.line("__shared__ " + type + " scales[" + number(tile.stages) + "];");
    source.line("i64 tile = blockIdx.x;");
    source.line("for (i64 j = 0; j < a.job_count; ++j) {");
    source.line("const GradientJob& job = a.jobs[j];");
    source.line("const i64 tiles = (job.columns + Tile::columns - 1) / Tile::columns * ((job.rows + Tile::rows - 1) / Tile::rows);");
    source.line("if (tile < tiles) return Tile(a, job, tile, shared, scales).run();");
    source.line("tile -= tiles;");
    source.line("}");
    source.line("}");
    kernel.text = source.text();
    return kernel;
}

KernelText emit_gradient_sum(GpuNumber compute) {
    KernelText kernel{.name = "clebsch_gradient_sum", .text = {}, .arguments = {}};
    SourceText source;
    source.line("// Parts of weights' gradients, one for every chunk of rows, become their sum.");
    source.line("typedef GradientArguments Arguments;");
    begin_kernel(source, kernel.name, std::to_string(GradientSchedule::sum_threads));
    source.line("add_gradient_parts<" + std::string(type_name(compute)) + ">(a);");
    source.line("}");
    kernel.text = source.text();
    return kernel;
}

}  // namespace clebsch
