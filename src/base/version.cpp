#include "base/version.hpp"

namespace clebsch {

const char* version() { return CLEBSCH_VERSION; }

#if defined(__clang__)
#define CLEBSCH_COMPILER "clang " __clang_version__
#else
#define CLEBSCH_COMPILER "gcc " __VERSION__
#endif
#if defined(__OPTIMIZE__)
#define CLEBSCH_KIND ", optimised"
#else
#define CLEBSCH_KIND ", not optimised"
#endif
const char* build_description() { return CLEBSCH_COMPILER CLEBSCH_KIND; }

}  // namespace clebsch
