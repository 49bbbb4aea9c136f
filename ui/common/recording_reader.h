// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "profiler/store/recording.h"

#include <QByteArray>
#include <QObject>
#include <QPointer>
#include <QThread>
#include <any>
#include <functional>
#include <map>
#include <memory>

namespace shardscope::ui {

class RecordingWorker;

/// What a live recording has got since the last poll. Times count from the origin.
struct RecordingChange
{
    std::vector<store::Tail> tails; ///< of the processes that have written
    int64_t firstStartNs = 0;       ///< read spans again from here; lastEndNs before it: no new spans
    int64_t lastEndNs = -1;
};

/// The one way from the window to a recording: a thread of its own with its own read-only store::Recording. A request
/// is a function that runs there and returns an immutable snapshot; the answer arrives in the receiver's thread. The
/// newest request of a channel (receiver + name) wins: an older one that waits is dropped, one that runs is told to
/// stop, and its answer never arrives.
class RecordingReader : public QObject
{
    Q_OBJECT
public:
    template <typename T>
    using Snapshot = std::shared_ptr<const T>;
    template <typename T>
    using Query = std::function<Result<Snapshot<T>>(store::Recording &, const store::CancelToken &)>;

    explicit RecordingReader(QObject *parent = nullptr);
    ~RecordingReader() override;

    /// Opens a run folder (or a single database); opened(), waiting() or failed() follows. Whatever was open is closed,
    /// and its requests are cancelled. While it is live, a run that has no database yet is looked at again until it
    /// has.
    void open(const QString &path);
    void close();
    QString path() const { return m_path; }
    bool isOpen() const { return m_isOpen; }
    /// The newest catalogue; null until opened().
    const std::shared_ptr<const store::Catalog> &catalog() const { return m_catalog; }

    /// Whether the flush table is polled (each 500 ms) for more: true while the run goes on.
    void setLive(bool live);
    bool isLive() const { return m_live; }

    /// Runs query on the reader thread and done in this thread, unless receiver is gone or a newer request of the same
    /// channel came first. `reader.request<Steps>(this, "steps", loadSteps, [this](auto steps) { … });`
    template <typename T>
    void request(QObject *receiver, const QByteArray &channel, Query<T> query,
                 std::function<void(Result<Snapshot<T>>)> done)
    {
        submit(
            receiver, channel,
            [query = std::move(query)](store::Recording &recording,
                                       const store::CancelToken &cancel) -> Result<std::any> {
                auto result = query(recording, cancel);
                if (!result)
                    return tl::unexpected<Error>(result.error());
                return std::any(std::move(*result));
            },
            [done = std::move(done)](Result<std::any> result) {
                if (result)
                    done(std::any_cast<Snapshot<T>>(*result));
                else
                    done(tl::unexpected<Error>(result.error()));
            });
    }
    /// Drops what the channel waits for.
    void cancel(QObject *receiver, const QByteArray &channel);
    /// Whether any request waits or runs; --render waits for false.
    bool isBusy() const { return m_opening || !m_pending.empty(); }

Q_SIGNALS:
    /// The recording can be asked now.
    void opened();
    /// It can't be opened or, where isOpen(), not be read any more (changed() follows if it can again): the message
    /// says why and what to do.
    void failed(const QString &message);
    /// The run folder is there but no rank has begun to record; opened() follows when one has (and setLive(true)).
    void waiting();
    /// A live recording has grown; catalog() is newer too.
    void changed(const shardscope::ui::RecordingChange &change);
    void closed();
    void busyChanged(bool busy);

private:
    using AnyQuery = std::function<Result<std::any>(store::Recording &, const store::CancelToken &)>;
    using AnyDone = std::function<void(Result<std::any>)>;
    struct Pending
    {
        store::CancelToken cancel;
        uint64_t serial = 0;
    };
    using Channel = std::pair<QObject *, QByteArray>;

    void submit(QObject *receiver, const QByteArray &channel, AnyQuery query, AnyDone done);
    void finish(const Channel &channel, uint64_t serial, const QPointer<QObject> &receiver, const AnyDone &done,
                Result<std::any> result);
    void cancelAll();
    void workerOpened(uint64_t generation, std::shared_ptr<const store::Catalog> catalog);
    void workerFailed(uint64_t generation, const QString &message);
    void workerChanged(uint64_t generation, std::shared_ptr<const store::Catalog> catalog,
                       const RecordingChange &change);
    void updateBusy();

    QThread m_thread;
    RecordingWorker *m_worker; ///< lives in m_thread, deleted at its end
    std::map<Channel, Pending> m_pending;
    uint64_t m_serial = 0;
    uint64_t m_generation = 0; ///< counts open() and close(): answers of an older one are ignored
    QString m_path;
    std::shared_ptr<const store::Catalog> m_catalog;
    bool m_isOpen = false;
    bool m_opening = false;
    bool m_live = false;
    bool m_wasBusy = false;
};

} // namespace shardscope::ui

Q_DECLARE_METATYPE(shardscope::ui::RecordingChange)
