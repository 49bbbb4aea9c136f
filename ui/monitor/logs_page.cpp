// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/logs_page.h"

#include "ui/common/background.h"
#include "ui/common/colors.h"
#include "ui/common/paths.h"
#include "ui/common/text.h"
#include "ui/monitor/log_tail.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QRegularExpression>
#include <QScrollBar>
#include <QToolButton>
#include <algorithm>

namespace shardscope::ui {

static constexpr int kMaxLines = 100000;
static constexpr int kMaxHighlights = 2000;

LogsPage::LogsPage(const Context &context, QWidget *parent)
    : Page(context, parent)
    , m_tail(new LogTail(this))
{
    setContent(buildContent());
    connect(m_log, &QComboBox::activated, this, [this] {
        m_wantedRank = m_log->currentData(Qt::UserRole + 1).toInt();
        followCurrent();
    });
    connect(m_follow, &QCheckBox::toggled, this, [this](bool on) {
        if (on)
            m_text->verticalScrollBar()->setValue(m_text->verticalScrollBar()->maximum());
    });
    connect(m_wrap, &QCheckBox::toggled, this,
            [this](bool on) { m_text->setLineWrapMode(on ? QPlainTextEdit::WidgetWidth : QPlainTextEdit::NoWrap); });
    connect(m_search, &QLineEdit::textChanged, this, [this] {
        highlight();
        search(false, true);
    });
    connect(m_search, &QLineEdit::returnPressed, this, [this] { search(false, false); });
    connect(m_tail, &LogTail::reset, this, [this](qint64 skipped) {
        m_text->clear();
        m_text->setPlaceholderText(tr("This log is empty so far."));
        if (skipped > 0)
            m_text->appendPlainText(tr("… the first %1 are not shown …").arg(bytesText(static_cast<int64_t>(skipped))));
    });
    connect(m_tail, &LogTail::added, this, &LogsPage::append);
    connect(m_tail, &LogTail::failed, this, [this](const QString &message) { m_text->setPlaceholderText(message); });
}

QWidget *LogsPage::buildContent()
{
    auto *content = new QWidget;
    m_log = new QComboBox(content);
    m_log->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    auto *logLabel = new QLabel(tr("&Log of:"), content);
    logLabel->setBuddy(m_log);
    m_follow = new QCheckBox(tr("F&ollow"), content);
    m_follow->setChecked(true);
    m_follow->setToolTip(tr("Stay at the end while lines are added"));
    m_wrap = new QCheckBox(tr("&Wrap lines"), content);
    m_search = new QLineEdit(content);
    m_search->setPlaceholderText(tr("Search this log"));
    m_search->setClearButtonEnabled(true);
    m_search->setAccessibleName(tr("Search this log"));
    m_search->setMaximumWidth(260);
    m_hits = new QLabel(content);
    m_hits->setForegroundRole(QPalette::PlaceholderText);
    auto *previous = new QToolButton(content);
    previous->setText(QStringLiteral("↑"));
    previous->setToolTip(tr("Previous hit (Shift+F3)"));
    previous->setShortcut(Qt::SHIFT | Qt::Key_F3);
    auto *next = new QToolButton(content);
    next->setText(QStringLiteral("↓"));
    next->setToolTip(tr("Next hit (F3)"));
    next->setShortcut(Qt::Key_F3);
    connect(previous, &QToolButton::clicked, this, [this] { search(true, false); });
    connect(next, &QToolButton::clicked, this, [this] { search(false, false); });
    m_text = new QPlainTextEdit(content);
    m_text->setReadOnly(true);
    m_text->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_text->setMaximumBlockCount(kMaxLines);
    m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_text->setFrameShape(QFrame::NoFrame);
    m_text->setAccessibleName(tr("The log's text"));

    auto *bar = new QHBoxLayout;
    bar->setContentsMargins(16, 8, 16, 0);
    bar->setSpacing(8);
    bar->addWidget(logLabel);
    bar->addWidget(m_log);
    bar->addWidget(m_follow);
    bar->addWidget(m_wrap);
    bar->addStretch(1);
    bar->addWidget(m_hits);
    bar->addWidget(m_search);
    bar->addWidget(previous);
    bar->addWidget(next);
    auto *layout = new QVBoxLayout(content);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(8);
    layout->addLayout(bar);
    layout->addWidget(m_text, 1);
    return content;
}

void LogsPage::setRun(const run::RunSummary *run)
{
    const bool same = run && m_run && run->folder.root() == m_run->folder.root() &&
                      run->status.attempt == m_run->status.attempt && run->status.live() == m_run->status.live() &&
                      run->status.ranks.size() == m_run->status.ranks.size();
    const bool anotherRun = !run || !m_run || run->folder.root() != m_run->folder.root();
    m_run = run ? std::optional(*run) : std::nullopt;
    if (!run) {
        m_tail->follow({});
        return;
    }
    if (anotherRun)
        m_wantedRank = 0;
    if (!same)
        listLogs();
    showContent();
}

void LogsPage::onWaiting()
{
    if (m_run)
        showContent();
    else
        Page::onWaiting();
}

void LogsPage::onFailed(const QString &message)
{
    if (!m_run) // the logs stand beside the recording and don't need it
        Page::onFailed(message);
}

void LogsPage::recordingClosed()
{
    m_log->clear();
    m_tail->follow({});
}

void LogsPage::showRank(int rank)
{
    m_wantedRank = rank;
    listLogs();
}

struct LogFile
{
    QString label;
    QString path;
    int rank;
};

/// Ascending. What is there counts: a rank between others may have none.
static std::vector<int> ranksWithLogs(const std::filesystem::path &logs)
{
    static const QRegularExpression pattern(QStringLiteral("^rank-(\\d{1,9})\\.log$"));
    std::vector<int> ranks;
    for (const QString &name : QDir(fromPath(logs)).entryList({QStringLiteral("rank-*.log")}, QDir::Files)) {
        const QRegularExpressionMatch match = pattern.match(name);
        if (match.hasMatch())
            ranks.push_back(match.captured(1).toInt());
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

/// All logs of a run, the newest attempt's first.
static std::vector<LogFile> findLogs(const run::RunFolder &folder)
{
    std::vector<LogFile> logs;
    const std::vector<int> attempts = folder.attempts();
    for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
        for (const int rank : ranksWithLogs(folder.logsFolder(*attempt))) {
            const QString path = fromPath(folder.logFile(*attempt, rank));
            const QString label = attempts.size() > 1 ? LogsPage::tr("rank %1, attempt %2").arg(rank).arg(*attempt)
                                                      : LogsPage::tr("rank %1").arg(rank);
            logs.push_back({label, path, rank});
        }
    }
    return logs;
}

void LogsPage::listLogs()
{
    if (!m_run)
        return;
    const run::RunFolder folder = m_run->folder;
    inBackground(
        this, [folder]() -> Result<std::vector<LogFile>> { return findLogs(folder); },
        [this, folder](const Result<std::vector<LogFile>> &logs) {
            if (!m_run || m_run->folder.root() != folder.root())
                return;
            m_log->clear();
            int wanted = -1;
            for (const LogFile &log : logs.value_or(std::vector<LogFile>())) {
                m_log->addItem(log.label, log.path);
                m_log->setItemData(m_log->count() - 1, log.rank, Qt::UserRole + 1);
                if (log.rank == m_wantedRank && wanted < 0)
                    wanted = m_log->count() - 1;
            }
            if (!logs)
                showEmpty(tr("The logs can't be listed"), QString::fromStdString(logs.error().text));
            else if (logs->empty())
                showNone();
            else
                showContent();
            m_log->setCurrentIndex(std::max(0, wanted));
            followCurrent();
        });
}

void LogsPage::showNone()
{
    const run::RunStatus &status = m_run->status;
    const bool begins = status.state == RunState::Queued || status.state == RunState::Starting;
    if (begins || (status.live() && !status.ranks.empty()))
        showEmpty(tr("No logs yet"), tr("A rank's log appears here as soon as the rank has started."));
    else
        showEmpty(
            tr("This run has no logs"),
            tr("Only ranks that shardscope-cli or the window starts write logs into the run's folder. Under torchrun, "
               "Slurm or mpirun their output is where these put it."));
}

void LogsPage::followCurrent()
{
    m_tail->follow(m_log->currentData().toString());
}

void LogsPage::append(const QString &text)
{
    QScrollBar *bar = m_text->verticalScrollBar();
    const int before = bar->value();
    m_text->appendPlainText(text);
    bar->setValue(m_follow->isChecked() ? bar->maximum() : before);
    if (!m_search->text().isEmpty())
        highlight();
}

bool LogsPage::find(const QString &text)
{
    m_search->setText(text);
    m_search->setFocus();
    return true;
}

bool LogsPage::search(bool backward, bool fromHere)
{
    const QString wanted = m_search->text();
    if (wanted.isEmpty())
        return false;
    QTextCursor from = m_text->textCursor();
    if (fromHere)
        from.setPosition(from.selectionStart());
    const QTextDocument::FindFlags flags = backward ? QTextDocument::FindBackward : QTextDocument::FindFlags();
    QTextCursor hit = m_text->document()->find(wanted, from, flags);
    if (hit.isNull()) { // round the end
        QTextCursor edge(m_text->document());
        edge.movePosition(backward ? QTextCursor::End : QTextCursor::Start);
        hit = m_text->document()->find(wanted, edge, flags);
    }
    if (hit.isNull())
        return false;
    m_follow->setChecked(false);
    m_text->setTextCursor(hit);
    m_text->ensureCursorVisible();
    return true;
}

void LogsPage::highlight()
{
    const QString wanted = m_search->text();
    QList<QTextEdit::ExtraSelection> marks;
    if (!wanted.isEmpty()) {
        const Colors &colors = Colors::of(palette());
        QTextCursor hit(m_text->document());
        while (marks.size() < kMaxHighlights && !(hit = m_text->document()->find(wanted, hit)).isNull()) {
            QTextEdit::ExtraSelection mark;
            mark.cursor = hit;
            mark.format.setBackground(colors.selection);
            marks << mark;
        }
    }
    m_text->setExtraSelections(marks);
    m_hits->setText(wanted.isEmpty()                 ? QString()
                    : marks.size() >= kMaxHighlights ? tr("over %1 hits").arg(kMaxHighlights)
                    : marks.size() == 1              ? tr("1 hit")
                                                     : tr("%1 hits").arg(marks.size()));
}

} // namespace shardscope::ui
