#pragma once
// Files that a command writes at its end, beside the old ones and then renamed: whether they can be is asked before the work.
#include <string>
#include <utility>
#include <vector>

namespace clebsch::tool {

/// (argument, path); an empty path is none.
using NamedFiles = std::vector<std::pair<std::string, std::string>>;

/// Throws Error naming both if two of these are one file, which one would then write over the other: by whatever names, links or hard
/// links.
void require_distinct(const NamedFiles& files);

/// Throws Error naming the argument if one of these is a folder, or in a folder that is missing or cannot be written to.
void require_writable(const NamedFiles& files);

}  // namespace clebsch::tool
