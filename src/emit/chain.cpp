#include "emit/chain.hpp"

#include <string>

#include "base/error.hpp"
#include "emit/text.hpp"

namespace clebsch {

KernelText emit_chain(const std::vector<KernelText>& links, std::int64_t rows_of_block) {
    KernelText kernel{.name = "clebsch_chain", .text = {}, .arguments = {}};
    SourceText source;
    source.line("// Steps over the same rows, one after the other: a block takes " + literal(rows_of_block) + " rows through all of them.");
    for (std::size_t l = 0; l < links.size(); ++l) {
        kernel.text += "namespace link_" + std::to_string(l) + " {\n" + links[l].text + "}\n";
        kernel.arguments.insert(kernel.arguments.end(), links[l].arguments.begin(), links[l].arguments.end());
    }
    source.line("struct Arguments {");
    for (std::size_t l = 0; l < links.size(); ++l) source.line("link_" + std::to_string(l) + "::Arguments of_" + std::to_string(l) + ";");
    source.line("i64 rows;");
    source.line("};");
    kernel.arguments.push_back({KernelArgument::Kind::rows, -1});
    begin_kernel(source, kernel.name, std::to_string(chain_threads));
    source.line("const i64 begin = static_cast<i64>(blockIdx.x) * " + literal(rows_of_block) + ";");
    source.line("const i64 end = begin + " + literal(rows_of_block) + " < a.rows ? begin + " + literal(rows_of_block) + " : a.rows;");
    for (std::size_t l = 0; l < links.size(); ++l) {
        if (l > 0) source.line("__syncthreads();");
        source.line("link_" + std::to_string(l) + "::run(a.of_" + std::to_string(l) + ", begin, end);");
    }
    source.line("}");
    kernel.text += source.text();
    return kernel;
}

LaunchShape chain_shape(std::int64_t rows, std::int64_t rows_of_block) {
    LaunchShape shape{.grid = {(rows + rows_of_block - 1) / rows_of_block, 1}, .threads = chain_threads};
    if (shape.grid[0] > 0x7fffffff)
        throw Error(ErrorKind::unsupported,
                    "a launch of " + std::to_string(shape.grid[0]) + " blocks is beyond what a GPU takes; divide the rows");
    return shape;
}

}  // namespace clebsch
