# SPDX-License-Identifier: Apache-2.0
# LibTorch and CUDA from the pinned wheels that packaging/setup.sh installs. find_package(Torch) is not used: it probes
# for a GPU and wants a whole CUDA toolkit. Nothing here needs a GPU or a driver.
if(DEFINED ENV{SHARDSCOPE_DEPS})
  set(default_deps $ENV{SHARDSCOPE_DEPS})
else()
  set(default_deps ${PROJECT_SOURCE_DIR}/.deps)
endif()
set(SHARDSCOPE_DEPS ${default_deps} CACHE PATH "Where packaging/setup.sh put the wheels")
file(GLOB site_packages ${SHARDSCOPE_DEPS}/venv/lib/python3*/site-packages)
if(NOT EXISTS "${site_packages}/torch/lib/libtorch_cpu.so")
  message(FATAL_ERROR "No LibTorch in ${SHARDSCOPE_DEPS}/venv. Run packaging/setup.sh, name its folder in SHARDSCOPE_DEPS, "
                      "or build the window alone: cmake --preset gui-only")
endif()
set(cu13 ${site_packages}/nvidia/cu13)

# "all-major" for releases; development builds only what this machine has (or Hopper, where it has nothing).
set(SHARDSCOPE_CUDA_ARCHITECTURES "75-real;80-real;86-real;89-real;90-real;100-real;120" CACHE STRING "CUDA architectures of release builds")
if(NOT CMAKE_CUDA_ARCHITECTURES)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT SHARDSCOPE_LOCAL_CUDA)
    set(CMAKE_CUDA_ARCHITECTURES ${SHARDSCOPE_CUDA_ARCHITECTURES})
  else()
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE capability
                    ERROR_QUIET RESULT_VARIABLE failed)
    string(REGEX MATCH "^[0-9]+\\.[0-9]+" capability "${capability}")
    string(REPLACE "." "" capability "${capability}")
    set(CMAKE_CUDA_ARCHITECTURES ${capability})
    if(NOT capability)
      set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
  endif()
endif()
set(CMAKE_CUDA_COMPILER ${cu13}/bin/nvcc)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # Debian 12's CMake 3.25 knows no C++20 of nvcc's
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

add_library(shardscope_torch INTERFACE)
add_library(shardscope::torch ALIAS shardscope_torch)
# The wheel carries an fmt of its own; ours is the system's, in every file, and comes first.
get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/system_fmt)
file(CREATE_LINK ${fmt_include}/fmt ${PROJECT_BINARY_DIR}/system_fmt/fmt SYMBOLIC)
target_include_directories(shardscope_torch BEFORE INTERFACE ${PROJECT_BINARY_DIR}/system_fmt)
target_include_directories(shardscope_torch SYSTEM INTERFACE ${site_packages}/torch/include
  ${site_packages}/torch/include/torch/csrc/api/include ${cu13}/include ${site_packages}/nvidia/nccl/include)
target_compile_definitions(shardscope_torch INTERFACE USE_C10D_GLOO USE_C10D_NCCL)
set(torch_lib ${site_packages}/torch/lib)
file(GLOB nvidia_lib ${site_packages}/nvidia/*/lib)
# libtorch.so exports parts of an older libstdc++ that was linked into it (std::filesystem among them, whose remove_all
# crashes here): the system's libstdc++ must come before it in the order of look-up.
target_link_libraries(shardscope_torch INTERFACE -Wl,--no-as-needed -lstdc++ ${torch_lib}/libtorch.so ${torch_lib}/libtorch_cpu.so
  ${torch_lib}/libtorch_cuda.so ${torch_lib}/libc10.so ${torch_lib}/libc10_cuda.so ${cu13}/lib/libcudart.so.13 -Wl,--as-needed)
list(JOIN nvidia_lib ":" nvidia_rpath)
target_link_options(shardscope_torch INTERFACE "-Wl,-rpath,${torch_lib}:${nvidia_rpath}" "-Wl,-rpath-link,${torch_lib}:${nvidia_rpath}")

# CUPTI and NVML are found at run time (dlopen); these are their headers alone.
add_library(shardscope_cuda_headers INTERFACE)
add_library(shardscope::cuda_headers ALIAS shardscope_cuda_headers)
target_include_directories(shardscope_cuda_headers SYSTEM INTERFACE ${cu13}/include)

# One precompiled header of LibTorch, shared by all that include it (18 s a file without).
file(WRITE ${PROJECT_BINARY_DIR}/torch_pch.cpp "int shardscopeTorchPch;\n")
add_library(shardscope_torch_pch STATIC ${PROJECT_BINARY_DIR}/torch_pch.cpp)
target_link_libraries(shardscope_torch_pch PUBLIC shardscope_options shardscope_torch)
target_precompile_headers(shardscope_torch_pch PRIVATE <torch/torch.h>)
function(shardscope_use_torch target)
  target_link_libraries(${target} PUBLIC shardscope_torch)
  target_precompile_headers(${target} REUSE_FROM shardscope_torch_pch)
  # CMake compiles programs with -fPIE, libraries with -fPIC; a precompiled header wants one of them.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()
