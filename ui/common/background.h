// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <QMetaObject>
#include <QPointer>
#include <QThreadPool>
#include <exception>
#include <type_traits>
#include <utility>

namespace shardscope::ui {

/// What work returns, or as an error the exception that it threw: nothing may leave a thread of the pool.
template <typename Work>
auto withoutExceptions(Work &work) -> std::invoke_result_t<Work &>
{
    try {
        return work();
    } catch (const std::exception &error) {
        return fail("That failed unexpectedly: {}.", error.what());
    }
}

/// Runs work on a thread of the pool and done(result) in receiver's thread, unless receiver is gone by then. For
/// single jobs of files and checks: the GUI thread does none of these. work must not touch receiver, and returns a
/// Result, whose error also says what work threw. Work that waits
/// for others (a run's answer) needs a pool of its own: Qt's has as many threads as the machine has cores.
template <typename Work, typename Done>
void inBackground(QThreadPool &pool, QObject *receiver, Work work, Done done)
{
    const QPointer<QObject> guard(receiver);
    // The relay lives in the receiver's thread, so that a receiver that dies meanwhile is seen there and not here.
    auto *relay = new QObject;
    relay->moveToThread(receiver->thread());
    pool.start([=, work = std::move(work), done = std::move(done)]() mutable {
        auto result = withoutExceptions(work);
        QMetaObject::invokeMethod(relay, [=, result = std::move(result), done = std::move(done)]() mutable {
            if (guard)
                done(std::move(result));
            relay->deleteLater();
        });
    });
}

/// The same on Qt's pool.
template <typename Work, typename Done>
void inBackground(QObject *receiver, Work work, Done done)
{
    inBackground(*QThreadPool::globalInstance(), receiver, std::move(work), std::move(done));
}

} // namespace shardscope::ui
