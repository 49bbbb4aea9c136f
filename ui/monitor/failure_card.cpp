// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/failure_card.h"

#include "core/observe/flight.h"
#include "ui/common/background.h"
#include "ui/common/colors.h"
#include "ui/common/icons.h"
#include "ui/common/paths.h"

#include <QEvent>
#include <QFontDatabase>
#include <QGridLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <csignal>
#include <cstring>

namespace shardscope::ui {

static constexpr int kLines = 12;
static constexpr qint64 kReadBytes = 16 * 1024;

QString lastLines(const std::filesystem::path &path, int lines)
{
    QFile file(fromPath(path));
    if (!file.open(QIODevice::ReadOnly))
        return {};
    file.seek(std::max<qint64>(0, file.size() - kReadBytes));
    QStringList all = QString::fromUtf8(file.read(kReadBytes)).split(u'\n');
    while (!all.isEmpty() && all.last().trimmed().isEmpty())
        all.removeLast();
    return all.mid(std::max<qsizetype>(0, all.size() - lines)).join(u'\n');
}

FailureCard::FailureCard(QWidget *parent)
    : QFrame(parent)
    , m_icon(new QLabel(this))
    , m_headline(new QLabel(this))
    , m_text(new QLabel(this))
    , m_flight(new QLabel(this))
    , m_advice(new QLabel(this))
    , m_lines(new QPlainTextEdit(this))
{
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    setBackgroundRole(QPalette::Base);
    setAccessibleName(tr("Why the run ended"));
    QFont bold = font();
    bold.setBold(true);
    bold.setPointSizeF(bold.pointSizeF() * 1.1);
    m_headline->setFont(bold);
    for (QLabel *label : {m_headline, m_text, m_flight, m_advice}) {
        label->setWordWrap(true);
        label->setTextFormat(Qt::PlainText);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    }
    m_lines->setReadOnly(true);
    m_lines->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_lines->setAccessibleName(tr("Last lines of the log"));
    m_lines->setFixedHeight(m_lines->fontMetrics().lineSpacing() * 7 + 12);
    auto *logs = new QPushButton(tr("Show the log"), this);
    connect(logs, &QPushButton::clicked, this, [this] { Q_EMIT showLogs(m_rank); });

    auto *layout = new QGridLayout(this);
    layout->setContentsMargins(12, 8, 12, 8);
    layout->setSpacing(8);
    layout->addWidget(m_icon, 0, 0, Qt::AlignTop);
    layout->addWidget(m_headline, 0, 1);
    layout->addWidget(logs, 0, 2, Qt::AlignTop);
    layout->addWidget(m_text, 1, 1, 1, 2);
    layout->addWidget(m_lines, 2, 1, 1, 2);
    layout->addWidget(m_flight, 3, 1, 1, 2);
    layout->addWidget(m_advice, 4, 1, 1, 2);
    layout->setColumnStretch(1, 1);
    hide();
}

QString FailureCard::headline(const run::RunStatus &status)
{
    if (status.state == RunState::Lost)
        return tr("The run was lost: its supervisor is gone");
    if (!status.failure)
        return tr("The run failed");
    const run::RunFailure &failure = *status.failure;
    const QString who = failure.rank ? tr("Rank %1").arg(*failure.rank) : tr("The supervisor");
    if (failure.signal) {
        const char *name = sigabbrev_np(*failure.signal);
        return tr("%1 was ended by signal %2 (SIG%3)")
            .arg(who)
            .arg(*failure.signal)
            .arg(QString::fromLatin1(name ? name : "?"));
    }
    if (failure.exitCode)
        return tr("%1 failed with exit code %2").arg(who).arg(*failure.exitCode);
    return tr("%1 failed").arg(who);
}

QString FailureCard::advice(const run::RunStatus &status)
{
    const QString resume =
        status.checkpointStep
            ? tr("It can go on from the checkpoint of step %1: shardscope-cli run --resume, with this run's name.")
                  .arg(*status.checkpointStep)
            : tr("There is no checkpoint to go on from: start the run anew, with checkpoint.every set.");
    if (status.state == RunState::Lost)
        return tr("Its machine was shut down, or it was killed. No rank goes on without its supervisor. %1")
            .arg(resume);
    const run::RunFailure failure = status.failure.value_or(run::RunFailure());
    const QString text = QString::fromStdString(failure.text);
    if (text.contains(QLatin1String("out of memory"), Qt::CaseInsensitive))
        return tr("Make the micro-batch or the sequence shorter, use more ranks, or the strategy “full”. The Memory "
                  "page "
                  "shows what held the memory at the peak. %1")
            .arg(resume);
    if (failure.signal == SIGKILL)
        return tr("Somebody sent it, or the system did because memory ran out (dmesg tells, with “Out of memory”). %1")
            .arg(resume);
    if (failure.signal == SIGSEGV || failure.signal == SIGABRT || failure.signal == SIGBUS)
        return tr("This is a fault of the program or of a library below it: please report it with the lines above. %1")
            .arg(resume);
    return resume;
}

void FailureCard::setRun(const run::RunSummary &run)
{
    const run::RunStatus &status = run.status;
    const bool ended = status.state == RunState::Failed || status.state == RunState::Lost;
    setVisible(ended && run.problem.empty());
    const QString shown = QStringLiteral("%1|%2|%3")
                              .arg(fromPath(run.folder.root()))
                              .arg(status.attempt)
                              .arg(static_cast<int>(status.state));
    if (!ended || shown == m_shown)
        return;
    m_shown = shown;
    m_rank = status.failure && status.failure->rank ? *status.failure->rank : 0;
    updateIcon();
    m_headline->setText(headline(status));
    m_text->setText(status.failure ? QString::fromStdString(status.failure->text).trimmed() : QString());
    m_text->setVisible(!m_text->text().isEmpty());
    m_advice->setText(advice(status));
    m_lines->hide();
    m_flight->hide();
    readLastLines(run);
}

void FailureCard::changeEvent(QEvent *event)
{
    QFrame::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        updateIcon();
}

void FailureCard::updateIcon()
{
    const QColor bad = Colors::of(palette()).bad;
    m_icon->setPixmap(tintedIcon(QStringLiteral("dialog-error"), bad, 22, devicePixelRatioF()));
}

/// What the disk still knows of a dead rank.
struct Remains
{
    QString lines;  ///< the end of its log
    QString flight; ///< the collective that it was in
};

static Remains remainsOf(const run::RunFolder &folder, int attempt, int rank)
{
    Remains remains;
    remains.lines = lastLines(folder.logFile(attempt, rank), kLines);
    const Result<observe::Flight> flight = observe::readFlight(folder.flightFile(attempt, rank));
    const observe::FlightRecord *pending = flight ? flight->pending() : nullptr; // a run on one rank has no ring
    if (pending)
        remains.flight = FailureCard::tr("It was in %1.").arg(QString::fromStdString(observe::describe(*pending)));
    return remains;
}

void FailureCard::readLastLines(const run::RunSummary &run)
{
    const QString shown = m_shown;
    inBackground(
        this,
        [folder = run.folder, attempt = std::max(1, run.status.attempt), rank = m_rank]() -> Result<Remains> {
            return remainsOf(folder, attempt, rank);
        },
        [this, shown](const Result<Remains> &read) {
            if (shown != m_shown)
                return; // another run was chosen meanwhile
            const Remains remains = read ? *read : Remains{QString::fromStdString(read.error().text), {}};
            m_lines->setPlainText(remains.lines);
            // The supervisor's own text is often just these lines.
            m_lines->setVisible(!remains.lines.isEmpty() && !m_text->text().contains(remains.lines.section(u'\n', -1)));
            m_lines->moveCursor(QTextCursor::End);
            m_flight->setText(remains.flight);
            m_flight->setVisible(!remains.flight.isEmpty() && !m_text->text().contains(remains.flight));
        });
}

} // namespace shardscope::ui
