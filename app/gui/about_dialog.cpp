// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/about_dialog.h"

#include <QDialogButtonBox>
#include <QHeaderView>
#include <QIcon>
#include <QLabel>
#include <QTableWidget>
#include <QVBoxLayout>

namespace shardscope::gui {

struct Library
{
    const char *name;
    const char *use;
    const char *licence;
};

static constexpr Library kLibraries[] = {
    {"Qt 6", "the window", "LGPL-3.0-only"},
    {"QCustomPlot 2.1", "charts", "GPL-3.0-or-later"},
    {"Breeze icons", "icons", "LGPL-3.0-or-later"},
    {"SQLite", "recordings", "public domain (blessing)"},
    {"SQLiteCpp", "recordings", "MIT"},
    {"fmt", "text", "MIT"},
    {"spdlog", "logs", "MIT"},
    {"toml++", "configuration", "MIT"},
    {"JSON for Modern C++", "configuration, state", "MIT"},
    {"CLI11", "command line", "BSD-3-Clause"},
    {"tl::expected", "results", "CC0-1.0"},
    {"xxHash", "checksums", "BSD-2-Clause"},
    {"LibTorch", "training, in shardscope-worker alone", "BSD-3-Clause"},
    {"CUDA runtime, CUPTI, NCCL", "training, in shardscope-worker alone", "NVIDIA's and BSD-3-Clause"},
    {"Gloo", "collectives on CPUs, in shardscope-worker alone", "BSD-3-Clause"},
};

AboutDialog::AboutDialog(QWidget *parent)
    : QDialog(parent)
{
    setWindowTitle(tr("About Shardscope"));
    setAttribute(Qt::WA_DeleteOnClose);
    auto *picture = new QLabel(this);
    picture->setPixmap(QIcon(QStringLiteral(":/icons/shardscope.svg")).pixmap(QSize(64, 64), devicePixelRatioF()));
    auto *text =
        new QLabel(tr("<b>Shardscope %1</b><br>Launches sharded training, watches it, and shows where time and "
                      "memory go.<br>This window: GPL-3.0-or-later. Command line, worker and recorder: "
                      "Apache-2.0.")
                       .arg(QStringLiteral(SHARDSCOPE_VERSION)),
                   this);
    text->setTextFormat(Qt::RichText);
    text->setWordWrap(true);
    auto *head = new QHBoxLayout;
    head->setSpacing(16);
    head->addWidget(picture, 0, Qt::AlignTop);
    head->addWidget(text, 1);

    const int rows = static_cast<int>(std::size(kLibraries));
    auto *table = new QTableWidget(rows, 3, this);
    table->setAccessibleName(tr("Libraries"));
    table->setHorizontalHeaderLabels({tr("Library"), tr("For"), tr("Licence")});
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setSelectionMode(QAbstractItemView::NoSelection);
    table->setShowGrid(false);
    table->setAlternatingRowColors(true);
    table->verticalHeader()->hide();
    for (int row = 0; row < rows; ++row) {
        table->setItem(row, 0, new QTableWidgetItem(QString::fromUtf8(kLibraries[row].name)));
        table->setItem(row, 1, new QTableWidgetItem(tr(kLibraries[row].use)));
        table->setItem(row, 2, new QTableWidgetItem(QString::fromUtf8(kLibraries[row].licence)));
    }
    table->resizeColumnsToContents();
    table->horizontalHeader()->setStretchLastSection(true);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(16, 16, 16, 16);
    layout->addLayout(head);
    layout->addWidget(table, 1);
    layout->addWidget(buttons);
    resize(640, 520);
}

} // namespace shardscope::gui
