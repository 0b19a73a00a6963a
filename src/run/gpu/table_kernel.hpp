#pragma once
// The machine code that was made with the library: of the kernel that reads its coefficients when it runs (schedule/gpu_table).
#include <memory>
#include <string>
#include <string_view>

#include "run/gpu/driver.hpp"

namespace clebsch::gpu {

/// A CUDA image for several architectures; empty where there was no nvcc when the library was configured (cmake/table_kernel.cmake).
std::string_view table_image();
/// What is missing where it is empty; else nothing.
std::string table_image_missing();

/// A kernel of the image, loaded once on each device. Throws Error(unsupported) without an image, or when the driver does not take it.
std::shared_ptr<const Module> table_module(const Device& device, const std::string& kernel);

}  // namespace clebsch::gpu
