// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/page.h"
#include "ui/memory/memory_snapshot.h"

#include <QTimer>

class QAbstractItemModel;
class QComboBox;
class QLabel;
class QSpinBox;
class QTableView;

namespace shardscope::ui {
class Chart;
}

namespace shardscope::ui::memory {

class PeakTableModel;
class ReadoutModel;

/// Where one rank's memory went: the categories stacked over time, every figure at the cursor, and unit × category at
/// a step's peak.
class MemoryPage : public Page
{
    Q_OBJECT
public:
    explicit MemoryPage(const Context &context, QWidget *parent = nullptr);

    QString id() const override { return QStringLiteral("memory"); }
    QString title() const override { return tr("Memory"); }
    QString iconName() const override { return QStringLiteral("office-chart-area-stacked"); }
    QList<QAction *> pageActions() const override { return m_actions; }
    bool isSettled() const override;
    bool find(const QString &text) override;
    bool showSteps(int64_t first, int64_t last) override;

    PeakTableModel &peakTable() { return *m_peakModel; }
    ReadoutModel &readout() { return *m_readoutModel; }
    Chart &chart() { return *m_chart; }
    const MemorySnapshot *snapshot() const { return m_snapshot.get(); }
    /// The query whose rows the table shows; empty where there is no peak.
    QString peakSql() const;

protected:
    void changeEvent(QEvent *event) override;
    void showEvent(QShowEvent *event) override;
    void recordingOpened() override;
    void recordingChanged(const RecordingChange &change) override;
    void recordingClosed() override;

private:
    void build();
    void buildActions();
    QWidget *buildBar();
    QWidget *buildTables();
    QTableView *makeTable(QAbstractItemModel *model, const QString &name);
    void read();
    void onRead(std::shared_ptr<const MemorySnapshot> snapshot);
    void fillChoices();
    void fillSteps();
    bool isTyping() const;
    void fillChart();
    bool isNear(std::optional<int64_t> bytes) const;
    std::optional<int64_t> highestProcessBytes() const;
    void updateNote();
    void updateTitle();
    QString samplesSql() const;
    QString rankText(store::Index process) const;
    void onSelection();
    void showPeakStep(std::optional<int64_t> step);

    MemoryRequest m_request;
    std::shared_ptr<const MemorySnapshot> m_snapshot;
    std::optional<TimeRange> m_view; ///< zoomed into; empty: all
    bool m_reading = false;
    bool m_readAgain = false;
    bool m_dirty = false;     ///< there is more to read than was read while hidden
    bool m_freshTable = true; ///< of another recording than before
    bool m_cancelled = false; ///< the user wants none of it until he says otherwise
    QAction *m_load;
    QTimer m_liveTimer; ///< a live recording is read again no more often than this
    QList<QAction *> m_actions;
    QComboBox *m_rank = nullptr;
    QComboBox *m_place = nullptr;
    QSpinBox *m_step = nullptr;
    Chart *m_chart = nullptr;
    QLabel *m_note = nullptr;
    QLabel *m_peakTitle = nullptr;
    PeakTableModel *m_peakModel = nullptr;
    ReadoutModel *m_readoutModel = nullptr;
    QTableView *m_peakTable = nullptr;
};

} // namespace shardscope::ui::memory
