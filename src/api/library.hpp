#pragma once
// State of the whole library behind the C interface: the thread pool that launches use when the caller brings none.
#include <memory>

#include "run/threads.hpp"

namespace clebsch::api {

/// The pool of now; a launch keeps it alive until it returns.
std::shared_ptr<ThreadPool> current_pool();

}  // namespace clebsch::api
