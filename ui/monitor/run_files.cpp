// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/run_files.h"

#include "core/run/run_lock.h"
#include "core/run/user_notes.h"
#include "ui/common/background.h"
#include "ui/common/paths.h"

#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QDesktopServices>
#include <QUrl>

namespace shardscope::ui {

void renameRun(QObject *receiver, const QString &folder, const QString &shownName, RunFileDone done)
{
    inBackground(
        receiver,
        [folder, shownName]() -> Result<> {
            const run::RunFolder run(toPath(folder));
            Result<run::UserNotes> notes = run::readUserNotes(run);
            if (!notes)
                return tl::unexpected<Error>(notes.error());
            notes->shownName = shownName.trimmed().toStdString();
            return run::writeUserNotes(run, *notes);
        },
        std::move(done));
}

void moveRunToBin(QObject *receiver, const QString &folder, RunFileDone done)
{
    inBackground(
        receiver,
        [folder]() -> Result<> {
            if (run::isLocked(run::RunFolder(toPath(folder))))
                return fail("{} still goes on. Stop it first.", folder.toStdString());
            QFile file(folder);
            if (!file.moveToTrash())
                return fail("{} could not be moved to the bin: {}.", folder.toStdString(),
                            file.errorString().toStdString());
            return {};
        },
        std::move(done));
}

void showInFileManager(QObject *receiver, const QString &folder, RunFileDone done)
{
    const auto openFolder = [folder, done] {
        if (QDesktopServices::openUrl(QUrl::fromLocalFile(folder)))
            done({});
        else
            done(fail("No file manager was found to show {}.", folder.toStdString()));
    };
    const QDBusConnection bus = QDBusConnection::sessionBus();
    if (!bus.isConnected()) {
        openFolder();
        return;
    }
    QDBusMessage show = QDBusMessage::createMethodCall(
        QStringLiteral("org.freedesktop.FileManager1"), QStringLiteral("/org/freedesktop/FileManager1"),
        QStringLiteral("org.freedesktop.FileManager1"), QStringLiteral("ShowItems"));
    show << QStringList{QUrl::fromLocalFile(folder).toString()} << QString();
    auto *watcher = new QDBusPendingCallWatcher(bus.asyncCall(show, 3000), receiver);
    QObject::connect(watcher, &QDBusPendingCallWatcher::finished, receiver, [=](QDBusPendingCallWatcher *call) {
        const QDBusPendingReply<> reply = *call;
        call->deleteLater();
        if (reply.isError())
            openFolder();
        else
            done({});
    });
}

} // namespace shardscope::ui
