// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QIcon>
#include <QList>
#include <QStackedWidget>
#include <QString>

class QAction;

namespace shardscope::run {
struct RunSummary;
}

namespace shardscope::ui {

class Notice;
class RecordingReader;
class Selection;
struct RecordingChange;

/// What the inspector shows of something selected: a span, a unit, a block, a range.
struct InspectorContent
{
    QString title;
    QList<std::pair<QString, QString>> facts; ///< name and value, already formatted
    QString sql;                              ///< the query behind it; may be empty
};

/// One page of the window. It has four faces: its content, an empty one that says what to do, a loading one with
/// progress and Cancel, and an error with its cause. Derived classes build their content with setContent() and switch.
class Page : public QStackedWidget
{
    Q_OBJECT
public:
    /// What all pages share. Both live longer than the pages.
    struct Context
    {
        RecordingReader &reader;
        Selection &selection;
    };

    explicit Page(const Context &context, QWidget *parent = nullptr);

    /// The word of the command line's --render: "timeline".
    virtual QString id() const = 0;
    virtual QString title() const = 0;
    /// Name of the Breeze icon in the switcher.
    virtual QString iconName() const = 0;
    /// Commands of the page: the window puts them in its View menu and the command palette. Shortcuts of single letters
    /// must have Qt::WidgetWithChildrenShortcut.
    virtual QList<QAction *> pageActions() const { return {}; }
    /// Ctrl+F with a text: highlight or go to what matches. False: this page has nothing to find.
    virtual bool find(const QString &) { return false; }
    /// Brings these steps into view, first and last included. False: the page shows none of them.
    virtual bool showSteps(int64_t /*first*/, int64_t /*last*/) { return false; }
    /// The run that is open, as its state.json says now (again each second while it goes on); nullptr: none, or a
    /// single database.
    virtual void setRun(const run::RunSummary *) {}
    /// Nothing is loading any more: --render takes the picture when this is true.
    virtual bool isSettled() const;

    enum class Face { Empty, Loading, Error, Content };
    Face face() const;
    /// Headline and text of the face that is not the content.
    QString noticeText() const;

Q_SIGNALS:
    void inspect(const shardscope::ui::InspectorContent &content);
    /// Another page should come to the front ("timeline"), with the selection as it is now.
    void showPage(const QString &id);
    /// Cancel was pressed on the loading face.
    void cancelled();

protected:
    RecordingReader &reader() const { return m_context.reader; }
    Selection &selection() const { return m_context.selection; }

    /// Takes the widget that is the page's content.
    void setContent(QWidget *content);
    void showContent();
    void showEmpty(const QString &headline, const QString &text, QAction *action = nullptr);
    /// progress in 0…100; negative: not known.
    void showLoading(const QString &text, int progress = -1);
    void showError(const QString &headline, const QString &cause, QAction *action = nullptr);

    /// The reader has opened a recording, or closed it; a live one has grown. The base shows an empty face at
    /// closed, waiting and failed.
    virtual void recordingOpened() {}
    virtual void recordingChanged(const RecordingChange &) {}
    virtual void recordingClosed() {}
    /// The run is there, but no rank has begun to record.
    virtual void onWaiting();
    /// The recording can't be opened or read any more.
    virtual void onFailed(const QString &message);

private:
    Context m_context;
    QWidget *m_content = nullptr;
    Notice *m_notice;
};

} // namespace shardscope::ui

Q_DECLARE_METATYPE(shardscope::ui::InspectorContent)
