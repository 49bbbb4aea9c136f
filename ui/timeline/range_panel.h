// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/range_models.h"

#include <QWidget>

class QLabel;
class QToolButton;
class QSortFilterProxyModel;
class QTableView;

namespace shardscope::ui::timeline {

/// Below the lanes while a range is selected: where its time went, and in what.
class RangePanel : public QWidget
{
    Q_OBJECT
public:
    explicit RangePanel(QWidget *parent = nullptr);

    void setBusy(TimeRange range);
    void setSummary(std::shared_ptr<const RangeSummary> summary);
    QString csv() const;
    RankSumsModel &rankSums() { return *m_ranks; }
    TopSpansModel &topSpans() { return *m_top; }

Q_SIGNALS:
    void closed();
    /// A span's name was double-clicked: look for it.
    void searchRequested(const QString &name);

protected:
    void changeEvent(QEvent *event) override;

private:
    QTableView *makeTable(QAbstractItemModel *model, const QString &name);
    QLayout *makeTitle();

    RankSumsModel *m_ranks;
    TopSpansModel *m_top;
    QLabel *m_title;
    QToolButton *m_close = nullptr;
    QTableView *m_rankTable;
    QTableView *m_topTable;
};

} // namespace shardscope::ui::timeline
