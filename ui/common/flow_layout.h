// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLayout>
#include <memory>
#include <vector>

namespace shardscope::ui {

/// Items in lines, as words in a paragraph: legends and cards that wrap where the window is narrow. With stretch,
/// the items of all lines get equal widths that fill them.
class FlowLayout : public QLayout
{
public:
    explicit FlowLayout(int spacing = 8, bool stretch = false);
    ~FlowLayout() override;

    void addItem(QLayoutItem *item) override;
    int count() const override { return static_cast<int>(m_items.size()); }
    QLayoutItem *itemAt(int index) const override;
    QLayoutItem *takeAt(int index) override;
    Qt::Orientations expandingDirections() const override { return {}; }
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override { return arrange(QRect(0, 0, width, 0), false); }
    void setGeometry(const QRect &rect) override;
    QSize sizeHint() const override { return minimumSize(); }
    QSize minimumSize() const override;

private:
    int arrange(const QRect &rect, bool move) const; ///< returns the height
    int columnWidth(int width) const;                ///< of stretched items

    std::vector<QLayoutItem *> m_items;
    bool m_stretch;
};

} // namespace shardscope::ui
