// SPDX-License-Identifier: Apache-2.0
#include "core/engine/parameter_reader.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <algorithm>
#include <c10/cuda/CUDAStream.h>

namespace shardscope::engine {

struct ParameterReader::Buffer
{
    StateMemory memory; ///< bytes
    at::cuda::CUDAEvent isUsed;
};

ParameterReader::ParameterReader(StatePlaces &places, observe::Observer &observer)
    : m_places(places)
    , m_observer(observer)
    , m_lane(CommunicationLane::createThread("read ahead"))
{
}

ParameterReader::~ParameterReader() = default;

ParameterReader::Read ParameterReader::begin(const StateMemory &source, observe::UnitIndex unit, Pending after)
{
    if (!m_transfer)
        m_transfer = m_places.file().transfer();
    const int64_t bytes = shapes::wholeFileBlocks(source.elements() * source.elementBytes());
    const auto fits = [&](const auto &buffer) { return buffer->memory.elements() >= bytes; };
    Read read;
    if (const auto found = std::ranges::find_if(m_idle, fits); found != m_idle.end()) {
        read.buffer = std::move(*found);
        m_idle.erase(found);
    } else {
        read.buffer = std::make_shared<Buffer>();
        read.buffer->memory = m_places.make(OffloadPlace::Cpu, bytes, at::kByte,
                                            {MemoryCategory::Temporary, observe::kNoUnit}, "reading parameters");
    }
    const at::Tensor bytes_S = read.buffer->memory.tensor();
    read.data_S = bytes_S.view(source.type()).narrow(0, 0, source.elements());
    const FilePiece piece =
        source.piece(false, 0, source.elements(), static_cast<std::byte *>(bytes_S.mutable_data_ptr()));
    read.isThere = m_lane->enqueue([this, piece, unit, after = std::move(after), buffer = read.buffer] {
        after.wait();
        buffer->isUsed.synchronize(); // by the copy to the device before
        const observe::SpanScope span(m_observer,
                                      {"read parameters", SpanCategory::Copy, Phase::Forward, unit, piece.bytes});
        m_transfer->run({&piece, 1});
    });
    return read;
}

void ParameterReader::end(Read read)
{
    read.isThere.wait();
    if (m_places.pinsHostMemory())
        read.buffer->isUsed.record(c10::cuda::getCurrentCUDAStream());
    m_idle.push_back(std::move(read.buffer));
}

void ParameterReader::freeBuffers()
{
    for (const auto &buffer : m_idle)
        buffer->isUsed.synchronize();
    m_idle.clear();
}

} // namespace shardscope::engine
