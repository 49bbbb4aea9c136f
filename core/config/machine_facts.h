// SPDX-License-Identifier: Apache-2.0
// What this machine offers a run. CUDA is asked through the driver's own library, found at run time: nothing is linked,
// and a machine without a driver is an ordinary one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::config {

struct CudaDevice
{
    std::string name;              ///< "NVIDIA H200"
    std::string uuid;              ///< "GPU-xxxxxxxx-xxxx-…"
    std::string pci;               ///< "0000:1b:00.0"
    int64_t memoryBytes = 0;       ///< total
    int32_t computeCapability = 0; ///< 90 for 9.0
};

struct MachineFacts
{
    /// In the ordinals that CUDA gives them (CUDA_VISIBLE_DEVICES has been obeyed).
    std::vector<CudaDevice> cudaDevices;
    int32_t cudaDriverVersion = 0; ///< CUDA version that the driver supports, 13000 for 13.0; 0: no driver
    /// Why no CUDA device can be used, with the remedy where there is one; empty where there are devices.
    std::string cudaProblem;
    int32_t cpuThreads = 1;  ///< that this process may run on
    int64_t memoryBytes = 0; ///< of the machine
};

/// The CUDA version that the worker is built for: an older driver can't run it.
inline constexpr int32_t kNeededCudaVersion = 13000;

/// Takes up to a second where a driver has to wake: not for a window's own thread.
MachineFacts probeMachine(const char *cudaDriverLibrary = "libcuda.so.1");

} // namespace shardscope::config
