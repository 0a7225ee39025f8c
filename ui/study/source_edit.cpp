// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/source_edit.h"

#include "core/study/edit_text.h"
#include "ui/theme/theme.h"

#include <QBoxLayout>
#include <QFontDatabase>
#include <QKeyEvent>
#include <QLabel>
#include <QPlainTextEdit>
#include <QRegularExpression>
#include <QScrollBar>
#include <QSyntaxHighlighter>
#include <QTextBlock>

namespace meshwright::ui {

namespace {

/// Keys in the colour of links, comments muted.
class YamlColours : public QSyntaxHighlighter {
public:
    YamlColours(QTextDocument* document, const QWidget& palette)
        : QSyntaxHighlighter(document)
        , m_widget(palette)
    {
    }

protected:
    void highlightBlock(const QString& line) override
    {
        static const QRegularExpression kKey(QStringLiteral("(?:^|[{,\\s-])([\\w.*-]+):(?=\\s|$)"));
        static const QRegularExpression kComment(QStringLiteral("(?:^|\\s)#.*$"));
        const QPalette palette = m_widget.palette();
        for (auto found = kKey.globalMatch(line); found.hasNext();) {
            const auto match = found.next();
            setFormat(static_cast<int>(match.capturedStart(1)), static_cast<int>(match.capturedLength(1)),
                palette.color(QPalette::Link));
        }
        if (const auto match = kComment.match(line); match.hasMatch())
            setFormat(static_cast<int>(match.capturedStart()), static_cast<int>(match.capturedLength()),
                palette.color(QPalette::PlaceholderText));
    }

private:
    const QWidget& m_widget;
};

/// The source with its settings written into it; as it stands where that cannot be.
std::string wholeText(const sim::StudySource& source)
{
    if (source.settings.empty())
        return source.text;
    auto edited = editedText(source.text, source.file, source.settings);
    return edited ? std::move(edited->text) : source.text;
}

} // namespace

SourceEdit::SourceEdit(QWidget* parent)
    : QWidget(parent)
    , m_text(new QPlainTextEdit(this))
    , m_message(new QLabel(this))
{
    m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_text->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_text->setFrameShape(QFrame::NoFrame);
    m_text->setAccessibleName(tr("The study's file"));
    m_text->setUndoRedoEnabled(false); // the study's undo is that of the window
    m_text->installEventFilter(this);
    m_message->setWordWrap(true);
    m_message->setTextFormat(Qt::PlainText);
    m_message->setContentsMargins(8, 4, 8, 6);
    m_message->setAccessibleName(tr("The first mistake"));
    m_message->setTextInteractionFlags(Qt::TextSelectableByMouse);
    new YamlColours(m_text->document(), *this);
    auto* all = new QVBoxLayout(this);
    all->setContentsMargins(0, 0, 0, 0);
    all->setSpacing(0);
    all->addWidget(m_text, 1);
    all->addWidget(m_message);
    setFocusProxy(m_text);

    m_typing.setSingleShot(true);
    m_typing.setInterval(kTypingMilliseconds);
    connect(&m_typing, &QTimer::timeout, this, &SourceEdit::commit);
    connect(m_text, &QPlainTextEdit::textChanged, this, [this] {
        if (!m_isChanging)
            m_typing.start();
    });
    showMistake();
}

void SourceEdit::setSource(const sim::StudySource& source)
{
    if (source == m_source)
        return;
    const bool isOther = source.file != m_source.file;
    m_source = source;
    const QString text = QString::fromStdString(wholeText(source));
    if (text != m_text->toPlainText()) {
        m_isChanging = true;
        isOther ? m_text->setPlainText(text) : replaceWhatDiffers(text);
        m_isChanging = false;
        m_typing.stop();
    }
    showMistake();
}

/// The caret goes where the change is: behind an edit that was undone. Lines elsewhere stay where they are, and none is moved to the side.
void SourceEdit::replaceWhatDiffers(const QString& text)
{
    const QString now = m_text->toPlainText();
    const auto shorter = std::min(now.size(), text.size());
    const auto same = std::mismatch(now.begin(), now.begin() + shorter, text.begin()).first - now.begin();
    const auto end = std::mismatch(now.rbegin(), now.rbegin() + (shorter - same), text.rbegin()).first - now.rbegin();
    QTextCursor cursor(m_text->document());
    cursor.setPosition(static_cast<int>(same));
    cursor.setPosition(static_cast<int>(now.size() - end), QTextCursor::KeepAnchor);
    cursor.insertText(text.mid(same, text.size() - end - same));
    QScrollBar* sideways = m_text->horizontalScrollBar();
    const int left = sideways->value();
    m_text->setTextCursor(cursor);
    sideways->setValue(left);
}

void SourceEdit::setAnalysis(const std::shared_ptr<const sim::Analysis>& analysis)
{
    m_analysis = analysis;
    showMistake();
}

void SourceEdit::commit()
{
    m_typing.stop();
    std::string text = m_text->toPlainText().toStdString();
    if (text != wholeText(m_source))
        Q_EMIT edited(text);
}

/// Undo and redo are the window's; leaving the text ends the typing.
bool SourceEdit::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_text && event->type() == QEvent::ShortcutOverride) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->matches(QKeySequence::Undo) || key->matches(QKeySequence::Redo)) {
            commit();
            event->ignore();
            return true;
        }
    }
    if (watched == m_text && event->type() == QEvent::FocusOut)
        commit();
    return QWidget::eventFilter(watched, event);
}

