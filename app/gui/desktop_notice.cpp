// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/desktop_notice.h"

#include <QCoreApplication>
#include <QDBusConnection>
#include <QDBusMessage>
#include <QVariantMap>

namespace shardscope::gui {

void sendDesktopNotice(const QString &headline, const QString &text, bool lasting)
{
    const QDBusConnection bus = QDBusConnection::sessionBus();
    if (!bus.isConnected())
        return;
    QDBusMessage notify = QDBusMessage::createMethodCall(
        QStringLiteral("org.freedesktop.Notifications"), QStringLiteral("/org/freedesktop/Notifications"),
        QStringLiteral("org.freedesktop.Notifications"), QStringLiteral("Notify"));
    const int never = 0;
    const int usual = -1;
    notify << QCoreApplication::applicationName() << 0U << QStringLiteral("shardscope") << headline << text
           << QStringList() << QVariantMap{{QStringLiteral("desktop-entry"), QStringLiteral("shardscope")}}
           << (lasting ? never : usual);
    bus.send(notify);
}

} // namespace shardscope::gui
