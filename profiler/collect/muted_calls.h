// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace shardscope::collect {

/// Calls of CUDA that no recording has: they read or set a word in the host's memory. None waits, starts or copies
/// anything, allocates, loads a kernel or makes a context, so that none explains a time; and LibTorch makes so many
/// that they are 84 and 87 % of a step's calls in two recordings (seven or more cudaGetDevice a kernel). What only
/// looks like them stays: cudaSetDevice makes a context, cudaFuncGetAttributes and cuKernelGetAttribute load kernels,
/// cudaEventQuery and cudaStreamQuery tell that somebody polls. docs/contract.md has the same list, which a test
/// compares.
inline constexpr std::array<std::string_view, 26> kMutedCalls = {
    // which device, context and driver there is
    "cudaGetDevice", "cuDeviceGet", "cuDevicePrimaryCtxGetState", "cuCtxGetCurrent", "cuCtxGetDevice", "cuCtxGetLimit",
    "cudaDeviceGetAttribute", "cuDeviceGetAttribute", "cudaRuntimeGetVersion", "cudaDriverGetVersion",
    "cuDriverGetVersion",
    // errors of this thread, and their texts
    "cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorName", "cudaGetErrorString", "cuGetErrorName",
    "cuGetErrorString",
    // whether a stream is captured
    "cudaStreamIsCapturing", "cuStreamIsCapturing", "cudaStreamGetCaptureInfo", "cuStreamGetCaptureInfo",
    "cudaThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode",
    // names and addresses of functions
    "cuKernelGetName", "cuFuncGetName", "cuGetProcAddress"};

/// Every version of a call is meant: "cuGetProcAddress_v2", "cudaStreamIsCapturing_ptsz".
constexpr bool isMuted(std::string_view call)
{
    return std::ranges::any_of(kMutedCalls, [&](std::string_view muted) {
        return call.starts_with(muted) && (call.size() == muted.size() || call[muted.size()] == '_');
    });
}

} // namespace shardscope::collect