void SourceEdit::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        showMistake();
}

/// What reading the text says has lines of this text; what the analysis says has them where no settings lie over its text.
void SourceEdit::showMistake()
{
    const std::string text = wholeText(m_source);
    Problems problems;
    if (const auto study = readStudy(text, m_source.file); !study && !text.empty())
        problems = study.error();
    else if (m_analysis && m_analysis->source == sim::StudySource{text, m_source.file, {}})
        problems = m_analysis->problems;
    const auto found = std::find_if(problems.begin(), problems.end(), [&](const Problem& problem) {
        return problem.severity == Severity::Error && problem.place.line > 0 && problem.place.file == m_source.file;
    });
    m_mistake = found == problems.end() ? std::nullopt : std::optional(*found);
    m_message->setVisible(m_mistake.has_value());
    QList<QTextEdit::ExtraSelection> marks;
    if (m_mistake) {
        const Theme theme = themeOf(palette());
        m_message->setText(tr("Line %1: %2").arg(m_mistake->place.line).arg(QString::fromStdString(m_mistake->message)));
        QPalette red = palette();
        red.setColor(QPalette::WindowText, qtColour(ColourRole::Error, theme));
        m_message->setPalette(red);
        m_message->setToolTip(QString::fromStdString(m_mistake->fix));
        QTextEdit::ExtraSelection mark;
        mark.cursor = QTextCursor(m_text->document()->findBlockByNumber(m_mistake->place.line - 1));
        mark.cursor.movePosition(QTextCursor::Right, QTextCursor::MoveAnchor,
            std::clamp(m_mistake->place.column - 1, 0, std::max(0, mark.cursor.block().length() - 2)));
        mark.cursor.movePosition(QTextCursor::EndOfBlock, QTextCursor::KeepAnchor);
        if (!mark.cursor.hasSelection())
            mark.cursor.select(QTextCursor::LineUnderCursor);
        mark.format.setUnderlineStyle(QTextCharFormat::SpellCheckUnderline);
        mark.format.setUnderlineColor(qtColour(ColourRole::Error, theme));
        marks.push_back(mark);
        QTextEdit::ExtraSelection line;
        line.cursor = mark.cursor;
        line.cursor.clearSelection();
        line.format.setProperty(QTextFormat::FullWidthSelection, true);
        line.format.setBackground(palette().color(QPalette::AlternateBase));
        marks.push_front(line);
    }
    m_text->setExtraSelections(marks);
}

} // namespace meshwright::ui

#include "moc_source_edit.cpp"
