// SPDX-License-Identifier: Apache-2.0
// Which CUDA devices a rank would see here, asked of the driver (dlopen) without creating a context.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::launch {

struct CudaDevice
{
    int ordinal = 0;
    std::string name;
    int64_t memoryBytes = 0;
    int computeMajor = 0;
    int computeMinor = 0;
};

struct CudaProbe
{
    bool driverFound = false;        ///< libcuda.so.1 could be opened
    int driverVersion = 0;           ///< 13000 for CUDA 13.0; 0: unknown
    std::vector<CudaDevice> devices; ///< after CUDA_VISIBLE_DEVICES, as a rank sees them
    std::string problem;             ///< why there are none, for a user; empty where there are
    /// Devices are there and the driver is new enough for the worker's CUDA.
    bool usable() const;
    /// The first driver for CUDA 13.0 on Linux; what a user has to install at least.
    static constexpr int kNeededVersion = 13000;
    static constexpr const char *kNeededDriver = "580";
};

CudaProbe probeCuda();

} // namespace shardscope::launch
