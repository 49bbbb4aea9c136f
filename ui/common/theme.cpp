// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/theme.h"

#include "ui/common/colors.h"

#include <QApplication>
#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QDBusVariant>
#include <QStyle>
#include <QStyleFactory>
#include <QToolTip>

namespace shardscope::ui {

static const QString kPortal = QStringLiteral("org.freedesktop.portal.Desktop");
static const QString kPortalPath = QStringLiteral("/org/freedesktop/portal/desktop");
static const QString kSettings = QStringLiteral("org.freedesktop.portal.Settings");
static const QString kAppearance = QStringLiteral("org.freedesktop.appearance");
static const QString kColorScheme = QStringLiteral("color-scheme");

Theme::Theme(QObject *parent)
    : QObject(parent)
    , m_systemDark(QApplication::palette().color(QPalette::Window).lightness() < 128)
{
    QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    m_dark = m_systemDark;
    apply();
    askPortal();
}

Theme::Mode Theme::modeOf(const QString &text)
{
    return text == QLatin1String("light") ? Mode::Light : text == QLatin1String("dark") ? Mode::Dark : Mode::System;
}

QString Theme::textOf(Mode mode)
{
    return mode == Mode::Light  ? QStringLiteral("light")
           : mode == Mode::Dark ? QStringLiteral("dark")
                                : QStringLiteral("system");
}

void Theme::setMode(Mode mode)
{
    m_mode = mode;
    const bool dark = mode == Mode::Dark || (mode == Mode::System && m_systemDark);
    if (dark == m_dark)
        return;
    m_dark = dark;
    apply();
    Q_EMIT changed(dark);
}

void Theme::askPortal()
{
    QDBusConnection bus = QDBusConnection::sessionBus();
    if (!bus.isConnected())
        return;
    bus.connect(kPortal, kPortalPath, kSettings, QStringLiteral("SettingChanged"), this,
                SLOT(onPortalSetting(QString, QString, QDBusVariant)));
    QDBusMessage ask = QDBusMessage::createMethodCall(kPortal, kPortalPath, kSettings, QStringLiteral("Read"));
    ask << kAppearance << kColorScheme;
    auto *watcher = new QDBusPendingCallWatcher(bus.asyncCall(ask, 2000), this);
    connect(watcher, &QDBusPendingCallWatcher::finished, this, [this](QDBusPendingCallWatcher *finished) {
        const QDBusPendingReply<QDBusVariant> reply = *finished;
        if (reply.isValid()) // no portal: the palette's lightness stands
            onPortalSetting(kAppearance, kColorScheme, reply.value());
        finished->deleteLater();
    });
}

void Theme::onPortalSetting(const QString &space, const QString &key, const QDBusVariant &value)
{
    if (space != kAppearance || key != kColorScheme)
        return;
    QVariant plain = value.variant();
    if (plain.canConvert<QDBusVariant>()) // Read wraps twice, SettingChanged once
        plain = plain.value<QDBusVariant>().variant();
    m_systemDark = plain.toUInt() == 1; // 0 no preference, 1 dark, 2 light
    setMode(m_mode);
}

void Theme::apply()
{
    const QPalette palette = m_dark ? darkPalette() : lightPalette();
    QApplication::setPalette(palette);
    QToolTip::setPalette(palette);
}

} // namespace shardscope::ui
