# The GPU kernel that reads its coefficients at run time (src/emit/skeletons/table.cuh), and the one that looks at sorted indices, as machine code for the architectures that the nvcc
# at hand knows, in table_image.cpp; without nvcc, or with CLEBSCH_TABLE_KERNEL=OFF, an empty image. Needs no GPU.
option(CLEBSCH_TABLE_KERNEL "Compile the GPU kernel for machines without NVRTC where nvcc is found" ON)
find_program(CLEBSCH_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin DOC "CUDA's compiler")
set(bytes "")
set(folder ${CMAKE_CURRENT_BINARY_DIR}/table_kernel)
if(NOT CLEBSCH_TABLE_KERNEL OR NOT CLEBSCH_NVCC)
  file(REMOVE ${folder}/table.fatbin ${folder}/made_of)
else()
  set(skeletons ${CMAKE_CURRENT_SOURCE_DIR}/emit/skeletons)
  file(READ ${skeletons}/device.cuh device)
  file(READ ${skeletons}/table.cuh table)
  file(READ ${skeletons}/ascending.cuh ascending)
  string(APPEND table "\n${ascending}")
  file(MAKE_DIRECTORY ${folder})
  set(flags -std=c++17 -O3 -fatbin -Xfatbin=-compress-all)
  execute_process(COMMAND ${CLEBSCH_NVCC} --version OUTPUT_VARIABLE version ERROR_QUIET)
  execute_process(COMMAND ${CLEBSCH_NVCC} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
  string(SHA1 made_of "${CLEBSCH_NVCC} ${version} ${known} ${flags} ${device} ${table}")
  set(made "")
  if(EXISTS ${folder}/made_of AND EXISTS ${folder}/table.fatbin)
    file(READ ${folder}/made_of made)
  endif()
  if(NOT made STREQUAL made_of)
    file(WRITE ${folder}/table.cu "${device}\n${table}")
    set(architectures "")
    foreach(architecture IN ITEMS 80 90 100 120)
      if(known MATCHES "sm_${architecture}(\n|$)")
        list(APPEND architectures -gencode arch=compute_${architecture},code=sm_${architecture})
      endif()
    endforeach()
    execute_process(COMMAND ${CLEBSCH_NVCC} ${flags} ${architectures} -gencode arch=compute_80,code=compute_80
                            -o ${folder}/table.fatbin ${folder}/table.cu
                    RESULT_VARIABLE failed OUTPUT_VARIABLE log ERROR_VARIABLE log)
    if(failed)
      file(REMOVE ${folder}/table.fatbin ${folder}/made_of)
      message(WARNING "${CLEBSCH_NVCC} does not compile the GPU kernel for machines without NVRTC, which is left out:\n${log}")
    else()
      file(WRITE ${folder}/made_of "${made_of}")
    endif()
  endif()
  if(EXISTS ${folder}/table.fatbin)
    file(READ ${folder}/table.fatbin hexadecimal HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hexadecimal}")
  endif()
endif()
if(bytes)
  message(STATUS "The GPU kernel for machines without NVRTC is compiled by ${CLEBSCH_NVCC}")
else()
  message(STATUS "The GPU kernel for machines without NVRTC is left out (CLEBSCH_NVCC: ${CLEBSCH_NVCC})")
endif()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/table_image.cpp CONTENT [=[
// Machine code of src/emit/skeletons/table.cuh; written when the build is configured.
#include "run/gpu/table_kernel.hpp"

namespace clebsch::gpu {
namespace {
constexpr unsigned char image[] = {@bytes@0};
}  // namespace

std::string_view table_image() { return {reinterpret_cast<const char*>(image), sizeof image - 1}; }

}  // namespace clebsch::gpu
]=] @ONLY)
