// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/icons.h"

#include "ui/common/colors.h"

#include <QFile>
#include <QPainter>

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

QPixmap tintedIcon(const QString &name, const QColor &color, int size, qreal devicePixelRatio)
{
    QPixmap pixmap = icon(name, lightPalette()).pixmap(QSize(size, size), devicePixelRatio);
    QPainter painter(&pixmap);
    painter.setCompositionMode(QPainter::CompositionMode_SourceIn);
    painter.fillRect(QRect(0, 0, size, size), color);
    return pixmap;
}

} // namespace shardscope::ui
