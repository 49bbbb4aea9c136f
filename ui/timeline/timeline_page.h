// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "ui/common/page.h"
#include "ui/timeline/snapshot.h"

namespace shardscope::ui::timeline {

class RangePanel;
class SearchBar;
class TimelineActions;
class TimelineState;
class TimelineView;

/// What every rank did when: all lanes of all ranks over one time axis. Reading, searching and summing happen on the
/// reader's thread; this side only paints from the last snapshot.
class TimelinePage : public Page
{
    Q_OBJECT
public:
    explicit TimelinePage(const Context &context, QWidget *parent = nullptr);
    ~TimelinePage() override;

    QString id() const override { return QStringLiteral("timeline"); }
    QString title() const override { return tr("Timeline"); }
    QString iconName() const override { return QStringLiteral("view-calendar-timeline"); }
    QList<QAction *> pageActions() const override;
    bool find(const QString &text) override;
    bool showSteps(int64_t first, int64_t last) override;

    TimelineState &state() { return *m_state; }
    TimelineView &view() { return *m_view; }
    /// Shows a snapshot as if it had been read; tests and benchmarks have no recording.
    void setSnapshot(std::shared_ptr<const Snapshot> snapshot);

protected:
    void changeEvent(QEvent *event) override;
    void showEvent(QShowEvent *event) override;
    void recordingOpened() override;
    void recordingChanged(const RecordingChange &change) override;
    void recordingClosed() override;

private:
    void build();
    void connectState();
    void read();
    void onRead(Result<std::shared_ptr<const Snapshot>> result);
    void onSpanPicked();
    void onSelectionChanged();
    void startSearch(const QString &text);
    void goToHit(bool forward);
    int64_t pickedHit() const;
    void summarizeRange();
    void clearAll();

    TimelineState *m_state;
    TimelineActions *m_actions = nullptr;
    TimelineView *m_view = nullptr;
    SearchBar *m_search = nullptr;
    RangePanel *m_panel = nullptr;
    QAction *m_load;
    bool m_reading = false;
    bool m_readAgain = false;
    bool m_dirty = false;     ///< there is more to read than was read while hidden
    bool m_cancelled = false; ///< the user wants none of it until he says otherwise
};

} // namespace shardscope::ui::timeline
