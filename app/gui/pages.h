// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/page.h"

#include <vector>

namespace shardscope::ui {
class LivePage;
class LogsPage;
class RunCommands;
} // namespace shardscope::ui

namespace shardscope::gui {

/// The pages, in the order of the switcher. The one place that knows them all.
struct Pages
{
    std::vector<ui::Page *> all;
    ui::LivePage *live = nullptr;
    ui::LogsPage *logs = nullptr;

    ui::Page *byId(const QString &id) const;
};
Pages makePages(const ui::Page::Context &context, ui::RunCommands &commands, QWidget *parent);

} // namespace shardscope::gui
