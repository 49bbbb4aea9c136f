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
    /// A lock or a folder that is away for a moment is no reason to alarm anybody.
    static constexpr int kPatientPolls = 5;

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

    void onPollFailed(const QString &message);

    QTimer m_timer;
    std::optional<store::Recording> m_recording;
    std::vector<int64_t> m_seen;                  ///< last flush ids, by process
    std::shared_ptr<const store::Catalog> m_told; ///< the catalogue that the receivers know
    uint64_t m_generation = 0;
    int m_failures = 0; ///< polls in a row
};

} // namespace shardscope::ui
