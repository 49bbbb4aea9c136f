// SPDX-License-Identifier: Apache-2.0
#include "core/engine/communication_lane.h"

#include "core/engine/follow_stream.h"

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <pthread.h>
#include <thread>

namespace shardscope::engine {

void Pending::wait() const
{
    if (m_state)
        m_state->wait();
}

namespace {

struct BothStates : Pending::State
{
    void wait() override
    {
        std::exception_ptr failure;
        for (const Pending *each : {&first, &second}) {
            try {
                each->wait();
            } catch (...) {
                failure = failure ? failure : std::current_exception();
            }
        }
        if (failure)
            std::rethrow_exception(failure);
    }
    Pending first;
    Pending second;
};

struct StreamState : Pending::State
{
    void wait() override { event.block(c10::cuda::getCurrentCUDAStream()); }
    at::cuda::CUDAEvent event;
};

class StreamLane : public CommunicationLane
{
public:
    explicit StreamLane(at::Device device)
        : m_stream(c10::cuda::getStreamFromPool(true, device.index()))
    {
    }
    Pending enqueue(std::function<void()> work) override
    {
        // A free slot, an updated master and a finished gradient are all the work of the caller's stream before this
        // moment; so waiting for it is all the order that a collective needs.
        followCurrentStream(m_stream);
        const c10::cuda::CUDAStreamGuard guard(m_stream);
        work();
        auto state = std::make_shared<StreamState>();
        state->event.record(m_stream);
        return Pending(std::move(state));
    }

private:
    c10::cuda::CUDAStream m_stream;
};

struct ThreadState : Pending::State
{
    void wait() override
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return done; });
        if (error)
            std::rethrow_exception(error);
    }
    void finish(std::exception_ptr failure)
    {
        {
            const std::lock_guard lock(mutex);
            done = true;
            error = std::move(failure);
        }
        changed.notify_all();
    }
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::exception_ptr error;
};

class ThreadLane : public CommunicationLane
{
public:
    explicit ThreadLane(const char *name)
        : m_thread([this] { run(); })
    {
        pthread_setname_np(m_thread.native_handle(), name);
    }
    ~ThreadLane() override
    {
        {
            const std::lock_guard lock(m_mutex);
            m_stopping = true;
        }
        m_changed.notify_all();
        m_thread.join();
    }
    Pending enqueue(std::function<void()> work) override
    {
        auto state = std::make_shared<ThreadState>();
        {
            const std::lock_guard lock(m_mutex);
            m_queue.push_back({std::move(work), state});
        }
        m_changed.notify_all();
        return Pending(std::move(state));
    }

private:
    struct Entry
    {
        std::function<void()> work;
        std::shared_ptr<ThreadState> state;
    };
    void run()
    {
        std::unique_lock lock(m_mutex);
        while (true) {
            m_changed.wait(lock, [this] { return m_stopping || !m_queue.empty(); });
            if (m_queue.empty())
                return;
            Entry entry = std::move(m_queue.front());
            m_queue.pop_front();
            lock.unlock();
            std::exception_ptr failure;
            try {
                entry.work();
            } catch (...) {
                failure = std::current_exception();
            }
            entry.work = nullptr;
            entry.state->finish(std::move(failure));
            entry.state.reset();
            lock.lock();
        }
    }

    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<Entry> m_queue;
    bool m_stopping = false;
    std::thread m_thread; ///< last: it uses the others
};

} // namespace

Pending both(Pending first, Pending second)
{
    if (!first || !second)
        return first ? first : second;
    auto state = std::make_shared<BothStates>();
    const int64_t collective = second.collective();
    state->first = std::move(first);
    state->second = std::move(second);
    return Pending(std::move(state), collective);
}

std::unique_ptr<CommunicationLane> CommunicationLane::create(at::Device device)
{
    if (device.is_cuda())
        return std::make_unique<StreamLane>(device);
    return createThread("communication");
}

std::unique_ptr<CommunicationLane> CommunicationLane::createThread(const char *name)
{
    return std::make_unique<ThreadLane>(name);
}

} // namespace shardscope::engine
