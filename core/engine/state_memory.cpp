// SPDX-License-Identifier: Apache-2.0
#include "core/engine/state_memory.h"

#include "core/engine/host_buffer.h"

#include <ATen/ATen.h>
#include <filesystem>
#include <stdexcept>

namespace shardscope::engine {

using observe::MemoryPlace;

struct StateMemory::Region
{
    std::shared_ptr<OffloadFile> file;
    observe::Observer *observer;
    observe::MemoryTag tag;
    int64_t offsetBytes;
    int64_t bytes;
    int64_t elements;
    at::ScalarType type;

    ~Region()
    {
        file->release(offsetBytes, bytes);
        observer->memoryHeld({MemoryPlace::Nvme, tag, -bytes, -bytes});
    }
};

template <typename T>
static T orThrow(Result<T> result)
{
    if (!result)
        throw std::runtime_error(result.error().text);
    return std::move(*result);
}

int64_t StateMemory::elements() const
{
    return m_region ? m_region->elements : m_tensor.numel();
}

at::ScalarType StateMemory::type() const
{
    return m_region ? m_region->type : m_tensor.scalar_type();
}

at::Tensor StateMemory::tensor() const
{
    if (!m_region)
        return m_tensor;
    std::byte *data = orThrow(m_region->file->map(m_region->offsetBytes, m_region->bytes));
    const auto unmap = [region = m_region, data](void *) { OffloadFile::unmap(data, region->bytes); };
    return at::from_blob(data, {m_region->elements}, unmap, at::TensorOptions().dtype(m_region->type));
}

FilePiece StateMemory::piece(bool write, int64_t first, int64_t count, std::byte *data) const
{
    return {write, m_region->offsetBytes + first * elementBytes(), data,
            shapes::wholeFileBlocks(count * elementBytes())};
}

StatePlaces::StatePlaces(at::Device device, int rank, std::string folder, observe::Observer &observer)
    : m_device(device)
    , m_rank(rank)
    , m_folder(std::move(folder))
    , m_observer(observer)
{
}

StatePlaces::~StatePlaces() = default;

const OffloadFile &StatePlaces::file() const
{
    if (!m_file)
        throw std::runtime_error("nothing was put into the offload file yet");
    return *m_file;
}

StateMemory StatePlaces::make(OffloadPlace place, int64_t elements, at::ScalarType type, observe::MemoryTag tag,
                              std::string_view what)
{
    switch (place) {
    case OffloadPlace::Cpu:
        return inHostMemory(elements, type, tag, what);
    case OffloadPlace::Nvme:
        return inFile(elements, type, tag, what);
    case OffloadPlace::None:
        break;
    }
    const observe::MemoryScope memory(m_observer, tag);
    return StateMemory(at::zeros({elements}, at::TensorOptions(m_device).dtype(type)));
}

StateMemory StatePlaces::inHostMemory(int64_t elements, at::ScalarType type, observe::MemoryTag tag,
                                      std::string_view what)
{
    const auto bytes = elements * static_cast<int64_t>(c10::elementSize(type));
    // A mapping of new pages: zeros.
    auto buffer = std::make_shared<HostBuffer>(orThrow(HostBuffer::allocate(bytes, pinsHostMemory(), what)));
    const MemoryPlace place = pinsHostMemory() ? MemoryPlace::Pinned : MemoryPlace::Host;
    m_observer.memoryHeld({place, tag, buffer->bytes(), buffer->bytes()});
    const auto free = [buffer, place, tag, observer = &m_observer](void *) mutable {
        observer->memoryHeld({place, tag, -buffer->bytes(), -buffer->bytes()});
        buffer.reset();
    };
    StateMemory memory(at::from_blob(buffer->data(), {elements}, free, at::TensorOptions().dtype(type)));
    memory.m_place = OffloadPlace::Cpu;
    return memory;
}

StateMemory StatePlaces::inFile(int64_t elements, at::ScalarType type, observe::MemoryTag tag, std::string_view what)
{
    if (!m_file) {
        const std::string folder = m_folder.empty() ? std::filesystem::temp_directory_path().string() : m_folder;
        m_file = orThrow(OffloadFile::create(folder, m_rank));
    }
    const int64_t bytes = shapes::wholeFileBlocks(elements * static_cast<int64_t>(c10::elementSize(type)));
    const int64_t offset = orThrow(m_file->reserve(bytes, what));
    m_observer.memoryHeld({MemoryPlace::Nvme, tag, bytes, bytes});
    StateMemory memory;
    memory.m_place = OffloadPlace::Nvme;
    memory.m_region.reset(new StateMemory::Region{m_file, &m_observer, tag, offset, bytes, elements, type});
    return memory;
}

} // namespace shardscope::engine
