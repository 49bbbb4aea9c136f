// SPDX-License-Identifier: Apache-2.0
#include "core/engine/host_buffer.h"

#include "core/base/text.h"

#include <cerrno>
#include <cstring>
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace shardscope::engine {

int64_t HostBuffer::wholePages(int64_t bytes)
{
    const int64_t page = ::sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

Result<HostBuffer> HostBuffer::allocate(int64_t bytes, bool pinned, std::string_view what)
{
    HostBuffer buffer;
    const int64_t mapped = wholePages(bytes);
    void *address =
        ::mmap(nullptr, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED)
        return fail("There is no host memory for {} of {}: {}.", formatBytes(mapped), what, std::strerror(errno));
    buffer.m_data = static_cast<std::byte *>(address);
    buffer.m_bytes = mapped;
    // Fewer pages to fault in and to pin. A kernel without huge pages refuses, which costs nothing.
    ::madvise(address, static_cast<size_t>(mapped), MADV_HUGEPAGE);
    if (!pinned)
        return buffer;
    const cudaError_t error = cudaHostRegister(address, static_cast<size_t>(mapped), cudaHostRegisterPortable);
    if (error != cudaSuccess) {
        cudaGetLastError(); // or the next launch would report it
        return fail("{} of host memory could not be pinned for {}: {}.", formatBytes(mapped), what,
                    cudaGetErrorString(error));
    }
    buffer.m_pinned = true;
    return buffer;
}

HostBuffer::~HostBuffer()
{
    // At the end of a process CUDA may be gone already; then it has let go of the pages by itself.
    if (m_pinned && cudaHostUnregister(m_data) != cudaSuccess)
        cudaGetLastError();
    if (m_data)
        ::munmap(m_data, static_cast<size_t>(m_bytes));
}

void HostBuffer::swap(HostBuffer &other) noexcept
{
    std::swap(m_data, other.m_data);
    std::swap(m_bytes, other.m_bytes);
    std::swap(m_pinned, other.m_pinned);
}

} // namespace shardscope::engine
