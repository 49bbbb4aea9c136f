// SPDX-License-Identifier: Apache-2.0
#include "profiler/allocator/cuda_memory.h"

#include "profiler/allocator/caching_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include <fmt/format.h>

namespace shardscope::allocator {

namespace {

namespace native = c10::cuda::CUDACachingAllocator;

AllocatorStatistics statisticsOf(c10::DeviceIndex device)
{
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto statistics = native::getDeviceStats(device);
    return {.allocatedBytes = statistics.allocated_bytes[kAll].current,
            .activeBytes = statistics.active_bytes[kAll].current,
            .reservedBytes = statistics.reserved_bytes[kAll].current,
            .requestedBytes = statistics.requested_bytes[kAll].current};
}

AllocatorEvent eventOf(const native::TraceEntry &entry)
{
    AllocatorEvent event{.address = static_cast<uint64_t>(entry.addr_), .bytes = static_cast<int64_t>(entry.size_)};
    switch (entry.action_) {
    case native::TraceEntry::ALLOC:
        event.kind = AllocatorEvent::Kind::Allocated;
        break;
    case native::TraceEntry::FREE_REQUESTED:
        event.kind = AllocatorEvent::Kind::FreeRequested;
        break;
    case native::TraceEntry::FREE_COMPLETED:
        event.kind = AllocatorEvent::Kind::FreeCompleted;
        break;
    default:
        event.kind = AllocatorEvent::Kind::Other;
        break;
    }
    return event;
}

/// Blocks that were there before: a start in the middle of a program.
void adoptLive(CachingMemory &memory, c10::DeviceIndex device)
{
    for (const auto &segment : native::snapshot().segments) {
        if (segment.device != device)
            continue;
        uint64_t address = segment.address;
        for (const auto &block : segment.blocks) {
            if (block.allocated || block.active)
                memory.adopt(address, static_cast<int64_t>(block.requested_size), static_cast<int64_t>(block.size),
                             !block.allocated);
            address += block.size;
        }
    }
}

std::string uuidText(const cudaUUID_t &uuid)
{
    std::string text = "GPU-";
    for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text += '-';
        text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
    }
    return text;
}

} // namespace

Result<std::shared_ptr<collect::MemorySource>> trackCudaMemory(int32_t ordinal,
                                                               std::shared_ptr<collect::CurrentMemoryTag> tag)
{
    const auto device = static_cast<c10::DeviceIndex>(ordinal);
    try {
        const c10::DeviceIndex count = c10::cuda::device_count();
        if (ordinal < 0 || device >= count)
            return fail("There is no CUDA device {}; this process sees {}.", ordinal, static_cast<int>(count));
        if (native::name() != "native") {
            return fail("Memory can't be followed in the allocator \"{}\". Take \"backend\" out of "
                        "PYTORCH_CUDA_ALLOC_CONF.",
                        native::name());
        }
        // Makes the allocators of the devices, if nothing has yet; trackers go to those that exist.
        native::init(count);
        auto memory = std::make_shared<CachingMemory>(collect::MemoryPlace::Device, ordinal, std::move(tag),
                                                      [device] { return statisticsOf(device); });
        adoptLive(*memory, device);
        // The allocator has no way to take a tracker off again: it shares in the ownership.
        native::attachAllocatorTraceTracker([memory, device](const native::TraceEntry &entry) {
            if (entry.device_ == device)
                memory->event(eventOf(entry));
        });
        return memory;
    } catch (const std::exception &error) {
        return fail("The memory of CUDA device {} can't be followed: {}", ordinal, error.what());
    }
}

Result<collect::DeviceDescription> describeCudaDevice(int32_t ordinal)
{
    cudaDeviceProp properties{};
    if (const cudaError_t error = ::cudaGetDeviceProperties(&properties, ordinal); error != cudaSuccess)
        return fail("CUDA device {} can't be used: {}.", ordinal, ::cudaGetErrorString(error));
    collect::DeviceDescription device;
    device.kind = DeviceKind::Cuda;
    device.ordinal = ordinal;
    device.name = properties.name;
    device.uuid = uuidText(properties.uuid);
    device.pci =
        fmt::format("{:08X}:{:02X}:{:02X}.0", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
    device.memoryBytes = static_cast<int64_t>(properties.totalGlobalMem);
    device.computeCapability = properties.major * 10 + properties.minor;
    device.multiprocessors = properties.multiProcessorCount;
    return device;
}

} // namespace shardscope::allocator
