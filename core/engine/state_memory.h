// SPDX-License-Identifier: Apache-2.0
// Shape suffix: S what a rank holds of a bucket.
#pragma once

#include "core/base/names.h"
#include "core/engine/file_transfer.h"
#include "core/engine/offload_file.h"
#include "core/observe/observer.h"

#include <ATen/core/Tensor.h>
#include <memory>
#include <string>

namespace shardscope::engine {

/// What a rank holds of one state of one bucket (masters, a moment, the copy for products), flat, wherever it lies:
/// on the device, in host memory (pinned beside a GPU), or in the rank's file on a drive. Copies are handles to the
/// same memory, which is given back with the last of them.
class StateMemory
{
public:
    StateMemory() = default;
    /// On the device.
    explicit StateMemory(at::Tensor device_S)
        : m_tensor(std::move(device_S))
    {
    }

    bool defined() const { return m_region != nullptr || m_tensor.defined(); }
    OffloadPlace place() const { return m_place; }
    bool isInFile() const { return m_region != nullptr; }
    int64_t elements() const;
    at::ScalarType type() const;
    int64_t elementBytes() const { return static_cast<int64_t>(c10::elementSize(type())); }

    /// The memory itself; of a file a mapping (throws where there can be none), for what happens seldom. Nothing else
    /// may be at the file's range while it is used.
    at::Tensor tensor() const;
    /// Of a file: the transfer of elements first … first + count, to or from `data`. In the file, all begins at
    /// kFileBlock; `first` must too, and whole blocks are moved.
    FilePiece piece(bool write, int64_t first, int64_t count, std::byte *data) const;

private:
    friend class StatePlaces;
    struct Region;
    OffloadPlace m_place = OffloadPlace::None;
    at::Tensor m_tensor;
    std::shared_ptr<Region> m_region;
};

/// Makes memory for states, and tells the observer what lies where.
class StatePlaces
{
public:
    /// folder: of the file; it is made when something is first to lie in it.
    StatePlaces(at::Device device, int rank, std::string folder, observe::Observer &observer);
    ~StatePlaces();

    /// Zeros. Throws std::runtime_error with a message for the user where there is no room.
    StateMemory make(OffloadPlace place, int64_t elements, at::ScalarType type, observe::MemoryTag tag,
                     std::string_view what);
    /// The rank's file; throws where there is none yet.
    const OffloadFile &file() const;
    bool pinsHostMemory() const { return m_device.is_cuda(); }

private:
    StateMemory inHostMemory(int64_t elements, at::ScalarType type, observe::MemoryTag tag, std::string_view what);
    StateMemory inFile(int64_t elements, at::ScalarType type, observe::MemoryTag tag, std::string_view what);

    at::Device m_device;
    int m_rank;
    std::string m_folder;
    observe::Observer &m_observer;
    std::shared_ptr<OffloadFile> m_file;
};

} // namespace shardscope::engine
