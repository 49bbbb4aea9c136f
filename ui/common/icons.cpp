// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/icons.h"

#include "ui/common/colors.h"

#include <QFile>

// A static library's resources are only kept when something names them; the macro must stand outside a namespace.
static void initIcons()
{
    Q_INIT_RESOURCE(icons);
}

namespace shardscope::ui {

QIcon icon(const QString &name, const QPalette &palette)
{
    initIcons();
    const QString folder = Colors::of(palette).dark ? QStringLiteral("dark") : QStringLiteral("light");
    const QString path = QStringLiteral(":/icons/%1/%2.svg").arg(folder, name);
    Q_ASSERT_X(QFile::exists(path), "icon", "add the name to resources/icons.txt");
    return QIcon(path);
}

} // namespace shardscope::ui
