// SPDX-License-Identifier: Apache-2.0
#include "core/engine/file_transfer.h"

#include "core/engine/worker_team.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdexcept>
#include <unistd.h>
#include <vector>
#ifdef SHARDSCOPE_HAS_LIBURING
#include <liburing.h>
#endif

namespace shardscope::engine {

/// What one request moves: drives reach their rate from about this size on, with several in flight.
static constexpr int64_t kRequestBytes = int64_t{1} << 20;
static constexpr int kInFlight = 32;
static constexpr int kTransferThreads = 4;

static std::vector<FilePiece> requestsOf(std::span<const FilePiece> pieces)
{
    std::vector<FilePiece> requests;
    for (const FilePiece &piece : pieces) {
        for (int64_t done = 0; done < piece.bytes; done += kRequestBytes)
            requests.push_back({piece.write, piece.offsetBytes + done, piece.data + done,
                                std::min(kRequestBytes, piece.bytes - done)});
    }
    return requests;
}

[[noreturn]] static void refuse(const FilePiece &request, int error)
{
    throw std::runtime_error(fmt::format("The offload file could not be {} at byte {} ({} bytes): {}.",
                                         request.write ? "written" : "read", request.offsetBytes, request.bytes,
                                         std::strerror(error)));
}

/// What is left of a request of which a part was moved.
static FilePiece restOf(const FilePiece &request, int64_t moved)
{
    if (moved == 0)
        refuse(request, ENODATA); // it ends before what was reserved
    return {request.write, request.offsetBytes + moved, request.data + moved, request.bytes - moved};
}

namespace {

class ThreadTransfer : public FileTransfer
{
public:
    explicit ThreadTransfer(int file)
        : m_file(file)
        , m_team(kTransferThreads, "offload file")
    {
    }
    void run(std::span<const FilePiece> pieces) override
    {
        const std::vector<FilePiece> requests = requestsOf(pieces);
        m_team.run(static_cast<int64_t>(requests.size()), [&](int64_t i) { move(requests[static_cast<size_t>(i)]); });
    }
    std::string name() const override { return "threads with pread and pwrite"; }

private:
    void move(FilePiece rest) const
    {
        while (rest.bytes > 0) {
            const auto size = static_cast<size_t>(rest.bytes);
            const ssize_t moved = rest.write ? ::pwrite(m_file, rest.data, size, rest.offsetBytes)
                                             : ::pread(m_file, rest.data, size, rest.offsetBytes);
            if (moved < 0 && errno == EINTR)
                continue;
            if (moved < 0)
                refuse(rest, errno);
            rest = restOf(rest, moved);
        }
    }
    int m_file;
    WorkerTeam m_team;
};

#ifdef SHARDSCOPE_HAS_LIBURING
class RingTransfer : public FileTransfer
{
public:
    explicit RingTransfer(int file)
        : m_file(file)
        , m_error(-::io_uring_queue_init(kInFlight, &m_ring, 0))
    {
    }
    ~RingTransfer() override
    {
        if (m_error == 0)
            ::io_uring_queue_exit(&m_ring);
    }
    int error() const { return m_error; }
    void run(std::span<const FilePiece> pieces) override
    {
        std::vector<FilePiece> requests = requestsOf(pieces); // of a request that ends early, the rest takes its place
        std::vector<size_t> waiting(requests.size());
        for (size_t i = 0; i < waiting.size(); ++i)
            waiting[i] = waiting.size() - 1 - i; // taken from the back
        int inFlight = 0;
        int error = 0;
        size_t failed = 0;
        while (inFlight > 0 || (!waiting.empty() && error == 0)) {
            for (; error == 0 && !waiting.empty() && inFlight < kInFlight; ++inFlight) {
                begin(requests[waiting.back()], waiting.back());
                waiting.pop_back();
            }
            const auto [index, result] = submitAndWait();
            --inFlight;
            FilePiece &request = requests[index];
            if (result == -EINTR || result == -EAGAIN) {
                waiting.push_back(index);
            } else if (result <= 0) { // all that is in flight ends before this throws: its memory is the caller's
                error = result < 0 ? -result : ENODATA;
                failed = index;
            } else if (result < request.bytes) {
                request = restOf(request, result);
                waiting.push_back(index);
            }
        }
        if (error != 0)
            refuse(requests[failed], error);
    }
    std::string name() const override { return "io_uring"; }

private:
    void begin(const FilePiece &request, size_t index)
    {
        io_uring_sqe *entry = ::io_uring_get_sqe(&m_ring); // as many as may be in flight
        const auto size = static_cast<unsigned>(request.bytes);
        const auto offset = static_cast<__u64>(request.offsetBytes);
        if (request.write)
            ::io_uring_prep_write(entry, m_file, request.data, size, offset);
        else
            ::io_uring_prep_read(entry, m_file, request.data, size, offset);
        ::io_uring_sqe_set_data(entry, reinterpret_cast<void *>(index));
    }
    std::pair<size_t, int64_t> submitAndWait()
    {
        io_uring_cqe *done = nullptr;
        int result = 0;
        do {
            result = ::io_uring_submit_and_wait(&m_ring, 1);
        } while (result == -EINTR || result == -EAGAIN);
        if (result >= 0) {
            do {
                result = ::io_uring_wait_cqe(&m_ring, &done);
            } while (result == -EINTR);
        }
        if (result < 0)
            throw std::runtime_error(fmt::format("io_uring failed with the offload file: {}.", std::strerror(-result)));
        const std::pair<size_t, int64_t> outcome{reinterpret_cast<size_t>(::io_uring_cqe_get_data(done)), done->res};
        ::io_uring_cqe_seen(&m_ring, done);
        return outcome;
    }
    int m_file;
    io_uring m_ring{};
    int m_error;
};
#endif

} // namespace

std::unique_ptr<FileTransfer> FileTransfer::open(int file, std::string &problem)
{
    if ((::fcntl(file, F_GETFL) & O_DIRECT) == 0) {
        problem = "its file system refuses O_DIRECT";
        return byThreads(file);
    }
#ifdef SHARDSCOPE_HAS_LIBURING
    auto ring = std::make_unique<RingTransfer>(file);
    if (ring->error() == 0)
        return ring;
    problem = fmt::format("the kernel refuses io_uring ({})", std::strerror(ring->error()));
#else
    problem = "this program was built without liburing";
#endif
    return byThreads(file);
}

std::unique_ptr<FileTransfer> FileTransfer::byThreads(int file)
{
    return std::make_unique<ThreadTransfer>(file);
}

} // namespace shardscope::engine
