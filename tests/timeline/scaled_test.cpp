// SPDX-License-Identifier: GPL-3.0-or-later
// On a screen scaled by 125 %, where pictures have no whole number of logical pixels.
#include "tests/timeline/random_spans.h"
#include "tests/timeline/snapshot_of.h"
#include "ui/timeline/lane_canvas.h"

#include <QApplication>
#include <QTest>

namespace shardscope::ui::timeline {

class TimelineScaledTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void theLanesAreNotPaintedAnewForTheCursor()
    {
        std::vector<std::vector<Lane>> ranks(1);
        ranks[0].push_back(laneWith(LaneKind::Stream, 1, "stream", randomStream(1000, 1)));
        TimelineState state;
        LaneCanvas lanes(state);
        state.setSnapshot(snapshotOf(std::move(ranks)));
        for (const int width : {801, 802, 803, 804}) {
            lanes.resize(width, 203);
            lanes.show();
            QCOMPARE(lanes.devicePixelRatioF(), 1.25);
            lanes.viewport()->grab();
            const qint64 painted = lanes.lastPaintNs();
            QVERIFY(painted > 0);
            for (int i = 1; i < 5; ++i) {
                state.setCursor(i * 1000);
                lanes.viewport()->grab();
                QCOMPARE(lanes.lastPaintNs(), painted);
            }
        }
    }
};

} // namespace shardscope::ui::timeline

int main(int argc, char **argv)
{
    qputenv("QT_SCALE_FACTOR", "1.25");
    const QApplication application(argc, argv);
    shardscope::ui::timeline::TimelineScaledTest test;
    return QTest::qExec(&test, argc, argv);
}

#include "scaled_test.moc"
