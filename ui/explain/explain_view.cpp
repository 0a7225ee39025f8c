// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explain/explain_view.h"

#include "core/support/file.h"
#include "core/support/text.h"
#include "ui/explain/explanation_html.h"
#include "ui/widgets/text_picture.h"

#include <QBoxLayout>
#include <QFileInfo>
#include <QFontDatabase>
#include <QLabel>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QSplitter>
#include <QTextBrowser>
#include <QTimer>

namespace meshwright::ui {

namespace {

constexpr int kTypingMilliseconds = 300; ///< after the last letter what was typed is explained
constexpr std::size_t kColumns = 100; ///< of the exported text

} // namespace

ExplainView::ExplainView(Selection&, QWidget* parent)
    : View(parent)
    , m_status(new QLabel(this))
    , m_text(new QPlainTextEdit(this))
    , m_list(new QListWidget(this))
    , m_message(new QTextBrowser(this))
{
    m_status->setTextFormat(Qt::PlainText);
    m_status->setWordWrap(true);
    m_status->setAccessibleName(tr("What was found"));
    m_text->setPlaceholderText(tr("Paste an error or a log of JAX, XLA, PyTorch or NCCL here, or drop a file on the window."));
    m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_text->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_text->setAccessibleName(tr("Message or log"));
    m_text->setTabChangesFocus(true);
    m_list->setAccessibleName(tr("Known messages"));
    m_list->setWordWrap(true);
    m_message->setAccessibleName(tr("The message explained"));
    m_message->setOpenLinks(false);

    auto* left = new QSplitter(Qt::Vertical, this);
    left->setChildrenCollapsible(false);
    left->addWidget(m_text);
    left->addWidget(m_list);
    auto* halves = new QSplitter(this);
    halves->setChildrenCollapsible(false);
    halves->addWidget(left);
    halves->addWidget(m_message);
    halves->setSizes({20'000, 30'000});
    m_text->setMinimumSize(220, 110);
    m_list->setMinimumHeight(90);
    m_message->setMinimumSize(260, 200);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addWidget(m_status);
    layout->addWidget(halves, 1);

    auto* typing = new QTimer(this);
    typing->setSingleShot(true);
    typing->setInterval(kTypingMilliseconds);
    connect(typing, &QTimer::timeout, this, [this] { explainText(m_text->toPlainText()); });
    connect(m_text, &QPlainTextEdit::textChanged, typing, qOverload<>(&QTimer::start));
    connect(m_list, &QListWidget::currentRowChanged, this, &ExplainView::showMessage);
    setFocusProxy(m_text);
    explainText({});
}

void ExplainView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    if (analysis->built)
        m_analysis = std::move(analysis);
}

ExplainContext ExplainView::context() const
{
    return m_analysis ? ExplainContext{m_analysis->mesh(), {}} : ExplainContext{};
}

void ExplainView::explainFile(const QString& path)
{
    m_file = path;
    m_text->blockSignals(true);
    m_text->clear();
    m_text->blockSignals(false);
    start([this, path, context = context()](const std::stop_token& stop) -> std::function<void()> {
        const auto bytes = readFile(path.toStdString(), kMostExplainedBytes);
        if (!bytes)
            return [this, why = QString::fromStdString(describe(bytes.error()))] {
                showExplained(std::make_shared<const ExplainedText>());
                m_status->setText(why);
            };
        auto explained = std::make_shared<const ExplainedText>(meshwright::explainText(*bytes, context));
        if (stop.stop_requested())
            return nullptr;
        return [this, explained] { showExplained(explained); };
    });
}

void ExplainView::explainText(const QString& text)
{
    if (text.trimmed().isEmpty() && m_file.isEmpty()) {
        m_worker.cancel();
        m_explained.reset();
        m_list->clear();
        m_message->clear();
        m_list->hide();
        m_message->hide();
        m_status->setText(tr("Explains errors and logs: what they mean, and what to do."));
        return;
    }
    if (m_text->toPlainText() != text) {
        m_text->blockSignals(true);
        m_text->setPlainText(text);
        m_text->blockSignals(false);
    }
    m_file.clear();
    start([this, text = text.toStdString(), context = context()](const std::stop_token& stop) -> std::function<void()> {
        auto explained = std::make_shared<const ExplainedText>(meshwright::explainText(text, context));
        if (stop.stop_requested())
            return nullptr;
        return [this, explained] { showExplained(explained); };
    });
}

void ExplainView::start(LatestWorker::Job job)
{
    m_status->setText(m_file.isEmpty() ? tr("Reading…") : tr("Reading %1…").arg(QFileInfo(m_file).fileName()));
    m_worker.start(std::move(job));
}

void ExplainView::showExplained(const std::shared_ptr<const ExplainedText>& explained)
{
    m_explained = explained;
    const QString name = m_file.isEmpty() ? tr("the text") : QFileInfo(m_file).fileName();
    QString text;
    if (explained->messages.empty() && explained->nearest.empty())
        text = tr("No known message in %1 (%2 lines).").arg(name).arg(explained->lineCount);
    else if (explained->messages.empty())
        text = tr("No known message in %1 (%2 lines); the nearest is %3.")
                   .arg(name)
                   .arg(explained->lineCount)
                   .arg(QString::fromStdString(explained->nearest));
    else
        text = tr("%1 in %2 (%3 lines).")
                   .arg(explained->messages.size() == 1 ? tr("1 known message")
                                                        : tr("%1 known messages").arg(explained->messages.size()),
                       name)
                   .arg(explained->lineCount);
    if (explained->leftOut > 0)
        text += tr(" %1 more are not listed.").arg(explained->leftOut);
    if (explained->cut)
        text += tr(" Only its beginning was read.");
    m_status->setText(text);
    m_list->setVisible(!explained->messages.empty());
    m_message->setVisible(!explained->messages.empty());
    m_list->clear();
    m_message->clear();
    for (const Explanation& message : explained->messages)
        m_list->addItem(tr("%1 (%2)").arg(QString::fromStdString(message.title), linesText(message)));
    m_list->setCurrentRow(explained->messages.empty() ? -1 : 0);
}

void ExplainView::showMessage(int row)
{
    if (row >= 0 && m_explained)
        m_message->setHtml(explanationHtml(m_explained->messages[static_cast<std::size_t>(row)]));
}

DisplayList ExplainView::picture() const
{
    return textPicture("explained messages", m_explained ? explainedText(*m_explained, kColumns) : "nothing was explained");
}

QString ExplainView::command() const
{
    return QStringLiteral("meshwright explain ") + (m_file.isEmpty() ? QStringLiteral("-") : shellQuoted(m_file));
}

} // namespace meshwright::ui
