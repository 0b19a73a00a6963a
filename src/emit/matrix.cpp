#include "emit/matrix.hpp"

#include "emit/text.hpp"

namespace clebsch {

KernelText emit_matrix(GpuNumber compute, const MatrixTile& tile) {
    KernelText kernel{.name = "clebsch_matrix", .text = {}, .arguments = {}};
    const std::string type = type_name(compute);
    const auto number = [](int value) { return std::to_string(value); };
    SourceText source;
    source.line("// Products with weight matrices, by tiles of " + number(tile.rows) + " x " + number(tile.columns) + ".");
    // Where numbers lie in shared memory suits how tiles read them.
    const std::string left = tile.tensor ? number(tile.depth + 4) + ", 1" : "1, " + number(tile.rows + 4);
    source.line("typedef MatrixSlabs<" + type + ", " + number(tile.rows) + ", " + number(tile.columns) + ", " + number(tile.depth) + ", " +
                number(tile.stages) + ", " + left + ", " + number(tile.columns + (tile.tensor ? 8 : 4)) + "> Slabs;");
    source.line(std::string("typedef ") + (tile.tensor ? "WarpTile" : "ThreadTile") + "<Slabs, " + number(tile.own_rows) + ", " +
                number(tile.own_columns) + "> Tile;");
    source.line("typedef MatrixArguments Arguments;");
    begin_kernel(source, kernel.name, number(MatrixTile::threads) + ", " + number(tile.blocks));
    source.line("__align__(32) __shared__ " + type + " shared[Tile::shared_numbers];");
    source.line("__shared__ " + type + " scales[" + number(tile.stages) + "];");
    source.line("__shared__ int kinds[Tile::rows];");
    source.line("__shared__ MatrixWork work;");
    source.line("i64 tile = blockIdx.x;");
    source.line("take_work(a, job_of<Tile>(a, &tile), work);");
    source.line("__syncthreads();");
    source.line("const i64 across = (work.job.columns + Tile::columns - 1) / Tile::columns;");
    source.line("Tile(a, work, tile / across * Tile::rows, tile % across * Tile::columns, shared, scales, kinds).run();");
    source.line("}");
    kernel.text = source.text();
    return kernel;
}

}  // namespace clebsch
