// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explain/explain_view.h"

#include "core/support/file.h"
#include "core/support/text.h"
#include "sim/report/hlo_report.h"
#include "ui/explain/explanation_html.h"
#include "ui/explain/hlo_view.h"
#include "ui/theme/theme.h"
#include "ui/widgets/painter.h"
#include "ui/widgets/text_picture.h"

#include <QBoxLayout>
#include <QFileDialog>
#include <QFileInfo>
#include <QFontDatabase>
#include <QImage>
#include <QLabel>
#include <QListWidget>
#include <QPainter>
#include <QPlainTextEdit>
#include <QSplitter>
#include <QTextBlock>
#include <QTextBrowser>
#include <QTextDocument>
#include <QTimer>
#include <QUrl>

namespace meshwright::ui {

namespace {

constexpr int kTypingMilliseconds = 300; ///< after the last letter what was typed is explained
constexpr int kBesidePictures = 70; ///< pixels: margins around and between two
constexpr int kLeastPicture = 260;
constexpr int kMostPicture = 420;
constexpr std::size_t kMostShownBytes = 4 << 20; ///< of a file, beside what is found in it
constexpr int kPictureHeight = 240;

/// On the mesh and the hardware of the study, where they have the devices of the dump.
Result<sim::HloReport> dumpOf(const std::string& text, const std::string& name, const sim::Analysis* analysis)
{
    auto alone = sim::hloReport(text, name, {}, nullptr);
    if (!alone || analysis == nullptr || analysis->mesh().deviceCount() != alone->module.devices)
        return alone;
    const sim::Machine* machine = analysis->machine.get();
    auto placed = sim::hloReport(text, name, analysis->mesh(), machine);
    return placed ? placed : alone;
}

constexpr std::size_t kColumns = 100; ///< of the exported text

} // namespace

ExplainView::ExplainView(Selection&, QWidget* parent)
    : View(parent)
    , m_status(new QLabel(this))
    , m_text(new QPlainTextEdit(this))
    , m_list(new QListWidget(this))
    , m_message(new QTextBrowser(this))
    , m_halves(new QSplitter(this))
    , m_dump(new HloView(this))
{
    m_status->setTextFormat(Qt::PlainText);
    m_status->setWordWrap(true);
    m_status->setAccessibleName(tr("What was found"));
    m_text->setPlaceholderText(
        tr("Paste an error or a log of JAX, XLA, PyTorch or NCCL here, or an HLO dump, or drop a file on the window."));
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
    m_halves->setChildrenCollapsible(false);
    m_halves->addWidget(left);
    m_halves->addWidget(m_message);
    m_halves->setSizes({20'000, 30'000});
    m_text->setMinimumSize(220, 110);
    m_list->setMinimumHeight(90);
    m_message->setMinimumSize(260, 200);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addWidget(m_status);
    layout->addWidget(m_halves, 1);
    layout->addWidget(m_dump, 1);
    m_dump->hide();

    auto* typing = new QTimer(this);
    typing->setSingleShot(true);
    typing->setInterval(kTypingMilliseconds);
    connect(typing, &QTimer::timeout, this, [this] { explainText(m_text->toPlainText()); });
    connect(m_text, &QPlainTextEdit::textChanged, typing, qOverload<>(&QTimer::start));
    connect(m_list, &QListWidget::currentRowChanged, this, &ExplainView::showMessage);
    connect(m_dump, &HloView::compareRequested, this, [this] {
        const QString path = QFileDialog::getOpenFileName(
            this, tr("Compare with a dump"), QFileInfo(m_file).path(), tr("HLO dumps (*.txt *.hlo);;All files (*)"));
        if (!path.isEmpty())
            compareWith(path);
    });
    connect(m_dump, &HloView::closeRequested, this, [this] {
        m_file.clear();
        m_text->clear();
        explainText({});
        m_text->setFocus();
    });
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
    start([this, path, explain = explaining({}, path.toStdString())](
              const std::stop_token& stop) mutable -> std::function<void()> { return explain(stop); });
}

void ExplainView::explainText(const QString& text)
{
    if (text.trimmed().isEmpty() && m_file.isEmpty()) {
        m_worker.cancel();
        leaveDump();
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
    start(explaining(text.toStdString(), {}));
}

/// Explains a text, or what a file has: messages, or the collectives of a dump.
LatestWorker::Job ExplainView::explaining(std::string given, std::string path, std::shared_ptr<const sim::HloReport> before)
{
    return [this, given = std::move(given), path = std::move(path), before = std::move(before), context = context(),
               analysis = m_analysis](const std::stop_token& stop) -> std::function<void()> {
        const auto failed = [this](const Problems& why) -> std::function<void()> {
            return [this, said = QString::fromStdString(describe(why))] {
                leaveDump();
                showExplained(std::make_shared<const ExplainedText>());
                m_status->setText(said);
            };
        };
        const auto read = path.empty() ? Result<std::string>(given) : readFile(path, kMostExplainedBytes);
        if (!read)
            return failed(read.error());
        if (isHloText(*read)) {
            const auto report = dumpOf(*read, path.empty() ? "the text" : path, analysis.get());
            if (!report)
                return failed(report.error());
            auto shared = std::make_shared<const sim::HloReport>(*report);
            return [this, shared, before] { showDump(shared, before); };
        }
        if (before)
            return failed(
                {Problem{"MW1951", fmt::format("\"{}\" is not a dump of HLO", path), "give a file that begins with HloModule"}});
        auto explained = std::make_shared<const ExplainedText>(meshwright::explainText(*read, context));
        const bool isNccl = explained->messages.empty() && read->find("busbw") != std::string::npos;
        const auto log = isNccl ? std::optional(sim::parseNcclLog(*read, path.empty() ? "the text" : path)) : std::nullopt;
        if (stop.stop_requested())
            return nullptr;
        return [this, explained, log, text = path.empty() ? std::string() : read->substr(0, kMostShownBytes)] {
            leaveDump();
            if (!text.empty())
                showText(text);
            showExplained(explained);
            if (log)
                showNccl(*log);
        };
    };
}

std::shared_ptr<const sim::HloReport> ExplainView::dump() const
{
    return m_dump->isHidden() ? nullptr : m_dump->report();
}

void ExplainView::compareWith(const QString& path)
{
    start(explaining({}, path.toStdString(), m_dump->report()));
}

void ExplainView::showDump(
    const std::shared_ptr<const sim::HloReport>& report, const std::shared_ptr<const sim::HloReport>& before)
{
    m_explained.reset();
    const QString words = QString::fromStdString(before ? sim::hloHeadline(*before, *report) : sim::hloHeadline(*report));
    m_status->setText(words);
    m_halves->hide();
    m_dump->show(report, before);
    m_dump->setVisible(true);
    setFocusProxy(m_dump);
}

void ExplainView::leaveDump()
{
    m_dump->hide();
    m_halves->show();
    setFocusProxy(m_text);
}

/// That of a file, which is not what the user types.
void ExplainView::showText(const std::string& text)
{
    const QSignalBlocker quiet(m_text);
    m_text->setPlainText(QString::fromStdString(text));
}

void ExplainView::showNccl(const Result<sim::NcclLog>& log)
{
    m_isNccl = true;
    const QString name = m_file.isEmpty() ? tr("The text") : QFileInfo(m_file).fileName();
    m_status->setText(log ? tr("%1 is a log of nccl-tests.").arg(name)
                          : tr("%1 is a log of nccl-tests that cannot be read as it stands.").arg(name));
    m_message->setHtml(ncclHtml(log, m_file.isEmpty() ? QStringLiteral("FILE") : shellQuoted(m_file)));
    m_message->show();
}

/// The line of the log at the top of the box, and in it.
void ExplainView::goToLine(std::size_t line)
{
    const QTextBlock block = m_text->document()->findBlockByNumber(static_cast<int>(line) - 1);
    if (!block.isValid())
        return;
    m_text->setTextCursor(QTextCursor(block));
    m_text->centerCursor();
}

void ExplainView::start(LatestWorker::Job job)
{
    m_status->setText(m_file.isEmpty() ? tr("Reading…") : tr("Reading %1…").arg(QFileInfo(m_file).fileName()));
    m_worker.start(std::move(job));
}

void ExplainView::showExplained(const std::shared_ptr<const ExplainedText>& explained)
{
    m_explained = explained;
    m_isNccl = false;
    const QString name = m_file.isEmpty() ? tr("the text") : QFileInfo(m_file).fileName();
    const QString lines = explained->lineCount == 1 ? tr("1 line") : tr("%1 lines").arg(explained->lineCount);
    QString text;
    if (explained->messages.empty() && explained->nearest.empty())
        text = tr("No known message in %1 (%2).").arg(name).arg(lines);
    else if (explained->messages.empty())
        text = tr("No known message in %1 (%2); the nearest is %3.")
                   .arg(name)
                   .arg(lines)
                   .arg(QString::fromStdString(explained->nearest));
    else
        text = tr("%1 in %2 (%3).")
                   .arg(explained->messages.size() == 1 ? tr("1 known message")
                                                        : tr("%1 known messages").arg(explained->messages.size()),
                       name)
                   .arg(lines);
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
    if (row < 0 || !m_explained)
        return;
    const Explanation& message = m_explained->messages[static_cast<std::size_t>(row)];
    const int room = m_message->viewport()->width() - kBesidePictures;
    const auto count = static_cast<int>(message.pictures.size());
    const int across = count * kLeastPicture <= room ? std::max(1, count) : 1;
    const QSize size(std::clamp(room / across, kLeastPicture, kMostPicture), kPictureHeight);
    std::vector<QSize> sizes(message.pictures.size());
    m_message->document()->clear(); // also of the images of another message
    for (std::size_t i = 0; i < message.pictures.size(); ++i) {
        if (!message.pictures[i].layout)
            continue;
        const QImage image = imageOf(layoutPicture(*message.pictures[i].layout, size), size.width());
        sizes[i] = image.deviceIndependentSize().toSize();
        m_message->document()->addResource(QTextDocument::ImageResource, QUrl(QStringLiteral("layout:%1").arg(i)), image);
    }
    m_message->setHtml(explanationHtml(message, sizes, static_cast<std::size_t>(across)));
    if (!message.lines.empty() && (!m_file.isEmpty() || !m_text->hasFocus())) // else it is being typed
        goToLine(message.lines.front());
}

/// As sharp as the screen is, all of it in that width.
QImage ExplainView::imageOf(const DisplayList& picture, int width) const
{
    const double ratio = devicePixelRatioF();
    const double scale = std::min(1.0, width / picture.width);
    const QSize size(qCeil(picture.width * scale), qCeil(picture.height * scale));
    QImage image(size * ratio, QImage::Format_RGB32);
    image.setDevicePixelRatio(ratio);
    QPainter painter(&image);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(QRect(QPoint(), size), m_message->palette().color(QPalette::Base));
    painter.scale(scale, scale);
    paintItems(painter, picture.items, themeOf(palette()));
    return image;
}

/// The pictures in the colours of the theme.
void ExplainView::changeEvent(QEvent* event)
{
    View::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && m_explained)
        showMessage(m_list->currentRow());
}

DisplayList ExplainView::picture() const
{
    if (const auto shown = dump())
        return textPicture(
            "collectives of a dump", m_dump->before() ? sim::hloText(*m_dump->before(), *shown) : sim::hloText(*shown));
    return textPicture("explained messages", m_explained ? explainedText(*m_explained, kColumns) : "nothing was explained");
}

QString ExplainView::command() const
{
    if (m_isNccl)
        return QStringLiteral("meshwright calibrate --nccl ") + (m_file.isEmpty() ? QStringLiteral("FILE") : shellQuoted(m_file));
    return QStringLiteral("meshwright explain ") + (m_file.isEmpty() ? QStringLiteral("-") : shellQuoted(m_file));
}

} // namespace meshwright::ui

#include "moc_explain_view.cpp"
