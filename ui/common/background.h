// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMetaObject>
#include <QPointer>
#include <QThreadPool>
#include <utility>

namespace shardscope::ui {

/// Runs work on a thread of Qt's pool and done(result) in receiver's thread, unless receiver is gone by then. For
/// single jobs of files, sockets and checks: the GUI thread does none of these. work must not touch receiver.
template <typename Work, typename Done>
void inBackground(QObject *receiver, Work work, Done done)
{
    const QPointer<QObject> guard(receiver);
    // The relay lives in the receiver's thread, so that a receiver that dies meanwhile is seen there and not here.
    auto *relay = new QObject;
    relay->moveToThread(receiver->thread());
    QThreadPool::globalInstance()->start([=, work = std::move(work), done = std::move(done)]() mutable {
        auto result = work();
        QMetaObject::invokeMethod(relay, [=, result = std::move(result), done = std::move(done)]() mutable {
            if (guard)
                done(std::move(result));
            relay->deleteLater();
        });
    });
}

} // namespace shardscope::ui
