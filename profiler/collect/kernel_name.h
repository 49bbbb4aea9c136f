// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace shardscope::collect {

/// A kernel's name as a user reads it: demangled, without return type, arguments and the namespaces of LibTorch, at
/// most kKernelNameLength characters.
std::string shortKernelName(std::string_view mangled);
inline constexpr size_t kKernelNameLength = 160;

/// NCCL's kernels, of all its versions. (The protocol in their names is not the one that runs: nccl#2196.)
bool isNcclKernel(std::string_view name);

} // namespace shardscope::collect
