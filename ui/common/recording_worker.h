// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/recording_reader.h"

#include <QTimer>
#include <optional>

namespace shardscope::ui {

/// The half of RecordingReader that lives in its thread: holds the Recording, runs what is asked, polls what grows.
class RecordingWorker : public QObject
{
    Q_OBJECT
public:
    static constexpr int kPollMs = 500; ///< writers commit at least as often

    RecordingWorker();

    void open(const QString &path, uint64_t generation);
    void close();
    void setLive(bool live);
    Result<std::any> run(const std::function<Result<std::any>(store::Recording &, const store::CancelToken &)> &query,
                         const store::CancelToken &cancel);

Q_SIGNALS:
    void opened(uint64_t generation, std::shared_ptr<const shardscope::store::Catalog> catalog);
    void failed(uint64_t generation, const QString &message);
    void changed(uint64_t generation, std::shared_ptr<const shardscope::store::Catalog> catalog,
                 const shardscope::ui::RecordingChange &change);

private:
    void poll();
    Result<RecordingChange> readTail();

    QTimer m_timer;
    std::optional<store::Recording> m_recording;
    std::vector<int64_t> m_seen; ///< last flush ids, by process
    uint64_t m_generation = 0;
};

} // namespace shardscope::ui
