// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/pages.h"

#include "ui/monitor/live_page.h"
#include "ui/monitor/logs_page.h"
#include "ui/toggles/toggles_panel.h"
#if SHARDSCOPE_HAS_TIMELINE
#include "ui/timeline/timeline_page.h"
#endif
#if SHARDSCOPE_HAS_MEMORY
#include "ui/memory/memory_page.h"
#endif

namespace shardscope::gui {

ui::Page *Pages::byId(const QString &id) const
{
    for (ui::Page *page : all) {
        if (page->id() == id)
            return page;
    }
    return nullptr;
}

Pages makePages(const ui::Page::Context &context, ui::RunCommands &commands, QWidget *parent)
{
    Pages pages;
    pages.live = new ui::LivePage(context, commands, parent);
    auto *toggles = new ui::TogglesPanel(context, commands, pages.live);
    pages.live->setSide(toggles, {toggles->applyAction(), toggles->undoAction(), toggles->shownAction()});
    QObject::connect(pages.live, &ui::LivePage::runSet, toggles, &ui::TogglesPanel::setRun);
    QObject::connect(toggles, &ui::TogglesPanel::inspect, pages.live, &ui::LivePage::inspect);
    QObject::connect(toggles, &ui::TogglesPanel::told, &commands, &ui::RunCommands::finished);
    pages.logs = new ui::LogsPage(context, parent);
    pages.all.push_back(pages.live);
#if SHARDSCOPE_HAS_TIMELINE
    pages.all.push_back(new ui::timeline::TimelinePage(context, parent));
#endif
#if SHARDSCOPE_HAS_MEMORY
    pages.all.push_back(new ui::memory::MemoryPage(context, parent));
#endif
    pages.all.push_back(pages.logs);
    return pages;
}

} // namespace shardscope::gui
