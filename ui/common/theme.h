// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

class QDBusVariant;

namespace shardscope::ui {

/// Puts Fusion and our palette on the application, light or dark, and follows the desktop's setting where asked:
/// Qt 6.4 does not, so the portal is asked over D-Bus; without one the palette's own lightness decides. One in
/// app/gui; widgets only see the PaletteChange that it causes.
class Theme : public QObject
{
    Q_OBJECT
public:
    enum class Mode { System, Light, Dark };
    Q_ENUM(Mode)

    explicit Theme(QObject *parent = nullptr);

    Mode mode() const { return m_mode; }
    void setMode(Mode mode);
    bool isDark() const { return m_dark; }

    /// The mode a text ("system", "light", "dark") names; System where it names none.
    static Mode modeOf(const QString &text);
    static QString textOf(Mode mode);

Q_SIGNALS:
    void changed(bool dark);

private Q_SLOTS:
    void onPortalSetting(const QString &space, const QString &key, const QDBusVariant &value);

private:
    void askPortal();
    void apply();

    Mode m_mode = Mode::System;
    bool m_systemDark = false; ///< what the desktop last said
    bool m_dark = false;       ///< what is applied
};

} // namespace shardscope::ui
