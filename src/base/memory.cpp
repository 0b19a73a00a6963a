#include "base/memory.hpp"

#include <limits>
#include <string>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "base/error.hpp"

namespace clebsch {

Memory::Memory(std::size_t bytes, const char* what) : bytes_(bytes) {
    constexpr std::size_t line = 64, large_page = std::size_t{2} << 20;
    const std::size_t alignment = bytes >= 2 * large_page ? large_page : line;
    std::byte* memory = nullptr;
    std::size_t rounded = 0;
    if (bytes <= std::numeric_limits<std::size_t>::max() - 2 * large_page) {
        rounded = (bytes + alignment) / alignment * alignment;
        memory = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
    }
    if (memory == nullptr)
        throw Error(ErrorKind::unsupported, std::string("no memory for ") + what + " of " + std::to_string(bytes) + " bytes");
    memory_.reset(memory);
#ifdef MADV_HUGEPAGE
    if (alignment == large_page) madvise(memory, rounded, MADV_HUGEPAGE);  // a wish: without it everything works as well
#endif
}

}  // namespace clebsch
