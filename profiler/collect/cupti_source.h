// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/activity_source.h"
#include "profiler/collect/cupti_api.h"
#include "profiler/collect/cupti_buffers.h"
#include "profiler/collect/cupti_calls.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace shardscope::collect {

/// Device records of this process by CUPTI's activity API. CUPTI's callbacks only hand buffers over; records are read
/// by whoever calls take(). No lock is held while CUPTI is called. One at a time in a process: CUPTI has one set of
/// callbacks.
class CuptiSource final : public ActivitySource
{
public:
    explicit CuptiSource(CuptiApi api);
    ~CuptiSource() override;

    Result<> start(RecordLevel level) override;
    Result<> setLevel(RecordLevel level) override;
    void push(ContextKind kind, uint64_t value) override;
    void pop(ContextKind kind) override;
    std::optional<uint32_t> streamId(const void *stream) override;
    ActivityBatch take() override;
    ActivityBatch stop() override;

private:
    Result<> subscribe();
    Result<> enableKinds();
    void flushLoop();
    void flush(uint32_t flag);
    void read(const CuptiBuffers::Full &buffer, ActivityBatch &batch);
    void append(const CUpti_Activity &record, ActivityBatch &batch);
    /// A kernel's name, shortened once.
    std::string_view kernelName(const char *mangled);

    CuptiApi m_api;
    CuptiCalls m_calls;
    RecordLevel m_level = RecordLevel::Light;
    CUpti_SubscriberHandle m_subscriber = nullptr;
    std::vector<CUpti_ActivityKind> m_enabled;
    std::vector<std::string> m_warnings; ///< handed out with the next batch
    std::unordered_map<std::string, std::string> m_kernelNames;
    std::unordered_map<const void *, uint32_t> m_streamIds; ///< the train thread's
    std::atomic<int64_t> m_dropped{0};

    std::mutex m_mutex;
    std::condition_variable m_wake;
    bool m_stopping = false;
    std::thread m_flusher;
};

} // namespace shardscope::collect
