// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <QByteArray>
#include <QObject>
#include <QPointer>
#include <QThread>
#include <any>
#include <atomic>
#include <functional>
#include <map>
#include <memory>

namespace shardscope::store {
class Recording;
}

namespace shardscope::ui {

/// Set from the GUI thread when a newer request of the same channel arrives or the run is closed. Long queries look at
/// it between chunks and return fail("cancelled"); what they return then is thrown away.
using CancelFlag = std::atomic<bool>;

/// What a live recording has got since the last poll.
struct RecordingChange
{
    int64_t firstStartNs = 0;   ///< epoch; read again from here
    int64_t lastEndNs = 0;      ///< epoch
    int64_t spans = 0;          ///< recorded so far, all ranks
    int64_t droppedRecords = 0; ///< so far, all ranks
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
    using Query = std::function<Result<Snapshot<T>>(store::Recording &, const CancelFlag &)>;

    explicit RecordingReader(QObject *parent = nullptr);
    ~RecordingReader() override;

    /// Opens a run folder (or a single database); opened() or failed() follows. Whatever was open is closed, and its
    /// requests are cancelled. A run that has no database yet is tried again until it has.
    void open(const QString &path);
    void close();
    QString path() const { return m_path; }
    bool isOpen() const { return m_isOpen; }
    /// Epoch nanoseconds from which all views count; 0 until opened().
    int64_t originNs() const { return m_originNs; }

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
            [query = std::move(query)](store::Recording &recording, const CancelFlag &cancel) -> Result<std::any> {
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
    bool isBusy() const { return !m_pending.empty(); }

Q_SIGNALS:
    /// The recording can be asked now.
    void opened();
    /// It can't be opened: the message says why and what to do.
    void failed(const QString &message);
    /// The run folder is there but no rank has begun to record; opened() follows when one has.
    void waiting();
    /// A live recording has grown.
    void changed(const shardscope::ui::RecordingChange &change);
    void closed();
    void busyChanged(bool busy);

private:
    using AnyQuery = std::function<Result<std::any>(store::Recording &, const CancelFlag &)>;
    using AnyDone = std::function<void(Result<std::any>)>;
    struct Pending
    {
        std::shared_ptr<CancelFlag> cancel;
        uint64_t serial = 0;
    };
    using Channel = std::pair<QObject *, QByteArray>;
    class Worker;

    void submit(QObject *receiver, const QByteArray &channel, AnyQuery query, AnyDone done);
    void finish(const Channel &channel, uint64_t serial, const QPointer<QObject> &receiver, const AnyDone &done,
                Result<std::any> result);
    void cancelAll();
    void updateBusy();

    QThread m_thread;
    Worker *m_worker; ///< lives in m_thread, deleted at its end
    std::map<Channel, Pending> m_pending;
    uint64_t m_serial = 0;
    uint64_t m_generation = 0; ///< counts open() and close(): answers of an older one are ignored
    QString m_path;
    int64_t m_originNs = 0;
    bool m_isOpen = false;
    bool m_live = false;
    bool m_wasBusy = false;
};

} // namespace shardscope::ui

Q_DECLARE_METATYPE(shardscope::ui::RecordingChange)
